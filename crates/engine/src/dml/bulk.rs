//! INSERT ... SELECT: rows of a query into a table, column by column.
//!
//! The query runs on a snapshot and its rows are laid down beside the table while transactions go on. Then all
//! partitions are owned. If what the query read is still the same, the rows are appended: the statement is
//! serializable, as if it had run at that moment. If it is not, the query runs again; after [`TRIES_AHEAD`] runs,
//! or if the budget of snapshots ended one, it runs with the partitions owned, so that it ends however often
//! others write. An error that a run meets stands: it is what the statement would have met had it run at the
//! moment of its snapshot, and it changes nothing.
//! Only if there is no memory for the rows beside the table, they are inserted one by one.
//!
//! Values are converted as [`albireo_base::Value::coerce`] does; by Arrow's kernels only where these give the same,
//! which is where the source's values fit exactly.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, StatementProgress, Value, arrow_type};
use albireo_olap::relation::Snapshot;
use albireo_olap::{OutputColumn, Prepared};
use albireo_partition::{Abort, AppendError, BulkInsert, Transaction};
use albireo_sql::{InsertPlan, TableDef};
use albireo_storage::{BudgetSpent, DatabaseSnapshot, RowFault, TableError};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{Decimal128Type, SchemaRef};

use super::{Changed, Run, assigned, insert_rows};
use crate::adapters::{AddressedSnapshot, scope_of, value_at};
use crate::arrays;
use crate::ddl::handle;
use crate::query::options;

/// How often a query runs while others may change what it reads, before it runs alone.
const TRIES_AHEAD: usize = 2;

impl Run<'_> {
    /// Inserts the rows of a query.
    pub(super) fn insert_query(
        &self,
        plan: &InsertPlan,
        prepared: &Arc<Prepared>,
    ) -> Result<Changed, SqlError> {
        let table = &plan.table;
        let filling = Filling::new(
            table,
            &plan.columns,
            self.database.default_values(table, |column| plan.columns.contains(&column))?,
            prepared.columns(),
        )?;
        let mut fault = None;
        let inserted = self.append_query(table, &filling, prepared, &mut fault);
        match (inserted, fault) {
            (Err(_), Some(RowFault { error: TableError::OutOfMemory(_), .. })) => {
                self.insert_query_by_rows(table, &filling, prepared)
            }
            (Err(_), Some(fault)) => Err(self.database.explain_fault(&fault)),
            (inserted, _) => inserted,
        }
    }

    /// Lays the rows of a query down and appends them. What is wrong with one of them is left in `fault`.
    fn append_query(
        &self,
        table: &TableDef,
        filling: &Filling<'_>,
        prepared: &Arc<Prepared>,
        fault: &mut Option<RowFault>,
    ) -> Result<Changed, SqlError> {
        let partitions = &self.database.inner.partitions;
        let (scope, call) = (scope_of(std::slice::from_ref(prepared)), self.crossing_call("INSERT"));
        let spent = |spent: BudgetSpent| crate::errors::session(spent.into());
        let dropped = || SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped");
        let begin = || partitions.bulk_insert(handle(table)).ok_or_else(dropped);
        for _ in 0..TRIES_AHEAD {
            let (mut rows, seen) = (begin()?, partitions.snapshot(&scope).map_err(spent)?);
            match self.fill(&mut rows, filling, prepared, &seen, fault) {
                Err(_) if fault.is_none() && seen.is_cancelled() && !self.cancel.is_cancelled() => break,
                filled => filled?,
            }
            let inserted = partitions.crossing_if_current(&call, seen, |tx| {
                append(tx, rows, &StatementProgress::default(), fault)
            });
            if let Some(rows) = inserted.map_err(|error| self.database.explain_call(error))? {
                return Ok(Changed { rows, returned: None });
            }
        }
        let mut rows = begin()?;
        let inserted = partitions.crossing_with_snapshot(&call, &scope, |tx, now| {
            self.fill(&mut rows, filling, prepared, &now, fault)?;
            drop(now);
            append(tx, rows, &StatementProgress::default(), fault)
        });
        let rows = inserted.map_err(spent)?.map_err(|error| self.database.explain_call(error))?;
        Ok(Changed { rows, returned: None })
    }

    /// Runs the query, lays its rows down, and enters them into indexes as far as that can be done ahead.
    fn fill(
        &self,
        rows: &mut BulkInsert,
        filling: &Filling<'_>,
        prepared: &Arc<Prepared>,
        snapshot: &Arc<DatabaseSnapshot>,
        fault: &mut Option<RowFault>,
    ) -> Result<(), SqlError> {
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let arguments = self.arguments(prepared)?;
        let options = options(self.settings, self.cancel);
        let mut stream = self.database.inner.olap.run_stream(prepared, &arguments, &snapshot, options);
        while let Some(batch) = stream.next_blocking() {
            let batch = filling.batch(&batch?)?;
            if let Err(found) = rows.push(&batch) {
                let error = self.database.explain_fault(&found);
                *fault = Some(found);
                return Err(error);
            }
        }
        rows.index(&StatementProgress::default());
        Ok(())
    }

    /// Inserts the rows of a query one by one, when there is no memory for them beside the table: they may have
    /// room in its free slots.
    #[cold]
    fn insert_query_by_rows(
        &self,
        table: &TableDef,
        filling: &Filling<'_>,
        prepared: &Arc<Prepared>,
    ) -> Result<Changed, SqlError> {
        self.crossing("INSERT", std::slice::from_ref(prepared), |tx, snapshot| {
            let result = self.run(prepared, &snapshot)?;
            drop(snapshot);
            let mut rows = 0;
            for batch in &result.batches {
                let batch = filling.batch(batch)?;
                for row in 0..batch.num_rows() {
                    rows += insert_rows(tx, table, &[arrays::row_of(&batch, row, table)])?;
                }
            }
            Ok(Changed { rows, returned: None })
        })
    }
}

