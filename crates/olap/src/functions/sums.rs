//! `sum` with PostgreSQL's result types.
//!
//! | argument | result |
//! |---|---|
//! | smallint, integer | bigint |
//! | bigint | numeric(38,0) |
//! | numeric(p,s) | numeric(38,s) |
//! | real, double precision | the same ([`float`]) |
//!
//! All exact sums are kept in 128 bits. Up to [`SAFE_PRECISION`] digits they cannot overflow in
//! practice (10^10 rows of the largest value) and are added unchecked; wider arguments are
//! checked at each step. A result beyond its type is SQLSTATE 22003.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use albireo_base::SqlError;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int16Type, Int32Type, Int64Type,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};

use super::decimal::{self, Shape};
use super::distinct::DistinctSum;
use super::float::{self, Gives};
use crate::errors::{external, internal, out_of_range};

/// Widest argument whose sums are added without a check.
const SAFE_PRECISION: i32 = 28;

/// The function.
pub(crate) fn function() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(ExactAggregate { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct ExactAggregate {
    signature: Signature,
}

/// Whether a function is the exact `sum`.
pub(crate) fn is_sum(function: &AggregateUDF) -> bool {
    let inner: &dyn Any = function.inner().as_ref();
    inner.is::<ExactAggregate>()
}

/// How what a sum below a join gives is called; no column of a user's is, whose names end in a number of ours.
pub(crate) const EARLY_SUM: &str = "__early_sum_";

/// Whether a function of an aggregation is a sum below a join.
pub(crate) fn is_early_sum(name: &str) -> bool {
    name.strip_prefix(EARLY_SUM).is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// What an exact aggregate computes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) argument: DataType,
    scale: i32,
    result: DataType,
    checked: bool,
}

impl Plan {
    fn new(argument: &DataType) -> Option<Self> {
        let shape = match argument {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => Shape { precision: 19, scale: 0 },
            other => Shape::of(other)?,
        };
        let result = match argument {
            DataType::Int16 | DataType::Int32 => DataType::Int64,
            _ => DataType::Decimal128(decimal::MAX_PRECISION, shape.scale as i8),
        };
        Some(Self {
            argument: argument.clone(),
            scale: shape.scale,
            result,
            checked: shape.precision > SAFE_PRECISION,
        })
    }

    /// The type of partial sums.
    pub(crate) fn sum_type(&self) -> DataType {
        DataType::Decimal128(decimal::MAX_PRECISION, self.scale as i8)
    }

    /// The result of a group with at least one value; `None` when it does not fit.
    fn finish(&self, cell: Cell) -> Option<i128> {
        match self.result {
            DataType::Int64 => i64::try_from(cell.sum).ok().map(i128::from),
            _ => decimal::fits(cell.sum).then_some(cell.sum),
        }
    }

    fn overflow(&self) -> SqlError {
        out_of_range(if self.result == DataType::Int64 { "bigint" } else { "numeric" })
    }

    /// The results of groups as an array.
    fn results(&self, cells: &[Cell]) -> Result<ArrayRef> {
        let mut values = Vec::with_capacity(cells.len());
        for cell in cells {
            let value = if cell.count == 0 { Some(0) } else { self.finish(*cell) };
            values.push(value.ok_or_else(|| external(self.overflow()))?);
        }
        let nulls = nulls_of(cells);
        if self.result == DataType::Int64 {
            let values: Vec<i64> = values.into_iter().map(|v| v as i64).collect();
            return Ok(Arc::new(Int64Array::new(values.into(), nulls)));
        }
        let array = Decimal128Array::new(values.into(), nulls);
        Ok(Arc::new(array.with_data_type(self.result.clone())))
    }

    pub(crate) fn result_scalar(&self, cell: Cell) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.results(&[cell])?, 0)
    }

    /// The partial state of groups.
    fn states(&self, cells: &[Cell]) -> Result<Vec<ArrayRef>> {
        if cells.iter().any(|c| !decimal::fits(c.sum)) {
            return Err(external(self.overflow()));
        }
        let sums: Vec<i128> = cells.iter().map(|c| c.sum).collect();
        let sums = Decimal128Array::new(sums.into(), nulls_of(cells));
        Ok(vec![Arc::new(sums.with_data_type(self.sum_type()))])
    }
}

fn nulls_of(cells: &[Cell]) -> Option<NullBuffer> {
    cells.iter().any(|c| c.count == 0).then(|| cells.iter().map(|c| c.count != 0).collect())
}

