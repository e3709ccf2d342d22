//! `cargo xtask explore`: random tests, kills and simulations with seeds that nobody has run before.
//!
//! Responsible for: which parts there are, their shares of the time, fresh seeds, and what is said of findings. Not
//! responsible for: finding the random tests in the source (`random`), what a test does with its seed
//! (`albireo-testing`).
//!
//! A round of a part runs all its tests with as many seeds as `cargo test` has, from another first one. A part runs
//! rounds until its share of the time is over, at least one.

mod random;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, ExitStatus, Output};
use std::time::{Duration, Instant};

/// For how long, if nobody says.
const MINUTES: f64 = 10.0;

/// Seeds between the rounds of a part, more than any test runs in one.
const SEEDS_OF_A_ROUND: u64 = 1_000_000;

/// Seeds of random routines and statements that a round asks PostgreSQL about.
const ROUTINES: &str = "300";

/// Lines of a test's output that are shown when it fails.
const SHOWN_LINES: usize = 60;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
struct Options {
    minutes: f64,
    /// The first seed, if it is given.
    seed: Option<u64>,
    is_release: bool,
    /// Parts with one of these in their names or those of their tests; all, if there are none.
    wanted: Vec<String>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self { minutes: MINUTES, seed: None, is_release: false, wanted: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} wants a number behind it"));
            match *argument {
                "--minutes" => options.minutes = number(argument, value()?)?,
                "--seed" => options.seed = Some(number(argument, value()?)?),
                "--release" => options.is_release = true,
                other if other.starts_with('-') => {
                    return Err(format!(
                        "there is no option {other}; there are --minutes N, --seed N, --release"
                    ));
                }
                other => options.wanted.push(other.to_owned()),
            }
        }
        match options.minutes.is_finite() && options.minutes >= 0.0 {
            true => Ok(options),
            false => Err("--minutes wants a number that is not negative".to_owned()),
        }
    }

    fn wants(&self, part: &Part) -> bool {
        let mut names = vec![part.to_string()];
        if let Part::Tests(target) = part {
            names.extend(target.tests.iter().cloned());
        }
        let is_named = |wanted: &String| names.iter().any(|name| name.contains(wanted.as_str()));
        self.wanted.is_empty() || self.wanted.iter().any(is_named)
    }
}

fn number<T: std::str::FromStr>(argument: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{argument} wants a number, not \"{text}\""))
}

/// Something that takes seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Random tests of one library or test program.
    Tests(random::TestTarget),
    /// Random routines and statements, asked of PostgreSQL as well.
    PostgreSql,
    /// Databases in simulated worlds.
    Simulation,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tests(target) => target.fmt(f),
            Self::PostgreSql => f.write_str("postgresql"),
            Self::Simulation => f.write_str("simulation"),
        }
    }
}

impl Part {
    /// What runs a round from `seed` on, whose share of the time is `share`.
    fn command(&self, root: &Path, seed: u64, share: Duration, is_release: bool) -> Command {
        let mut command = match self {
            Self::Tests(target) => {
                let mut command = cargo(root, "test", is_release);
                command.env("ALBIREO_SEED", seed.to_string()).args(target.selection());
                command.arg("--").args(&target.tests);
                command
            }
            Self::PostgreSql => {
                let mut command = Command::new(root.join("crates/plpgsql/tests/against_postgresql.py"));
                command.args([ROUTINES, &seed.to_string()]);
                command
            }
            Self::Simulation => {
                let mut command = cargo(root, "run", is_release);
                let minutes = format!("{:.3}", share.as_secs_f64() / 60.0);
                let seeds = format!("{seed}..{}", u64::MAX);
                command.args(["-p", "albireo-sim", "--", "--seeds", &seeds, "--minutes", &minutes]);
                command
            }
        };
        command.current_dir(root);
        command
    }

    /// What builds it, so that building takes nothing of its share.
    fn build(&self, root: &Path, is_release: bool) -> Command {
        let mut command = cargo(root, "test", is_release);
        match self {
            Self::Tests(target) => command.arg("--no-run").args(target.selection()),
            Self::PostgreSql => {
                let tests = ["--lib", "--test", "random", "--test", "routines_agree_with_postgresql"];
                command.args(["--no-run", "--workspace"]).args(tests)
            }
            Self::Simulation => {
                command = cargo(root, "build", is_release);
                command.args(["-p", "albireo-sim"])
            }
        };
        command
    }

    /// Whether one round takes all of the part's share.
    fn is_one_round(&self) -> bool {
        *self == Self::Simulation
    }
}

fn cargo(root: &Path, what: &str, is_release: bool) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args([what, "--quiet"]);
    if is_release {
        command.arg("--release");
    }
    command
}