/// Appends rows; what is wrong with one of them is left in `fault`.
pub(crate) fn append(
    tx: &mut Transaction,
    rows: BulkInsert,
    progress: &StatementProgress,
    fault: &mut Option<RowFault>,
) -> Result<u64, Abort> {
    tx.append(rows, progress).map_err(|error| {
        if let AppendError::Row(row) = &error {
            *fault = Some(row.clone());
        }
        error.into()
    })
}

/// Where the columns of a table get their values from.
struct Filling<'a> {
    table: &'a TableDef,
    sources: Vec<Source>,
    schema: SchemaRef,
}

/// Where one column gets its values from.
enum Source {
    /// A column of the result, of this type.
    Given(usize, SqlType),
    /// The default.
    Default(Value),
}

impl<'a> Filling<'a> {
    /// The columns of a result go to `columns` of the table, all others get their defaults.
    ///
    /// # Errors
    /// The result has more or fewer columns.
    fn new(
        table: &'a TableDef,
        columns: &[ColumnId],
        defaults: Vec<Value>,
        given: &[OutputColumn],
    ) -> Result<Self, SqlError> {
        super::check_width(columns.len(), given.len())?;
        let mut sources: Vec<Source> = defaults.into_iter().map(Source::Default).collect();
        for (at, (column, given)) in columns.iter().zip(given).enumerate() {
            sources[column.index()] = Source::Given(at, given.ty.unwrap_or(SqlType::Text));
        }
        Ok(Self { table, sources, schema: arrays::schema_of(table) })
    }

    /// A batch of the table's columns.
    ///
    /// # Errors
    /// What the first row raises that has a value which is not converted.
    fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let mut first: Option<(usize, SqlError)> = None;
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (column, source) in self.table.columns.iter().zip(&self.sources) {
            let array = match source {
                Source::Default(value) => arrays::repeated(column.ty, value, batch.num_rows())?,
                Source::Given(at, ty) => match convert(batch.column(*at), *ty, column)? {
                    Ok(array) => array,
                    Err(failed) => {
                        if first.as_ref().is_none_or(|(row, _)| failed.0 < *row) {
                            first = Some(failed);
                        }
                        continue;
                    }
                },
            };
            arrays.push(array);
        }
        match first {
            Some((_, error)) => Err(error),
            None => RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(arrays::internal),
        }
    }
}

/// The array in the type of a column, or the first row whose value is not converted, and why.
fn convert(
    array: &ArrayRef,
    from: SqlType,
    column: &albireo_sql::ColumnDef,
) -> Result<Result<ArrayRef, (usize, SqlError)>, SqlError> {
    if let Some(array) = exact(array, from, column.ty) {
        return Ok(Ok(array));
    }
    // Types that are none of ours are texts to users.
    let shown = match *array.data_type() == arrow_type(from) {
        true => Arc::clone(array),
        false => cast(array, &arrow_type(from)).map_err(arrays::internal)?,
    };
    let mut values = Vec::with_capacity(shown.len());
    for row in 0..shown.len() {
        match assigned(value_at(&shown, row, from), column) {
            Ok(value) => values.push(value),
            Err(error) => return Ok(Err((row, error))),
        }
    }
    arrays::array(column.ty, values.iter()).map(Ok)
}

