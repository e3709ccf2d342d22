//! A database in a simulated world that crashes, held against a model.
//!
//! Responsible for: making a world, a load and faults from a seed, running them in one thread, and finding
//! every difference between what the database is and what it has to be. Not responsible for: threads that
//! race (`partition`, ThreadSanitizer), real disks (tests that kill a process).
//!
//! ```text
//! open, recover --check--> furnish --> actions: transactions, definitions, steps of the log, faults
//!    ^   ^ '-- crash                                    |
//!    |   '----'                     close, kill, crash <'  (the model keeps what was committed, in order)
//!    '------------------------------------'
//! ```
//!
//! After each recovery the database holds what some prefix of the started transactions makes, in the order
//! of their commits over all partitions; every transaction whose receipt was durable is in it, and so is all
//! that a reader was told to be. It is the prefix that recovery says. Before, every transaction gave what
//! the model gives, or failed as the model fails.
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
