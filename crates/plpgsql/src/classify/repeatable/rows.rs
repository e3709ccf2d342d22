//! What decides about the order of a query's rows.

use albireo_base::ColumnId;
use albireo_sql::{IndexKind, TableDef};

use super::{Reason, table_of};
use crate::expr::{ColumnRef, Expr, ExprKind};
use crate::plan::tree::{
    Access, Aggregate, AggregateKind, Body, Distinct, Grouping, OrderBy, OrderKey, Query, Relation,
    RelationSource, Select, SetKind, SetOperation, Step,
};
use crate::types::{Scalar, Type};

/// The rows of a query, the more certain the less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rows {
    /// One at most.
    One,
    /// In an order that their values decide.
    Ordered,
    /// In any order.
    Set,
}

/// Who runs a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Engine {
    /// A transaction, by the access paths, in their order.
    Transactional,
    /// The analytical engine, in no order but that of ORDER BY beside a LIMIT.
    Analytical,
}

impl Engine {
    /// Rows in an order that is not asked for where they are used.
    pub(super) fn unasked(self, rows: Rows) -> Rows {
        match (rows, self) {
            (Rows::Ordered, Self::Analytical) => Rows::Set,
            _ => rows,
        }
    }
}

/// What is around a part of a query.
#[derive(Clone)]
pub(super) struct Around {
    engine: Engine,
    /// Queries of WITH, by number.
    ctes: Vec<(u32, Rows)>,
}

impl Around {
    pub(super) fn nothing(engine: Engine) -> Self {
        Self { engine, ctes: Vec::new() }
    }
}

/// The rows of a query.
///
/// # Errors
/// The order in which rows lie decides which there are.
pub(super) fn of_query(query: &Query, engine: Engine) -> Result<Rows, Reason> {
    within(query, &Around::nothing(engine))
}

fn within(query: &Query, outer: &Around) -> Result<Rows, Reason> {
    let mut around = outer.clone();
    for cte in &query.ctes {
        let rows = within(&cte.query, &around)?;
        around.ctes.push((cte.id, rows));
    }
    let rows = match &query.body {
        Body::Select(select) => match of_select(select, &around)? {
            Rows::Set if is_total(&query.order, select) => Rows::Ordered,
            rows => rows,
        },
        Body::Values(rows) if rows.len() < 2 => Rows::One,
        // Whether equal ones are sorted as they were written does not matter.
        Body::Values(_) => around.engine.unasked(Rows::Ordered),
        Body::Nested(inner) => around.engine.unasked(within(inner, &around)?),
        Body::Set(set) => of_set(set, &around)?,
    };
    match (rows, &query.limit, &query.offset) {
        (rows, None, None) => Ok(rows),
        (Rows::Set, ..) => Err("takes some of several rows in no certain order".to_owned()),
        (rows, ..) => Ok(rows),
    }
}

fn of_set(set: &SetOperation, around: &Around) -> Result<Rows, Reason> {
    for side in [&set.left, &set.right] {
        within(side, around)?;
    }
    if !(set.all && set.kind == SetKind::Union) {
        let outputs = [&set.left, &set.right].map(|side| match &side.body {
            Body::Select(select) => select.outputs.iter().all(is_exact),
            _ => false,
        });
        if outputs != [true, true] {
            return Err("leaves out rows that may be equal but not the same".to_owned());
        }
    }
    Ok(Rows::Set)
}

fn of_select(select: &Select, around: &Around) -> Result<Rows, Reason> {
    if select.asks_for_locks() {
        return Err("asks which rows others have locked".to_owned());
    }
    let found = of_steps(&select.steps, &select.relations, around)?;
    let rows = match &select.grouping {
        None => found,
        Some(grouping) => of_groups(grouping, found)?,
    };
    match &select.distinct {
        Distinct::No => Ok(rows),
        _ if rows == Rows::One => Ok(rows),
        Distinct::All if select.outputs.iter().all(is_exact) => Ok(Rows::Set),
        Distinct::All => Err("leaves out rows that may be equal but not the same".to_owned()),
        Distinct::On(_) => Err("takes the first of several rows".to_owned()),
    }
}

fn of_groups(grouping: &Grouping, found: Rows) -> Result<Rows, Reason> {
    let keyed = !grouping.keys.is_empty();
    if found == Rows::Set {
        if let Some(aggregate) = grouping.aggregates.iter().find(|aggregate| !is_of_set(aggregate)) {
            let name = format!("{:?}", aggregate.kind).to_lowercase();
            return Err(format!("computes {name} of rows in no certain order"));
        }
        if !grouping.keys.iter().all(is_exact) {
            return Err("makes groups of values that may be equal but not the same".to_owned());
        }
    }
    Ok(if keyed && found != Rows::One { Rows::Set } else { Rows::One })
}

