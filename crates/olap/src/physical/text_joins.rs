//! Joins by a text over a scan whose chunks are encoded look each text of a dictionary up once instead of each row's.
//!
//! Responsible for: which joins these are: those that probe with the scan, by a column of texts most of which rows share with
//! others of their chunk, and collect what they are built of. Not responsible for: the numbers ([`crate::scan::joined_texts`]).
//! The join itself stays DataFusion's; its key is a number, for which it has an array in place of a hash table.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};

use super::in_scan::scan_of;
use super::joins::with_other_keys;
use super::texts::shared_texts;
use crate::errors::{external, internal};
use crate::pool::Account;
use crate::scan::joined_texts::JoinedTexts;

/// The rule.
#[derive(Debug)]
pub(crate) struct JoinByNumbers;

impl PhysicalOptimizerRule for JoinByNumbers {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_other_keys(plan, config, |join| by_numbers(join, config))
    }

    fn name(&self) -> &str {
        "join_by_numbers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn by_numbers(join: &HashJoinExec, config: &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let plain = join.null_equality() == NullEquality::NullEqualsNothing
        && !join.null_aware
        && *join.partition_mode() == PartitionMode::CollectLeft;
    let Some(scan) = scan_of(join.right()).filter(|_| plain) else { return Ok(None) };
    let (left, right) = (join.left().schema(), join.right().schema());
    let text = |(l, r): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
        let column = r.downcast_ref::<Column>()?.index();
        let is_text = *right.field(column).data_type() == DataType::Utf8View
            && l.data_type(&left).is_ok_and(|ty| ty == DataType::Utf8View);
        (is_text && shared_texts(scan, column).is_some()).then_some(column)
    };
    let mut on = join.on().to_vec();
    let Some((key, text)) = on.iter().enumerate().find_map(|(key, pair)| Some((key, text(pair)?))) else {
        return Ok(None);
    };
    let is_wanted = wanted(join).contains(&text);
    let reservation = Account::of(config).map(|account| account.reservation("texts of a join"));
    let texts = JoinedTexts::new(reservation);
    let Some((scan, id)) = scan.joined(text, is_wanted, Arc::clone(&texts))? else { return Ok(None) };
    let built: Arc<dyn PhysicalExpr> = Arc::new(Number { text: Arc::clone(&on[key].0), texts });
    on[key] = (built, Arc::new(Column::new(right.field(text).name(), id)));
    // What is numbered comes behind all columns, and is not among those that go out.
    let outputs: Option<Vec<usize>> = match &join.projection {
        Some(projection) => Some(projection.to_vec()),
        None if is_wanted && gives_right(join.join_type()) => {
            Some((0..join.schema().fields().len()).collect())
        }
        None => None,
    };
    let mut probing: Arc<dyn ExecutionPlan> = Arc::new(scan);
    if join.right().is::<CooperativeExec>() {
        probing = Arc::new(CooperativeExec::new(probing));
    }
    let join = HashJoinExecBuilder::from(join)
        .with_projection(outputs)
        .with_new_children(vec![Arc::clone(join.left()), probing])?
        .with_on(on)
        .recompute_properties();
    join.build_exec().map(Some)
}

/// Whether a join of this type gives columns of the probing side.
fn gives_right(ty: &JoinType) -> bool {
    !matches!(ty, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark)
}

/// The columns of the probing side that the join reads or gives, its keys aside; all that it gives if that is not said.
fn wanted(join: &HashJoinExec) -> BTreeSet<usize> {
    let before = match join.join_type() {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => 0,
        _ => join.left().schema().fields().len(),
    };
    let columns = join.right().schema().fields().len();
    let mut wanted: BTreeSet<usize> = match (&join.projection, gives_right(join.join_type())) {
        (_, false) => BTreeSet::new(),
        (None, true) => (0..columns).collect(),
        (Some(projection), true) => projection.iter().filter_map(|index| index.checked_sub(before)).collect(),
    };
    let read = join.filter().map_or(&[][..], |filter| filter.column_indices());
    let right = read.iter().filter(|column| column.side == datafusion::common::JoinSide::Right);
    wanted.extend(right.map(|column| column.index));
    wanted
}

/// The number of a text of the built side.
#[derive(Debug)]
struct Number {
    text: Arc<dyn PhysicalExpr>,
    texts: Arc<JoinedTexts>,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number({})", self.text)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.text.eq(&other.text) && Arc::ptr_eq(&self.texts, &other.texts)
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        Arc::as_ptr(&self.texts).hash(state);
    }
}

impl PhysicalExpr for Number {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.text.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let texts = self.text.evaluate(batch)?.into_array(batch.num_rows())?;
        self.texts.number(&texts).map(ColumnarValue::Array)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.text]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(text), true) => Ok(Arc::new(Self { text, texts: Arc::clone(&self.texts) })),
            _ => Err(external(internal("a number is of one text"))),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
