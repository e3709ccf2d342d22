//! Native procedures: transactions as Rust functions.
//!
//! Responsible for: calling them, and what their calls leave in the redo log (`repeatable`). Not responsible
//! for: running them (`albireo_partition`).

mod repeatable;

use std::sync::Arc;

use albireo_base::SqlError;
use albireo_partition::{Call, CallError, Procedure, Receipt};

pub(crate) use self::repeatable::Made;
pub use self::repeatable::{Procedures, Repeatable};
use crate::Database;
use crate::routines::Costs;

/// A registered procedure; cheap to clone. Keeps the database open.
pub struct ProcedureHandle<P: Procedure> {
    database: Database,
    procedure: Arc<P>,
    /// How its calls stand in the redo log, if they may.
    logged: Option<Arc<Logged<P>>>,
}

struct Logged<P: Procedure> {
    put: fn(&P, &P::Args, u64, &mut Vec<u8>),
    costs: Costs,
}

impl<P: Procedure> Clone for ProcedureHandle<P> {
    fn clone(&self) -> Self {
        let logged = self.logged.as_ref().map(Arc::clone);
        Self { database: self.database.clone(), procedure: Arc::clone(&self.procedure), logged }
    }
}

impl<P: Procedure> ProcedureHandle<P> {
    pub(crate) fn new(database: &Database, procedure: P) -> Self {
        Self { database: database.clone(), procedure: Arc::new(procedure), logged: None }
    }
}

impl<P: Repeatable> ProcedureHandle<P> {
    /// Of one whose calls may stand in the redo log.
    pub(crate) fn repeatable(database: &Database, procedure: P) -> Self {
        let logged = Logged { put: repeatable::put_command::<P>, costs: Costs::default() };
        Self { logged: Some(Arc::new(logged)), ..Self::new(database, procedure) }
    }
}

impl<P: Procedure> ProcedureHandle<P> {
    /// Runs it as one transaction on the calling thread, as soon as its partition is free.
    ///
    /// # Errors
    /// The procedure's own; whatever its changes violate; XX000 if it panicked. Nothing of the
    /// transaction remains then.
    #[inline]
    pub fn call(&self, args: &P::Args) -> Result<P::Output, SqlError> {
        if self.logged.is_some() {
            let (output, receipt) = self.start(args)?;
            self.database.acknowledge_call(None, receipt)?;
            return Ok(output);
        }
        match self.database.inner.partitions.call(&*self.procedure, args) {
            Ok(output) => Ok(output),
            Err(error) => Err(self.database.explain_call(error)),
        }
    }

    /// As [`ProcedureHandle::call`], but returns when the transaction has run. Before anybody is told of it,
    /// [`Database::acknowledge`] waits until a crash cannot take it back: so one thread can have many
    /// transactions under way, whose records go to the disk together.
    ///
    /// # Errors
    /// As [`ProcedureHandle::call`].
    #[inline]
    pub fn start(&self, args: &P::Args) -> Result<(P::Output, Receipt), SqlError> {
        let started = match &self.logged {
            Some(logged) if self.database.log().is_some() => self.start_logged(logged, args),
            _ => self.database.inner.partitions.start_call(&*self.procedure, args),
        };
        match started {
            Ok(started) => Ok(started),
            Err(error) => Err(self.database.explain_call(error)),
        }
    }

    fn start_logged(&self, logged: &Logged<P>, args: &P::Args) -> Result<(P::Output, Receipt), CallError> {
        let Self { database, procedure, .. } = self;
        let write = |moved: u64, out: &mut Vec<u8>| (logged.put)(procedure, args, moved, out);
        let call = Call::new(procedure.route(args), procedure.name());
        database.leave_record(&logged.costs, &write, call, |call| {
            database.inner.partitions.start(call, |tx| procedure.run(tx, args))
        })
    }

    /// Queues a call for its partition's executor thread; waits while the queue is full. The
    /// returned function waits for the result.
    ///
    /// # Errors
    /// 57P01 when the database is closing.
    pub fn submit(
        &self,
        args: P::Args,
    ) -> Result<impl FnOnce() -> Result<P::Output, SqlError> + use<P>, SqlError>
    where
        P::Args: Send + 'static,
        P::Output: Send + 'static,
    {
        self.database.start_executors()?;
        let pending = self.database.inner.partitions.submit(Arc::clone(&self.procedure), args);
        let pending = pending.map_err(crate::errors::submit)?;
        let database = self.database.clone();
        Ok(move || pending.wait().map_err(|error| database.explain_call(error)))
    }
}
