//! Calls of stored routines from a program, without SQL around them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value, ValueRef};
use albireo_compile::{self as procedure, Ran, run_in_place};
pub use albireo_compile::{ArgumentRef, Items, Output};
use albireo_execute::{Executables, Limits as BodyLimits, run};
use albireo_execute::{Execution, Notice};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Call, Receipt, Transaction};
use albireo_plpgsql::body::{Place, Routines, Signature};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{RoutineId, text_of};
use albireo_storage::with_prepass;
use parking_lot::RwLock;

use super::library::{Code, Interpreted, Library};
use super::limits::Limits;
use super::log_policy::Logged;
use crate::Database;
use crate::settings::Settings;

/// An argument of a stored routine, or a value that it gives back.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// One value, or NULL.
    Value(Value),
    /// An array of one dimension. An argument's first subscript is 1; of a result it is not told.
    Array(Vec<Value>),
}

impl<T: Into<Value>> From<T> for Argument {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// A stored routine to be called many times. It means the routine by this name as it is at each call, and
/// ends with 42883 once it is dropped.
pub struct RoutineHandle {
    database: Database,
    id: RoutineId,
    /// As `SET jit = off`.
    interprets: bool,
    /// What it means, found by the last call that found other definitions than the one before.
    known: RwLock<Option<Meaning>>,
}

impl Clone for RoutineHandle {
    fn clone(&self) -> Self {
        let (database, known) = (self.database.clone(), RwLock::default());
        Self { database, id: self.id, interprets: self.interprets, known }
    }
}

/// A routine to be called, as long as the definitions are those of its library.
pub(crate) struct Callee {
    pub(crate) library: Arc<Library>,
    id: RoutineId,
    pub(crate) signature: Arc<Signature>,
    /// How many arguments it takes.
    wanted: usize,
    /// Its machine code, if some is to be run.
    code: Option<Arc<Code>>,
    /// What its calls leave in the redo log, if they can stand there.
    logged: Option<Logged>,
}

impl Callee {
    /// A routine of a library; `None` if there is none of this id.
    pub(crate) fn new(library: &Arc<Library>, id: RoutineId, interprets: bool) -> Option<Self> {
        let signature = library.signature(id)?;
        let code = library.code(id).filter(|_| !interprets).cloned();
        let (wanted, logged) = (signature.inputs().count(), library.logged(id));
        Some(Self { library: Arc::clone(library), id, signature, wanted, code, logged })
    }

    fn meaning(&self, generation: u64) -> Meaning {
        let (signature, wanted) = (Arc::clone(&self.signature), self.wanted);
        let (library, code) = (Arc::downgrade(&self.library), self.code.as_ref().map(Arc::downgrade));
        Meaning { generation, library, signature, wanted, code, logged: self.logged.clone() }
    }
}

/// What a handle means as long as the definitions are of this generation. It keeps neither code nor
/// definitions that were replaced.
struct Meaning {
    generation: u64,
    library: Weak<Library>,
    signature: Arc<Signature>,
    /// How many arguments it takes.
    wanted: usize,
    /// Its machine code, if it has some that is to be run.
    code: Option<Weak<Code>>,
    logged: Option<Logged>,
}

impl Meaning {
    /// What it says, if it is of this generation and the database has all of it still.
    fn found(&self, id: RoutineId, generation: u64) -> Option<Callee> {
        let library = self.library.upgrade().filter(|_| self.generation == generation)?;
        let code = match &self.code {
            Some(code) => Some(code.upgrade()?),
            None => None,
        };
        let (signature, logged) = (Arc::clone(&self.signature), self.logged.clone());
        Some(Callee { library, id, signature, wanted: self.wanted, code, logged })
    }
}

/// One call.
struct Run<'a> {
    callee: &'a Callee,
    limits: &'a Limits,
    interprets: bool,
}

