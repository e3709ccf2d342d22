//! Runs routines.
//!
//! Responsible for: calls and their limits (here), statements (`statement`), loops (`control`), what is
//! assigned (`assign`), RAISE and ASSERT (`raise`). Not responsible for: expressions (`expr`), queries
//! (`plan`), the transaction (`execution`).
//!
//! Invariant: a call that fails leaves the transaction to its caller to roll back; a block with handlers
//! rolls back what it did itself.

mod assign;
mod control;
mod raise;
mod statement;

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::budget::Room;
use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::{
    Block, BoundCall, Code, FOUND, Fit, Handler, Place, Query, Routine, Routines, RowFit, Statement, Target,
};
use albireo_plpgsql::define::RoutineKind;
use albireo_semantics::query::SelectPlan;
use albireo_storage::{Savepoint, count_work};

use crate::Stop;
use crate::datum::Datum;
use crate::execution::{Execution, LiveRows, ROUND_WORK};
use crate::expr::{self, ColumnRef, Expr, Frame, RoutineId, VariableId};
use crate::host::Host;
use crate::query;

pub use assign::{too_many, too_many_items};

/// What a call may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many routines may be under way, one called by the other.
    pub depth: usize,
    /// How many bytes of the thread's stack they may use.
    pub stack_bytes: usize,
    /// How many bytes of memory the call may hold, and one value may have.
    pub memory_bytes: usize,
}

/// Half of the 2 MiB that a thread has by default: one level of calls may need some 100 KiB, several
/// hundred with expressions as deep as the parser lets them be. It is enough for 300 calls in each other
/// of a small function, for 20 within a deep expression.
impl Default for Limits {
    fn default() -> Self {
        Self { depth: 1000, stack_bytes: 1 << 20, memory_bytes: 256 << 20 }
    }
}

/// What a routine gave back: one value (NULL for nothing), or those of a set; rows as rows.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The values.
    pub values: Vec<Datum>,
}

/// Runs a routine. `args` are the values of its input parameters, of their types.
///
/// # Errors
/// What the routine raises, 54001 beyond the limits of depth, 53200 beyond that of memory, what the
/// transaction says. The caller rolls back.
pub fn run(
    routine: &Routine,
    args: Vec<Datum>,
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
) -> Result<Outcome, Stop> {
    let shared = Shared::new(routines, limits);
    shared.enter(routine, args, execution.live(), 0).map(|values| Outcome { values })
}

/// Machine code of a routine.
pub trait RoutineCode {
    /// Runs it: what a call of it gives back. The machine brings no variables.
    ///
    /// # Errors
    /// As [`run`].
    fn run(&self, machine: Machine<'_>, args: &[Datum]) -> Result<Vec<Datum>, Stop>;
}

/// The routines of a database, as they are run.
pub trait Executables: Routines {
    /// The machine code of one that was bound; without it the interpreter runs it.
    fn machine_code(&self, routine: RoutineId) -> Option<Arc<dyn RoutineCode>>;
}

/// Runs `act`, which is code of `routine`, in a machine that has no variables yet.
///
/// # Errors
/// As [`run`].
pub fn with_machine<R>(
    routine: &Routine,
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
    act: impl FnOnce(Machine<'_>) -> Result<R, Stop>,
) -> Result<R, Stop> {
    let shared = Shared::new(routines, limits);
    shared.check_depth(0)?;
    act(Machine::bare(&shared, routine, execution.live(), 0))
}

/// As [`run`], of a routine that has `code`.
///
/// # Errors
/// As [`run`].
pub fn run_code(
    code: &dyn RoutineCode,
    routine: &Routine,
    args: &[Datum],
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
) -> Result<Outcome, Stop> {
    let shared = Shared::new(routines, limits);
    shared.enter_code(code, routine, args, execution.live(), 0).map(|values| Outcome { values })
}

/// Makes the call of a CALL: the rows of its result. `around` is what surrounds the arguments, whose parameters
/// have these values.
///
/// # Errors
/// The arguments', the routine's; the caller rolls back.
pub fn run_call(
    call: &BoundCall,
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
    around: &Routine,
    values: &[Datum],
) -> Result<Vec<Vec<Datum>>, Stop> {
    let values = with_parameters(execution, routines, limits, around, values, |host| {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(host.evaluate(arg)?);
        }
        host.call_for_values(call.id, args)
    })?;
    Ok(values.into_iter().map(|value| call.signature.result.row(value)).collect())
}

/// What all calls of one have in common.
struct Shared<'a> {
    routines: &'a dyn Executables,
    limits: Limits,
    memory: Cell<usize>,
    /// Where the stack was when it began.
    stack: usize,
    _room: Room,
}

