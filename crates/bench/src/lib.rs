//! The workloads: TPC-C, CH-benCHmark, and the driver that runs and reports them.
//!
//! Responsible for: schema, population, transaction inputs, queries and consistency conditions as
//! the specifications define them; running them against any [`driver::SystemUnderTest`]; the report for
//! people and for programs; our own database as target. Not responsible for: how it stores rows or
//! runs transactions and queries (`engine`), options and exit status (`cli`).
//!
//! Invariants: the same seed gives the same rows and the same inputs, on any machine and in any
//! order of generation. Outside [`target`] nothing knows more of the system under test than its SQL
//! and its [`driver::SystemUnderTest`].
//!
//! Units: money in hundredths ([`tpcc::rows::Fixed`]), timestamps in microseconds since 1970,
//! durations in nanoseconds until they are reported.
//!
//! Specifications: TPC Benchmark C, revision 5.11 ("clause" below); Cole et al., The mixed workload
//! CH-benCHmark, DBTest 2011; Kemper and Neumann, HyPer, 2010, §5.
#![forbid(unsafe_code)]
#![allow(clippy::inconsistent_digit_grouping, reason = "money reads as units and hundredths: 300_000_00")]

pub mod ch;
pub mod compaction;
pub mod config;
pub mod crossing;
pub mod driver;
pub mod larger;
pub mod latency;
pub mod open;
pub mod progress;
pub mod recovery;
pub mod report;
pub mod stall;
pub mod target;
pub mod tpcc;
pub mod versions;
pub mod waits;