impl Run<'_> {
    fn run(&self, tx: &mut Transaction, args: &[ArgumentRef<'_>]) -> Result<(Ran, Vec<Notice>), Abort> {
        let library = self.callee.library.as_ref();
        let mut execution = Execution::new(tx, &library.catalog, &self.limits.interrupts);
        let limits = BodyLimits::default();
        let ran = with_prepass(|| match &self.callee.code {
            Some(code) if !self.interprets => {
                run_in_place(&code.compiled, args, &mut execution, library, limits)
            }
            _ => self.interpret(args, &mut execution, limits),
        });
        match ran {
            Ok(ran) => Ok((ran, execution.take_notices())),
            Err(Stop::Crossing) => Err(Abort::Crossing),
            Err(Stop::Locked) => Err(Abort::Locked),
            Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
        }
    }

    fn interpret(
        &self,
        args: &[ArgumentRef<'_>],
        execution: &mut Execution<'_>,
        limits: BodyLimits,
    ) -> Result<Ran, Stop> {
        let Callee { library, signature, id, .. } = self.callee;
        let routine = library.bound(*id)?;
        let formals = signature.inputs().zip(args);
        let args = formals.map(|(formal, argument)| argument.datum(&formal.place));
        let args = args.collect::<Result<_, _>>()?;
        let interpreted = Interpreted(library);
        let routines: &dyn Executables = if self.interprets { &interpreted } else { library.as_ref() };
        run(&routine, args, execution, routines, limits).map(|outcome| Ran::Values(outcome.values))
    }
}

/// What a call of [`RoutineHandle::invoke`] gave: rows whose columns are those of `SELECT * FROM f(...)`.
/// One row is read where the routine put it, so that nothing is copied.
pub struct Reply(Rows);

enum Rows {
    Here(procedure::Reply),
    Copied(Vec<Vec<Argument>>),
}

impl Reply {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        match &self.0 {
            Rows::Here(_) => 1,
            Rows::Copied(rows) => rows.len(),
        }
    }

    /// A value of a row, both counted from 0; `None` if there is no such row or column.
    pub fn get(&self, row: usize, column: usize) -> Option<Output<'_>> {
        match &self.0 {
            Rows::Here(reply) => (row == 0 && column < reply.width()).then(|| reply.get(column)),
            Rows::Copied(rows) => rows.get(row)?.get(column).map(|value| match value {
                Argument::Value(value) => Output::Value(value.into()),
                Argument::Array(items) => Output::Array(items.as_slice().into()),
            }),
        }
    }

    /// The rows by themselves.
    pub fn into_rows(self) -> Vec<Vec<Argument>> {
        let reply = match self.0 {
            Rows::Copied(rows) => return rows,
            Rows::Here(reply) => reply,
        };
        let value = |column| match reply.get(column) {
            Output::Value(value) => Argument::Value(value.to_value()),
            Output::Array(items) => Argument::Array(items.iter().map(ValueRef::to_value).collect()),
        };
        vec![(0..reply.width()).map(value).collect()]
    }
}

impl Database {
    /// A handle to the stored routine of this name.
    ///
    /// ```
    /// # use albireo::{Argument, Config, Database, Value};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute(
    ///     "CREATE FUNCTION largest(numbers integer[]) RETURNS integer LANGUAGE plpgsql AS $$
    ///      DECLARE most integer; n integer;
    ///      BEGIN
    ///          FOREACH n IN ARRAY numbers LOOP most := greatest(most, n); END LOOP;
    ///          RETURN most;
    ///      END $$",
    /// )?;
    /// let largest = db.routine("largest")?;
    /// let numbers = Argument::Array(vec![3.into(), 9.into(), 4.into()]);
    /// assert_eq!(largest.call(&[numbers])?, [[Argument::from(9)]]);
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 42883 if there is none, 42725 if there are several.
    pub fn routine(&self, name: &str) -> Result<RoutineHandle, SqlError> {
        match self.library().named(name).as_slice() {
            [(id, _)] => {
                let (database, known) = (self.clone(), RwLock::default());
                Ok(RoutineHandle { database, id: *id, interprets: false, known })
            }
            [] => Err(undefined(format!("routine \"{name}\" does not exist"))),
            _ => Err(SqlError::new(SqlState(*b"42725"), format!("routine name \"{name}\" is not unique"))
                .with_hint("Call it by SQL, where the arguments' types tell which is meant.")),
        }
    }
}

