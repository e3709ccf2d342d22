//! Statements that have no code of their own, loops over rows, blocks with handlers.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_execute::BeforeBlock;
use albireo_plpgsql::body::{Block, Query, Sink, Statement};
use albireo_semantics::datum::{Array, Datum};
use albireo_semantics::expr::VariableId;
use albireo_storage::Cell;

use super::rows::Buffer;
use super::{Context, FAILED, OK, guard, values};
use crate::kind::Kind;

/// There is no further row.
pub(crate) const DONE: u32 = 2;

/// Rows that a loop goes over.
pub(crate) enum Cursor {
    /// As the interpreter gave them.
    Rows(std::vec::IntoIter<Vec<Datum>>),
    /// The elements of an array.
    Items(Arc<Array>, usize),
    /// As generated code kept them.
    Cells(Buffer),
}

/// A block with handlers that is under way.
#[derive(Clone, Copy)]
pub(crate) struct Protected {
    before: BeforeBlock,
    cursors: usize,
}

/// A statement that the interpreter does, and the variables that it may change.
pub(crate) struct Escape {
    pub(crate) statement: *const Statement,
    pub(crate) targets: Box<[VariableId]>,
}

/// Where the interpreter puts a row.
pub(crate) struct RowSink {
    pub(crate) sink: *const Sink,
    pub(crate) targets: Box<[VariableId]>,
    /// Whether variables say where, as subscripts do.
    pub(crate) lends: bool,
}

// SAFETY: these are never changed, nor what they point at.
unsafe impl Send for Escape {}
// SAFETY: as above.
unsafe impl Sync for Escape {}
// SAFETY: as above.
unsafe impl Send for RowSink {}
// SAFETY: as above.
unsafe impl Sync for RowSink {}

/// What is wrong, of errors that say nothing of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Fault {
    CaseNotFound,
    LowerBound,
    UpperBound,
    StepNull,
    StepNotPositive,
    NoRow,
    SeveralRows,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::CaseNotFound,
        Self::LowerBound,
        Self::UpperBound,
        Self::StepNull,
        Self::StepNotPositive,
        Self::NoRow,
        Self::SeveralRows,
    ];

    fn error(self) -> SqlError {
        let null = |what: &str| {
            let message = format!("{what} of FOR loop cannot be null");
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
        };
        match self {
            Self::CaseNotFound => SqlError::new(SqlState(*b"20000"), "case not found")
                .with_hint("CASE statement is missing ELSE part."),
            Self::LowerBound => null("lower bound"),
            Self::UpperBound => null("upper bound"),
            Self::StepNull => null("BY value"),
            Self::StepNotPositive => {
                let message = "BY value of FOR loop must be greater than zero";
                SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            }
            Self::NoRow => SqlError::new(SqlState(*b"P0002"), "query returned no rows"),
            Self::SeveralRows => SqlError::new(SqlState(*b"P0003"), "query returned more than one row")
                .with_hint("Make sure the query returns a single row, or use LIMIT 1."),
        }
    }
}

/// Fails.
pub(crate) unsafe extern "C" fn fail(context: *mut Context<'_>, fault: u32) -> u32 {
    debug_assert!((fault as usize) < Fault::ALL.len(), "code fails with an error of the list");
    guard(context, |_| Err(Fault::ALL[fault as usize % Fault::ALL.len()].error().into()))
}

/// Forgets the temporaries of a statement.
pub(crate) unsafe extern "C" fn reset(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        context.space.arena.clear();
        context.space.boxes.clear();
        context.dirty = 0;
        Ok(OK)
    })
}

/// Some rounds of loops are over.
pub(crate) unsafe extern "C" fn rounds(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        context.rounds = super::ROUNDS;
        context.machine.live.check_interrupt()?;
        Ok(OK)
    })
}

/// Does a statement that neither jumps nor returns.
pub(crate) unsafe extern "C" fn statement(context: *mut Context<'_>, escape: *const Escape) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let escape = unsafe { &*escape };
        context.lend_all();
        // SAFETY: R-2.
        let done = context.machine.simple_statement(unsafe { &*escape.statement });
        // Also of a statement that failed: a handler sees what it assigned before.
        for target in &escape.targets {
            context.take_back(*target)?;
        }
        done.map(|()| OK)
    })
}

/// Runs a query of a loop; `count` gets how many rows there are.
pub(crate) unsafe extern "C" fn open_query(
    context: *mut Context<'_>,
    query: *const Query,
    count: *mut Cell,
) -> u32 {
    guard(context, |context| {
        context.lend_all();
        // SAFETY: R-2.
        let rows = context.machine.query_rows(unsafe { &*query })?;
        // SAFETY: generated code passes room for a cell.
        unsafe { *count = values::number(rows.len() as u64) };
        context.space.cursors.push(Cursor::Rows(rows.into_iter()));
        Ok(OK)
    })
}

