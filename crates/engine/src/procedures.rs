//! Native procedures: transactions as Rust functions.

use std::sync::Arc;

use albireo_base::SqlError;
use albireo_partition::{Procedure, Receipt};

use crate::Database;

/// A registered procedure; cheap to clone. Keeps the database open.
pub struct ProcedureHandle<P: Procedure> {
    pub(crate) database: Database,
    pub(crate) procedure: Arc<P>,
}

impl<P: Procedure> Clone for ProcedureHandle<P> {
    fn clone(&self) -> Self {
        Self { database: self.database.clone(), procedure: Arc::clone(&self.procedure) }
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
        match self.database.inner.partitions.start_call(&*self.procedure, args) {
            Ok(started) => Ok(started),
            Err(error) => Err(self.database.explain_call(error)),
        }
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