/// Whether an aggregate gives the same in whatever order.
fn is_of_set(aggregate: &Aggregate) -> bool {
    let counts = matches!(aggregate.kind, AggregateKind::Count);
    let same = !aggregate.distinct || counts || aggregate.args.iter().all(is_exact);
    let inexact = |arg: &Expr| matches!(arg.ty, Type::Scalar(Scalar::Real | Scalar::Double));
    same && match aggregate.kind {
        AggregateKind::Count | AggregateKind::BoolAnd | AggregateKind::BoolOr => true,
        AggregateKind::Sum | AggregateKind::Avg => !aggregate.args.iter().any(inexact),
        AggregateKind::Min | AggregateKind::Max => aggregate.args.iter().all(is_exact),
        _ => false,
    }
}

/// Whether equal values are the same: not so 1.0 and 1.00, 0 and -0, or texts with blanks at their ends.
fn is_exact(expr: &Expr) -> bool {
    matches!(
        expr.ty,
        Type::Scalar(
            Scalar::Bool
                | Scalar::SmallInt
                | Scalar::Integer
                | Scalar::BigInt
                | Scalar::Numeric { scale: Some(_) }
                | Scalar::Text
                | Scalar::Bytea
                | Scalar::Date
                | Scalar::Time
                | Scalar::Timestamp
                | Scalar::TimestampTz
                | Scalar::Uuid
        )
    )
}

/// The rows that steps find.
pub(super) fn of_steps(steps: &[Step], relations: &[Relation], around: &Around) -> Result<Rows, Reason> {
    let mut rows = Rows::One;
    for step in steps {
        rows = rows.max(match step {
            Step::Inner { access, .. } => of_access(access, relations, around)?,
            Step::Left { steps, .. } => of_steps(steps, relations, around)?,
        });
    }
    Ok(rows)
}

fn of_access(access: &Access, relations: &[Relation], around: &Around) -> Result<Rows, Reason> {
    let rows = match &relations[usize::from(access.relation)].source {
        RelationSource::Table(table) => of_table(access, table),
        RelationSource::Query(query) => within(query, around)?,
        RelationSource::Cte(id, _) => {
            around.ctes.iter().find(|(other, _)| other == id).map_or(Rows::Set, |(_, rows)| *rows)
        }
        RelationSource::Series(_) | RelationSource::Unnest(_) => Rows::Ordered,
        RelationSource::Routine(..) | RelationSource::Lateral(_) | RelationSource::File(_) => Rows::Set,
        RelationSource::Given => Rows::One,
    };
    // The table of hashes has an order of its own.
    Ok(if access.hash.is_some() && rows != Rows::One { Rows::Set } else { around.engine.unasked(rows) })
}

fn of_table(access: &Access, table: &TableDef) -> Rows {
    let Some(used) = &access.index else { return Rows::Set };
    let Some(index) = table.indexes.iter().find(|index| index.name == used.name && index.unique) else {
        return Rows::Set;
    };
    if used.whole {
        return Rows::One;
    }
    // Keys with a NULL can be equal.
    let distinct = index.columns.iter().all(|column| !table.column_def(*column).nullable);
    if used.kind == IndexKind::Ordered && distinct { Rows::Ordered } else { Rows::Set }
}

/// Whether ORDER BY decides about every two rows of a SELECT, or they are the same.
fn is_total(order: &[OrderKey], select: &Select) -> bool {
    if order.is_empty() {
        return false;
    }
    let expr = |key: &'_ OrderKey| match &key.by {
        OrderBy::Output(number) => select.outputs.get(*number).and_then(column),
        OrderBy::Expr(expr) => column(expr),
    };
    let keys: Vec<ColumnRef> = order.iter().filter_map(expr).collect();
    let same = |output: &Expr| is_exact(output) && column(output).is_some_and(|at| keys.contains(&at));
    if select.outputs.iter().all(same) {
        return true;
    }
    match (&select.grouping, &select.distinct) {
        (Some(grouping), Distinct::No) => {
            let relation = select.relations.len() as u16;
            let of_key = |number| ColumnRef { depth: 0, relation, column: number };
            (0..grouping.keys.len() as u16).all(|number| keys.contains(&of_key(number)))
        }
        (None, Distinct::No) => select.steps.iter().all(|step| match step {
            Step::Inner { access, .. } => is_decided(access, select, &keys),
            Step::Left { .. } => false,
        }),
        _ => false,
    }
}

/// Whether two rows of a relation that agree in the keys are the same row.
fn is_decided(access: &Access, select: &Select, keys: &[ColumnRef]) -> bool {
    let Some(table) = table_of(&select.relations[usize::from(access.relation)].source) else {
        return false;
    };
    if of_table(access, table) == Rows::One {
        return true;
    }
    let ordered = |column: ColumnId| {
        let at = ColumnRef { depth: 0, relation: access.relation, column: column.0 };
        keys.contains(&at)
    };
    let equal = |column: ColumnId| {
        access.index.iter().flat_map(|index| &index.equal).any(|bound| bound.column == column)
    };
    let present = |column: ColumnId| !table.column_def(column).nullable;
    table.indexes.iter().filter(|index| index.unique).any(|index| {
        index.columns.iter().copied().all(|column| present(column) && (ordered(column) || equal(column)))
    })
}

fn column(expr: &Expr) -> Option<ColumnRef> {
    match &expr.kind {
        ExprKind::Column(at) => Some(*at),
        _ => None,
    }
}