/// About where the stack is.
fn stack_position() -> usize {
    let here = 0_u8;
    std::hint::black_box(std::ptr::from_ref(&here)).addr()
}

impl<'a> Shared<'a> {
    fn new(routines: &'a dyn Executables, limits: Limits) -> Self {
        let _room = Room::of(limits.memory_bytes);
        Self { routines, limits, memory: Cell::new(0), stack: stack_position(), _room }
    }

    fn check_depth(&self, depth: usize) -> Result<(), Stop> {
        if depth > 0 {
            // Calls alone may go on for long.
            count_work(ROUND_WORK);
        }
        if depth < self.limits.depth && self.stack.abs_diff(stack_position()) < self.limits.stack_bytes {
            return Ok(());
        }
        let error = SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
        Err(error
            .with_detail(format!("{depth} routines are under way, one called by the other."))
            .with_hint("A routine may call itself forever; otherwise use a loop.")
            .into())
    }

    fn enter(
        &self,
        routine: &Routine,
        args: Vec<Datum>,
        live: LiveRows<'_>,
        depth: usize,
    ) -> Result<Vec<Datum>, Stop> {
        self.check_depth(depth)?;
        if let Some(nothing) = not_called(routine, &args) {
            return Ok(nothing);
        }
        let mut machine = Machine::new(self, routine, live, depth);
        machine.take_arguments(args)?;
        match &routine.code {
            Code::Block(block) => machine.body(block),
            Code::Queries(queries, fits) => machine.queries(queries, fits),
        }
    }

    /// As [`Shared::enter`], of a routine that was compiled.
    fn enter_code(
        &self,
        code: &dyn RoutineCode,
        routine: &Routine,
        args: &[Datum],
        live: LiveRows<'_>,
        depth: usize,
    ) -> Result<Vec<Datum>, Stop> {
        self.check_depth(depth)?;
        if let Some(nothing) = not_called(routine, args) {
            return Ok(nothing);
        }
        code.run(Machine::bare(self, routine, live, depth), args)
    }
}

/// What a routine gives that is not called with NULL, if an argument is.
fn not_called(routine: &Routine, args: &[Datum]) -> Option<Vec<Datum>> {
    let strict = routine.signature.strict && args.iter().any(Datum::is_null);
    strict.then(|| nothing(routine))
}

/// What a routine gives that is not called.
pub fn nothing(routine: &Routine) -> Vec<Datum> {
    if routine.signature.result.setof { Vec::new() } else { vec![Datum::NULL] }
}

/// Another number of arguments than the routine has.
pub fn wrong_arguments(given: usize, wanted: usize) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("{given} arguments for {wanted} parameters"))
}

/// What a block with handlers goes back to after an error.
#[derive(Clone, Copy)]
pub struct BeforeBlock {
    savepoint: Savepoint,
    synchronous: Option<bool>,
    /// How many errors were being handled.
    handling: usize,
}

/// A routine under way.
pub struct Machine<'a> {
    shared: &'a Shared<'a>,
    routine: &'a Routine,
    /// The rows of tables.
    pub live: LiveRows<'a>,
    variables: Vec<Datum>,
    /// How many rows the last statement saw or changed.
    row_count: u64,
    /// The errors being handled, the innermost last.
    handling: Vec<SqlError>,
    /// What has been returned of a set.
    values: Vec<Datum>,
    /// The value of RETURN.
    value: Option<Datum>,
    /// What makes it one of the result's type.
    value_fit: Option<RowFit>,
    depth: usize,
}

