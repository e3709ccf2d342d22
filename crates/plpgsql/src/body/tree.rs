//! A routine with types: what the interpreter runs and a compiler compiles.
//!
//! Invariants: every variable, field and label that a statement names exists; every value is cast to
//! what its target holds by the [`Fit`] that stands with it.

use std::sync::Arc;

use albireo_base::SqlState;

use super::place::Place;
use super::signature::Signature;
use crate::expr::{Expr, VariableId};
use crate::parse::ast::{DiagnosticItem, RaiseLevel};
use crate::plan::{ChangePlan, SelectPlan};

/// A routine.
#[derive(Clone, Debug)]
pub struct Routine {
    /// What its callers know.
    pub signature: Arc<Signature>,
    /// Its variables; a [`VariableId`] is the place in here. First FOUND, then the parameters, then
    /// the columns of RETURNS TABLE.
    pub variables: Vec<Variable>,
    /// Where the arguments go: a variable for each parameter.
    pub parameters: Vec<VariableId>,
    /// The variables that make the result, where the result is made of variables.
    pub results: Vec<VariableId>,
    /// What it does.
    pub code: Code,
}

/// The two kinds of bodies.
#[derive(Clone, Debug)]
pub enum Code {
    /// PL/pgSQL.
    Block(Block),
    /// SQL: statements one after another; the last gives the result, fitted as said, unless nothing is
    /// returned.
    Queries(Vec<Query>, Vec<Fit>),
}

/// FOUND.
pub const FOUND: VariableId = VariableId(0);

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name; empty for one that the binder made.
    pub name: String,
    /// What it holds.
    pub place: Place,
    /// Whether nothing is assigned to it.
    pub constant: bool,
    /// Whether NULL may not be assigned to it.
    pub not_null: bool,
}

/// A cast of a value on its way to a target.
#[derive(Clone, Debug)]
pub enum Fit {
    /// As it is.
    Same,
    /// The value is put into the variable; the expression is what goes on.
    Cast(VariableId, Box<Expr>),
}

/// What is assigned to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A variable.
    Variable(VariableId),
    /// A field of a row.
    Field(VariableId, usize),
    /// An element of an array, with its subscript.
    Element(VariableId, Box<Expr>),
}

impl Target {
    /// The variable that is assigned to, or to a part of which.
    pub fn variable(&self) -> VariableId {
        match self {
            Self::Variable(id) | Self::Field(id, _) | Self::Element(id, _) => *id,
        }
    }
}

/// Where a row of a query goes.
#[derive(Clone, Debug)]
pub enum Sink {
    /// To each target the column of its number; NULL if there is none.
    Targets(Vec<(Target, Fit)>),
    /// To the fields of a row or record.
    Row(VariableId, Vec<Fit>),
}

/// A query of any kind.
#[derive(Clone, Debug)]
pub enum Query {
    /// It reads.
    Select(Arc<SelectPlan>),
    /// It changes.
    Change(Arc<ChangePlan>),
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// What EXIT calls it.
    pub label: Option<String>,
    /// What its variables begin with, in order.
    pub initial: Vec<Initial>,
    /// What it does.
    pub statements: Vec<Statement>,
    /// What it does when that fails.
    pub handlers: Vec<Handler>,
}

/// A variable's first value.
#[derive(Clone, Debug)]
pub struct Initial {
    /// The variable.
    pub variable: VariableId,
    /// Its value; NULL, or a row of NULLs, if missing.
    pub value: Option<Assignment>,
}

/// `WHEN ... THEN ...`.
#[derive(Clone, Debug)]
pub struct Handler {
    /// What it handles.
    pub conditions: Vec<Condition>,
    /// The variables SQLSTATE and SQLERRM.
    pub variables: (VariableId, VariableId),
    /// What it does.
    pub statements: Vec<Statement>,
}

/// Which errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// All but cancellations and failed assertions.
    Others,
    /// One, or its class if it ends in `000`.
    State(SqlState),
}

/// A value on its way to a target.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Where to.
    pub target: Target,
    /// What.
    pub value: Expr,
    /// How it gets there; for a row, its fields.
    pub fit: RowFit,
}

