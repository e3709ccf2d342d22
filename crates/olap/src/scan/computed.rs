//! Filters that are expressions: whatever is none of the kinds that a scan knows.
//!
//! Responsible for: which expressions a scan evaluates, those that read one column of texts and nothing else, and the masks of
//! expressions: of an encoded column whose rows share texts, evaluated once for each of these texts and once for NULL, and
//! then tested on codes; of any other for each row that is wanted. Not responsible for: what an expression computes, which is
//! the same whichever way it is evaluated.
//! **Invariant:** no error comes of a text that no wanted row has. A dictionary has texts of rows that died or that another
//! filter refuses; if evaluating all of them fails, those that wanted rows have are evaluated, and fail or do not.

use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding::{Selection, Test as Codes};
use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, StringViewArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, lit};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_plan::metrics::Count;

use super::codes;
use crate::relation::{ChunkData, EncodedColumn};

/// An expression over the columns that it reads. It is true of the rows that pass.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    expr: Arc<dyn PhysicalExpr>,
    columns: Vec<ColumnId>,
    /// That of the columns.
    schema: SchemaRef,
}

impl Computed {
    /// A filter over a relation's whole schema.
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, table_schema: &SchemaRef) -> Result<Self> {
        let mut indices: Vec<usize> = collect_columns(&expr).iter().map(Column::index).collect();
        indices.sort_unstable();
        indices.dedup();
        let schema = Arc::new(table_schema.project(&indices)?);
        let columns = indices.iter().map(|&index| ColumnId(index as u16)).collect();
        Ok(Self { expr: reassign_expr_columns(expr, &schema)?, columns, schema })
    }

    /// One that stands for any other, where only its place among filters matters.
    pub(super) fn any() -> Self {
        Self { expr: lit(true), columns: Vec::new(), schema: Arc::new(Schema::empty()) }
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// The rows that pass; those that are not `within` are not looked at, and do not. `computed` counts the texts and rows
    /// for which the expression was evaluated.
    pub(super) fn mask(
        &self,
        chunk: &dyn ChunkData,
        within: Option<&BooleanBuffer>,
        computed: &Count,
    ) -> Result<BooleanBuffer> {
        let slots = chunk.slots();
        let selected = within.map_or(slots, BooleanBuffer::count_set_bits);
        if selected == 0 {
            return Ok(BooleanBuffer::new_unset(slots));
        }
        if let Some(mask) = self.by_text(chunk, within, selected, computed)? {
            return Ok(mask);
        }
        computed.add(selected);
        let within = within.filter(|_| selected < slots);
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            columns.push(values_of(chunk, *column, within)?);
        }
        let passed = self.passed(columns, selected)?;
        Ok(match within {
            Some(within) => scattered(&passed, within),
            None => passed,
        })
    }

    /// The mask by the texts that rows share. `None`: they share none, or there are more texts than rows are wanted.
    fn by_text(
        &self,
        chunk: &dyn ChunkData,
        within: Option<&BooleanBuffer>,
        selected: usize,
        computed: &Count,
    ) -> Result<Option<BooleanBuffer>> {
        let [column] = self.columns[..] else { return Ok(None) };
        if *self.schema.field(0).data_type() != DataType::Utf8View {
            return Ok(None);
        }
        let Some(column) =
            chunk.encoded(column).filter(|column| column.shared().is_some_and(|n| n <= selected))
        else {
            return Ok(None);
        };
        let Some(texts) = column.shared_texts() else { return Ok(None) };
        let slots = chunk.slots();
        let mut mask = within.map_or_else(|| codes::all(slots), codes::words);
        let mut nulls = mask.clone();
        column.select(&mut Codes::IsNull, &mut nulls);
        computed.add(texts.len());
        let passing = match self.passed(vec![Arc::clone(&texts)], texts.len()) {
            Ok(passing) => passing,
            Err(_) => self.passed_of_found(&*column, &texts, (&mask, &nulls))?,
        };
        let has_nulls = nulls.iter().any(|word| *word != 0);
        column.select(&mut Codes::Stored(&codes::words(&passing)), &mut mask);
        if has_nulls {
            computed.add(1);
            if self.passed(vec![Arc::new(StringViewArray::new_null(1))], 1)?.value(0) {
                mask.iter_mut().zip(&nulls).for_each(|(word, null)| *word |= null);
            }
        }
        Ok(Some(BooleanBuffer::new(mask.into(), 0, slots)))
    }

    /// Which of the shared texts pass, of those that `wanted` rows have which are not `nulls`.
    fn passed_of_found(
        &self,
        column: &dyn EncodedColumn,
        texts: &ArrayRef,
        (wanted, nulls): (&[u64], &[u64]),
    ) -> Result<BooleanBuffer> {
        let rows: Vec<u64> = wanted.iter().zip(nulls).map(|(wanted, null)| wanted & !null).collect();
        let mut places = Vec::new();
        column.places(&Selection::Mask(&rows), &mut places);
        let mut found = BooleanBufferBuilder::new(texts.len());
        found.append_n(texts.len(), false);
        places.iter().for_each(|place| found.set_bit(usize::from(*place), true));
        let found = found.finish();
        let texts = arrow::compute::filter(texts, &BooleanArray::new(found.clone(), None))?;
        let count = texts.len();
        Ok(scattered(&self.passed(vec![texts], count)?, &found))
    }

    /// Which of so many rows pass.
    fn passed(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<BooleanBuffer> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let passed = self.expr.evaluate(&batch)?.into_array(rows)?;
        let passed = datafusion::common::cast::as_boolean_array(&passed)?;
        Ok(match passed.nulls() {
            Some(nulls) => passed.values() & nulls.inner(),
            None => passed.values().clone(),
        })
    }
}

