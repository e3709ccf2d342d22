//! Lengths and digits of a query's columns, which the fields of a record keep: `r.price := 1.239` leaves
//! 1.24 in a field that was read from a column NUMERIC(10,2).
//!
//! A column and a cast have them, and expressions that give back one of their operands. Only CHAR and
//! NUMERIC are looked at: the tree of an expression does not tell VARCHAR(n) from what was cast to TEXT.

use albireo_base::SqlType;
use albireo_sql::ast as syntax;

use super::Binder;
use crate::body::place::Place;
use crate::body::tree::Query;
use crate::expr::{ColumnRef, Expr, ExprKind, SubqueryKind, declared};
use crate::plan::tree::{self, Body, Change, Cte, Relation, RelationSource};
use crate::types::{Scalar, Type};

/// What is around an expression.
struct Around<'t> {
    /// The relations of each query, the innermost last, and the keys of its groups.
    levels: Vec<(&'t [Relation], &'t [Expr])>,
    ctes: Vec<&'t Cte>,
}

impl Binder<'_> {
    /// What the fields of a record can hold once it has taken a row of this query, which was written so.
    pub(super) fn record_places(&self, query: &Query, written: &syntax::Statement) -> Vec<Place> {
        let mut around = Around { levels: Vec::new(), ctes: Vec::new() };
        let columns = query.columns().iter().enumerate();
        let places = columns.map(|(at, (_, ty))| {
            let modifier = match query {
                _ if drops_modifier(written, at, query.columns().len()) => None,
                Query::Select(plan) => self.of_query(&plan.query, at, &mut around),
                Query::Change(plan) => self.of_change(&plan.change, at, &mut around),
            };
            match (modifier, ty) {
                (Some(modifier), Type::Scalar(scalar)) if Scalar::of(modifier).same(*scalar) => {
                    Place::Sql(modifier)
                }
                _ => Place::of(ty),
            }
        });
        places.collect()
    }

    fn of_change<'t>(&self, change: &'t Change, at: usize, around: &mut Around<'t>) -> Option<SqlType> {
        match change {
            Change::Update(tree::Update { target, .. })
            | Change::Delete(target)
            | Change::Merge(tree::Merge { target, .. }) => {
                around.levels.push((&target.relations, &[]));
                let found = self.of_expr(target.returning.get(at)?, around);
                around.levels.pop();
                found
            }
            Change::Insert(insert) => match &insert.returning.get(at)?.kind {
                ExprKind::Column(ColumnRef { relation: 0, column, .. }) => {
                    of_type(insert.table.columns.get(usize::from(*column))?.ty)
                }
                _ => None,
            },
        }
    }

    fn of_query<'t>(&self, query: &'t tree::Query, at: usize, around: &mut Around<'t>) -> Option<SqlType> {
        let outer = around.ctes.len();
        around.ctes.extend(&query.ctes);
        let found = match &query.body {
            Body::Select(select) => {
                let keys = select.grouping.as_ref().map_or(&[][..], |grouping| grouping.keys.as_slice());
                around.levels.push((&select.relations, keys));
                let found = select.outputs.get(at).and_then(|output| self.of_expr(output, around));
                around.levels.pop();
                found
            }
            Body::Values(rows) => {
                let values: Option<Vec<&Expr>> = rows.iter().map(|row| row.get(at)).collect();
                values.and_then(|values| self.of_all(values, around))
            }
            Body::Nested(inner) => self.of_query(inner, at, around),
            Body::Set(set) => {
                let left = self.of_query(&set.left, at, around);
                left.filter(|left| self.of_query(&set.right, at, around) == Some(*left))
            }
        };
        around.ctes.truncate(outer);
        found
    }

    /// What all of several expressions have.
    fn of_all<'t>(
        &self,
        all: impl IntoIterator<Item = &'t Expr>,
        around: &mut Around<'t>,
    ) -> Option<SqlType> {
        let mut found = None;
        for expr in all {
            let modifier = Some(self.of_expr(expr, around)?);
            if found.is_some() && found != modifier {
                return None;
            }
            found = modifier;
        }
        found
    }

    fn of_expr<'t>(&self, expr: &'t Expr, around: &mut Around<'t>) -> Option<SqlType> {
        let found = match &expr.kind {
            ExprKind::Cast(_, ty, _) => of_type(*ty),
            ExprKind::Column(column) => self.of_column(*column, around),
            ExprKind::Variable(id) => of_place(self.place(*id)),
            ExprKind::Field(row, field) => match (&row.kind, field) {
                (ExprKind::Variable(id), field) => match self.place(*id) {
                    Place::Row(row) => row.fields.get(*field).and_then(of_place),
                    _ => None,
                },
                _ => None,
            },
            ExprKind::Case(branches, otherwise) | ExprKind::CaseOf(_, branches, otherwise) => {
                let results = branches.iter().map(|(_, result)| result);
                self.of_all(results.chain([otherwise.as_ref()]), around)
            }
            ExprKind::Coalesce(items) | ExprKind::Extreme(_, items) => self.of_all(items, around),
            ExprKind::NullIf(pair, _) => self.of_expr(&pair.0, around),
            ExprKind::Subquery(subquery) if matches!(subquery.kind, SubqueryKind::Scalar) => {
                self.of_query(&subquery.plan.query, 0, around)
            }
            _ => None,
        };
        // What was made a TEXT of CHAR has no length.
        found.filter(|ty| matches!(expr.ty, Type::Scalar(scalar) if Scalar::of(*ty).same(scalar)))
    }

    fn of_column<'t>(&self, at: ColumnRef, around: &mut Around<'t>) -> Option<SqlType> {
        let level = around.levels.len().checked_sub(1 + usize::from(at.depth))?;
        let (relations, keys) = around.levels[level];
        let column = usize::from(at.column);
        let Some(relation) = relations.get(usize::from(at.relation)) else {
            // The results of the groups: the keys, and aggregates, which have none.
            return self.of_expr(keys.get(column)?, around);
        };
        match &relation.source {
            RelationSource::Table(table) => of_type(table.columns.get(column)?.ty),
            RelationSource::Query(query) => {
                let inner = around.levels.split_off(level);
                let found = self.of_query(query, column, around);
                around.levels.extend(inner);
                found
            }
            RelationSource::Cte(id, _) => {
                let cte = around.ctes.iter().find(|cte| cte.id == *id)?;
                let query = &cte.query;
                let inner = around.levels.split_off(level);
                let found = self.of_query(query, column, around);
                around.levels.extend(inner);
                found
            }
            _ => None,
        }
    }
}

