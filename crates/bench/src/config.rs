//! What a run is asked to do.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;

use crate::ch::queries::Selection;
use crate::tpcc::Scale;
use crate::tpcc::input::Mix;
use crate::tpcc::population::Population;
use crate::tpcc::rows::Timestamp;
use crate::tpcc::schema::Layout;

/// Which benchmark runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Transactions alone.
    Tpcc,
    /// Transactions alone, then together with streams of queries.
    Ch {
        /// The queries each stream runs, over and over.
        queries: Selection,
        /// How many streams there are.
        streams: usize,
    },
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tpcc => "TPC-C",
            Self::Ch { .. } => "CH-benCHmark",
        })
    }
}

/// What transactions are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Procedures {
    /// Rust.
    Native,
    /// PL/pgSQL, compiled.
    #[default]
    PlPgSql,
    /// PL/pgSQL, interpreted.
    Interpreted,
    /// None: statement by statement, between BEGIN and COMMIT.
    Statements,
}

impl fmt::Display for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::PlPgSql => "plpgsql",
            Self::Interpreted => "interpreted",
            Self::Statements => "statements",
        })
    }
}

/// What becomes of the records that transactions leave.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Logging {
    /// There are none.
    #[default]
    Off,
    /// They are made and dropped.
    Null,
    /// They go to a disk, and nobody waits for them.
    Async,
    /// They go to a disk, and a transaction counts when its record is there.
    Group,
}

impl fmt::Display for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Null => "null",
            Self::Async => "async",
            Self::Group => "group",
        })
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The benchmark.
    pub workload: Workload,
    /// Warehouses.
    pub warehouses: i16,
    /// Partitions, each with a thread that runs transactions.
    pub partitions: u16,
    /// How long each kind of phase is measured, in one phase or several; before each comes a tenth of it,
    /// at most a second, as warm-up.
    pub duration: Duration,
    /// So many transactions of each partition in each phase, in place of `duration` and without a warm-up, so
    /// that no clock says what a run does. For tests.
    pub transactions: Option<u64>,
    /// How tables lie in memory.
    pub layout: Layout,
    /// Which transactions run.
    pub mix: Mix,
    /// What transactions are written in.
    pub procedures: Procedures,
    /// What becomes of the records of transactions.
    pub logging: Logging,
    /// The directory that the database is kept in; it needs one if records go to a disk.
    pub data: Option<PathBuf>,
    /// The most transactions of one partition that have run and wait for the disk.
    pub in_flight: usize,
    /// Decides population and inputs.
    pub seed: u64,
    /// Cardinalities; anything but [`Scale::SPEC`] is for tests.
    pub scale: Scale,
    /// Settings of the database that the run does not decide, memory limits above all.
    pub database: albireo::Config,
}

impl Default for Config {
    /// TPC-C by the specification for 20 seconds, 5 warehouses in one partition, without a log.
    fn default() -> Self {
        Self {
            workload: Workload::Tpcc,
            warehouses: 5,
            partitions: 1,
            duration: Duration::from_secs(20),
            transactions: None,
            layout: Layout::Groups,
            mix: Mix::Spec,
            procedures: Procedures::default(),
            logging: Logging::default(),
            data: None,
            in_flight: 1_024,
            seed: 42,
            scale: Scale::SPEC,
            database: albireo::Config::default(),
        }
    }
}

/// Why a run cannot be what it is asked to be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    #[error("there must be at least one warehouse, not {0}")]
    NoWarehouse(i16),
    #[error(
        "{partitions} partitions need at least as many warehouses, not {warehouses}: a warehouse cannot be split"
    )]
    MorePartitionsThanWarehouses { partitions: u16, warehouses: i16 },
    #[error("there must be at least one partition")]
    NoPartition,
    #[error("a phase of 0 seconds measures nothing")]
    NoTime,
    #[error("there must be at least one stream of queries; use 'bench tpcc' to run without")]
    NoStream,
    #[error("a log that goes to a disk needs a directory: add --data PATH")]
    NoDirectory,
    #[error("a database in a directory has a log: add --log group or --log async")]
    NoLog,
    #[error("at least one transaction must be under way")]
    NoneInFlight,
}

impl Config {
    /// The population of a run that begins at this time.
    pub fn population(&self, loaded_at: Timestamp) -> Population {
        Population { scale: self.scale, warehouses: self.warehouses, seed: self.seed, loaded_at }
    }

    /// Checks what no type can.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (partitions, warehouses) = (self.partitions, self.warehouses);
        if warehouses < 1 {
            return Err(ConfigError::NoWarehouse(warehouses));
        }
        if partitions < 1 {
            return Err(ConfigError::NoPartition);
        }
        if u32::from(partitions) > warehouses as u32 {
            return Err(ConfigError::MorePartitionsThanWarehouses { partitions, warehouses });
        }
        if self.duration.is_zero() || self.transactions == Some(0) {
            return Err(ConfigError::NoTime);
        }
        match (&self.logging, &self.data) {
            (Logging::Async | Logging::Group, None) => return Err(ConfigError::NoDirectory),
            (Logging::Off | Logging::Null, Some(_)) => return Err(ConfigError::NoLog),
            _ if self.in_flight == 0 => return Err(ConfigError::NoneInFlight),
            _ => {}
        }
        match &self.workload {
            Workload::Ch { streams: 0, .. } => Err(ConfigError::NoStream),
            Workload::Ch { .. } | Workload::Tpcc => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_that_makes_no_sense_is_refused_with_the_reason() {
        let good = Config {
            workload: Workload::Ch { queries: Selection::all(), streams: 1 },
            warehouses: 5,
            partitions: 2,
            duration: Duration::from_secs(10),
            layout: Layout::Groups,
            mix: Mix::Spec,
            procedures: Procedures::Native,
            seed: 1,
            ..Config::default()
        };
        assert_eq!(good.validate(), Ok(()));
        let refused = |change: &dyn Fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            config.validate().unwrap_err()
        };
        assert_eq!(refused(&|config| config.warehouses = -1), ConfigError::NoWarehouse(-1));
        assert_eq!(refused(&|config| config.partitions = 0), ConfigError::NoPartition);
        let error = refused(&|config| config.partitions = 6);
        assert_eq!(error, ConfigError::MorePartitionsThanWarehouses { partitions: 6, warehouses: 5 });
        assert_eq!(refused(&|config| config.duration = Duration::ZERO), ConfigError::NoTime);
        let none = Workload::Ch { queries: Selection::all(), streams: 0 };
        assert_eq!(refused(&|config| config.workload = none.clone()), ConfigError::NoStream);
    }
}
