//! Simulations of the same seeds each time; `cargo xtask explore` runs others.

use albireo_sim::{Options, run, run_all};
use albireo_testing::test;

/// What is simulated.
const SEEDS: std::ops::Range<u64> = 0..400;

#[test]
fn seeds_find_nothing_and_meet_everything_that_can_happen() {
    let totals = match run_all(SEEDS, albireo_env::cores(), Options::default(), |_| true) {
        Ok(totals) => totals,
        Err(failure) => panic!("\n{failure}"),
    };
    let counts = totals.counts;
    assert_eq!(totals.runs, SEEDS.end, "{totals}");
    assert!(counts.crashes > totals.runs && counts.recoveries > totals.runs, "{totals}");
    assert!(counts.lost > 0 && counts.refused > 0, "{totals}");
    assert!(counts.archives > 0 && counts.loaded > 0 && counts.without_newest > 0, "{totals}");
    assert!(counts.frozen > 0 && counts.emptied > 0 && counts.evicted > 0, "{totals}");
    assert!(counts.cooled > 0 && counts.warmed > 0, "{totals}");
    assert!(counts.read_faults > 0 && counts.unread > 0 && counts.read_again > 0, "{totals}");
    assert!(counts.spoiled > 0 && counts.stayed_unread > 0, "{totals}");
    assert!(counts.damages > 0 && counts.found > 0 && counts.complete > 0, "{totals}");
}

/// Seeds that found something once.
const FOUND: &[u64] = &[
    // A crash that was planned for opening struck when all rows were read after it, some from an archive's file.
    268_442_954_359_878,
    // An index was built again from the log, of rows that could not be read: opening panicked.
    5_740_910_639_214,
    // One control file was written in part when a crash struck, and the other one was damaged.
    160_307_457_631_038,
];

#[test]
fn seeds_that_have_found_something_find_nothing_more() {
    for seed in FOUND {
        run(*seed, Options::default()).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

#[test]
fn same_seed_makes_the_same_run() {
    test!().for_each_seed(5_000..5_010, |seed| {
        let again = || run(seed, Options::default()).unwrap_or_else(|failure| panic!("\n{failure}"));
        assert_eq!(again(), again());
    });
    let digest = |seed| run(seed, Options::default()).map(|summary| summary.digest);
    assert_ne!(digest(5_000), digest(5_001));
}