/// Sum and number of the values of one group.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cell {
    pub(crate) sum: i128,
    pub(crate) count: i64,
}

/// Integers of any width as 128-bit ones.
pub(crate) trait ToWide: ArrowPrimitiveType {
    fn wide(value: Self::Native) -> i128;
}

macro_rules! to_wide {
    ($($ty:ty),*) => {$(
        impl ToWide for $ty {
            #[inline(always)]
            fn wide(value: Self::Native) -> i128 {
                i128::from(value)
            }
        }
    )*};
}

to_wide!(Int16Type, Int32Type, Int64Type, Decimal128Type);

/// Runs `$body` with `$ty` bound to the Arrow type of an exact argument.
macro_rules! with_argument {
    ($argument:expr, $ty:ident => $body:expr) => {
        match $argument {
            DataType::Int16 => {
                type $ty = Int16Type;
                $body
            }
            DataType::Int32 => {
                type $ty = Int32Type;
                $body
            }
            DataType::Int64 => {
                type $ty = Int64Type;
                $body
            }
            _ => {
                type $ty = Decimal128Type;
                $body
            }
        }
    };
}

impl AggregateUDFImpl for ExactAggregate {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arg_types else {
            return plan_err!("No function matches: {} takes one argument", self.name());
        };
        let coerced = match argument {
            DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Decimal128(..)
            | DataType::Float32
            | DataType::Float64 => argument.clone(),
            other => return plan_err!("No function matches {}({other})", self.name()),
        };
        Ok(vec![coerced])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match (arg_types.first().and_then(Plan::new), arg_types.first().and_then(Gives::sum_of)) {
            (Some(plan), _) => Ok(plan.result),
            (None, Some(gives)) => Ok(gives.ty()),
            (None, None) => plan_err!("No function matches sum({arg_types:?})"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match Plan::new(args.expr_fields[0].data_type()) {
            Some(plan) if args.is_distinct => Ok(Box::new(DistinctSum::new(plan))),
            Some(plan) => Ok(Box::new(ExactSum { plan, cell: Cell::default() })),
            None => Ok(float::accumulator(sum_of(&args)?)),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let Some(plan) = Plan::new(args.input_fields[0].data_type()) else {
            return Ok(float::state_fields(args.name));
        };
        let name = |suffix: &str| format_state_name(args.name, suffix);
        if args.is_distinct {
            let item = Field::new_list_field(plan.sum_type(), true);
            return Ok(vec![Arc::new(Field::new_list(name("values"), item, false))]);
        }
        Ok(vec![Arc::new(Field::new(name("sum"), plan.sum_type(), true))])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match Plan::new(args.expr_fields[0].data_type()) {
            Some(_) => !args.is_distinct,
            None => true,
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match Plan::new(args.expr_fields[0].data_type()) {
            Some(plan) => Ok(Box::new(GroupSums { plan, cells: Vec::new() })),
            None => Ok(float::groups_accumulator(sum_of(&args)?)),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// What the sum of a floating-point argument gives.
fn sum_of(args: &AccumulatorArgs) -> Result<Gives> {
    let internal = || external(internal("an aggregate's argument has an unexpected type"));
    Gives::sum_of(args.expr_fields[0].data_type()).ok_or_else(internal)
}

/// One running sum: aggregation without groups, and window frames.
#[derive(Debug)]
struct ExactSum {
    plan: Plan,
    cell: Cell,
}

impl ExactSum {
    fn add(&mut self, sum: i128) -> Result<()> {
        let total = self.cell.sum.checked_add(sum);
        self.cell.sum = total.ok_or_else(|| external(self.plan.overflow()))?;
        Ok(())
    }

    fn batch_sum<T: ToWide>(&self, array: &dyn Array) -> Result<(i128, i64)> {
        let array = array.as_primitive::<T>();
        let count = (array.len() - array.null_count()) as i64;
        let overflow = || external(self.plan.overflow());
        let mut values = array.values().iter().map(|v| T::wide(*v));
        let sum = match (array.nulls(), self.plan.checked) {
            (None, false) => values.sum(),
            (None, true) => values.try_fold(0i128, i128::checked_add).ok_or_else(overflow)?,
            (Some(_), _) => {
                let mut valid = array.iter().flatten().map(T::wide);
                valid.try_fold(0i128, i128::checked_add).ok_or_else(overflow)?
            }
        };
        Ok((sum, count))
    }

    fn argument_sum(&self, values: &[ArrayRef]) -> Result<(i128, i64)> {
        with_argument!(&self.plan.argument, T => self.batch_sum::<T>(&values[0]))
    }
}

impl Accumulator for ExactSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.argument_sum(values)?;
        self.cell.count += count;
        self.add(sum)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.argument_sum(values)?;
        self.cell.count -= count;
        self.add(-sum)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.plan.result_scalar(self.cell)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let states = self.plan.states(&[self.cell])?;
        states.iter().map(|s| ScalarValue::try_from_array(s, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (sum, groups) = self.batch_sum::<Decimal128Type>(&states[0])?;
        self.cell.count += groups;
        self.add(sum)
    }
}

/// Sums by group.
struct GroupSums {
    plan: Plan,
    cells: Vec<Cell>,
}

impl GroupSums {
    fn update<T: ToWide>(
        &mut self,
        array: &PrimitiveArray<T>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        if self.plan.checked {
            self.update_each::<T, true>(array, groups, filter)
        } else {
            self.update_each::<T, false>(array, groups, filter)
        }
    }

    fn update_each<T: ToWide, const CHECKED: bool>(
        &mut self,
        array: &PrimitiveArray<T>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        assert_eq!(array.len(), groups.len(), "one group for each value");
        let cells = self.cells.as_mut_slice();
        let mut overflow = false;
        let mut add = |group: usize, value: i128| {
            let cell = &mut cells[group];
            let (sum, over) = cell.sum.overflowing_add(value);
            cell.sum = sum;
            cell.count += 1;
            if CHECKED {
                overflow |= over;
            }
        };
        let values = array.values().iter().map(|v| T::wide(*v));
        match usable(array, filter) {
            None => groups.iter().zip(values).for_each(|(&group, value)| add(group, value)),
            Some(usable) => {
                for ((&group, value), valid) in groups.iter().zip(values).zip(usable.iter()) {
                    if valid {
                        add(group, value);
                    }
                }
            }
        }
        if overflow { Err(external(self.plan.overflow())) } else { Ok(()) }
    }
}

/// Which values count: not null, and passed by the filter. `None`: all.
pub(super) fn usable(array: &dyn Array, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let filter = filter.map(|f| {
        let passed = match f.nulls() {
            Some(nulls) => f.values() & nulls.inner(),
            None => f.values().clone(),
        };
        NullBuffer::new(passed)
    });
    NullBuffer::union(filter.as_ref(), array.nulls())
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.cells.resize(total_num_groups, Cell::default());
        with_argument!(&self.plan.argument, T => {
            self.update(values[0].as_primitive::<T>(), group_indices, opt_filter)
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let cells = emit_to.take_needed(&mut self.cells);
        self.plan.results(&cells)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let cells = emit_to.take_needed(&mut self.cells);
        self.plan.states(&cells)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.cells.resize(total_num_groups, Cell::default());
        let sums = values[0].as_primitive::<Decimal128Type>();
        let mut overflow = false;
        for (i, &group) in group_indices.iter().enumerate() {
            if sums.is_null(i) {
                continue;
            }
            let cell = &mut self.cells[group];
            let (sum, over) = cell.sum.overflowing_add(sums.value(i));
            cell.sum = sum;
            cell.count += 1;
            overflow |= over;
        }
        if overflow { Err(external(self.plan.overflow())) } else { Ok(()) }
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        with_argument!(&self.plan.argument, T => {
            let array = values[0].as_primitive::<T>();
            let usable = usable(array, opt_filter);
            let valid = |i: usize| usable.as_ref().is_none_or(|u| u.is_valid(i));
            let cells: Vec<Cell> = array
                .values()
                .iter()
                .enumerate()
                .map(|(i, v)| match valid(i) {
                    true => Cell { sum: T::wide(*v), count: 1 },
                    false => Cell::default(),
                })
                .collect();
            self.plan.states(&cells)
        })
    }

    fn size(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }
}

/// The argument of an exact aggregate as wide integers, nulls left out.
pub(crate) fn wide_values(plan: &Plan, array: &dyn Array) -> Result<Vec<i128>> {
    with_argument!(&plan.argument, T => {
        let any: &dyn Any = array.as_any();
        match any.downcast_ref::<PrimitiveArray<T>>() {
            Some(array) => Ok(array.iter().flatten().map(T::wide).collect()),
            None => Err(external(internal("an aggregate's argument has an unexpected type"))),
        }
    })
}
