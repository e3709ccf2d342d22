//! Whether a routine does the same again: with the same arguments and time, on tables that have the same
//! rows, but not in the same places.
//!
//! A call of one that does may stand in the redo log as its name and arguments: a command record (HyPer,
//! 2010, §4.4). Recovery gives tables their rows in another order than they had. What depends on that order
//! is found here: rows that a query takes, or goes through, in an order that nothing decides (`rows`);
//! aggregates and changes that it decides about. A routine that handles errors is not taken: some come from
//! the machine, which may have more memory the next time.
//!
//! Careful as all classes are: it holds only where the code shows it.

mod rows;

use super::Verdict;
use super::part::{Inner, Part, each_call, each_inner, each_of_statement, each_part};
use super::touch::Reach;
use super::two_phase::fallible_query;
use crate::body::{Block, Code, Into, Loop, LoopKind, Query, Routine, Routines, Statement};
use crate::expr::{Expr, ExprKind, RoutineId, Subquery, SubqueryKind};
use crate::plan::ChangePlan;
use crate::plan::tree::{Change, Insert, RelationSource, Step, Target, Update};
use rows::{Around, Engine, Rows, of_query, of_steps};

/// Why it may do something else.
type Reason = String;

/// Where, and why.
type Found = (Option<usize>, Reason);

/// Looks at a routine and all that it calls.
pub(super) fn verdict(id: RoutineId, reach: &Reach, routines: &dyn Routines) -> Verdict {
    for other in reach.routines() {
        // One that cannot be bound fails when it is called, then as now.
        let Ok(routine) = routines.bound(other) else { continue };
        if let Err((line, why)) = look_at(&routine, is_asked_for_its_result(&routine, other == id)) {
            let place = match (line, other == id) {
                (Some(line), true) => format!("line {line} "),
                (Some(line), false) => format!("line {line} of {} ", routine.signature.shown()),
                (None, true) => "it ".to_owned(),
                (None, false) => format!("{} ", routine.signature.shown()),
            };
            return Verdict::no(place + &why);
        }
    }
    Verdict::yes("the order in which rows lie decides about nothing")
}

/// Whether the order of a routine's rows may matter to somebody. The client's is not in the log.
fn is_asked_for_its_result(routine: &Routine, is_called_by_client: bool) -> bool {
    let mut calls = false;
    each_call(routine, &mut |_| calls = true);
    calls || !is_called_by_client
}

fn look_at(routine: &Routine, has_result: bool) -> Result<(), Found> {
    let result = match &routine.code {
        Code::Block(block) => {
            of_block(block, has_result)?;
            None
        }
        // One that gives a single value takes that of the first row.
        Code::Queries(queries, _) => queries.last().filter(|_| has_result),
    };
    result.map_or(Ok(()), gives_in_order)?;
    let mut done = Ok(());
    each_part(routine, &mut |part, _| {
        if done.is_ok() {
            done = match part {
                Part::Query(query) => of_statement(query),
                Part::Expr(expr) => of_expr(expr),
                Part::Call(call) => call.args.iter().try_for_each(of_expr),
                Part::Initial(_) | Part::Assigned(_) => Ok(()),
            };
        }
    });
    done
}

/// A query whose rows are a routine's result.
fn gives_in_order(query: &Query) -> Result<(), Found> {
    match rows_of(query)? {
        Rows::Set => Err((line_of(query), "gives rows in no certain order".to_owned())),
        _ => Ok(()),
    }
}

/// Handlers, and statements that take one row, go through several or give them.
fn of_block(block: &Block, has_result: bool) -> Result<(), Found> {
    if !block.handlers.is_empty() {
        return Err((None, "handles errors, some of which come from the machine".to_owned()));
    }
    of_statements(&block.statements, has_result)
}

fn of_statements(all: &[Statement], has_result: bool) -> Result<(), Found> {
    all.iter().try_for_each(|statement| match statement {
        Statement::Block(block) => of_block(block, has_result),
        Statement::If(branches, otherwise) => {
            branches.iter().try_for_each(|(_, statements)| of_statements(statements, has_result))?;
            of_statements(otherwise, has_result)
        }
        Statement::Case(case) => {
            case.branches.iter().try_for_each(|(_, statements)| of_statements(statements, has_result))?;
            of_statements(case.otherwise.as_deref().unwrap_or_default(), has_result)
        }
        Statement::Loop(a_loop) => of_loop(a_loop, has_result),
        Statement::Into(into) => of_into(into),
        Statement::ReturnQuery(query, _) if has_result => gives_in_order(query),
        _ => Ok(()),
    })
}

fn of_loop(a_loop: &Loop, has_result: bool) -> Result<(), Found> {
    if let LoopKind::Query { query, .. } = &a_loop.kind
        && rows_of(query)? == Rows::Set
    {
        return Err((line_of(query), "goes through rows in no certain order".to_owned()));
    }
    of_statements(&a_loop.statements, has_result)
}

fn of_into(into: &Into) -> Result<(), Found> {
    // With STRICT, several rows are an error.
    match rows_of(&into.query)? {
        Rows::Set if !into.strict => {
            Err((line_of(&into.query), "takes one of several rows in no certain order".to_owned()))
        }
        _ => Ok(()),
    }
}

