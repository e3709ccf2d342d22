use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

use albireo_encoding::{Choose, Encoder, Kind, Source, SourceValues};
use albireo_testing::{Random, test};

use super::*;

fn pool() -> BlockPool {
    BlockPool::new(64 << 20)
}

/// A column of these texts, with a dictionary.
fn column(texts: &[String]) -> Column<Vec<u8>> {
    let (mut ends, mut bytes) = (Vec::new(), Vec::new());
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        ends.push(bytes.len() as u32);
    }
    let (live, rows) = (vec![u64::MAX; texts.len().div_ceil(64)], texts.len());
    let values = SourceValues::Texts { ends: &ends, bytes: &bytes };
    Encoder::new(Choose::Dictionary).encode(&Source {
        kind: Kind::Text,
        values,
        nulls: None,
        live: &live,
        rows,
    })
}

/// The text of a number, `length` bytes or a few more.
fn text(number: usize, length: usize) -> String {
    format!("{number:x}.{}", "x".repeat(length + number % 3))
}

/// Some of `of` texts, those with low numbers often.
fn draw(random: &mut Random, of: u64, length: usize) -> Vec<String> {
    let rows = 1 + random.index(900);
    let any = |random: &mut Random| {
        let most = 1 + random.below(of);
        text(random.below(most) as usize, length)
    };
    (0..rows).map(|_| any(random)).collect()
}

/// A column that shares its texts or has them for itself, and what it must say.
struct Chunk {
    column: Column<Vec<u8>>,
    rows: Vec<String>,
    texts: BTreeSet<String>,
    /// Of its list, if it shares.
    list: Option<u64>,
}

impl Chunk {
    fn check(&self) {
        assert!(self.rows.iter().enumerate().all(|(row, text)| &*self.column.text(row) == text.as_bytes()));
        let dictionary = self.column.dictionary().expect("it has a dictionary");
        let entries = (0..dictionary.entries()).map(|code| entry(&dictionary, code));
        assert!(entries.eq(self.texts.iter().map(|text| text.as_bytes())));
        assert_eq!(self.column.lender().is_some(), self.list.is_some());
    }
}

/// Chunks of a column, and what is known of all texts that ever were there.
struct World {
    pool: BlockPool,
    texts: Arc<ColumnTexts>,
    chunks: Vec<Chunk>,
    ever: BTreeMap<String, Vec<Weak<[u8]>>>,
    lists: u64,
}

impl World {
    fn new(pool: BlockPool) -> Self {
        let (texts, chunks, ever) = (Arc::default(), Vec::new(), BTreeMap::new());
        Self { pool, texts, chunks, ever, lists: 0 }
    }

    fn add(&mut self, rows: Vec<String>, sharing: Sharing, place: u16) {
        let own = column(&rows);
        let texts = rows.iter().cloned().collect();
        let column = self.texts.share(own, sharing, place, &self.pool);
        let list = column.lender().map(|_| {
            self.lists += 1;
            self.lists
        });
        self.chunks.push(Chunk { column, rows, texts, list });
    }

    /// The texts of the chunks that share, and how many lists have each: a column that was cloned has the same list.
    fn shared(&self) -> BTreeMap<&str, usize> {
        let lists: BTreeMap<u64, &Chunk> =
            self.chunks.iter().filter_map(|chunk| Some((chunk.list?, chunk))).collect();
        let mut texts = BTreeMap::new();
        for text in lists.values().flat_map(|chunk| &chunk.texts) {
            *texts.entry(text.as_str()).or_insert(0) += 1;
        }
        texts
    }

