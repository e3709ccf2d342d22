//! Ways to run a routine, which must all come to the same.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_execute::run_code;
use albireo_plpgsql::body::Routine;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{RoutineId, read, text_of};
use albireo_semantics::types::{Scalar, Type};

use super::program::{Argument, Program};
use super::types::{Item, Kind};
use crate::memory::{self, Database, Session};

/// How many rows a program may look at, each round of a loop and each call counted as 256; all end long before.
const MOST_ROWS: u32 = 300_000 * 256;

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The rows of the result, or SQLSTATE and message.
    pub result: Result<Vec<String>, (String, String)>,
    /// What RAISE told.
    pub notices: Vec<String>,
    /// All rows of each table before the transaction ended.
    pub tables: Vec<Vec<String>>,
}

/// Something that runs routines.
pub trait Runner {
    fn name(&self) -> &'static str;

    /// Calls a routine with values for its input parameters. Whoever asks rolls back.
    ///
    /// # Errors
    /// The routine's.
    fn run(
        &mut self,
        id: RoutineId,
        routine: &Arc<Routine>,
        arguments: Vec<Datum>,
        session: &mut Session<'_>,
    ) -> Result<Vec<Datum>, Stop>;
}

/// The interpreter, which is the oracle for all others.
pub struct Interpreter;

impl Runner for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn run(
        &mut self,
        _: RoutineId,
        routine: &Arc<Routine>,
        arguments: Vec<Datum>,
        session: &mut Session<'_>,
    ) -> Result<Vec<Datum>, Stop> {
        session.execute(|execution, programs, limits| {
            albireo_execute::run(routine, arguments, execution, programs, limits)
                .map(|outcome| outcome.values)
        })
    }
}

/// Machine code, of the routine and of those that it calls.
pub struct Code;

impl Runner for Code {
    fn name(&self) -> &'static str {
        "compiled"
    }

    fn run(
        &mut self,
        id: RoutineId,
        _: &Arc<Routine>,
        arguments: Vec<Datum>,
        session: &mut Session<'_>,
    ) -> Result<Vec<Datum>, Stop> {
        session.programs.compiles = true;
        let code = session.programs.code_of(id).expect("a routine in PL/pgSQL has code");
        let outcome = session.execute(|execution, programs, limits| {
            run_code(code.as_ref(), code.routine(), &arguments, execution, programs, limits)
        });
        session.programs.compiles = false;
        outcome.map(|outcome| outcome.values)
    }
}

/// All ways to run routines; the first is the oracle.
pub fn runners() -> Vec<Box<dyn Runner>> {
    vec![Box::new(Interpreter), Box::new(Code)]
}

/// The database of a program, before its call.
///
/// # Errors
/// What does not parse or bind, with its error.
pub fn database(program: &Program) -> Result<Database, String> {
    let mut database = Database::new(false);
    let statements = program.tables.iter().flatten().chain(&program.rows).cloned();
    for statement in statements.chain(program.routines.iter().map(super::program::Source::text)) {
        database.run(&statement).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            format!("{} {error} at {:?} {hint}\n{statement}", error.state(), error.position())
        })?;
    }
    Ok(database)
}

fn rows(session: &mut Session<'_>, query: &str) -> Vec<String> {
    match session.run(query) {
        Ok(memory::Outcome::Rows(_, rows)) => {
            let shown = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_owned());
            rows.into_iter().map(|row| row.into_iter().map(shown).collect::<Vec<_>>().join("|")).collect()
        }
        other => panic!("{query}: {other:?}"),
    }
}

fn contents(session: &mut Session<'_>, program: &Program) -> Vec<Vec<String>> {
    program.dumps.iter().map(|dump| rows(session, dump)).collect()
}

/// Runs a program once more by `runner` and takes back what it did.
///
/// # Errors
/// What does not bind; rows that are not as before when all is taken back.
pub fn run(runner: &mut dyn Runner, program: &Program, database: &mut Database) -> Result<Outcome, String> {
    let mut outcome = None;
    let _ = database.transaction(|session| {
        outcome = Some(run_in_transaction(runner, program, session));
        Err::<(), _>(SqlError::new(SqlState::QUERY_CANCELED, "all is taken back"))
    });
    outcome.expect("it ran")
}

fn run_in_transaction(
    runner: &mut dyn Runner,
    program: &Program,
    session: &mut Session<'_>,
) -> Result<Outcome, String> {
    let before = contents(session, program);
    let (id, routine) = session.programs.library.routine(&program.name).map_err(|error| {
        format!("{} {error} at {:?} {}", error.state(), error.position(), error.hint().unwrap_or_default())
    })?;
    let arguments: Result<Vec<Datum>, String> = program.arguments.iter().map(value).collect();
    let arguments = arguments?;
    session.notices.clear();
    session.rows = MOST_ROWS;
    let savepoint = session.tx.savepoint();
    let called = runner.run(id, &routine, arguments, session);
    session.rows = u32::MAX;
    let notices = std::mem::take(session.notices);
    let result = match called {
        Ok(_) if routine.signature.result.columns.is_empty() => Ok(Vec::new()),
        Ok(values) => Ok(values.into_iter().map(|value| shown(&routine, value)).collect()),
        Err(Stop::Error(error) | Stop::Fatal(error)) => {
            Err((error.state().to_string(), error.message().to_owned()))
        }
        Err(Stop::Crossing | Stop::Locked) => return Err("there is one partition".to_owned()),
    };
    let tables = match result {
        Ok(_) => contents(session, program),
        Err(_) => Vec::new(),
    };
    session.tx.roll_back_to(savepoint);
    let after = contents(session, program);
    match after == before {
        true => Ok(Outcome { result, notices, tables }),
        false => Err(format!("rolled back, tables hold\n{after:?}\nand held before\n{before:?}")),
    }
}

fn shown(routine: &Routine, value: Datum) -> String {
    let row = routine.signature.result.row(value);
    let cells = row.iter().map(|cell| text_of(cell).unwrap_or_else(|| "NULL".to_owned()));
    cells.collect::<Vec<_>>().join("|")
}

/// The value of an argument.
fn value(argument: &Argument) -> Result<Datum, String> {
    match &argument.value {
        Some(text) => read(text, &type_of(argument.kind)).map_err(|error| format!("{text}: {error}")),
        None => Ok(Datum::NULL),
    }
}

fn type_of(kind: Kind) -> Type {
    let scalar = match kind {
        Kind::Small => Scalar::SmallInt,
        Kind::Int | Kind::Array(Item::Int) => Scalar::Integer,
        Kind::Big | Kind::Array(Item::Big) => Scalar::BigInt,
        Kind::Num | Kind::Array(Item::Num) => Scalar::Numeric { scale: None },
        Kind::Double => Scalar::Double,
        Kind::Text | Kind::Array(Item::Text) => Scalar::Text,
        Kind::Char => Scalar::Bpchar,
        Kind::Bool | Kind::Array(Item::Bool) => Scalar::Bool,
        Kind::Date | Kind::Array(Item::Date) => Scalar::Date,
        Kind::Stamp => Scalar::Timestamp,
    };
    match kind {
        Kind::Array(_) => Type::Array(scalar),
        _ => Type::Scalar(scalar),
    }
}
