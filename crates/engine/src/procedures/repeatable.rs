//! Native procedures whose calls stand in the redo log.
//!
//! I-1 Recovery makes a procedure for the definitions at hand: it is made anew after each change of them, as
//! its handles may mean something else then, and keeps no index from being dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use albireo_base::packed::{Input, put_bytes, put_number};
use albireo_base::{SqlError, SqlState};
use albireo_partition::{Call, Procedure};
use parking_lot::Mutex;

use crate::Database;

/// A native procedure whose calls may stand in the redo log instead of the rows that they changed.
///
/// It promises to do the same again: with the same arguments and at the same time it changes the same rows in
/// the same way, wherever they lie. So it may not depend on the order of rows that have the same key, nor of
/// those of a whole table. To recover a database, [`Procedures`] must have it.
pub trait Repeatable: Procedure {
    /// Another number whenever it does something else than before with the same arguments.
    const VERSION: u32;

    /// Writes down arguments.
    fn put_args(args: &Self::Args, out: &mut Vec<u8>);

    /// Reads what [`Repeatable::put_args`] wrote; `None` if it is no such thing.
    fn read_args(bytes: &[u8]) -> Option<Self::Args>;
}

/// A procedure as recovery runs it.
trait Again: Send + Sync {
    /// Runs a call again; how many rows it moved.
    fn again(&self, database: &Database, call: &Call<'_>, version: u64, args: &[u8])
    -> Result<u64, SqlError>;
}

impl<P: Repeatable> Again for P {
    fn again(
        &self,
        database: &Database,
        call: &Call<'_>,
        version: u64,
        args: &[u8],
    ) -> Result<u64, SqlError> {
        let name = self.name();
        if version != u64::from(P::VERSION) {
            let text = format!(
                "it calls version {version} of procedure \"{name}\", which has version {}",
                P::VERSION
            );
            return Err(damaged(text).with_hint("Open the database with the program that wrote the log."));
        }
        let args = P::read_args(args);
        let args = args.ok_or_else(|| damaged(format!("procedure \"{name}\" has no such arguments")))?;
        database.run_again(&Call { name, ..*call }, self.route(&args), |tx| self.run(tx, &args).map(drop))
    }
}

fn damaged(text: String) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, text)
}

type Maker = dyn Fn(&Database) -> Result<Arc<dyn Again>, SqlError> + Send + Sync;

/// The native procedures that a redo log may call, by name: part of a database's [`crate::Config`].
#[derive(Clone, Default)]
pub struct Procedures {
    makers: BTreeMap<String, Arc<Maker>>,
}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.makers.keys()).finish()
    }
}

impl Procedures {
    /// With one more, by its [name](Procedure::name). `make` is called during recovery, as soon as a call is
    /// met, when the tables are there that it needs.
    #[must_use]
    pub fn with<P: Repeatable>(
        mut self,
        name: &str,
        make: impl Fn(&Database) -> Result<P, SqlError> + Send + Sync + 'static,
    ) -> Self {
        let make = move |database: &Database| make(database).map(|made| Arc::new(made) as Arc<dyn Again>);
        self.makers.insert(name.to_owned(), Arc::new(make));
        self
    }
}

/// A procedure, and the generation of the definitions that it was made for.
type MadeFor = (u64, Arc<dyn Again>);

/// The procedures of a database as recovery has made them.
#[derive(Default)]
pub(crate) struct Made {
    known: Procedures,
    made: Mutex<BTreeMap<String, MadeFor>>,
}

impl Made {
    pub(crate) fn new(known: Procedures) -> Self {
        Self { known, made: Mutex::default() }
    }
}

impl Database {
    /// Makes a call of a native procedure again that the redo log has; how many rows it moved then, and now.
    ///
    /// # Errors
    /// XX001 if there is no such procedure, version or argument; its own.
    pub(crate) fn call_native_again(
        &self,
        mut record: Input<'_>,
        call: &Call<'_>,
    ) -> Result<(u64, u64), SqlError> {
        let mut head = || Ok((record.text()?, record.number()?, record.number()?));
        let (name, version, moved) = head().map_err(|error: albireo_base::packed::Malformed| {
            SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
        })?;
        let procedure = self.native(name)?;
        let now = procedure.again(self, call, version, record.rest())?;
        Ok((moved, now))
    }

    fn native(&self, name: &str) -> Result<Arc<dyn Again>, SqlError> {
        let generation = *self.inner.definitions.read();
        let Made { known, made } = &self.inner.natives;
        let mut made = made.lock();
        if let Some((_, procedure)) = made.get(name).filter(|(of, _)| *of == generation) {
            return Ok(Arc::clone(procedure));
        }
        let Some(make) = known.makers.get(name) else {
            let text =
                format!("it calls the native procedure \"{name}\", which this program has not registered");
            return Err(damaged(text).with_hint("Add it to Config::procedures."));
        };
        // Recovery makes it anew when indexes have changed, so that its handles keep none from being dropped:
        // the log may say so next. Nobody else asks for handles meanwhile.
        let handed_out = self.inner.handed_out.lock().clone();
        let procedure = make(self);
        *self.inner.handed_out.lock() = handed_out;
        let procedure = procedure?;
        made.insert(name.to_owned(), (generation, Arc::clone(&procedure)));
        Ok(procedure)
    }
}

/// Appends a command record.
pub(super) fn put_command<P: Repeatable>(procedure: &P, args: &P::Args, moved: u64, out: &mut Vec<u8>) {
    // No stored routine has this id.
    put_number(out, 0);
    put_bytes(out, procedure.name().as_bytes());
    put_number(out, u64::from(P::VERSION));
    put_number(out, moved);
    P::put_args(args, out);
}