/// Begins to go over an array; `count` gets how many elements there are.
pub(crate) unsafe extern "C" fn open_array(
    context: *mut Context<'_>,
    array: *const Cell,
    count: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address.
        let Datum::Array(array) = context.datum(unsafe { &*array }, Kind::Boxed) else {
            let message = "FOREACH expression must not be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        };
        // SAFETY: as above.
        unsafe { *count = values::number(array.items.len() as u64) };
        context.space.cursors.push(Cursor::Items(array, 0));
        Ok(OK)
    })
}

/// Puts the next row where it goes.
pub(crate) unsafe extern "C" fn next_row(context: *mut Context<'_>, sink: *const RowSink) -> u32 {
    guard(context, |context| {
        let innermost = context.space.cursors.last();
        debug_assert!(matches!(innermost, Some(Cursor::Rows(_))), "the innermost loop is over these rows");
        let row = match context.space.cursors.last_mut() {
            Some(Cursor::Rows(rows)) => rows.next(),
            _ => None,
        };
        match row {
            // SAFETY: R-2.
            Some(row) => context.sink(unsafe { &*sink }, Some(row)).map(|()| OK),
            None => Ok(DONE),
        }
    })
}

/// Puts no row where rows go.
pub(crate) unsafe extern "C" fn no_row(context: *mut Context<'_>, sink: *const RowSink) -> u32 {
    // SAFETY: R-2.
    guard(context, |context| context.sink(unsafe { &*sink }, None).map(|()| OK))
}

/// The next element of an array.
pub(crate) unsafe extern "C" fn next_item(context: *mut Context<'_>, kind: u64, out: *mut Cell) -> u32 {
    guard(context, |context| {
        let innermost = context.space.cursors.last();
        debug_assert!(matches!(innermost, Some(Cursor::Items(..))), "the innermost loop is over this array");
        let item = match context.space.cursors.last_mut() {
            Some(Cursor::Items(array, next)) => {
                *next += 1;
                array.items.get(*next - 1).cloned()
            }
            _ => None,
        };
        let Some(item) = item else { return Ok(DONE) };
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(item, Kind::from_code(kind))? };
        Ok(OK)
    })
}

/// Ends the innermost loop over rows or elements.
pub(crate) unsafe extern "C" fn close(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        let ended = context.space.cursors.pop();
        debug_assert!(ended.is_some(), "a loop that ends had begun");
        Ok(OK)
    })
}

/// Begins a block with handlers.
pub(crate) unsafe extern "C" fn protect(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        let before = context.machine.before_block();
        context.space.protected.push(Protected { before, cursors: context.space.cursors.len() });
        Ok(OK)
    })
}

/// Ends one without an error.
pub(crate) unsafe extern "C" fn unprotect(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        let ended = context.space.protected.pop();
        assert!(ended.is_some(), "a block that ends had begun");
        Ok(OK)
    })
}

/// After an error in a block with handlers: the number of the handler, from 1; 0 if there is none.
pub(crate) unsafe extern "C" fn handle(context: *mut Context<'_>, block: *const Block) -> u32 {
    let mut chosen = 0;
    let status = guard(context, |context| {
        let Some(protected) = context.space.protected.pop() else { return Ok(OK) };
        let open = context.space.cursors.len();
        assert!(protected.cursors <= open, "loops around a block outlive it");
        context.space.cursors.truncate(protected.cursors);
        if context.panic.is_some() {
            return Ok(OK);
        }
        let Some(stop) = context.stop.take() else { return Ok(OK) };
        // SAFETY: R-2.
        let block = unsafe { &*block };
        let handler = context.machine.begin_handler(block, stop, protected.before)?;
        let variables = block.handlers[handler].variables;
        context.take_back(variables.0)?;
        context.take_back(variables.1)?;
        chosen = handler as u32 + 1;
        Ok(OK)
    });
    if status == FAILED { 0 } else { chosen }
}

/// Ends a handler.
pub(crate) unsafe extern "C" fn handled(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        context.machine.end_handler();
        Ok(OK)
    })
}

/// RETURN with a value.
pub(crate) unsafe extern "C" fn return_value(context: *mut Context<'_>, from: *const Cell, kind: u64) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address.
        let value = context.datum(unsafe { &*from }, Kind::from_code(kind));
        context.machine.set_value(value);
        Ok(OK)
    })
}

/// Notes how many rows the last statement saw or changed.
pub(crate) unsafe extern "C" fn row_count(context: *mut Context<'_>, count: u64) -> u32 {
    guard(context, |context| {
        context.machine.set_row_count(count);
        Ok(OK)
    })
}

impl Context<'_> {
    /// Lets the interpreter put a row, or none, where it goes.
    fn sink(&mut self, sink: &RowSink, row: Option<Vec<Datum>>) -> Result<(), albireo_semantics::Stop> {
        if sink.lends {
            self.lend_all();
        }
        // SAFETY: R-2.
        let done = self.machine.sink(unsafe { &*sink.sink }, row);
        for target in &sink.targets {
            self.take_back(*target)?;
        }
        done
    }
}
