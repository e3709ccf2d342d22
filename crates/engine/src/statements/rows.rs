//! Results of statements.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{ColumnId, SqlError, SqlType, Value};
use albireo_procedure::datum::Datum;
use albireo_procedure::expr::ExprKind;
use albireo_procedure::plan::tree::Change;
use albireo_procedure::types::{Scalar, Type};
use albireo_semantics::query::declared_column;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow::datatypes::SchemaRef;

use super::bind::Work;
use crate::arrays::{self, array, internal};
use crate::routines;
use crate::{Column, QueryResult};

/// The columns of a result.
pub(super) struct Shape {
    columns: Vec<Column>,
    schema: SchemaRef,
    /// Columns of NUMERIC that have as many digits after the point as a value needs.
    open: Vec<usize>,
}

impl Shape {
    pub(super) fn of(work: &Work) -> Self {
        let given = match work {
            Work::Select(plan) => &plan.columns,
            Work::Change(plan) => &plan.returning,
        };
        let mut open = Vec::new();
        let mut columns = Vec::with_capacity(given.len());
        for (at, (name, ty)) in given.iter().enumerate() {
            let ty = match ty {
                Type::Scalar(Scalar::Numeric { scale }) => declared(work, at).unwrap_or_else(|| {
                    if scale.is_none() {
                        open.push(at);
                    }
                    widest(scale.unwrap_or(0))
                }),
                other => routines::column_type(other, &[], at),
            };
            columns.push(Column { name: name.clone(), ty });
        }
        let schema = schema_of(&columns, &[]);
        Self { columns, schema, open }
    }

    /// Whether there are any columns.
    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// These rows as a result.
    pub(super) fn result(&self, rows: Vec<Vec<Datum>>, execution: Duration) -> Result<QueryResult, SqlError> {
        let (mut columns, mut schema) = (self.columns.clone(), Arc::clone(&self.schema));
        let mut mixed = vec![false; columns.len()];
        for &at in &self.open {
            let scales = || rows.iter().filter_map(|row| scale_of(&row[at]));
            let most = scales().max().unwrap_or(0);
            columns[at].ty = widest(most);
            mixed[at] = scales().any(|scale| scale != most);
        }
        if !self.open.is_empty() {
            schema = schema_of(&columns, &mixed);
        }
        let count = rows.len();
        let mut values: Vec<Vec<Value>> = columns.iter().map(|_| Vec::with_capacity(count)).collect();
        for row in rows {
            for (((values, datum), column), mixed) in values.iter_mut().zip(row).zip(&columns).zip(&mixed) {
                let value = match datum {
                    Datum::Value(value) if *mixed => Some(value),
                    datum => value(datum, column.ty),
                };
                values.push(value.ok_or_else(|| routines::too_wide(&column.name, column.ty))?);
            }
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for ((values, column), mixed) in values.iter().zip(&columns).zip(mixed) {
            arrays.push(if mixed { texts(values) } else { array(column.ty, values.iter())? });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
        let batches = vec![batch.map_err(internal)?];
        Ok(QueryResult { columns, schema, batches, planning: Duration::ZERO, execution })
    }
}

fn value(datum: Datum, ty: SqlType) -> Option<Value> {
    match datum {
        Datum::Value(value) if value.fits(ty) => Some(value),
        other => routines::value(&other, ty),
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

/// Numbers with the digits that each has.
fn texts(values: &[Value]) -> ArrayRef {
    let text = |value: &Value| (!value.is_null()).then(|| value.to_string());
    Arc::new(values.iter().map(text).collect::<StringViewArray>())
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
fn declared(work: &Work, at: usize) -> Option<SqlType> {
    match work {
        Work::Select(plan) => plan.declared(at),
        Work::Change(plan) => match &*plan.change {
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
    }
}