fn undefined(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

impl RoutineHandle {
    /// The same, run by the interpreter though it has machine code, and the routines that it calls too: as
    /// `SET jit = off` has it.
    pub fn interpreted(self) -> Self {
        Self { interprets: true, known: RwLock::default(), ..self }
    }

    /// Calls it as one transaction on the calling thread, as soon as its partition is free. The arguments
    /// are those of its IN and INOUT parameters; each row of the result has the columns of
    /// `SELECT * FROM f(...)`.
    ///
    /// # Errors
    /// 42883 for another number of arguments; 42804 for one that an assignment could not convert to its
    /// parameter's type; 22P02 for a text that is no such value; the routine's own. Nothing of the transaction remains then.
    pub fn call(&self, args: &[Argument]) -> Result<Vec<Vec<Argument>>, SqlError> {
        self.database.before_statement();
        self.invoke(&borrowed(args)).map(Reply::into_rows)
    }

    /// As [`RoutineHandle::call`], until `cancel` is cancelled from another thread or `timeout` is over.
    ///
    /// # Errors
    /// As [`RoutineHandle::call`]; 57014 once it was ended.
    pub fn call_until(
        &self,
        cancel: &CancelToken,
        timeout: Option<Duration>,
        args: &[Argument],
    ) -> Result<Vec<Vec<Argument>>, SqlError> {
        let settings = Settings { statement_timeout: timeout, ..Settings::default() };
        let limits = self.database.limits(&settings, cancel);
        self.invoke_within(&limits, &borrowed(args)).map(Reply::into_rows)
    }

    /// As [`RoutineHandle::call`], without copies: arguments are borrowed, and the row of the result is read
    /// where the routine has put it. A call of a compiled routine that was called before allocates nothing.
    ///
    /// ```
    /// # use albireo::{Config, Database, Output};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute(
    ///     "CREATE FUNCTION greeting(name text, OUT line text, OUT length integer) LANGUAGE plpgsql AS $$
    ///      BEGIN line := 'Hello, ' || name; length := length(line); END $$",
    /// )?;
    /// let greeting = db.routine("greeting")?;
    /// let reply = greeting.invoke(&["Albireo".into()])?;
    /// let Some(Output::Value(line)) = reply.get(0, 0) else { panic!() };
    /// assert_eq!(line, "Hello, Albireo".into());
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`RoutineHandle::call`].
    pub fn invoke(&self, args: &[ArgumentRef<'_>]) -> Result<Reply, SqlError> {
        self.invoke_within(&self.database.inner.unlimited, args)
    }

    /// What it means in this generation of the definitions, which the caller keeps as they are.
    fn found(&self, generation: u64) -> Result<Callee, SqlError> {
        let known = |known: &Meaning| known.found(self.id, generation);
        if let Some(found) = self.known.read().as_ref().and_then(known) {
            return Ok(found);
        }
        let library = self.database.library();
        let found = Callee::new(&library, self.id, self.interprets)
            .ok_or_else(|| undefined("the routine does not exist any more".to_owned()))?;
        *self.known.write() = Some(found.meaning(generation));
        Ok(found)
    }

    fn invoke_within(&self, limits: &Limits, args: &[ArgumentRef<'_>]) -> Result<Reply, SqlError> {
        let (reply, receipt) = self.start_within(limits, args)?;
        self.database.acknowledge_call(limits.synchronous, receipt)?;
        Ok(reply)
    }

    /// As [`RoutineHandle::invoke`], but returns when the transaction has run. Before anybody is told of it,
    /// [`Database::acknowledge`] waits until a crash cannot take it back: so one thread can have many
    /// transactions under way, whose records go to the disk together.
    ///
    /// # Errors
    /// As [`RoutineHandle::call`].
    pub fn start(&self, args: &[ArgumentRef<'_>]) -> Result<(Reply, Receipt), SqlError> {
        self.start_within(&self.database.inner.unlimited, args)
    }

    fn start_within(&self, limits: &Limits, args: &[ArgumentRef<'_>]) -> Result<(Reply, Receipt), SqlError> {
        let database = &self.database;
        let generation = database.inner.definitions.read();
        let found = self.found(*generation)?;
        let Callee { signature, wanted, .. } = &found;
        if *wanted != args.len() {
            let message =
                format!("{} has {wanted} parameters, but {} were given", signature.shown(), args.len());
            return Err(undefined(message));
        }
        let (ran, receipt) =
            database.start_routine(&found, args, limits, self.interprets, |ran, _| Ok(ran))?;
        let reply = match ran {
            Ran::Reply(reply) => Reply(Rows::Here(reply)),
            Ran::Values(values) => {
                let rows = values.into_iter().map(|value| row(signature, value)).collect();
                Reply(Rows::Copied(rows))
            }
        };
        Ok((reply, receipt))
    }
}

impl Database {
    /// Calls a routine as one transaction, where its arguments say; `finish` makes of what it gave, before the
    /// commit, what is given back.
    pub(crate) fn start_routine<R>(
        &self,
        callee: &Callee,
        args: &[ArgumentRef<'_>],
        limits: &Limits,
        interprets: bool,
        finish: impl Fn(Ran, Vec<Notice>) -> Result<R, SqlError>,
    ) -> Result<(R, Receipt), SqlError> {
        let Callee { library, id, signature, logged, .. } = callee;
        let route = self.route_of_routine(library, *id, signature, args)?;
        let run = Run { callee, limits, interprets };
        let call = Call { synchronous: limits.synchronous, ..Call::new(route, &signature.name) };
        let work = |tx: &mut Transaction| {
            let (ran, notices) = run.run(tx, args)?;
            finish(ran, notices).map_err(Abort::Raised)
        };
        let start = |call: &Call<'_>| self.inner.partitions.start(call, work);
        let ran = match logged {
            Some(logged) if self.log().is_some() => logged.start(self, args, call, start),
            _ => start(&call),
        };
        ran.map_err(|error| self.explain_call(error))
    }
}

impl RoutineHandle {
    /// Makes a call again that the redo log has, as `call` says; how many rows it moved.
    ///
    /// # Errors
    /// As [`RoutineHandle::call`].
    pub(crate) fn call_again(&self, args: &[ArgumentRef<'_>], call: &Call<'_>) -> Result<u64, SqlError> {
        let database = &self.database;
        let generation = database.inner.definitions.read();
        let found = self.found(*generation)?;
        let limits = &database.inner.unlimited;
        let run = Run { callee: &found, limits, interprets: false };
        let call = Call { name: &found.signature.name, ..*call };
        let route = database.route_of_routine(&found.library, self.id, &found.signature, args)?;
        database.run_again(&call, route, |tx| run.run(tx, args).map(drop))
    }
}

impl Database {
    /// A handle to a version of a routine, if that is the one there is.
    pub(crate) fn routine_of(&self, id: u32, version: u64) -> Option<RoutineHandle> {
        let (id, library) = (RoutineId(id), self.library());
        library.signature(id).filter(|_| u64::from(library.version(id)) == version)?;
        Some(RoutineHandle { database: self.clone(), id, interprets: false, known: RwLock::default() })
    }
}

pub(crate) fn borrowed(args: &[Argument]) -> Vec<ArgumentRef<'_>> {
    let borrowed = args.iter().map(|argument| match argument {
        Argument::Value(value) => value.into(),
        Argument::Array(items) => ArgumentRef::Values(items),
    });
    borrowed.collect()
}

fn row(signature: &Signature, value: Datum) -> Vec<Argument> {
    match (&signature.result.place, value) {
        (Place::Void, _) => Vec::new(),
        (Place::Row(_), Datum::Row(mut fields)) => match Arc::get_mut(&mut fields) {
            Some(fields) => fields.iter_mut().map(|field| argument(std::mem::take(field))).collect(),
            None => fields.iter().map(|field| argument(field.clone())).collect(),
        },
        (Place::Row(row), _) => vec![Argument::Value(Value::Null); row.fields.len()],
        (_, value) => vec![argument(value)],
    }
}

pub(crate) fn argument(datum: Datum) -> Argument {
    match datum {
        Datum::Value(value) => Argument::Value(value),
        Datum::Array(array) => {
            let items = Arc::try_unwrap(array).unwrap_or_else(|shared| (*shared).clone()).items;
            Argument::Array(items.into_iter().map(scalar).collect())
        }
        other => Argument::Value(scalar(other)),
    }
}

fn scalar(datum: Datum) -> Value {
    match datum {
        Datum::Value(value) => value,
        other => text_of(&other).map_or(Value::Null, Value::Text),
    }
}
