//! What a plan does, for EXPLAIN and to say in which partition it can run.

use std::sync::Arc;

use albireo_base::Value;
use albireo_sql::TableDef;

use super::key::{self, Fit};
use super::tree::{Access, AccessInfo, Body, Query, Relation, RelationSource, Step};

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
    super::select::accesses_of(steps, &mut |access| {
        if let RelationSource::Table(table) = &relations[usize::from(access.relation)].source {
            into.push(info(access, table, depth, writes && access.relation == 0));
        }
    });
}

fn info(access: &Access, table: &Arc<TableDef>, depth: u16, writes: bool) -> AccessInfo {
    let index = access.index.as_ref();
    AccessInfo {
        table: Arc::clone(table),
        index: index.map(|index| index.name.clone()),
        equal: index.iter().flat_map(|index| &index.equal).map(|bound| bound.column).collect(),
        partition: access.site.as_ref().map(|bound| bound.value.clone()),
        writes,
        depth,
    }
}

impl AccessInfo {
    /// What the partitioning column holds if `partition` gives this value; NULL, which is placed as well as
    /// any, if it cannot hold it.
    pub fn placing(&self, value: Value) -> Value {
        let (Some(column), Some(key)) = (self.table.partition_by, &self.partition) else {
            return Value::Null;
        };
        match key::fit(value, &key.ty, self.table.column_def(column).ty) {
            Fit::Exact(value) => value,
            Fit::After(_) | Fit::Below | Fit::Above | Fit::Null => Value::Null,
        }
    }
}
