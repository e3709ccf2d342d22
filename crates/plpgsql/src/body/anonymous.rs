//! A client's statement as the body of a routine without a name, so that the compiler makes code of it.
//!
//! The parameters of the statement are those of the routine; its result is one row: FOUND, and the columns of
//! the statement's row if it gives any.

use std::sync::Arc;

use super::place::{Place, RowPlace};
use super::signature::{Formal, ResultShape, Signature};
use super::tree::{Block, Code, FOUND, Fit, Into, Query, Routine, Sink, Statement, Target, Variable};
use crate::define::{Mode, RoutineKind, Volatility};
use crate::expr::VariableId;
use crate::plan::tree::{Body, Change};
use crate::plan::{self, ChangePlan, SelectPlan};
use crate::types::{Scalar, Type};

/// A query as a routine; `around` has its parameters. `None` if it may give several rows, or rows that no
/// variables hold.
pub fn routine_of_select(plan: &SelectPlan, around: &Routine) -> Option<Routine> {
    let Body::Select(select) = &plan.query.body else { return None };
    let single = match &select.grouping {
        Some(grouping) => grouping.keys.is_empty() && grouping.sets.is_none(),
        None => plan::most_rows_read(plan).is_some(),
    };
    let query = Query::Select(Arc::new(plan.clone()));
    if single { routine_of(query, &plan.columns, around) } else { None }
}

/// As [`routine_of_select`], of a change that gives rows. Of one that gives none FOUND is whether it concerned a
/// row, and it concerns one at most.
pub fn routine_of_change(plan: &ChangePlan, around: &Routine) -> Option<Routine> {
    let single = match &*plan.change {
        Change::Insert(insert) => matches!(&insert.source.body, Body::Values(rows) if rows.len() == 1),
        Change::Update(_) | Change::Delete(_) => plan::most_rows_looked_at(plan) == Some(1),
        Change::Merge(_) => false,
    };
    let query = Query::Change(Arc::new(plan.clone()));
    if single { routine_of(query, &plan.returning, around) } else { None }
}

fn routine_of(query: Query, columns: &[(String, Type)], around: &Routine) -> Option<Routine> {
    let mut variables = around.variables.clone();
    let mut results = vec![FOUND];
    let mut shape = vec![("found".to_owned(), Place::Plain(Scalar::Bool))];
    for (name, ty) in columns {
        let place = match ty {
            Type::Scalar(Scalar::Unknown) | Type::Row(_) | Type::Void => return None,
            ty => Place::of(ty),
        };
        results.push(VariableId(variables.len() as u32));
        variables.push(Variable {
            name: String::new(),
            place: place.clone(),
            constant: false,
            not_null: false,
        });
        shape.push((name.clone(), place));
    }
    let targets: Vec<(Target, Fit)> =
        results[1..].iter().map(|id| (Target::Variable(*id), Fit::Same)).collect();
    let statement = match targets.is_empty() {
        true => Statement::Execute(query),
        false => Statement::Into(Box::new(Into { query, sink: Sink::Targets(targets), strict: false })),
    };
    let formal = |id: &VariableId| Formal {
        name: String::new(),
        mode: Mode::In,
        place: around.variables[id.0 as usize].place.clone(),
        default: None,
    };
    let signature = Signature {
        name: "statement".to_owned(),
        kind: RoutineKind::Function,
        parameters: around.parameters.iter().map(formal).collect(),
        result: ResultShape {
            place: Place::Row(Arc::new(RowPlace::of_columns(&shape))),
            setof: false,
            columns: shape,
            from_variables: true,
        },
        strict: false,
        volatility: Volatility::Volatile,
    };
    let block = Block { label: None, initial: Vec::new(), statements: vec![statement], handlers: Vec::new() };
    Some(Routine {
        signature: Arc::new(signature),
        variables,
        parameters: around.parameters.clone(),
        results,
        code: Code::Block(block),
    })
}