/// Explores as `arguments` say.
///
/// # Errors
/// Something was found, whose repetition has been printed; or nothing could be run.
pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let mut parts: Vec<Part> = random::find(root)?.into_iter().map(Part::Tests).collect();
    parts.push(Part::Simulation);
    if has_postgresql() {
        parts.push(Part::PostgreSql);
    } else {
        eprintln!(
            "SKIPPED: PostgreSQL 15 is not installed; nobody is asked about random routines and statements"
        );
    }
    parts.retain(|part| options.wants(part));
    if parts.is_empty() {
        return Err(format!("nothing is called {}", options.wanted.join(" or ")));
    }
    for part in &parts {
        println!("building {part}");
        let status = part.build(root, options.is_release).status();
        succeeded(&status.map_err(|error| format!("cannot run cargo: {error}"))?, &part.to_string())?;
    }
    // Short enough to be read, and far from where the sums with it would end.
    let seed = options.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 24);
    println!("exploring {} parts for {} minutes: --seed {seed}", parts.len(), options.minutes);
    let share = Duration::from_secs_f64(options.minutes * 60.0) / parts.len() as u32;
    let mut findings = Vec::new();
    for part in &parts {
        let found = explore(part, root, seed, share, options.is_release)?;
        findings.extend(found.map(|found| format!("{part}\n{found}")));
    }
    match findings.len() {
        0 => {
            println!("nothing was found");
            Ok(())
        }
        count => {
            eprintln!("\n{}", findings.join("\n"));
            Err(format!("explore: {count} of {} parts found something", parts.len()))
        }
    }
}

/// Runs rounds of a part; how to repeat what was found.
fn explore(
    part: &Part,
    root: &Path,
    seed: u64,
    share: Duration,
    is_release: bool,
) -> Result<Option<String>, String> {
    let begin = Instant::now();
    for round in 0.. {
        let first = seed + round * SEEDS_OF_A_ROUND;
        let mut command = part.command(root, first, share, is_release);
        let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
        if !output.status.success() {
            let text = text_of(&output);
            eprintln!("{}", last_lines(&text));
            println!("{part}: FOUND something in round {} from seed {first}", round + 1);
            return Ok(Some(repetitions(&text).unwrap_or_else(|| format!("    {}", shown(&command)))));
        }
        if part.is_one_round() || begin.elapsed() >= share {
            println!(
                "{part}: {} rounds in {:.0} s, last from seed {first}",
                round + 1,
                begin.elapsed().as_secs_f64()
            );
            return Ok(None);
        }
    }
    Ok(None)
}

fn text_of(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// The commands that a failure's output names.
fn repetitions(text: &str) -> Option<String> {
    let commands = text.lines().zip(text.lines().skip(1)).filter_map(|(line, next)| {
        let is_told_next = line.ends_with("repeat it with");
        if is_told_next { Some(next.trim()) } else { line.trim().strip_prefix("again: ") }
    });
    let last = text.lines().last().and_then(|line| line.trim().strip_prefix("again: "));
    let mut commands: Vec<String> = commands.chain(last).map(|command| format!("    {command}")).collect();
    commands.dedup();
    (!commands.is_empty()).then(|| commands.join("\n"))
}

/// The command as a shell takes it.
fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

fn succeeded(status: &ExitStatus, what: &str) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("building {what}: {status}")) }
}

fn has_postgresql() -> bool {
    let version = Command::new("/usr/lib/postgresql/15/bin/postgres").arg("--version").output();
    let other = || Command::new("pg_config").arg("--version").output();
    let is_15 = |output: Output| String::from_utf8_lossy(&output.stdout).contains(" 15.");
    version.is_ok_and(is_15) || other().is_ok_and(is_15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> Part {
        let tests = vec!["tree_is_right".to_owned()];
        Part::Tests(random::TestTarget {
            package: "albireo-storage".into(),
            test: Some("model".into()),
            tests,
        })
    }

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let options =
            Options::parse(&["--minutes", "0.5", "storage", "--seed", "7", "--release", "kill"]).unwrap();
        assert_eq!((options.minutes, options.seed, options.is_release), (0.5, Some(7), true));
        assert_eq!(options.wanted, ["storage", "kill"]);
        assert!(options.wants(&tests()) && !options.wants(&Part::Simulation));
        assert!(Options::parse(&["tree_is"]).unwrap().wants(&tests()));
        assert_eq!(tests().to_string(), "storage/model (1 test)");
        assert!(Options::parse(&[]).unwrap().wants(&Part::Simulation));
        for wrong in [&["--minutes"][..], &["--minutes", "soon"], &["--minutes", "-1"], &["--seeds", "1"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn round_of_tests_gets_its_seed_and_only_random_tests() {
        let command = tests().command(Path::new("r"), 77, Duration::ZERO, false);
        let expected = "ALBIREO_SEED=77 cargo test --quiet -p albireo-storage --test model -- tree_is_right";
        assert_eq!(shown(&command), expected);
        let command = Part::Simulation.command(Path::new("r"), 77, Duration::from_secs(90), true);
        assert!(
            shown(&command)
                .ends_with("--release -p albireo-sim -- --seeds 77..18446744073709551615 --minutes 1.500")
        );
    }

    #[test]
    fn repetition_that_a_failure_prints_is_found() {
        let text =
            "x failed with seed 7; repeat it with\n    ALBIREO_SEED=7 cargo test\nagain: cargo run\nmore";
        assert_eq!(repetitions(text).as_deref(), Some("    ALBIREO_SEED=7 cargo test\n    cargo run"));
        assert_eq!(repetitions("again: cargo run").as_deref(), Some("    cargo run"));
        assert_eq!(repetitions("it just failed\n"), None);
    }
}
