//! System views: relations that are no tables, whose rows are there when the statement is bound.

use albireo_base::{SqlError, Value};
use albireo_sql::ast::TableAlias;

use super::from::From;
use super::scope::{Named, Scope};
use super::tree::{Body, Pool, Query, RelationSource};
use crate::datum::Datum;
use crate::expr::{Expr, ExprKind};
use crate::types::{Scalar, Type};

/// A system view, and its rows.
#[derive(Clone, Debug)]
pub struct View {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<(&'static str, Scalar)>,
    /// Its rows: a value for each column, of its type.
    pub rows: Vec<Vec<Value>>,
}

impl From {
    /// Adds a system view.
    pub(super) fn view(
        &mut self,
        scope: &mut Scope<'_>,
        view: View,
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let View { schema, name, columns, mut rows } = view;
        // A row of NULLs says the types where there is none.
        let limit = rows.is_empty().then(|| constant(Value::BigInt(0), Scalar::BigInt));
        if rows.is_empty() {
            rows.push(vec![Value::Null; columns.len()]);
        }
        let row = |row: Vec<Value>| {
            row.into_iter().zip(&columns).map(|(value, (_, ty))| constant(value, *ty)).collect()
        };
        let body = Body::Values(rows.into_iter().map(row).collect());
        let query = Query { ctes: Vec::new(), body, order: Vec::new(), limit, offset: None };
        let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), Type::Scalar(*ty))).collect();
        let named = Named {
            name: name.to_owned(),
            schema: Some(schema.to_owned()),
            hidden: Some(name.to_owned()),
            columns,
            key: Vec::new(),
            lengths: Vec::new(),
        };
        let relation = self.add(scope, RelationSource::Query(Box::new(query)), named, alias)?;
        Ok(Pool::one(relation, 0))
    }
}

fn constant(value: Value, ty: Scalar) -> Expr {
    Expr { kind: ExprKind::Constant(Datum::Value(value)), ty: Type::Scalar(ty) }
}
