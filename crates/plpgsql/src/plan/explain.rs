//! What a plan does, for EXPLAIN and to say in which partition it can run.

use std::sync::Arc;

use albireo_base::Value;
use albireo_sql::TableDef;

use super::access::through;
use super::key::{self, Fit};
use super::tree::{Access, AccessInfo, AccessKind, Body, Query, Relation, RelationSource, Step};
use crate::expr::{ColumnRef, Expr, ExprKind};

/// Adds what a query reads, but for the queries inside its expressions, which were noted when these
/// were bound.
pub(super) fn collect(query: &Query, depth: u16, into: &mut Vec<AccessInfo>) {
    for cte in &query.ctes {
        collect(&cte.query, depth, into);
    }
    match &query.body {
        Body::Select(select) => {
            relations(&select.relations, depth, into);
            steps(&select.steps, &select.relations, depth, false, into);
        }
        Body::Values(_) => {}
        Body::Nested(inner) => collect(inner, depth, into),
        Body::Set(set) => {
            collect(&set.left, depth, into);
            collect(&set.right, depth, into);
        }
    }
}

/// Adds what derived tables read.
pub(super) fn relations(relations: &[Relation], depth: u16, into: &mut Vec<AccessInfo>) {
    for relation in relations {
        if let RelationSource::Query(query) = &relation.source {
            collect(query, depth, into);
        }
    }
}

/// Adds what steps read; the first relation is changed if `writes`.
pub(super) fn steps(
    steps: &[Step],
    relations: &[Relation],
    depth: u16,
    writes: bool,
    into: &mut Vec<AccessInfo>,
) {
    accesses_of(steps, &mut |access| {
        if let RelationSource::Table(table) = &relations[usize::from(access.relation)].source {
            let kind = if writes && access.relation == 0 { AccessKind::Change } else { AccessKind::Read };
            let mut info = written(table, kind);
            info.depth = depth;
            info.unserved.clone_from(&access.unserved);
            if let Some(index) = &access.index {
                info.index = Some(index.name.clone());
                info.equal = index.equal.iter().map(|bound| bound.column).collect();
                info.range = index.range.as_ref().map(|range| range.column);
            }
            if let Some(site) = &access.site {
                place(&mut info, site.value.clone(), relations);
            }
            into.push(info);
        }
    });
}

/// A change of a table, wherever its rows are.
pub(super) fn written(table: &Arc<TableDef>, kind: AccessKind) -> AccessInfo {
    AccessInfo {
        table: Arc::clone(table),
        index: None,
        equal: Vec::new(),
        range: None,
        unserved: Vec::new(),
        partition: None,
        columns: Vec::new(),
        kind,
        depth: 0,
    }
}

/// A change whose rows `value` places, which is of a row that `steps` find.
pub(super) fn placed(
    table: &Arc<TableDef>,
    kind: AccessKind,
    value: &Expr,
    relations: &[Relation],
    steps: &[Step],
) -> AccessInfo {
    let known: Vec<(u16, Expr)> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Inner { access, .. } => Some((access.relation, access.site.as_ref()?.value.clone())),
            // A row that it does not find has NULL there.
            Step::Left { .. } => None,
        })
        .collect();
    let mut info = written(table, kind);
    place(&mut info, through(value, relations, &known), relations);
    info
}

fn place(info: &mut AccessInfo, value: Expr, relations: &[Relation]) {
    value.walk(&mut |part| {
        if let ExprKind::Column(column @ ColumnRef { depth: 0, .. }) = &part.kind
            && let Some(relation) = relations.get(usize::from(column.relation))
            && let Some((name, _)) = relation.columns.get(usize::from(column.column))
        {
            info.columns.push((*column, name.clone()));
        }
    });
    info.partition = Some(value);
}

/// What the partitioning column holds if what places an access gives this value; NULL, which is placed as
/// well as any, if it cannot hold it.
pub fn placing_of(access: &AccessInfo, value: Value) -> Value {
    let (Some(column), Some(key)) = (access.table.partition_by, &access.partition) else {
        return Value::Null;
    };
    match key::fit(value, &key.ty, access.table.column_def(column).ty) {
        Fit::Exact(value) => value,
        Fit::After(_) | Fit::Below | Fit::Above | Fit::Null => Value::Null,
    }
}

/// What the steps of a plan read.
fn accesses_of(steps: &[Step], each: &mut dyn FnMut(&Access)) {
    for step in steps {
        match step {
            Step::Inner { access, .. } => each(access),
            Step::Left { steps, .. } => accesses_of(steps, each),
        }
    }
}