/// The array in the type of a column, if its values stay as they are; `None`: ask value by value.
fn exact(array: &ArrayRef, from: SqlType, to: SqlType) -> Option<ArrayRef> {
    use SqlType::{BigInt, Char, Decimal, Double, Integer, Real, SmallInt, Varchar};
    if *array.data_type() != arrow_type(from) {
        return None;
    }
    let wanted = arrow_type(to);
    let same = || (*array.data_type() == wanted).then(|| Arc::clone(array));
    match (from, to) {
        (from, Char(limit) | Varchar(limit)) if from.is_string() => {
            let texts = array.as_string_view();
            let loses_blanks = matches!(to, Char(_)) && !matches!(from, Char(_));
            // As many bytes as characters are allowed are never too many.
            let fits = texts.lengths().all(|bytes| bytes <= limit)
                && !(loses_blanks && texts.iter().flatten().any(|text| text.ends_with(' ')));
            fits.then(same).flatten()
        }
        (from, to) if from.is_string() && to.is_string() => same(),
        (Decimal { scale, .. }, Decimal { precision, scale: wanted_scale }) if scale == wanted_scale => {
            let decimals = array.as_primitive::<Decimal128Type>();
            let most = 10_i128.pow(u32::from(precision)) - 1;
            let fits = decimals.values().iter().all(|value| (-most..=most).contains(value));
            fits.then(|| Arc::new(decimals.clone().with_data_type(wanted)) as ArrayRef)
        }
        (SmallInt | Integer | BigInt, SmallInt | Integer | BigInt | Decimal { .. } | Double)
        | (Real, Double) => {
            // A value that does not fit is an error here, and another one, of ours, when asked for itself.
            let options = CastOptions { safe: false, ..CastOptions::default() };
            match *array.data_type() == wanted {
                true => same(),
                false => cast_with_options(array, &wanted, &options).ok(),
            }
        }
        (from, to) if from == to => same(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of every kind of type that can be inserted into others, at the limits.
    fn samples() -> Vec<(SqlType, Vec<&'static str>)> {
        let decimal = |precision, scale| SqlType::Decimal { precision, scale };
        vec![
            (SqlType::SmallInt, vec!["-32768", "0", "32767"]),
            (SqlType::Integer, vec!["-2147483648", "7", "2147483647", "40000"]),
            (SqlType::BigInt, vec!["-9223372036854775808", "-1", "9223372036854775807", "9007199254740993"]),
            (SqlType::Real, vec!["0.1", "1e30", "-0", "NaN", "2.5"]),
            (SqlType::Double, vec!["0.1", "1e300", "-2.5", "3.5"]),
            (decimal(4, 2), vec!["-99.99", "0.05", "1.50"]),
            (decimal(18, 2), vec!["-9999999999999999.99", "2.50", "3.50"]),
            (decimal(38, 0), vec!["-99999999999999999999999999999999999999", "12"]),
            (SqlType::Text, vec!["", "abc", "äöü", "abcd  ", "12", "x12345678901234567890"]),
            (SqlType::Varchar(4), vec!["äöüß", "a", "a   "]),
            (SqlType::Char(3), vec!["abc", "a"]),
            (SqlType::Bool, vec!["t", "f"]),
            (SqlType::Date, vec!["2024-02-29", "0001-01-01"]),
            (SqlType::Timestamp, vec!["2024-02-29 12:00:00.000001"]),
            (SqlType::Bytea, vec!["\\x00ff"]),
        ]
    }

    #[test]
    fn column_converted_as_a_whole_is_what_its_values_are_converted_to_one_by_one() {
        let (mut whole, mut refused) = (0, 0);
        for (from, texts) in samples() {
            let all: Vec<Value> = texts.iter().map(|text| Value::parse(text, from).unwrap()).collect();
            for to in samples().into_iter().map(|(ty, _)| ty).chain([SqlType::Char(40), SqlType::Varchar(2)])
            {
                let column = albireo_sql::ColumnDef { ty: to, ..column() };
                for values in all.iter().map(|value| vec![value.clone(), Value::Null]).chain([all.clone()]) {
                    let array = arrays::array(from, values.iter()).unwrap();
                    let wanted: Result<Vec<Value>, (usize, SqlError)> = values
                        .iter()
                        .enumerate()
                        .map(|(row, value)| assigned(value.clone(), &column).map_err(|error| (row, error)))
                        .collect();
                    whole += usize::from(exact(&array, from, to).is_some());
                    match (convert(&array, from, &column).unwrap(), wanted) {
                        (Ok(array), Ok(wanted)) => {
                            let rows = (0..array.len()).map(|row| value_at(&array, row, to));
                            assert_eq!(
                                format!("{:?}", rows.collect::<Vec<_>>()),
                                format!("{wanted:?}"),
                                "{from} to {to}"
                            );
                        }
                        (Err(found), Err(wanted)) => {
                            refused += 1;
                            assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "{from} to {to}");
                        }
                        (found, wanted) => panic!("{from} to {to}: {found:?}, not {wanted:?}"),
                    }
                }
            }
        }
        assert!(whole > 100 && refused > 100, "{whole}, {refused}");
    }

    fn column() -> albireo_sql::ColumnDef {
        let text = "CREATE TABLE t (a INTEGER)";
        let statement = albireo_sql::parse_one(text).unwrap();
        let plan = albireo_sql::plan_ddl(&albireo_sql::Catalog::new(), &statement, text).unwrap();
        let Some(albireo_sql::DdlChange::CreateTable(table)) = plan.changes.first() else {
            panic!("a table")
        };
        table.columns[0].clone()
    }
}