/// Where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow<'r> {
    /// With the next statement.
    Next,
    /// Behind a loop or block.
    Exit(Option<&'r str>),
    /// With the next round of a loop.
    Continue(Option<&'r str>),
    /// Nowhere.
    Return,
}

impl<'a> Machine<'a> {
    fn new(shared: &'a Shared<'a>, routine: &'a Routine, live: LiveRows<'a>, depth: usize) -> Self {
        let mut machine = Self::bare(shared, routine, live, depth);
        machine.variables = routine.variables.iter().map(|v| v.place.initial()).collect();
        machine.set_found(false);
        machine
    }

    /// Without variables, which compiled code brings.
    fn bare(shared: &'a Shared<'a>, routine: &'a Routine, live: LiveRows<'a>, depth: usize) -> Self {
        Self {
            shared,
            routine,
            live,
            variables: Vec::new(),
            row_count: 0,
            handling: Vec::new(),
            values: Vec::new(),
            value: None,
            value_fit: None,
            depth,
        }
    }

    fn take_arguments(&mut self, args: Vec<Datum>) -> Result<(), Stop> {
        let routine = self.routine;
        let formals = routine.signature.parameters.iter();
        let inputs: Vec<VariableId> = match routine.code {
            // Only what comes in has a number in a body in SQL.
            Code::Queries(..) => routine.parameters.clone(),
            Code::Block(_) => {
                let all = formals.zip(&routine.parameters);
                all.filter(|(formal, _)| formal.mode.is_in()).map(|(_, id)| *id).collect()
            }
        };
        if inputs.len() != args.len() {
            return Err(wrong_arguments(args.len(), inputs.len()).into());
        }
        for (id, value) in inputs.into_iter().zip(args) {
            self.set(id, value)?;
        }
        Ok(())
    }

    fn body(mut self, block: &'a Block) -> Result<Vec<Datum>, Stop> {
        let flow = self.block(block)?;
        self.result(flow == Flow::Return)
    }

    /// The result, once the body has come to its end or to RETURN.
    pub fn result(&mut self, returned: bool) -> Result<Vec<Datum>, Stop> {
        let signature = &self.routine.signature;
        if signature.result.setof {
            return Ok(std::mem::take(&mut self.values));
        }
        if signature.result.from_variables {
            // Nobody asks for the variables any more.
            let results = self.routine.results.iter();
            let take = |id: &VariableId| self.variables.get_mut(id.0 as usize).map(std::mem::take);
            let values: Vec<Datum> = results.filter_map(take).collect();
            return Ok(vec![self.result_of(values.into_iter())]);
        }
        if signature.kind == RoutineKind::Procedure || signature.result.place == Place::Void {
            // As PostgreSQL, whose value of type void is the empty text.
            return Ok(vec![Value::Text(String::new()).into()]);
        }
        match (returned, self.value.take()) {
            (true, Some(value)) => match self.value_fit.take() {
                Some(fit) => Ok(vec![self.fit_row(&fit, value)?]),
                None => Ok(vec![value]),
            },
            _ => {
                let message = "control reached end of function without RETURN";
                Err(SqlError::new(SqlState(*b"2F005"), message).into())
            }
        }
    }

    /// The variables that make the result.
    fn result_of_variables(&self) -> Datum {
        self.result_of(self.routine.results.iter().map(|id| Frame::variable(self, *id).clone()))
    }

    fn result_of(&self, mut values: impl Iterator<Item = Datum>) -> Datum {
        match self.routine.signature.result.place {
            Place::Row(_) => Datum::Row(values.collect()),
            _ => values.next().unwrap_or(Datum::NULL),
        }
    }

    /// A body in SQL.
    fn queries(mut self, queries: &'a [Query], fits: &'a [Fit]) -> Result<Vec<Datum>, Stop> {
        let result = &self.routine.signature.result;
        let (last, others) = match queries.split_last() {
            Some((last, others)) if result.place != Place::Void => (Some(last), others),
            _ => (None, queries),
        };
        for query in others {
            self.rows(query, usize::MAX)?;
        }
        let Some(last) = last else { return Ok(vec![Datum::NULL]) };
        let limit = if result.setof { usize::MAX } else { 1 };
        let (_, rows) = self.rows(last, limit)?;
        let mut values = Vec::new();
        for row in rows.into_iter().take(limit) {
            values.push(self.result_row(row, fits)?);
        }
        if values.is_empty() && !result.setof {
            values.push(result.place.initial());
        }
        Ok(values)
    }

    /// A row of a query as a value of the result.
    fn result_row(&mut self, row: Vec<Datum>, fits: &'a [Fit]) -> Result<Datum, Stop> {
        let mut fitted = Vec::with_capacity(row.len());
        for (value, fit) in row.into_iter().zip(fits) {
            fitted.push(self.fit(fit, value)?);
        }
        Ok(match self.routine.signature.result.place {
            Place::Row(_) => Datum::Row(fitted.into()),
            _ => fitted.pop().unwrap_or(Datum::NULL),
        })
    }

    /// Runs a query: how many rows it saw or changed, and those it gives, at most `limit`.
    fn rows(&mut self, query: &Query, limit: usize) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
        match query {
            Query::Select(select) => {
                let rows = query::select(select, self, limit)?;
                Ok((rows.len() as u64, rows))
            }
            Query::Change(change) => query::change(change, self),
        }
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Datum, Stop> {
        expr::evaluate(expr, self)
    }

    /// Whether a condition is true, neither false nor NULL.
    fn holds(&mut self, condition: &Expr) -> Result<bool, Stop> {
        Ok(matches!(self.evaluate(condition)?, Datum::Value(Value::Bool(true))))
    }

    fn set_found(&mut self, found: bool) {
        if let Some(variable) = self.variables.get_mut(FOUND.0 as usize) {
            *variable = Value::Bool(found).into();
        }
    }

    /// A block: its variables, its statements, and its handlers.
    fn block<'r>(&mut self, block: &'r Block) -> Result<Flow<'r>, Stop> {
        for initial in &block.initial {
            self.set_initial(initial)?;
        }
        let flow = match block.handlers.is_empty() {
            true => self.statements(&block.statements)?,
            false => self.protected(block)?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_deref() == Some(label) => Flow::Next,
            other => other,
        })
    }

    /// A block with handlers.
    fn protected<'r>(&mut self, block: &'r Block) -> Result<Flow<'r>, Stop> {
        let before = self.before_block();
        let error = match self.statements(&block.statements) {
            Err(Stop::Error(error)) => Stop::Error(error),
            other => return other,
        };
        let handler = self.begin_handler(block, error, before)?;
        let flow = self.statements(&block.handlers[handler].statements);
        if flow.is_ok() {
            self.handling.pop();
        }
        flow
    }

    /// What [`Machine::begin_handler`] goes back to.
    pub fn before_block(&self) -> BeforeBlock {
        BeforeBlock {
            savepoint: self.live.tx.savepoint(),
            synchronous: self.live.tx.synchronous_commit(),
            handling: self.handling.len(),
        }
    }

    /// After an error: takes back what the block did and gives the number of the handler to run.
    ///
    /// # Errors
    /// The same, if no handler is for it.
    pub fn begin_handler(&mut self, block: &Block, stop: Stop, before: BeforeBlock) -> Result<usize, Stop> {
        let Stop::Error(error) = stop else { return Err(stop) };
        self.handling.truncate(before.handling);
        let fits = |handler: &Handler| handler.conditions.iter().any(|c| c.holds(error.state()));
        let Some(handler) = block.handlers.iter().position(fits) else { return Err(Stop::Error(error)) };
        self.live.tx.roll_back_to(before.savepoint);
        self.live.tx.set_synchronous_commit(before.synchronous);
        self.live.check_interrupt()?;
        let (state, message) = block.handlers[handler].variables;
        self.set(state, Value::Text(error.state().to_string()).into())?;
        self.set(message, Value::Text(error.message().to_owned()).into())?;
        self.handling.push(*error);
        Ok(handler)
    }

    fn call_routine(&mut self, id: RoutineId, args: Vec<Datum>) -> Result<Vec<Datum>, Stop> {
        self.shared.check_depth(self.depth + 1)?;
        let routine = self.shared.routines.bound(id)?;
        self.live.check_interrupt()?;
        match self.shared.routines.machine_code(id) {
            Some(code) => {
                self.shared.enter_code(code.as_ref(), &routine, &args, self.live.reborrow(), self.depth + 1)
            }
            None => self.shared.enter(&routine, args, self.live.reborrow(), self.depth + 1),
        }
    }
}

