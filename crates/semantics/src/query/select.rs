//! SELECT, bound.
//!
//! Responsible for: the clauses of one SELECT in the order PostgreSQL binds them. Not responsible for: FROM
//! (`from`), the select list (`output`), GROUP BY (`group`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::helpers::attached_token::AttachedToken;
use albireo_sql::ast::{
    GroupByExpr, Ident, ObjectName, OrderByExpr, Select as AstSelect, SelectFlavor, SelectItem, Table,
    TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

use albireo_sql::source::Span;

use super::aggregate::{AGGREGATES, Calls, WINDOWS};
use super::bind::{Bound, Tail, conditions};
use super::from::From;
use super::group::{self, Keys};
use super::output::{self, Key, Output};
use super::regroup::Regroup;
use super::scope::{Env, Mention, Phase, Scope};
use super::tree::{
    Aggregate, Body, Distinct, FrameBound, Grouping, OrderBy, OrderKey, Pool, Relation, Select, WindowCall,
};
use crate::expr::{self, Expr, ExprKind, Names};

/// The most columns of a result and keys of an order, as PostgreSQL has it.
const MAX_OUTPUTS: usize = 1664;

/// The parts of a SELECT between binding and the last look at them.
struct Parts {
    outputs: Vec<Output>,
    having: Option<(Expr, Vec<Mention>)>,
    order: Vec<(Key, OrderKey)>,
    keys: Keys,
    distinct: Option<Vec<Key>>,
    grouped: bool,
}

/// Binds a SELECT with what stands behind it, but for LIMIT and OFFSET.
pub(super) fn bind(
    env: Env<'_>,
    select: &AstSelect,
    tail: Tail<'_>,
    pass: &mut Scope<'_>,
) -> Result<Bound, SqlError> {
    refuse_clauses(select)?;
    let limited = tail.limit.is_some() || tail.offset.is_some();
    let mut scope = Scope::level(env, &mut *pass);
    let mut from = From::default();
    let mut pool = from.items(&mut scope, &select.from)?;
    let mut parts = parts(&mut scope, select, tail.order, &mut pool)?;
    let calls = std::mem::take(&mut scope.calls);
    let (aggregates, windows) = finish(&scope, &mut parts, calls)?;
    let visible = match limited {
        true => scope.visible.iter().map(|visible| visible.name.clone()).collect(),
        false => Vec::new(),
    };
    let mut bound = assemble(parts, (from.relations, pool), aggregates, windows, (limited, visible));
    if let Body::Select(select) = &mut bound.body {
        super::lock::add(&scope, tail.locks, select)?;
    }
    Ok(bound)
}

/// Binds all clauses but FROM.
fn parts(
    scope: &mut Scope<'_>,
    select: &AstSelect,
    order_by: &[OrderByExpr],
    pool: &mut Pool,
) -> Result<Parts, SqlError> {
    scope.phase = Phase::Free;
    scope.define_windows(&select.named_window)?;
    let outputs = output::select_list(scope, &select.projection, !select.from.is_empty())?;
    if outputs.len() > MAX_OUTPUTS {
        let message = format!("target lists can have at most {MAX_OUTPUTS} entries");
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    if let Some(filter) = &select.selection {
        conditions(scope, filter, "WHERE", &mut pool.conditions)?;
    }
    scope.take_mentions();
    let having = match &select.having {
        Some(having) => {
            scope.phase = Phase::Having;
            let bound = expr::bind_open(having, scope)?;
            Some((scope.condition_of(bound, "HAVING", having)?, scope.take_mentions()))
        }
        None => None,
    };
    scope.phase = Phase::Free;
    let order = output::order_keys(scope, order_by, &outputs)?;
    let keys = group::bind(scope, select, &outputs)?;
    scope.phase = Phase::Free;
    let distinct = output::distinct(scope, select.distinct.as_ref(), &order, &outputs)?;
    let grouped = group::is_written(select) || having.is_some() || !scope.calls.aggregates.is_empty();
    if scope.recursive && !scope.calls.aggregates.is_empty() {
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        let error = SqlError::new(SqlState::INVALID_RECURSION, message);
        let first = outputs.iter().find(|output| has_aggregate(&output.expr)).and_then(|output| output.span);
        return Err(scope.source().locate(error, first.unwrap_or_else(Span::empty)));
    }
    Ok(Parts { outputs, having, order, keys, distinct, grouped })
}

/// Gives the columns of groups and windows their numbers, and refuses others where there are groups.
fn finish(
    scope: &Scope<'_>,
    parts: &mut Parts,
    calls: Calls,
) -> Result<(Vec<Aggregate>, Vec<WindowCall>), SqlError> {
    let Calls { mut aggregates, groupings, direct, mut windows, .. } = calls;
    if !parts.grouped && windows.is_empty() {
        return Ok((aggregates, Vec::new()));
    }
    let Keys { keys, sets, .. } = &parts.keys;
    let regroup = Regroup::new(parts.grouped, keys, sets.as_deref(), &scope.relations, scope.source());
    for (number, spans) in groupings {
        regroup.grouping(&mut aggregates[number].args, &spans)?;
    }
    for (number, said) in direct {
        // It stays as it is: it is the same for all rows of a group.
        regroup.finish(&mut aggregates[number].args[0].clone(), &said)?;
    }
    let mut done = vec![false; windows.len()];
    for output in &mut parts.outputs {
        for number in windows_in(&output.expr) {
            if !std::mem::replace(&mut done[number], true) {
                arguments(&regroup, &mut windows[number])?;
            }
        }
        regroup.finish(&mut output.expr, &output.said)?;
    }
    for (key, bound) in &mut parts.order {
        if let OrderBy::Expr(by) = &mut bound.by {
            regroup.finish(by, &key.said)?;
        }
    }
    for key in parts.distinct.iter_mut().flatten() {
        if let OrderBy::Expr(by) = &mut key.by {
            regroup.finish(by, &key.said)?;
        }
    }
    for (number, done) in done.into_iter().enumerate() {
        if !done {
            arguments(&regroup, &mut windows[number])?;
        }
        window(&regroup, &mut windows[number])?;
    }
    if let Some((having, said)) = &mut parts.having {
        regroup.finish(having, said)?;
    }
    Ok((aggregates, windows.into_iter().map(|(call, _)| call).collect()))
}

fn has_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(part.kind, ExprKind::Column(column) if column.relation == AGGREGATES);
    });
    found
}

