//! MERGE, bound.
//!
//! Responsible for: how the source is joined with the table, WHEN and its actions. Not responsible for: what all
//! changes share (`change`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::TableDef;
use albireo_sql::ast::{
    Merge as AstMerge, MergeAction as AstAction, MergeClause as AstClause, MergeClauseKind, MergeInsertExpr,
    MergeInsertKind, TableWithJoins,
};

use super::ChangePlan;
use super::bind::conditions;
use super::change::{assignments, others, plan_of, target, target_of};
use super::from::From;
use super::insert::{Listed, defaults, values_for};
use super::scope::{Env, Mark, Phase, Scope};
use super::tree::{Change, Item, Merge, MergeAction, MergeClause, Pool};
use crate::expr::{self, Names};

/// Binds a MERGE.
pub(super) fn bind(env: Env<'_>, merge: &AstMerge, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    if merge.output.is_some() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "MERGE has no RETURNING"));
    }
    check_order(&merge.clauses)?;
    let item = |relation| TableWithJoins { relation, joins: Vec::new() };
    let mut pass = Scope::passing(env, outer);
    let mut scope = Scope::level(env, &mut pass);
    let mut from = From::default();
    let (table, target_pool) = target(&mut scope, &mut from, &item(merge.table.clone()), "MERGE")?;
    let hidden = scope.mark();
    let mut pool = others(&mut scope, &mut from, &[item(merge.source.clone())])?;
    let mut on = Vec::new();
    conditions(&mut scope, &merge.on, "JOIN/ON", &mut on)?;
    if merge.clauses.iter().any(|clause| !is_matched(clause)) {
        let requires = pool.relations();
        pool.items.push(Item::Left { pool: Pool { conditions: on, ..target_pool }, requires });
    } else {
        pool.merge(Pool { conditions: on, ..target_pool });
    }
    let mut clauses = Vec::with_capacity(merge.clauses.len());
    for clause in &merge.clauses {
        clauses.push(bind_clause(&mut scope, &table, clause, hidden)?);
    }
    let (columns, target) = target_of(table, from, pool, Default::default());
    Ok(plan_of(columns, Change::Merge(Merge { target, clauses })))
}

fn is_matched(clause: &AstClause) -> bool {
    clause.clause_kind == MergeClauseKind::Matched
}

/// Refuses a WHEN that can never be reached.
fn check_order(clauses: &[AstClause]) -> Result<(), SqlError> {
    let mut ended = [false; 2];
    for clause in clauses {
        if !matches!(clause.clause_kind, MergeClauseKind::Matched | MergeClauseKind::NotMatched) {
            return Err(SqlError::unsupported(format!("WHEN {}", clause.clause_kind)));
        }
        let ended = &mut ended[usize::from(is_matched(clause))];
        if *ended {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        *ended = clause.predicate.is_none();
    }
    Ok(())
}

fn bind_clause(
    scope: &mut Scope<'_>,
    table: &TableDef,
    clause: &AstClause,
    hidden: Mark,
) -> Result<MergeClause, SqlError> {
    let matched = is_matched(clause);
    if !matched {
        // There is no row of the table.
        scope.floor = hidden;
    }
    scope.phase = Phase::Refused("MERGE WHEN conditions");
    let condition = match &clause.predicate {
        Some(tree) => {
            let bound = expr::bind_open(tree, scope)?;
            Some(scope.condition_of(bound, "WHEN", tree)?)
        }
        None => None,
    };
    let action = match &clause.action {
        AstAction::Delete { .. } => MergeAction::Delete,
        // DO NOTHING, as the parser has it.
        AstAction::Update(update) if update.assignments.is_empty() => MergeAction::Nothing,
        AstAction::Update(update) => MergeAction::Update(assignments(scope, table, &update.assignments)?),
        AstAction::Insert(insert) => bind_insert(scope, table, insert)?,
    };
    scope.floor = Mark::default();
    Ok(MergeClause { matched, condition, action })
}

fn bind_insert(
    scope: &mut Scope<'_>,
    table: &TableDef,
    insert: &MergeInsertExpr,
) -> Result<MergeAction, SqlError> {
    // DO NOTHING, as the parser has it.
    let MergeInsertKind::Values(values) = &insert.kind else { return Ok(MergeAction::Nothing) };
    scope.phase = Phase::Refused("VALUES");
    let mut columns = Listed::of(scope, table, &insert.columns)?;
    let mut exprs = Vec::new();
    match values.rows.as_slice() {
        // DEFAULT VALUES.
        [] => columns.ids.clear(),
        [row] => values_for(scope, table, &mut columns, &row.content, &mut exprs)?,
        _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, "MERGE inserts one row at a time")),
    }
    let mut values = defaults(table, &columns.ids)?;
    values.extend(columns.ids.into_iter().zip(exprs));
    Ok(MergeAction::Insert(values))
}