fn line_of(query: &Query) -> Option<usize> {
    match query {
        Query::Select(plan) => plan.line,
        Query::Change(plan) => plan.line,
    }
}

/// The rows that a statement gives.
fn rows_of(query: &Query) -> Result<Rows, Found> {
    let rows = match query {
        Query::Select(plan) => of_query(&plan.query, Engine::Transactional),
        Query::Change(plan) => of_change(&plan.change),
    };
    rows.map_err(|why| (line_of(query), why))
}

fn of_statement(query: &Query) -> Result<(), Found> {
    rows_of(query)?;
    of_inner_queries(query, Engine::Transactional)
}

/// The queries in a statement's expressions.
fn of_inner_queries(query: &Query, engine: Engine) -> Result<(), Found> {
    let mut done = Ok(());
    each_of_statement(query, &mut |inner| {
        if done.is_ok() {
            done = of_inner(&inner, line_of(query), engine);
        }
    });
    done
}

fn of_expr(expr: &Expr) -> Result<(), Found> {
    let mut done = Ok(());
    each_inner(expr, &mut |inner| {
        if done.is_ok() {
            done = of_inner(&inner, None, Engine::Transactional);
        }
    });
    done
}

fn of_inner(inner: &Inner<'_>, line: Option<usize>, engine: Engine) -> Result<(), Found> {
    match inner {
        Inner::Expr(Expr { kind: ExprKind::Subquery(subquery), .. }) => {
            of_subquery(subquery, engine).map_err(|why| (subquery.plan.line.or(line), why))
        }
        _ => Ok(()),
    }
}

fn of_subquery(subquery: &Subquery, engine: Engine) -> Result<(), Reason> {
    let query = &subquery.plan.query;
    match (engine.unasked(of_query(query, engine)?), &subquery.kind) {
        // Of several rows, a scalar subquery makes an error.
        (Rows::One | Rows::Ordered, _) | (Rows::Set, SubqueryKind::Scalar) => Ok(()),
        (Rows::Set, SubqueryKind::Array) => Err("makes an array of rows in no certain order".to_owned()),
        // Which rows are looked at until one decides depends on the order, and with them the errors.
        (Rows::Set, SubqueryKind::Exists | SubqueryKind::Any { .. }) => match fallible_query(query) {
            Some(what) => Err(format!("looks for a row in no certain order, where {what} may fail")),
            None => Ok(()),
        },
    }
}

/// The rows that a change gives, with RETURNING.
fn of_change(change: &Change) -> Result<Rows, Reason> {
    match change {
        Change::Insert(insert) => of_insert(insert),
        Change::Update(update) => of_update(update),
        Change::Delete(target) => of_target(target),
        Change::Merge(merge) => match of_target(&merge.target)? {
            Rows::Set => Err("merges rows in no certain order, which may be in each other's way".to_owned()),
            rows => Ok(rows),
        },
    }
}

fn of_target(target: &Target) -> Result<Rows, Reason> {
    of_steps(&target.steps, &target.relations, &Around::nothing(Engine::Transactional))
}

/// Whether a change does the same again whose rows a query of the analytical engine finds, and which ends if it finds
/// one of them twice; `plan` has access paths.
pub(super) fn holds_for_found(plan: ChangePlan) -> bool {
    let around = Around::nothing(Engine::Analytical);
    let found = plan.change.target().is_some_and(|target| {
        target.ctes.is_empty() && of_steps(&target.steps, &target.relations, &around).is_ok()
    });
    found && of_inner_queries(&Query::Change(plan.into()), Engine::Analytical).is_ok()
}

fn of_insert(insert: &Insert) -> Result<Rows, Reason> {
    let rows = of_query(&insert.source, Engine::Transactional)?;
    match &insert.conflict {
        Some(_) if rows == Rows::Set => {
            Err("inserts rows in no certain order, which may be in each other's way".to_owned())
        }
        _ => Ok(rows),
    }
}

fn of_update(update: &Update) -> Result<Rows, Reason> {
    let Target { table, relations, steps, .. } = &update.target;
    let rows = of_target(&update.target)?;
    if rows != Rows::Set {
        return Ok(rows);
    }
    let changes_key = |column| update.set.iter().any(|(other, _)| *other == column);
    let mut unique = table.indexes.iter().filter(|index| index.unique);
    if unique.any(|index| index.columns.iter().copied().any(changes_key)) {
        return Err("changes keys in no certain order, and may so find one taken or not".to_owned());
    }
    // Several rows of other tables may fit one of the table's: the first counts.
    let of_others = steps.iter().filter(|step| !is_of_table(step));
    let around = Around::nothing(Engine::Transactional);
    let several = of_others.map(|step| of_steps(std::slice::from_ref(step), relations, &around));
    match several.collect::<Result<Vec<Rows>, Reason>>()?.iter().all(|rows| *rows == Rows::One) {
        true => Ok(rows),
        false => Err("may find several rows for one that it changes, in no certain order".to_owned()),
    }
}

/// Whether a step goes through the rows of the table that is changed.
fn is_of_table(step: &Step) -> bool {
    matches!(step, Step::Inner { access, .. } if access.relation == 0)
}

/// Whether a relation is a table.
fn table_of(source: &RelationSource) -> Option<&albireo_sql::TableDef> {
    match source {
        RelationSource::Table(table) => Some(table),
        _ => None,
    }
}
