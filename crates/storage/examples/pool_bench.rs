//! Question: what do parts cost, and slabs that go back to the kernel and come again, in microseconds?
//!
//! Each line is the median of many, with the least and the one of a hundred that takes longest. Times are those of the
//! wall. Answers are checked by sums.

use std::hint::black_box;

use albireo_env::Clock;
use albireo_storage::{BlockPool, Part, SLAB_BYTES};

fn print(name: &str, mut ns: Vec<u64>) {
    ns.sort_unstable();
    let us = |at: usize| ns[at.min(ns.len() - 1)] as f64 / 1000.0;
    let (least, median, late) = (us(0), us(ns.len() / 2), us(ns.len() * 99 / 100));
    println!("{name:<44} {median:>9.2} us  ({least:.2} .. {late:.2})");
}

/// Fills so many slabs and frees them; what each took.
fn fill_and_free(pool: &BlockPool, slabs: usize, clock: &Clock) -> Vec<u64> {
    let mut times = Vec::new();
    let mut blocks = Vec::new();
    for _ in 0..slabs {
        let start = clock.now();
        let block = pool.alloc(SLAB_BYTES).expect("memory");
        for offset in (0..SLAB_BYTES).step_by(4096) {
            // SAFETY: the block is ours, of this size.
            unsafe { block.add(offset).write_volatile(1) };
        }
        times.push(clock.now() - start);
        blocks.push(block);
    }
    for block in blocks {
        // SAFETY: ours, of this size, given back once.
        unsafe { pool.free(block, SLAB_BYTES) };
    }
    times
}

fn main() {
    let clock = Clock::real();
    let pool = BlockPool::new(4 << 30);
    print("slab, first touch", fill_and_free(&pool, 400, &clock));
    print("slab, warm", fill_and_free(&pool, 400, &clock));
    pool.shrink();
    let start = clock.now();
    let slabs = pool.shrink() / SLAB_BYTES as u64;
    println!(
        "{slabs} slabs given back, each in {:.2} us",
        (clock.now() - start) as f64 / 1000.0 / slabs as f64
    );
    let mut again = fill_and_free(&pool, 400, &clock);
    print("slab, touched again", again.split_off(30));

    let content: Vec<u8> = (0..4 << 20).map(|n: u32| n as u8).collect();
    for len in [100, 4_000, 40_000, 130_000, 500_000, 600_000, 2_000_000, 3_276_800] {
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let start = clock.now();
            let part = Part::new(&pool, &content[..len]).expect("memory");
            let made = clock.now();
            black_box(part[len / 2]);
            new.push(made - start);
            let start = clock.now();
            drop(part);
            gone.push(clock.now() - start);
        }
        print(&format!("part of {len} bytes, new"), new);
        print(&format!("part of {len} bytes, dropped"), gone);
    }
}