    fn check(&mut self) {
        let expected: BTreeMap<String, usize> =
            self.shared().into_iter().map(|(text, lists)| (text.to_owned(), lists)).collect();
        let there = self.texts.state.lock();
        assert!(
            there.texts.iter().map(|text| &**text).eq(expected.keys().map(|text| text.as_bytes())),
            "T-1"
        );
        for text in &there.texts {
            let ever = self.ever.entry(String::from_utf8(text.to_vec()).expect("UTF-8")).or_default();
            if ever.last().is_none_or(|last| !std::ptr::addr_eq(last.as_ptr(), Arc::as_ptr(text))) {
                ever.push(Arc::downgrade(text));
            }
        }
        drop(there);
        for (text, all) in &self.ever {
            // The set has one reference too. What was there before is gone (T-2).
            let references: usize = all.iter().map(Weak::strong_count).sum();
            assert_eq!(references, expected.get(text).map_or(0, |lists| lists + 1), "{text}");
        }
        let found = self.texts.shared();
        let references: usize = expected.values().sum();
        assert_eq!((found.texts, found.references), (expected.len() as u64, references as u64));
        assert_eq!(found.bytes, expected.keys().map(|text| cost(text.as_bytes())).sum::<u64>());
        let lists: BTreeMap<_, _> =
            self.chunks.iter().filter_map(|chunk| Some((chunk.list?, chunk.column.lender()?))).collect();
        let of_lists: u64 = lists.values().map(|list| list_bytes(list.count())).sum();
        let of_noted = self.texts.state.lock().noted.len() as u64 * 4;
        assert_eq!(self.pool.in_use_bytes(), found.bytes + of_lists + of_noted, "T-3");
        let paid: u64 = lists.values().map(|list| list.memory_bytes()).sum();
        assert!(paid <= found.bytes + of_lists && paid + lists.len() as u64 >= found.bytes + of_lists, "T-3");
        self.chunks.iter().for_each(Chunk::check);
    }
}

#[test]
fn texts_are_there_once_and_as_long_as_a_chunk_has_them() {
    test!().for_each_seed(0..25, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new(pool());
        let (of, length) = (random.pick(&[1, 5, 300, 3000]), random.pick(&[1, 30, 240]));
        for step in 0..25_u16 {
            match random.below(10) {
                0..5 => {
                    let sharing = random.pick(&[Sharing::Always, Sharing::WhereItPays, Sharing::Never]);
                    world.add(draw(&mut random, of, length), sharing, step);
                }
                5 if !world.chunks.is_empty() => {
                    let of = random.index(world.chunks.len());
                    let Chunk { column, rows, texts, list } = &world.chunks[of];
                    let (column, rows, texts) = (column.clone(), rows.clone(), texts.clone());
                    let copy = Chunk { column, rows, texts, list: *list };
                    world.chunks.push(copy);
                }
                // It leaves memory, with its own texts, and comes back to share them.
                6 if !world.chunks.is_empty() => {
                    let chunk = world.chunks.swap_remove(random.index(world.chunks.len()));
                    let own = chunk.column.unshared();
                    assert_eq!(format!("{own:?}"), format!("{:?}", column(&chunk.rows)));
                    drop(chunk.column);
                    world.check();
                    world.add(chunk.rows, Sharing::Always, 0);
                }
                _ if !world.chunks.is_empty() => {
                    world.chunks.swap_remove(random.index(world.chunks.len()));
                }
                _ => {}
            }
            world.check();
        }
        world.chunks.clear();
        world.check();
        assert_eq!(world.texts.shared(), SharedTexts::default());
        let World { pool, texts, .. } = world;
        drop(texts);
        assert_eq!(pool.in_use_bytes(), 0);
    });
}

/// Whether a chunk with these texts would share them.
fn shares(world: &mut World, texts: impl Iterator<Item = usize>, length: usize, place: u16) -> bool {
    let rows: Vec<String> = texts.map(|number| text(number, length)).collect();
    world.add(rows, Sharing::WhereItPays, place);
    world.check();
    world.chunks.last().is_some_and(|chunk| chunk.list.is_some())
}

#[test]
fn long_texts_are_shared_from_the_second_chunk_on_that_has_them() {
    for length in [60, 240, 2000] {
        let mut world = World::new(pool());
        assert!(!shares(&mut world, 0..200, length, 1), "nobody else has them");
        assert!(!shares(&mut world, 0..200, length, 1), "it is the same chunk, frozen again");
        assert!(shares(&mut world, 0..200, length, 3));
        assert!(shares(&mut world, 0..200, length, 1));
        assert!(!shares(&mut world, 2000..2200, length, 4), "they are others");
    }
}