/// How a value is made to fit.
#[derive(Clone, Debug)]
pub enum RowFit {
    /// As one.
    Value(Fit),
    /// Field by field.
    Fields(Vec<Fit>),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A nested block.
    Block(Block),
    /// `:=`.
    Assign(Assignment),
    /// IF: conditions with what they lead to, and ELSE.
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    /// CASE.
    Case(Box<Case>),
    /// A loop.
    Loop(Box<Loop>),
    /// EXIT or CONTINUE.
    Jump(Jump),
    /// PERFORM: all rows are read.
    Perform(Query),
    /// A statement without INTO, which changes.
    Execute(Query),
    /// A statement with INTO.
    Into(Box<Into>),
    /// CALL.
    Call(Box<Call>),
    /// GET DIAGNOSTICS.
    Diagnostics(Vec<(Target, Fit, DiagnosticItem)>),
    /// SET LOCAL synchronous_commit.
    SynchronousCommit(Option<bool>),
    /// RAISE without anything.
    RaiseAgain,
    /// RAISE.
    Raise(Box<Raise>),
    /// ASSERT.
    Assert(Box<Expr>, Option<Box<Expr>>),
    /// RETURN without a value, or with that of variables.
    Return,
    /// RETURN with a value.
    ReturnValue(Box<Expr>, RowFit),
    /// RETURN NEXT of the variables.
    ReturnNext,
    /// RETURN NEXT with a value.
    ReturnNextValue(Box<Expr>, RowFit),
    /// RETURN QUERY.
    ReturnQuery(Query, Vec<Fit>),
}

/// CASE.
#[derive(Clone, Debug)]
pub struct Case {
    /// The operand and where its value stands for the conditions.
    pub operand: Option<(Expr, VariableId)>,
    /// Conditions with what they lead to.
    pub branches: Vec<(Vec<Expr>, Vec<Statement>)>,
    /// ELSE.
    pub otherwise: Option<Vec<Statement>>,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// What EXIT and CONTINUE call it.
    pub label: Option<String>,
    /// Over what.
    pub kind: LoopKind,
    /// What it repeats.
    pub statements: Vec<Statement>,
}

/// What a loop goes over.
#[derive(Clone, Debug)]
pub enum LoopKind {
    /// Nothing.
    Endless,
    /// As long as this is true.
    While(Expr),
    /// Integers.
    Range {
        /// The integer at hand.
        variable: VariableId,
        /// Whether it counts down.
        reverse: bool,
        /// The first, an INTEGER.
        from: Expr,
        /// The last, an INTEGER.
        to: Expr,
        /// The distance, an INTEGER.
        step: Option<Expr>,
    },
    /// Rows.
    Query {
        /// Where each goes.
        sink: Sink,
        /// Whose.
        query: Query,
    },
    /// Elements.
    Array {
        /// Where each goes.
        target: Target,
        /// How.
        fit: Fit,
        /// Whose.
        array: Expr,
    },
}

/// EXIT or CONTINUE.
#[derive(Clone, Debug)]
pub struct Jump {
    /// Whether the loop goes on.
    pub goes_on: bool,
    /// Which loop or block; the innermost loop if missing.
    pub label: Option<String>,
    /// Only if this is true.
    pub when: Option<Expr>,
}

/// A statement with INTO.
#[derive(Clone, Debug)]
pub struct Into {
    /// The statement.
    pub query: Query,
    /// Where its row goes.
    pub sink: Sink,
    /// Whether there must be exactly one row.
    pub strict: bool,
}

/// CALL.
#[derive(Clone, Debug)]
pub struct Call {
    /// The procedure.
    pub routine: crate::expr::RoutineId,
    /// What its IN and INOUT parameters get.
    pub args: Vec<Expr>,
    /// Where its OUT and INOUT parameters go.
    pub outputs: Vec<(Target, Fit)>,
}

/// RAISE.
#[derive(Clone, Debug)]
pub struct Raise {
    /// How bad it is.
    pub level: RaiseLevel,
    /// The SQLSTATE, if it is known.
    pub state: Option<SqlState>,
    /// The name of the condition.
    pub condition: Option<String>,
    /// The texts around the arguments.
    pub pieces: Vec<String>,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// `USING`: options with values that are texts.
    pub options: Vec<(crate::parse::ast::RaiseOptionKind, Expr)>,
}

impl Condition {
    /// Whether it includes an error of this code.
    pub fn holds(self, state: SqlState) -> bool {
        match self {
            Self::Others => state != SqlState::QUERY_CANCELED && state != SqlState(*b"P0004"),
            Self::State(own) if own.0.ends_with(b"000") => own.0[..2] == state.0[..2],
            Self::State(own) => own == state,
        }
    }
}
