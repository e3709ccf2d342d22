//! Calls of stored routines from a program, without SQL around them.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Procedure, Route, Transaction};
use albireo_procedure::body::{Limits as BodyLimits, Place, Routines, Signature, run, run_compiled};
use albireo_procedure::datum::{Array, Datum};
use albireo_procedure::expr::{self, RoutineId, text_of};
use albireo_procedure::store::Stop;
use albireo_procedure::types::Scalar;

use super::library::Library;
use super::store::{Limits, TransactionStore};
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
#[derive(Clone)]
pub struct RoutineHandle {
    database: Database,
    id: RoutineId,
}

/// One call.
struct Call {
    id: RoutineId,
    name: String,
    library: Arc<Library>,
    limits: Limits,
}

impl Procedure for Call {
    type Args = (Route, Vec<Datum>);
    type Output = Vec<Datum>;

    fn name(&self) -> &str {
        &self.name
    }

    fn route(&self, (route, _): &Self::Args) -> Route {
        *route
    }

    fn run(&self, tx: &mut Transaction<'_, '_>, (_, args): &Self::Args) -> Result<Vec<Datum>, Abort> {
        let mut store = TransactionStore::new(tx, &self.library.catalog, &self.limits);
        let library: &dyn Routines = self.library.as_ref();
        let ran = match self.library.code(self.id) {
            Some(code) => run_compiled(&code.compiled, args, &mut store, library, BodyLimits::default()),
            None => {
                let routine = library.bound(self.id).map_err(Abort::Raised)?;
                run(&routine, args.clone(), &mut store, library, BodyLimits::default())
            }
        };
        match ran {
            Ok(outcome) => Ok(outcome.values),
            Err(Stop::Crossing) => Err(Abort::Crossing),
            Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
        }
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
            [(id, _)] => Ok(RoutineHandle { database: self.clone(), id: *id }),
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
    /// Calls it as one transaction on the calling thread, as soon as its partition is free. The arguments
    /// are those of its IN and INOUT parameters; each row of the result has the columns of
    /// `SELECT * FROM f(...)`.
    ///
    /// # Errors
    /// 42883 for another number of arguments; 42804 for one that an assignment could not convert to its
    /// parameter's type; 22P02 for a text that is no such value; the routine's own. Nothing of the transaction remains then.
    pub fn call(&self, args: &[Argument]) -> Result<Vec<Vec<Argument>>, SqlError> {
        self.call_until(&CancelToken::new(), None, args)
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
        let database = &self.database;
        let _fixed = database.inner.definitions.read();
        let library = database.library();
        let signature = library.signature(self.id);
        let signature =
            signature.ok_or_else(|| undefined("the routine does not exist any more".to_owned()))?;
        let args = datums(&signature, args)?;
        let settings = Settings { statement_timeout: timeout, ..Settings::default() };
        let limits = database.limits(&settings, cancel);
        let call = Call { id: self.id, name: signature.name.clone(), library, limits };
        let route = database.route_of_routine(&call.library, self.id, &args);
        let values = database.inner.partitions.call(&call, &(route, args));
        let values = values.map_err(|error| database.explain_call(error))?;
        Ok(values.into_iter().map(|value| row(&signature, value)).collect())
    }
}

/// The arguments as the parameters want them.
fn datums(signature: &Signature, args: &[Argument]) -> Result<Vec<Datum>, SqlError> {
    let wanted = signature.inputs().count();
    if wanted != args.len() {
        let message = format!("{} has {wanted} parameters, but {} were given", signature.shown(), args.len());
        return Err(undefined(message));
    }
    signature.inputs().zip(args).map(|(formal, arg)| datum(&formal.place, arg)).collect()
}

fn datum(place: &Place, arg: &Argument) -> Result<Datum, SqlError> {
    match (place, arg) {
        (_, Argument::Value(Value::Null)) => Ok(Datum::NULL),
        (Place::Sql(_) | Place::Plain(_), Argument::Value(value)) => one(place, value),
        (Place::Array(_), Argument::Value(Value::Text(text))) => expr::read(text, &place.ty()),
        (Place::Array(element), Argument::Array(values)) => {
            let items = values.iter().map(|value| one(element, value)).collect::<Result<_, _>>()?;
            Ok(Datum::Array(Arc::new(Array { lower: 1, items })))
        }
        _ => {
            let message = format!("the argument does not fit a parameter of type {}", place.ty());
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
        }
    }
}

/// A value as a place wants it; parameters have no lengths and digits.
fn one(place: &Place, value: &Value) -> Result<Datum, SqlError> {
    expr::assign(value.clone(), place.scalar().unwrap_or(Scalar::Text))
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

fn argument(datum: Datum) -> Argument {
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
