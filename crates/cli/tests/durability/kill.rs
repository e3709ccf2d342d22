//! A process that writes is killed at random moments, again and again; another one, this, has heard of each
//! transaction that was acknowledged.
//!
//! `ALBIREO_KILL_ROUNDS=200` runs so many rounds instead of those that fit in 20 seconds;
//! `ALBIREO_KILL_SEED` repeats the delays of a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::check::{Found, check};
use crate::place::Place;
use crate::writer::{self, mix, prepare};

/// How long the test may take when no number of rounds is asked for.
const TIME: Duration = Duration::from_secs(20);
/// After so many rounds a new database is begun, as each replays all of the log.
const ROUNDS_OF_A_DATABASE: u64 = 10;

/// A process that is killed at the latest when this is dropped.
struct Killed {
    child: Child,
    reader: Option<JoinHandle<Heard>>,
    begun: Receiver<()>,
}

/// What the process said.
#[derive(Default)]
struct Heard {
    /// Each writer's acknowledged transactions.
    numbers: Vec<(i32, i64)>,
    /// What is no such line.
    other: Vec<String>,
}

impl Killed {
    fn start(directory: &Path, durability: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test knows its file"))
            .args([writer::NAME, "--exact", "--nocapture", "--test-threads=1"])
            .env(writer::DIRECTORY, directory)
            .env(writer::DURABILITY, durability)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process can be started");
        let out = child.stdout.take().expect("it is a pipe");
        let (begin, begun) = channel();
        let reader = Some(std::thread::spawn(move || read(BufReader::new(out), &begin)));
        Self { child, reader, begun }
    }

    /// Kills it so long after it was started, or has opened the database; all that it said.
    fn kill_after(mut self, delay: Duration, is_open: bool) -> Heard {
        if is_open {
            let _ = self.begun.recv_timeout(Duration::from_secs(60));
        }
        std::thread::sleep(delay);
        let ended = self.child.try_wait().expect("it can be asked");
        self.kill();
        let reader = self.reader.take().expect("it is taken once");
        let heard = reader.join().expect("reading does not fail");
        assert!(ended.is_none(), "it ended by itself, {ended:?}: {:#?}", heard.other);
        heard
    }

    fn kill(&mut self) {
        // SIGKILL; one that has ended needs none.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read(out: impl BufRead, begin: &Sender<()>) -> Heard {
    let mut heard = Heard::default();
    for line in out.lines().map_while(Result::ok) {
        let number = line.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match number {
            Some(number) => heard.numbers.push(number),
            None if line == "ready" => {
                let _ = begin.send(());
            }
            None => heard.other.push(line),
        }
    }
    heard
}

/// What all rounds gave.
#[derive(Default, Debug)]
struct Total {
    rounds: u64,
    acknowledged: u64,
    unacknowledged: u64,
    lost: u64,
    torn: u64,
    /// Rounds in which nothing was acknowledged, as it was killed while it opened the database.
    early: u64,
}

/// One database and those who write it.
struct Trial {
    place: Place,
    /// Each writer's last acknowledged transaction.
    told: BTreeMap<i32, i64>,
    durability: &'static str,
}

impl Trial {
    fn new(durability: &'static str) -> Self {
        let place = Place::new("kill");
        prepare(place.path());
        Self { place, told: BTreeMap::new(), durability }
    }

    /// Starts the writers, kills them, looks at what they left.
    fn round(&mut self, random: u64, total: &mut Total) -> Found {
        let delay = Duration::from_millis(5 + random % 296);
        // Every fourth counts from the beginning of the process, so that it may be opening the database.
        let is_open = !(random >> 32).is_multiple_of(4);
        let heard = Killed::start(self.place.path(), self.durability).kill_after(delay, is_open);
        for &(writer, number) in &heard.numbers {
            let last = self.told.insert(writer, number);
            assert_eq!(number, last.unwrap_or(0) + 1, "writer {writer} goes on behind what is there");
        }
        let found = check(self.place.path(), &self.told).unwrap_or_else(|error| panic!("{error:?}"));
        total.rounds += 1;
        total.early += u64::from(heard.numbers.is_empty());
        total.acknowledged += heard.numbers.len() as u64;
        total.unacknowledged += found.unacknowledged;
        total.lost += found.lost;
        total.torn += u64::from(found.torn.is_some());
        found
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("the variable is a number"))
}

#[test]
fn killed_process_loses_nothing_that_it_acknowledged() {
    let rounds = number_from("ALBIREO_KILL_ROUNDS");
    let seed = number_from("ALBIREO_KILL_SEED").unwrap_or_else(|| albireo_env::Seeds::real().next_seed());
    eprintln!("ALBIREO_KILL_SEED={seed}");
    let (start, mut total, mut trial) = (Instant::now(), Total::default(), Trial::new("group"));
    while rounds.map_or(start.elapsed() < TIME, |rounds| total.rounds < rounds) {
        if total.rounds > 0 && total.rounds.is_multiple_of(ROUNDS_OF_A_DATABASE) {
            trial = Trial::new("group");
        }
        let found = trial.round(mix(seed.wrapping_add(total.rounds)), &mut total);
        assert!(found.lost == 0 && found.wrong.is_empty(), "seed {seed}, {total:?}: {found:#?}");
        // Those that were there without having been told of are told of by now: anybody can see them.
        trial.told = found.progress;
    }
    eprintln!("{total:?} in {:.1} s", start.elapsed().as_secs_f64());
    assert!(total.acknowledged > 0, "nothing was written: {total:?}");
}

/// So that the test above is known to be able to fail.
#[test]
fn killed_process_that_acknowledges_before_it_writes_loses_whole_transactions_at_the_end() {
    let mut total = Total::default();
    while total.lost == 0 {
        assert!(total.rounds < 30, "{total:?}");
        let found = Trial::new("async").round(mix(total.rounds) | 7 << 32, &mut total);
        assert!(found.wrong.is_empty(), "{found:#?}");
    }
    eprintln!("{total:?}");
}