/// The window functions in an expression.
fn windows_in(expr: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Column(column) = part.kind
            && column.relation == WINDOWS
            && column.depth == 0
        {
            found.push(usize::from(column.column));
        }
    });
    found
}

fn arguments(regroup: &Regroup<'_>, (call, said): &mut (WindowCall, Vec<Mention>)) -> Result<(), SqlError> {
    call.args.iter_mut().chain(&mut call.filter).try_for_each(|part| regroup.finish(part, said))
}

fn window(regroup: &Regroup<'_>, (call, said): &mut (WindowCall, Vec<Mention>)) -> Result<(), SqlError> {
    call.partition.iter_mut().try_for_each(|part| regroup.finish(part, said))?;
    for key in &mut call.order {
        if let OrderBy::Expr(by) = &mut key.by {
            regroup.finish(by, said)?;
        }
    }
    for bound in [&mut call.frame.start, &mut call.frame.end] {
        if let FrameBound::Before(by) | FrameBound::After(by) = bound {
            regroup.finish(by, said)?;
        }
    }
    Ok(())
}

fn assemble(
    parts: Parts,
    (relations, from): (Vec<Relation>, Pool),
    aggregates: Vec<Aggregate>,
    windows: Vec<WindowCall>,
    (limited, visible): (bool, Vec<String>),
) -> Bound {
    let Parts { outputs, having, order, keys, distinct, grouped } = parts;
    let having = having.map(|(having, _)| having);
    let Keys { keys, sets, written } = keys;
    let grouping = grouped.then_some(Grouping { keys, written, sets, aggregates, having });
    let distinct = match distinct {
        None => Distinct::No,
        Some(keys) if keys.is_empty() => Distinct::All,
        Some(keys) => {
            let expr = |key: Key| match key.by {
                OrderBy::Output(at) => outputs[at].expr.clone(),
                OrderBy::Expr(expr) => expr,
            };
            Distinct::On(keys.into_iter().map(expr).collect())
        }
    };
    let unknown = outputs.iter().map(|output| output.unknown).collect();
    let spans = outputs.iter().map(|output| output.span.unwrap_or_else(Span::empty)).collect();
    let (columns, outputs) = output::split(outputs);
    let order = order.into_iter().map(|(_, key)| key).collect();
    let plain = Select::plain(relations, from, outputs);
    let select = Select { grouping, windows, distinct, limited, ..plain };
    Bound { body: Body::Select(Box::new(select)), columns, order, unknown, spans, visible }
}

/// `TABLE t` as `SELECT * FROM t`.
pub(super) fn whole_table(table: &Table) -> AstSelect {
    let names = table.schema_name.iter().chain(&table.table_name);
    let name = ObjectName::from(names.map(Ident::new).collect::<Vec<_>>());
    let relation = TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    AstSelect {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
        exclude: None,
        into: None,
        from: vec![TableWithJoins { relation, joins: Vec::new() }],
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

fn refuse_clauses(select: &AstSelect) -> Result<(), SqlError> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO in a query inside of a statement"));
    }
    let refused = [
        (select.top.is_some(), "TOP"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (select.qualify.is_some(), "QUALIFY"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}