fn of_type(ty: SqlType) -> Option<SqlType> {
    matches!(ty, SqlType::Char(_) | SqlType::Decimal { .. }).then_some(ty)
}

fn of_place(place: &Place) -> Option<SqlType> {
    match place {
        Place::Sql(ty) => of_type(*ty),
        _ => None,
    }
}

/// Whether a column is written as a cast to a type without modifier, which adds nothing to the tree of an
/// expression that has the type already.
fn drops_modifier(written: &syntax::Statement, at: usize, width: usize) -> bool {
    let items = match written {
        syntax::Statement::Query(query) => match query.body.as_ref() {
            syntax::SetExpr::Select(select) => select.projection.as_slice(),
            _ => &[],
        },
        syntax::Statement::Insert(insert) => insert.returning.as_deref().unwrap_or_default(),
        syntax::Statement::Update(update) => update.returning.as_deref().unwrap_or_default(),
        syntax::Statement::Delete(delete) => delete.returning.as_deref().unwrap_or_default(),
        _ => &[],
    };
    if items.len() != width {
        return false;
    }
    let mut expr = match &items[at] {
        syntax::SelectItem::UnnamedExpr(expr) | syntax::SelectItem::ExprWithAlias { expr, .. } => expr,
        _ => return false,
    };
    while let syntax::Expr::Nested(inner) = expr {
        expr = inner;
    }
    match expr {
        syntax::Expr::Cast { data_type, .. } => {
            matches!(declared(data_type), Ok((_, None)))
        }
        _ => false,
    }
}
