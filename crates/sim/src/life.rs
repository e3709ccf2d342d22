//! A process with the database open, from its recovery to its end.

use std::sync::atomic::{AtomicU32, Ordering};

use albireo::{Connection, Database, Durability, Outcome, ProcedureHandle, Receipt, SqlError, SqlState};
use albireo_redo::{Log, LogError, Step};

use crate::bank::Bank;
use crate::check::Barrier;
use crate::machine::{Process, Room};
use crate::tpcc::Procedures;

/// Steps that find no room before some is made.
const PATIENCE: u32 = 4;

/// An open database, and what is called in it. Dropping it closes the database.
pub struct Life {
    /// The process.
    pub process: Process,
    /// The database.
    pub database: Database,
    /// The bank's procedure, once its tables are there.
    pub bank: Option<ProcedureHandle<Bank>>,
    /// TPC-C's procedures, once their tables are there.
    pub tpcc: Option<Procedures>,
    /// The receipt of the last change that gave one of its own.
    pub last: Option<Receipt>,
    /// Whether calls wait until what they did is durable.
    pub is_synchronous: bool,
    barrier: ProcedureHandle<Barrier>,
    connection: Connection,
}

impl Life {
    /// Begins.
    pub fn new(process: Process, database: Database, durability: Durability, room: Room) -> Self {
        let barrier = database.register_procedure(Barrier);
        let connection = database.connect();
        let is_synchronous = durability == Durability::Group;
        let life = Self {
            process,
            database,
            bank: None,
            tpcc: None,
            last: None,
            is_synchronous,
            barrier,
            connection,
        };
        life.log().instead_of_waiting(waiting(room));
        life
    }

    /// Runs a statement; gives how many rows it changed, and the receipt of a reader after it.
    ///
    /// # Errors
    /// The statement's.
    pub fn execute(&self, text: &str) -> Result<(u64, Receipt), SqlError> {
        let outcomes = self.connection.execute(text)?;
        let rows = match outcomes.first() {
            Some(Outcome::Done { rows, .. }) => *rows,
            _ => 0,
        };
        Ok((rows, self.receipt_of_all()?))
    }

    /// A receipt for all that has been done.
    ///
    /// # Errors
    /// None in a sound database.
    pub fn receipt_of_all(&self) -> Result<Receipt, SqlError> {
        self.barrier.start(&()).map(|((), receipt)| receipt)
    }

    /// What changes are refused with, if the log takes none.
    pub fn refusal(&self) -> Option<SqlState> {
        match self.log().check() {
            Ok(()) => None,
            Err(LogError::Full(_)) => Some(SqlState::DISK_FULL),
            Err(LogError::Failed(_)) => Some(SqlState::IO_ERROR),
            Err(_) => Some(SqlState::ADMIN_SHUTDOWN),
        }
    }

    /// What even changes that free room are refused with.
    pub fn refusal_of_all(&self) -> Option<SqlState> {
        self.log().check_freeing().err().and_then(|_| self.refusal())
    }

    /// The redo log.
    pub fn log(&self) -> &albireo::Log {
        self.database.log().expect("a database in a directory has a log")
    }

    /// Lets the log make a step, and looks whether it is afterwards what the step said.
    ///
    /// # Errors
    /// In words, if not.
    pub fn step(&self) -> Result<Step, String> {
        let before = self.log().durable();
        let step = self.log().step();
        let wanted = match step {
            Step::Idle | Step::Wrote { .. } => None,
            Step::Full => Some(SqlState::DISK_FULL),
            Step::Failed => Some(SqlState::IO_ERROR),
            Step::Closed => Some(SqlState::ADMIN_SHUTDOWN),
        };
        let moved = self.log().durable() != before;
        match () {
            () if self.refusal_of_all() != wanted => {
                Err(format!("after {step:?}, changes are refused with {:?}", self.refusal_of_all()))
            }
            () if moved != matches!(step, Step::Wrote { .. }) => {
                Err(format!("after {step:?}, frame {} is durable, not {before}", self.log().durable()))
            }
            () => Ok(step),
        }
    }
}

/// What whoever waits for the log does meanwhile: the log's steps, and room once it has none for long.
fn waiting(room: Room) -> impl Fn(&Log) + Send + Sync + 'static {
    let full = AtomicU32::new(0);
    move |log| match log.step() {
        Step::Full if full.fetch_add(1, Ordering::Relaxed) >= PATIENCE => {
            room.heal();
            log.prepare();
        }
        Step::Wrote { .. } => full.store(0, Ordering::Relaxed),
        Step::Full | Step::Failed | Step::Closed => {}
        Step::Idle => panic!("somebody waits for what the log will never do"),
    }
}