/// Whether an expression reads one column of texts and nothing else, and is the same for equal texts.
pub(super) fn is_of_one_text(expr: &Expr, schema: &SchemaRef) -> bool {
    let mut column: Option<&str> = None;
    let mut fits = true;
    let walked = expr.apply(|part| {
        fits &= match part {
            Expr::Column(found) => *column.get_or_insert(&found.name) == found.name,
            Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
            Expr::Literal(..)
            | Expr::Placeholder(_)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => true,
            _ => false,
        };
        Ok(if fits { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    let field = column.and_then(|name| schema.field_with_name(name).ok());
    walked.is_ok() && fits && field.is_some_and(|field| *field.data_type() == DataType::Utf8View)
}

/// The values of a column of the rows that are `within`, or of all slots.
pub(super) fn values_of(
    chunk: &dyn ChunkData,
    column: ColumnId,
    within: Option<&BooleanBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let Some(within) = within else { return Ok(chunk.column(column)) };
    match chunk.encoded(column) {
        Some(column) => Ok(column.array(&Selection::Mask(&codes::words(within)))),
        None => arrow::compute::filter(&chunk.column(column), &BooleanArray::new(within.clone(), None)),
    }
}

/// A mask of all slots of one of the rows that are `within`.
pub(super) fn scattered(passed: &BooleanBuffer, within: &BooleanBuffer) -> BooleanBuffer {
    let slots = within.len();
    let mut mask = vec![0_u64; slots.div_ceil(64)];
    for (at, row) in within.set_indices().enumerate() {
        mask[row / 64] |= u64::from(passed.value(at)) << (row % 64);
    }
    BooleanBuffer::new(mask.into(), 0, slots)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::functions::unicode::substr;
    use datafusion::logical_expr::{ColumnarValue, col, create_udf, lit as constant};

    use super::*;

    #[test]
    fn only_expressions_that_are_the_same_for_equal_texts_of_one_column_are_evaluated() {
        let fields = ["c", "d"].map(|name| Field::new(name, DataType::Utf8View, true));
        let number = Field::new("n", DataType::Int32, true);
        let schema: SchemaRef = Arc::new(Schema::new(fields.into_iter().chain([number]).collect::<Vec<_>>()));
        let begin = |column: &str| substr().call(vec![col(column), constant(1_i64), constant(2_i64)]);
        for fits in [
            begin("c").eq(constant("ab")),
            begin("c").not_eq(col("c")),
            col("c").is_null().or(begin("c").lt(constant("b")).is_true()),
            col("d").in_list(vec![constant("a"), constant("b")], true),
        ] {
            assert!(is_of_one_text(&fits, &schema), "{fits}");
        }
        let answer = Arc::new(|args: &[ColumnarValue]| -> Result<ColumnarValue> { Ok(args[0].clone()) });
        let changing =
            create_udf("f", vec![DataType::Utf8View], DataType::Utf8View, Volatility::Volatile, answer);
        for other in [
            begin("c").eq(col("d")),
            begin("c").eq(constant("ab")).or(col("n").is_null()),
            col("n").eq(constant(1)),
            constant(true),
            changing.call(vec![col("c")]).eq(constant("ab")),
        ] {
            assert!(!is_of_one_text(&other, &schema), "{other}");
        }
    }

    #[test]
    fn mask_of_some_rows_is_one_of_all_with_the_others_left_out() {
        let within = BooleanBuffer::collect_bool(200, |row| row % 3 == 0);
        let passed = BooleanBuffer::collect_bool(67, |at| at % 2 == 1);
        assert_eq!(scattered(&passed, &within), BooleanBuffer::collect_bool(200, |row| row % 6 == 3));
    }
}
