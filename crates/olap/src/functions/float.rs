//! `sum` and `avg` of REAL and DOUBLE PRECISION.
//!
//! Added up in double precision. Unlike DataFusion's own, a sum of finite numbers that is beyond its type is
//! SQLSTATE 22003, as in PostgreSQL; Infinity and NaN come of Infinity and NaN alone. `sum` of REAL is REAL,
//! rounded once; an average is DOUBLE PRECISION.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::sums::usable;
use crate::errors::{external, float_overflow};

/// The function `avg`.
pub(crate) fn average() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Average { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Average {
    signature: Signature,
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        "avg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [DataType::Float32 | DataType::Float64] => Ok(arg_types.to_vec()),
            other => plan_err!("No function matches avg({other:?})"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(accumulator(Gives::Average))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(args.name))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(groups_accumulator(Gives::Average))
    }
}

/// What becomes of the numbers of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gives {
    /// Their sum, as REAL.
    RealSum,
    /// Their sum, as DOUBLE PRECISION.
    DoubleSum,
    /// Their average.
    Average,
}

impl Gives {
    /// What `sum` gives of numbers of a type; none if that is not floating-point.
    pub(super) fn sum_of(argument: &DataType) -> Option<Self> {
        match argument {
            DataType::Float32 => Some(Self::RealSum),
            DataType::Float64 => Some(Self::DoubleSum),
            _ => None,
        }
    }

    /// The type of the result.
    pub(super) fn ty(self) -> DataType {
        if self == Self::RealSum { DataType::Float32 } else { DataType::Float64 }
    }

    /// The results of groups.
    fn results(self, cells: &[Cell]) -> Result<ArrayRef> {
        let nulls = nulls_of(cells);
        let sums = cells.iter().map(|cell| self.finish(*cell)).collect::<Result<Vec<f64>>>()?;
        Ok(match self {
            Self::RealSum => {
                let sums: Vec<f32> = sums.into_iter().map(|sum| sum as f32).collect();
                Arc::new(Float32Array::new(sums.into(), nulls))
            }
            _ => Arc::new(Float64Array::new(sums.into(), nulls)),
        })
    }

    fn finish(self, cell: Cell) -> Result<f64> {
        let finite = match self {
            Self::RealSum => (cell.sum as f32).is_finite(),
            _ => cell.sum.is_finite(),
        };
        match self {
            _ if !finite && !cell.special => Err(external(float_overflow())),
            Self::Average => Ok(cell.sum / cell.count as f64),
            _ => Ok(cell.sum),
        }
    }
}

/// The numbers of one group.
#[derive(Clone, Copy, Default, Debug)]
struct Cell {
    sum: f64,
    count: i64,
    /// Whether one of them is NaN or Infinity.
    special: bool,
}

impl Cell {
    #[inline(always)]
    fn add(&mut self, value: impl Into<f64>) {
        let value = value.into();
        self.merge(Self { sum: value, count: 1, special: !value.is_finite() });
    }

    #[inline(always)]
    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
        self.special |= other.special;
    }
}

fn nulls_of(cells: &[Cell]) -> Option<NullBuffer> {
    cells.iter().any(|cell| cell.count == 0).then(|| cells.iter().map(|cell| cell.count != 0).collect())
}

/// The partial state of groups: sums, counts, whether there are special numbers.
fn states(cells: &[Cell]) -> Vec<ArrayRef> {
    vec![
        Arc::new(cells.iter().map(|cell| Some(cell.sum)).collect::<Float64Array>()),
        Arc::new(cells.iter().map(|cell| Some(cell.count)).collect::<Int64Array>()),
        Arc::new(cells.iter().map(|cell| Some(cell.special)).collect::<BooleanArray>()),
    ]
}

/// What partial states say.
fn cells_of(states: &[ArrayRef]) -> impl Iterator<Item = Cell> {
    let sums = states[0].as_primitive::<Float64Type>();
    let counts = states[1].as_primitive::<Int64Type>();
    let special = states[2].as_boolean();
    (0..sums.len()).map(|row| Cell {
        sum: sums.value(row),
        count: counts.value(row),
        special: special.value(row),
    })
}

/// The types of the partial state.
pub(super) fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |suffix, ty| Arc::new(Field::new(format_state_name(name, suffix), ty, false));
    vec![
        field("sum", DataType::Float64),
        field("count", DataType::Int64),
        field("special", DataType::Boolean),
    ]
}

/// Runs `$body` with `$array` as an array of REAL or of DOUBLE PRECISION.
macro_rules! with_numbers {
    ($values:expr, $array:ident => $body:expr) => {
        match $values.data_type() {
            DataType::Float32 => {
                let $array = $values.as_primitive::<Float32Type>();
                $body
            }
            _ => {
                let $array = $values.as_primitive::<Float64Type>();
                $body
            }
        }
    };
}

/// One group: aggregation without keys, and window frames that grow.
pub(super) fn accumulator(gives: Gives) -> Box<dyn Accumulator> {
    Box::new(Total { gives, cell: Cell::default() })
}

#[derive(Debug)]
struct Total {
    gives: Gives,
    cell: Cell,
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let cell = &mut self.cell;
        with_numbers!(values[0], array => array.iter().flatten().for_each(|value| cell.add(value)));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.gives.results(&[self.cell])?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        states(&[self.cell]).iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        cells_of(states).for_each(|cell| self.cell.merge(cell));
        Ok(())
    }
}

/// Many groups.
pub(super) fn groups_accumulator(gives: Gives) -> Box<dyn GroupsAccumulator> {
    Box::new(Totals { gives, cells: Vec::new() })
}

struct Totals {
    gives: Gives,
    cells: Vec<Cell>,
}

impl Totals {
    fn update<T>(&mut self, array: &PrimitiveArray<T>, groups: &[usize], filter: Option<&BooleanArray>)
    where
        T: ArrowPrimitiveType,
        T::Native: Into<f64>,
    {
        let values = groups.iter().zip(array.values().iter().copied());
        match usable(array, filter) {
            None => values.for_each(|(&group, value)| self.cells[group].add(value)),
            Some(usable) => {
                let used = values.zip(usable.iter()).filter(|(_, used)| *used);
                used.for_each(|((&group, value), _)| self.cells[group].add(value));
            }
        }
    }
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        number: usize,
    ) -> Result<()> {
        self.cells.resize(number, Cell::default());
        with_numbers!(values[0], array => self.update(array, groups, filter));
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let cells = emit_to.take_needed(&mut self.cells);
        self.gives.results(&cells)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(states(&emit_to.take_needed(&mut self.cells)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], number: usize) -> Result<()> {
        self.cells.resize(number, Cell::default());
        for (cell, &group) in cells_of(states).zip(groups) {
            self.cells[group].merge(cell);
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let each: Vec<usize> = (0..values[0].len()).collect();
        let mut one = Self { gives: self.gives, cells: vec![Cell::default(); each.len()] };
        with_numbers!(values[0], array => one.update(array, &each, filter));
        Ok(states(&one.cells))
    }

    fn size(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }
}
