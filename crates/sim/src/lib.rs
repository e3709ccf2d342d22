//! A database in a simulated world that crashes, held against a model.
//!
//! Responsible for: making a world, a load and faults from a seed, running them in one thread, and finding
//! every difference between what the database is and what it has to be. Not responsible for: threads that
//! race (`partition`, ThreadSanitizer), real disks (tests that kill a process).
//!
//! ```text
//! open, recover --check--> furnish --> actions: transactions, definitions, archives, steps of the log, faults
//!    ^   ^ '-- crash                                    |
//!    |   '----'                     close, kill, crash <'  (the model keeps what was committed, in order)
//!    '------ a file is damaged -----------'
//! ```
//!
//! After each recovery the database holds what some prefix of the started transactions makes, in the order
//! of their commits over all partitions; every transaction whose receipt was durable is in it, and so is all
//! that a reader was told to be. It is the prefix that recovery says. Before, every transaction gave what
//! the model gives, or failed as the model fails.
//!
//! Archives are written while other transactions run, and every operation of writing one, of throwing old ones
//! and old segments away and of loading one may be the last. What CHECKPOINT has said is complete stays, each
//! archive that is there is whole and has the log behind it, and nothing is left that none needs. A file that is
//! damaged while no process runs is found: an archive is left out, one of two control files is written anew, a log is
//! refused. Only frames of the moment before a crash, which no control file knows, look as if the crash had interrupted
//! writing them; that they may be missing is said then (`crates/redo/src/control.rs`).
//!
//! Tables are frozen and their rows leave memory. In every fourth world or so, they cannot be read well for a while, now and
//! then: reads fail, are short or give wrong bytes, or the files are damaged under the open database. Whoever needs such a
//! row fails with 58030 or XX001, which names the file, and has changed nothing; all others go on. Afterwards every row is
//! there, but for those in a damaged file: they come back when the database is opened again, from the log and the archives.
//! Such worlds draw what is wrong from random numbers of their own, so that all others are the same with and without.
//!
//! Whoever waits for the log in a run makes its steps meanwhile, so that calls that wait are there beside those
//! that give a receipt. Not there: transactions that begin while another one is under way, which takes threads.
//!
//! I-1 The same seed makes the same run ([`Summary::digest`]). I-2 Nothing in a run waits for a thread.
//! (`tests/seeds.rs`)
//!
//! Method: FoundationDB's simulation (Zhou et al., SIGMOD 2021).
#![forbid(unsafe_code)]

mod bank;
mod check;
mod life;
mod machine;
mod model;
mod random;
mod run;
mod simulation;
mod statements;
mod tpcc;
mod trace;
mod world;

pub use run::{Failure, Options, Summary, Totals, run, run_all};
