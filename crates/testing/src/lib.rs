//! Random tests whose seeds and counts are fixed, unless `cargo xtask explore` sets others.
//!
//! And [`Random`], for tests that draw for themselves, [`wait_until`], for what another thread or process does, and [`damage`], for what is not what was written.
//!
//! Responsible for: which seeds a test runs, the configuration of proptest, and the message that says how to
//! repeat a failure. Not responsible for: what is generated and what is checked; the tests say that.
//!
//! - T-1 Case `n` of a test depends on the seed `first + n` alone, so one seed repeats one case.
//! - T-2 Without `ALBIREO_SEED` and `ALBIREO_CASES` two runs of a test draw the same. No other variable counts:
//!   proptest's own (`PROPTEST_CASES` and the like) are overruled.
#![forbid(unsafe_code)]

mod random;

use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

pub use random::Random;

/// Where the seeds begin; set by `cargo xtask explore` and by whoever repeats a failure.
pub const SEED: &str = "ALBIREO_SEED";

/// How many seeds are run; set by whoever repeats a failure.
pub const CASES: &str = "ALBIREO_CASES";

/// A test, as `cargo test` finds it.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The package.
    package: &'static str,
    /// The path, the crate's name first.
    path: &'static str,
}

impl Test {
    /// The test of `package` that contains the function `path`; [`test!`] knows both.
    pub fn new(package: &'static str, path: &'static str) -> Self {
        let path = path.trim_end_matches("::here").trim_end_matches("::{{closure}}");
        Self { package, path }
    }

    /// The seeds to run, `seeds` unless the environment says otherwise.
    ///
    /// # Panics
    /// A variable is not a number.
    pub fn seeds(&self, seeds: Range<u64>) -> Range<u64> {
        chosen(number(SEED), number(CASES), seeds)
    }

    /// Whether these are the usual seeds, about which more may be asserted than about any.
    pub fn has_usual_seeds(&self) -> bool {
        number(SEED).is_none() && number(CASES).is_none()
    }

    /// Calls `run` with each of [`Test::seeds`]. If it panics, how to repeat that is printed.
    pub fn for_each_seed(&self, seeds: Range<u64>, mut run: impl FnMut(u64)) {
        for seed in self.seeds(seeds) {
            let _repeat = Repeat { test: *self, seed };
            run(seed);
        }
    }

    /// The command that runs one case again.
    pub fn repeat(&self, seed: u64) -> String {
        let (root, name) = self.path.split_once("::").unwrap_or(("", self.path));
        let target = match self.package.replace('-', "_") == root {
            true => "--lib".to_owned(),
            false => format!("--test {root}"),
        };
        format!("{SEED}={seed} {CASES}=1 cargo test -p {} {target} {name} -- --exact", self.package)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// The [`Test`] in which it stands.
#[macro_export]
macro_rules! test {
    () => {{
        fn here() {}
        $crate::Test::new(env!("CARGO_PKG_NAME"), std::any::type_name_of_val(&here))
    }};
}

/// Prints how to repeat a case if the thread panics in it.
struct Repeat {
    test: Test,
    seed: u64,
}

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{} failed with seed {}; repeat it with\n    {}",
                self.test,
                self.seed,
                self.test.repeat(self.seed)
            );
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not \"{text}\"")))
}

fn chosen(first: Option<u64>, count: Option<u64>, seeds: Range<u64>) -> Range<u64> {
    let count = count.unwrap_or(seeds.end - seeds.start);
    let first = first.unwrap_or(seeds.start);
    first..first.saturating_add(count)
}

/// Damages `bytes` in a way that `seed` chooses: a part is flipped, overwritten, cut off, taken out, put in or moved. Half
/// of the damage is in the last quarter, where many formats say what is in the rest.
pub fn damage(bytes: &mut Vec<u8>, seed: u64) {
    let mut random = Random::new(seed);
    let mut below = |end: usize| random.index(end.max(1));
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let start = if below(2) == 0 { 0 } else { length / 4 * 3 };
    let at = start + below(length - start);
    let end = (at + 1 + below(8)).min(length);
    match below(8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => drop(bytes.splice(at..at, vec![below(256) as u8; end - at])),
        3 => bytes[at..end].fill(0xff),
        4 => bytes[at..end].fill(0),
        5 => bytes[at..end].iter_mut().for_each(|byte| *byte = below(256) as u8),
        6 => {
            let from = below(length - (end - at) + 1);
            bytes.copy_within(from..from + (end - at), at);
        }
        _ => bytes[at] ^= 1 << below(8),
    }
}