/// What compiled code asks of the interpreter.
impl<'a> Machine<'a> {
    /// A variable.
    pub fn boxed(&self, id: VariableId) -> &Datum {
        Frame::variable(self, id)
    }

    /// Gives it its variables.
    pub fn set_variables(&mut self, variables: Vec<Datum>) {
        self.variables = variables;
    }

    /// Takes them back.
    pub fn into_variables(self) -> Vec<Datum> {
        self.variables
    }

    /// Gives a variable a value that compiled code keeps elsewhere.
    pub fn lend(&mut self, id: VariableId, value: Datum) {
        if let Some(place) = self.variables.get_mut(id.0 as usize) {
            *place = value;
        }
    }

    /// Puts a value of the right type into a variable; a row may have fewer fields.
    pub fn put_variable(&mut self, id: VariableId, value: Datum) -> Result<(), Stop> {
        self.put(&Target::Variable(id), value)
    }

    /// Casts a value as its target wants it, and puts it there.
    pub fn fit_and_put(&mut self, target: &Target, fit: &Fit, value: Datum) -> Result<(), Stop> {
        let value = self.fit(fit, value)?;
        self.put(target, value)
    }

    /// The innermost handler has ended.
    pub fn end_handler(&mut self) {
        self.handling.pop();
    }

