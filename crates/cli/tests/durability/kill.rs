//! A process that writes is killed at random moments, again and again; another one, this, has heard of each
//! transaction that was acknowledged.
//!
//! The moment is so many acknowledged transactions after its start, or so many looks at the process, as the
//! round's seed says; no clock has a say in it. `ALBIREO_CASES=200` runs so many rounds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use albireo_testing::test;

use crate::check::{Recovered, check};
use crate::directory::TestDirectory;
use crate::writer::{self, mix, prepare};

/// Rounds, by their seeds.
const ROUNDS: Range<u64> = 0..30;
/// After so many rounds a new database is begun, as each replays all of the log.
const ROUNDS_OF_A_DATABASE: u64 = 10;

/// When a process is killed.
#[derive(Debug)]
struct Moment {
    /// So many transactions have been acknowledged; `None`: it may still be opening the database.
    acknowledged: Option<u64>,
    /// And then it has been looked at so many times.
    looks: u64,
}

impl Moment {
    /// Any.
    fn of(seed: u64) -> Self {
        let random = mix(seed);
        let acknowledged = (!random.is_multiple_of(4)).then_some((random >> 8) % 400);
        let most = if acknowledged.is_some() { 500 } else { 50_000 };
        Self { acknowledged, looks: (random >> 32) % most }
    }
}

/// A process that is killed at the latest when this is dropped.
struct Killed {
    child: Child,
    reader: Option<JoinHandle<Heard>>,
    /// One for each transaction that is acknowledged.
    acknowledged: Receiver<()>,
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
        let (tell, acknowledged) = channel();
        let reader = Some(std::thread::spawn(move || read(BufReader::new(out), &tell)));
        Self { child, reader, acknowledged }
    }

    /// Kills it at a moment; all that it said.
    fn kill_at(mut self, moment: &Moment) -> Heard {
        for _ in 0..moment.acknowledged.map_or(0, |count| count + 1) {
            // One that has ended acknowledges no more.
            let _ = self.acknowledged.recv();
        }
        for _ in 0..moment.looks {
            self.child.try_wait().expect("it can be asked");
        }
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

fn read(out: impl BufRead, tell: &Sender<()>) -> Heard {
    let mut heard = Heard::default();
    for line in out.lines().map_while(Result::ok) {
        let number = line.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match number {
            Some(number) => {
                heard.numbers.push(number);
                let _ = tell.send(());
            }
            None if line == "ready" => {}
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
    place: TestDirectory,
    /// Each writer's last acknowledged transaction.
    told: BTreeMap<i32, i64>,
    durability: &'static str,
}

impl Trial {
    fn new(durability: &'static str) -> Self {
        let place = TestDirectory::new("kill");
        prepare(place.path());
        Self { place, told: BTreeMap::new(), durability }
    }

    /// Starts the writers, kills them, looks at what they left.
    fn round(&mut self, moment: &Moment, total: &mut Total) -> Recovered {
        let heard = Killed::start(self.place.path(), self.durability).kill_at(moment);
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

#[test]
fn killed_process_loses_nothing_that_it_acknowledged() {
    let (mut total, mut trial) = (Total::default(), Trial::new("group"));
    let test = test!();
    test.for_each_seed(ROUNDS, |seed| {
        if total.rounds > 0 && total.rounds.is_multiple_of(ROUNDS_OF_A_DATABASE) {
            trial = Trial::new("group");
        }
        let moment = Moment::of(seed);
        let found = trial.round(&moment, &mut total);
        assert!(found.lost == 0 && found.wrong.is_empty(), "{moment:?}, {total:?}: {found:#?}");
        // Those that were there without having been told of are told of by now: anybody can see them.
        trial.told = found.progress;
    });
    eprintln!("{total:?}");
    assert!(total.acknowledged > 0 || !test.has_usual_seeds(), "nothing was written: {total:?}");
}

/// So that the test above is known to be able to fail.
#[test]
fn killed_process_that_acknowledges_before_it_writes_loses_whole_transactions_at_the_end() {
    let mut total = Total::default();
    while total.lost == 0 {
        assert!(total.rounds < 100, "{total:?}");
        let moment = Moment { acknowledged: Some(20 * (1 + total.rounds)), looks: 0 };
        let found = Trial::new("async").round(&moment, &mut total);
        assert!(found.wrong.is_empty(), "{found:#?}");
    }
    eprintln!("{total:?}");
}