/// Looks again and again until `is_so`, for as long as it takes: a bound in seconds would fail on a machine that is
/// busy. If it takes many looks, standard error says `what` is waited for, so that a hang explains itself.
#[allow(
    clippy::disallowed_methods,
    reason = "it waits for other threads and processes, which need the processor"
)]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for look in 0_u64.. {
        if is_so() {
            return;
        }
        if look == 20_000 {
            // The harness keeps what `eprintln!` prints until the test ends.
            let _ = writeln!(std::io::stderr(), "still waiting until {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Tests in proptest's form: `fn name(pattern in strategy, ...) { body }`, after `#![cases(number)]`.
#[macro_export]
macro_rules! random_tests {
    (
        #![cases($cases:expr)]
        $(
            $(#[$meta:meta])*
            fn $name:ident($($pattern:pat in $strategy:expr),+ $(,)?) $body:block
        )+
    ) => {
        $(
            $(#[$meta])*
            fn $name() {
                $crate::check(&$crate::test!(), $cases, ($($strategy,)+), |($($pattern,)+)| {
                    $body
                    Ok(())
                });
            }
        )+
    };
}

/// Draws `cases` values and runs `body` with each; [`random_tests!`] writes the call.
///
/// # Panics
/// The body failed; the message has the smallest value found with which it does, and how to repeat it.
pub fn check<S: Strategy>(
    test: &Test,
    cases: u64,
    strategy: S,
    body: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    for seed in test.seeds(0..cases) {
        let mut runner = TestRunner::new_with_rng(config(), rng(seed));
        let (reason, value) = match runner.run(&strategy, &body) {
            Ok(()) => continue,
            Err(TestError::Fail(reason, value)) => (reason, format!("{value:#?}")),
            Err(TestError::Abort(reason)) => (reason, "none: nothing was accepted".to_owned()),
        };
        panic!(
            "{test} failed with seed {seed}: {reason}\nsmallest input: {value}\nrepeat it with\n    {}",
            test.repeat(seed)
        );
    }
}

/// One case. Every field that the environment could change is set here.
fn config() -> Config {
    Config {
        cases: 1,
        max_local_rejects: 65_536,
        max_global_rejects: 1_024,
        max_flat_map_regens: 1_000_000,
        failure_persistence: None,
        max_shrink_time: 0,
        max_shrink_iters: 4_000,
        max_default_size_range: 100,
        rng_algorithm: RngAlgorithm::ChaCha,
        ..Config::default()
    }
}

fn rng(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    fn drawn(seeds: Range<u64>) -> Vec<(u64, String)> {
        let drawn = RefCell::new(Vec::new());
        for seed in seeds {
            let mut runner = TestRunner::new_with_rng(config(), rng(seed));
            let put = |value| {
                drawn.borrow_mut().push(value);
                Ok(())
            };
            runner.run(&(any::<u64>(), any::<String>()), put).unwrap();
        }
        drawn.into_inner()
    }

    #[test]
    fn same_seed_draws_the_same_and_another_seed_something_else() {
        assert_eq!(drawn(0..20), drawn(0..20));
        assert_eq!(drawn(7..8), drawn(0..20)[7..8]);
        assert_ne!(drawn(0..1), drawn(1..2));
    }

    #[test]
    fn damage_is_the_same_for_a_seed_and_nearly_always_some() {
        let whole: Vec<u8> = (0..=255).collect();
        let damaged = |seed| {
            let mut bytes = whole.clone();
            damage(&mut bytes, seed);
            bytes
        };
        assert!((0..500).all(|seed| damaged(seed) == damaged(seed)));
        assert!((0..500).filter(|seed| damaged(*seed) == whole).count() < 10);
        assert!(
            (0..500).any(|seed| damaged(seed).len() < 64) && (0..500).any(|seed| damaged(seed).len() > 256)
        );
        (0..100).for_each(|seed| damage(&mut Vec::new(), seed));
    }

    #[test]
    fn environment_chooses_the_first_seed_and_the_count() {
        assert_eq!(chosen(None, None, 1..11), 1..11);
        assert_eq!(chosen(Some(90), None, 1..11), 90..100);
        assert_eq!(chosen(Some(90), Some(1), 1..11), 90..91);
        assert_eq!(chosen(None, Some(3), 1..11), 1..4);
    }

    #[test]
    fn test_knows_its_package_its_target_and_its_path() {
        let inside_of_a_closure = || test!();
        let expected = "ALBIREO_SEED=7 ALBIREO_CASES=1 cargo test -p albireo-testing --lib \
            tests::test_knows_its_package_its_target_and_its_path -- --exact";
        assert_eq!(test!().repeat(7), expected);
        assert_eq!(inside_of_a_closure().repeat(7), expected);
        let other = Test::new("albireo-storage", "model::cells::rows::here");
        assert!(other.repeat(7).contains("-p albireo-storage --test model cells::rows -- "));
    }

    #[test]
    fn failing_case_is_shrunk_and_its_message_says_how_to_repeat_it() {
        let test = test!();
        let fails = || {
            check(&test, 50, (0u32..1_000,), |(n,)| {
                prop_assert!(n < 100, "{} is large", n);
                Ok(())
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(fails)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("100 is large") && text.contains("ALBIREO_SEED="), "{text}");
    }

    #[test]
    fn body_that_panics_fails_the_test() {
        let test = test!();
        let panics = || check(&test, 5, (0u32..10,), |(n,)| panic!("no {n}"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let mut runs = 0;
        let panics = AssertUnwindSafe(|| {
            test.for_each_seed(3..9, |seed| {
                runs += 1;
                assert!(seed < 5);
            })
        });
        assert!(catch_unwind(panics).is_err());
        assert_eq!(runs, 3);
    }

    random_tests! {
        #![cases(10)]

        #[test]
        fn tests_of_the_macro_draw_from_every_strategy(a in 0u8..3, mut b in any::<Vec<u8>>()) {
            prop_assume!(a < 3);
            b.push(a);
            prop_assert_eq!(b.last(), Some(&a));
        }
    }
}