#[test]
fn texts_of_several_chunks_that_do_not_share_are_found_again() {
    let mut world = World::new(pool());
    for (place, first) in [(1, 0), (2, 1000), (3, 2000)] {
        assert!(!shares(&mut world, first..first + 200, 240, place), "they are others");
    }
    assert!(shares(&mut world, (0..70).chain(1000..1070).chain(2000..2070), 240, 4));
    // What is shared counts in full.
    assert!(shares(&mut world, (0..70).chain(3000..3130), 240, 5));
}

#[test]
fn short_texts_are_not_shared() {
    for length in [0, 1, 10, 20] {
        let mut world = World::new(pool());
        assert!(!(0..5).any(|place| shares(&mut world, 0..300, length, place)));
        assert!(world.texts.state.lock().noted.is_empty());
    }
}

#[test]
fn names_that_come_again_take_less_when_they_are_shared() {
    let mut random = Random::new(7);
    let mut world = World::new(pool());
    for place in 0..12 {
        // Frequencies fall with the rank.
        let rank = |random: &mut Random| {
            let exponent = random.below(14);
            random.below(1 << exponent) as usize
        };
        let rows = (0..4000).map(|_| text(rank(&mut random), 240)).collect();
        world.add(rows, Sharing::WhereItPays, place);
    }
    world.check();
    let sharing: Vec<&Chunk> = world.chunks.iter().filter(|chunk| chunk.list.is_some()).collect();
    assert!(sharing.len() >= 10, "{} share", sharing.len());
    let bytes = |of: fn(&Chunk) -> u64| sharing.iter().map(|chunk| of(chunk)).sum::<u64>();
    let shared = bytes(|chunk| chunk.column.lender().map_or(0, |list| list.memory_bytes()));
    let own = bytes(|chunk| chunk.column.lent_texts().unwrap_or(0) as u64);
    assert!(shared * 2 < own, "{shared} of {own} bytes");
}

#[test]
fn chunk_for_whose_texts_there_is_no_memory_keeps_its_own() {
    let mut world = World::new(BlockPool::new(2 << 20));
    let long = |from: usize| (from..from + 400).map(|number| text(number, 3000)).collect::<Vec<_>>();
    world.add(long(0), Sharing::Always, 0);
    world.add(long(1000), Sharing::Always, 1);
    world.add(long(1000), Sharing::Always, 2);
    // Those are there.
    world.add(long(0), Sharing::Always, 3);
    let shares: Vec<bool> = world.chunks.iter().map(|chunk| chunk.list.is_some()).collect();
    assert_eq!(shares, [true, false, false, true]);
    world.check();
    world.chunks.clear();
    world.check();
    world.add(long(1000), Sharing::Always, 1);
    assert!(world.chunks[0].list.is_some());
    world.check();
}

#[test]
fn chunks_of_several_threads_share_and_let_go() {
    const THREADS: u64 = 4;
    test!().for_each_seed(0..4, |seed| {
        let (pool, texts) = (pool(), Arc::<ColumnTexts>::default());
        albireo_env::scope(|scope| {
            let spawn = |thread: u64| {
                let (pool, texts) = (&pool, &texts);
                let work = move || {
                    let mut random = Random::new(seed * THREADS + thread);
                    let mut held: Vec<(Column<Vec<u8>>, Vec<String>)> = Vec::new();
                    for step in 0..60_u16 {
                        let rows = draw(&mut random, 400, 50);
                        held.push((texts.share(column(&rows), Sharing::Always, step, pool), rows));
                        if held.len() > 3 {
                            held.swap_remove(random.index(held.len()));
                        }
                        let right = |(column, rows): &(Column<Vec<u8>>, Vec<String>)| {
                            rows.iter().enumerate().all(|(row, text)| &*column.text(row) == text.as_bytes())
                        };
                        assert!(held.iter().all(right));
                    }
                };
                albireo_env::spawn_scoped(scope, "sharer", work).expect("a thread")
            };
            (0..THREADS).map(spawn).collect::<Vec<_>>().into_iter().for_each(|thread| {
                thread.join().expect("it has found nothing");
            });
        });
        assert_eq!(texts.shared(), SharedTexts::default());
        assert!(texts.state.lock().texts.is_empty());
        assert_eq!(pool.in_use_bytes(), 0);
    });
}
