//! Runs of the simulation in CI.

use albireo_env::Clock;
use albireo_sim::{Options, Totals, run, run_all};

/// Seeds that are run in any case, and at most.
const LEAST: u64 = 100;
const MOST: u64 = 3_000;

/// How long the others may take.
const SECONDS: u64 = 40;

#[test]
fn seeds_find_nothing_and_meet_everything_that_can_happen() {
    let clock = Clock::real();
    let go_on = |totals: &Totals| totals.runs < LEAST || clock.now() < SECONDS * 1_000_000_000;
    let totals = match run_all(0..MOST, albireo_env::cores(), Options::default(), go_on) {
        Ok(totals) => totals,
        Err(failure) => panic!("\n{failure}"),
    };
    println!("{totals}, in {} ms", clock.now() / 1_000_000);
    let counts = totals.counts;
    assert!(totals.runs >= LEAST, "{totals}");
    assert!(counts.crashes > totals.runs && counts.recoveries > totals.runs, "{totals}");
    assert!(counts.lost > 0 && counts.refused > 0, "{totals}");
    assert!(counts.archives > 0 && counts.loaded > 0 && counts.without_newest > 0, "{totals}");
    assert!(counts.damages > 0 && counts.found > 0 && counts.complete > 0, "{totals}");
}

#[test]
fn same_seed_makes_the_same_run() {
    for seed in 5_000..5_010 {
        let again = || run(seed, Options::default()).unwrap_or_else(|failure| panic!("\n{failure}"));
        assert_eq!(again(), again());
    }
    let digest = |seed| run(seed, Options::default()).map(|summary| summary.digest);
    assert_ne!(digest(5_000), digest(5_001));
}