    /// The value of RETURN, of the result's type.
    pub fn set_value(&mut self, value: Datum) {
        (self.value, self.value_fit) = (Some(value), None);
    }

    /// How many rows the last statement saw or changed.
    pub fn set_row_count(&mut self, count: u64) {
        self.row_count = count;
    }

    /// All rows of a query.
    pub fn query_rows(&mut self, query: &Query) -> Result<Vec<Vec<Datum>>, Stop> {
        self.rows(query, usize::MAX).map(|(_, rows)| rows)
    }

    /// Does a statement that neither jumps nor returns.
    pub fn simple_statement(&mut self, statement: &Statement) -> Result<(), Stop> {
        self.statements(std::slice::from_ref(statement)).map(|_| ())
    }
}

/// What a variable is that does not exist.
static NOTHING: Datum = Datum::NULL;

impl Frame for Machine<'_> {
    fn variable(&self, variable: VariableId) -> &Datum {
        self.variables.get(variable.0 as usize).unwrap_or(&NOTHING)
    }

    fn column(&mut self, _: ColumnRef) -> Result<Datum, Stop> {
        Err(SqlError::new(SqlState::INTERNAL_ERROR, "a column outside of a query").into())
    }

    fn now(&mut self) -> i64 {
        self.live.tx.now()
    }

    fn call(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Datum, Stop> {
        Ok(self.call_routine(routine, args)?.pop().unwrap_or(Datum::NULL))
    }

    fn query(&mut self, plan: &SelectPlan, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        query::select(plan, self, limit)
    }
}

impl Host for Machine<'_> {
    fn live(&mut self) -> LiveRows<'_> {
        self.live.reborrow()
    }

    fn variable(&self, variable: VariableId) -> &Datum {
        Frame::variable(self, variable)
    }

    fn call(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Datum, Stop> {
        Frame::call(self, routine, args)
    }

    fn call_rows(&mut self, id: RoutineId, args: Vec<Datum>) -> Result<Vec<Vec<Datum>>, Stop> {
        let signature = self.shared.routines.signature(id);
        let values = self.call_routine(id, args)?;
        Ok(values
            .into_iter()
            .map(|value| match &signature {
                Some(signature) if signature.result.place != Place::Void => signature.result.row(value),
                _ => vec![value],
            })
            .collect())
    }

    fn take_memory(&mut self, bytes: usize) -> Result<(), Stop> {
        let taken = self.shared.memory.get().saturating_add(bytes);
        self.shared.memory.set(taken);
        if taken <= self.shared.limits.memory_bytes {
            return Ok(());
        }
        let error = SqlError::new(SqlState::OUT_OF_MEMORY, "the call needs too much memory");
        let error = error
            .with_detail(format!("It may use {} bytes.", self.shared.limits.memory_bytes))
            .with_hint("Read fewer rows at a time, or return fewer.");
        Err(Stop::Fatal(Box::new(error)))
    }
}

/// Gives `act` a host that no routine surrounds, for queries that call routines.
pub fn with_host<R>(
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
    routine: &Routine,
    act: impl FnOnce(&mut dyn HostFrame) -> R,
) -> R {
    with_parameters(execution, routines, limits, routine, &[], act)
}

/// As [`with_host`], with the values of the statement's parameters, each of its parameter's type.
pub fn with_parameters<R>(
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
    routine: &Routine,
    values: &[Datum],
    act: impl FnOnce(&mut dyn HostFrame) -> R,
) -> R {
    let shared = Shared::new(routines, limits);
    let mut machine = Machine::new(&shared, routine, execution.live(), 0);
    for (id, value) in routine.parameters.iter().zip(values) {
        if let Some(variable) = machine.variables.get_mut(id.0 as usize) {
            variable.clone_from(value);
        }
    }
    act(&mut machine)
}

/// What both queries and expressions need.
pub trait HostFrame: Host {
    /// The value of an expression that names no column.
    ///
    /// # Errors
    /// The expression's.
    fn evaluate(&mut self, expr: &Expr) -> Result<Datum, Stop>;

    /// All values that a routine gives back.
    ///
    /// # Errors
    /// The routine's.
    fn call_for_values(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Vec<Datum>, Stop>;
}

impl HostFrame for Machine<'_> {
    fn evaluate(&mut self, expr: &Expr) -> Result<Datum, Stop> {
        Machine::evaluate(self, expr)
    }

    fn call_for_values(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Vec<Datum>, Stop> {
        self.call_routine(routine, args)
    }
}
