//! Results of statements.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, Value};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ExprKind, text_of};
use albireo_semantics::query::declared_column;
use albireo_semantics::query::tree::Change;
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::SchemaRef;

use super::bind::Meaning;
use crate::arrays;
use crate::{Column, QueryResult};

/// The columns of a result.
pub(super) struct Shape {
    columns: Arc<[Column]>,
    schema: SchemaRef,
    /// Columns of NUMERIC that have as many digits after the point as a value needs.
    open: Vec<usize>,
}

impl Shape {
    pub(super) fn of(meaning: &Meaning) -> Self {
        let of_call: Vec<(String, Type)>;
        let given = match meaning {
            Meaning::Select(plan) => &plan.columns,
            Meaning::Change(plan) => &plan.returning,
            Meaning::Call(call) => {
                of_call = call.columns();
                &of_call
            }
        };
        let mut open = Vec::new();
        let mut columns = Vec::with_capacity(given.len());
        for (at, (name, ty)) in given.iter().enumerate() {
            let ty = match ty {
                Type::Scalar(Scalar::Numeric { scale }) => declared(meaning, at).unwrap_or_else(|| {
                    if scale.is_none() {
                        open.push(at);
                    }
                    widest(scale.unwrap_or(0))
                }),
                other => column_type(other),
            };
            columns.push(Column { name: name.clone(), ty });
        }
        let schema = schema_of(&columns, &[]);
        Self { columns: columns.into(), schema, open }
    }

    /// Whether there are any columns.
    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// These rows as a result.
    pub(super) fn result(&self, rows: Vec<Vec<Datum>>, execution: Duration) -> Result<QueryResult, SqlError> {
        let (mut columns, mut schema) = (Arc::clone(&self.columns), Arc::clone(&self.schema));
        let mut mixed = Vec::new();
        if !self.open.is_empty() {
            mixed.resize(columns.len(), false);
            let mut settled = columns.to_vec();
            for &at in &self.open {
                let scales = || rows.iter().filter_map(|row| scale_of(&row[at]));
                let most = scales().max().unwrap_or(0);
                settled[at].ty = widest(most);
                mixed[at] = scales().any(|scale| scale != most);
            }
            schema = schema_of(&settled, &mixed);
            columns = settled.into();
        }
        let shown = |row: Vec<Datum>| {
            let cells = row.into_iter().zip(&*columns).enumerate();
            let shown = cells.map(|(at, (datum, column))| {
                let value = match datum {
                    Datum::Value(value) if mixed.get(at) == Some(&true) => Some(value),
                    datum => value(datum, column.ty),
                };
                value.ok_or_else(|| too_wide(&column.name, column.ty))
            });
            shown.collect::<Result<Vec<Value>, SqlError>>()
        };
        let rows = rows.into_iter().map(shown).collect::<Result<_, _>>()?;
        Ok(QueryResult::of_values(columns, schema, rows).after(Duration::ZERO, execution))
    }
}

fn value(datum: Datum, ty: SqlType) -> Option<Value> {
    match datum {
        Datum::Value(value) if value.fits(ty) => Some(value),
        other => shown(&other, ty),
    }
}

/// `mixed`: which columns are of numbers of several scales, which are texts.
fn schema_of(columns: &[Column], mixed: &[bool]) -> SchemaRef {
    let ty = |at: usize, column: &Column| match mixed.get(at) {
        Some(true) => SqlType::Text,
        _ => column.ty,
    };
    arrays::schema(columns.iter().enumerate().map(|(at, column)| (column.name.as_str(), ty(at, column))))
}

/// NUMERIC with so many digits after the point.
fn widest(scale: u8) -> SqlType {
    SqlType::Decimal { precision: SqlType::MAX_DECIMAL_PRECISION, scale }
}

fn scale_of(datum: &Datum) -> Option<u8> {
    match datum {
        Datum::Value(Value::Decimal(number)) => Some(number.scale),
        _ => None,
    }
}

/// The type of a column of the result that is a column of a table as it is.
fn declared(meaning: &Meaning, at: usize) -> Option<SqlType> {
    match meaning {
        Meaning::Select(plan) => plan.declared(at),
        Meaning::Change(plan) => match &*plan.change {
            Change::Insert(insert) => match insert.returning.get(at)?.kind {
                // EXCLUDED, which is relation 1, cannot be named there.
                ExprKind::Column(column) => Some(insert.table.column_def(ColumnId(column.column)).ty),
                _ => None,
            },
            Change::Update(update) => {
                declared_column(&update.target.relations, update.target.returning.get(at)?)
            }
            Change::Delete(target) => declared_column(&target.relations, target.returning.get(at)?),
            Change::Merge(_) => None,
        },
        Meaning::Call(_) => None,
    }
}

/// The type of a column of the result; what has no type of ours becomes text.
fn column_type(ty: &Type) -> SqlType {
    let Type::Scalar(scalar) = ty else { return SqlType::Text };
    match scalar {
        Scalar::Bool => SqlType::Bool,
        Scalar::SmallInt => SqlType::SmallInt,
        Scalar::Integer => SqlType::Integer,
        Scalar::BigInt => SqlType::BigInt,
        Scalar::Real => SqlType::Real,
        Scalar::Double => SqlType::Double,
        Scalar::Numeric { scale } => widest(scale.unwrap_or(0)),
        Scalar::Bytea => SqlType::Bytea,
        Scalar::Date => SqlType::Date,
        Scalar::Time => SqlType::Time,
        Scalar::Timestamp => SqlType::Timestamp,
        Scalar::TimestampTz => SqlType::TimestampTz,
        Scalar::Uuid => SqlType::Uuid,
        Scalar::Unknown | Scalar::Text | Scalar::Bpchar | Scalar::Interval => SqlType::Text,
    }
}

/// A value as the column has it; `None` for a number that has no place there.
fn shown(datum: &Datum, ty: SqlType) -> Option<Value> {
    Some(match (datum, ty) {
        (Datum::Value(Value::Decimal(number)), SqlType::Decimal { precision, scale }) => {
            Value::Decimal(number.rescale(scale).filter(|number| number.fits(precision))?)
        }
        (Datum::Value(value), SqlType::Text) if !matches!(value, Value::Text(_)) => {
            text_of(datum).map_or(Value::Null, Value::Text)
        }
        (Datum::Value(value), _) => value.clone(),
        (other, _) => text_of(other).map_or(Value::Null, Value::Text),
    })
}

/// The numbers of a column have no type in common.
fn too_wide(column: &str, ty: SqlType) -> SqlError {
    let scale = if let SqlType::Decimal { scale, .. } = ty { scale } else { 0 };
    let message = format!("the numbers of column \"{column}\" do not fit in one type");
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        .with_detail(format!(
            "With {scale} digits after the point, which one of them has, another has more than {} digits.",
            SqlType::MAX_DECIMAL_PRECISION
        ))
        .with_hint("Round the column.")
}
