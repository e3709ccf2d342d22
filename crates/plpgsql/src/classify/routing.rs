//! Where a routine runs, from what it touches.

use albireo_base::{SqlType, Value};

use super::source::literal;
use super::touch::Touch;
use super::{Key, Placing, RoutingClass};
use crate::expr::RoutineId;
use crate::types::{Scalar, Type};

/// Decides for `reader`, whose inputs have these names and types.
pub(super) fn decide(
    touches: &[Touch],
    reader: Option<RoutineId>,
    inputs: &[(String, Type)],
) -> RoutingClass {
    let shared_write = |touch: &&Touch| touch.table.is_shared() && touch.kind.writes();
    let partitioned: Vec<&Touch> = touches.iter().filter(|touch| !touch.table.is_shared()).collect();
    let Some(first) = partitioned.first().copied().or_else(|| touches.iter().find(shared_write)) else {
        let why = match touches.is_empty() {
            true => "it touches no table",
            false => "it touches no partitioned table and writes no shared one",
        };
        return RoutingClass::Anywhere { why: why.to_owned() };
    };
    if let Some(touch) = touches.iter().find(|touch| shared_write(touch) && !touch.guarded) {
        return RoutingClass::Crossing {
            why: format!("{}, which all partitions share", touch.shown(reader)),
        };
    }
    if let Some(touch) = partitioned.iter().find(|touch| touch.key == Key::Nothing && !touch.guarded) {
        let why = format!("{} in all partitions: nothing says in which", touch.shown(reader));
        return RoutingClass::Crossing { why };
    }
    let Some(best) = best(&partitioned) else {
        let why = match (first.table.is_shared(), &first.key) {
            (true, _) => format!("{}, which all partitions share", first.shown(reader)),
            (_, Key::Nothing) => format!("{} in all partitions", first.shown(reader)),
            _ => format!("{} by {}, which no argument gives", first.shown(reader), first.by),
        };
        return RoutingClass::Crossing { why };
    };
    let place = placing(best, inputs);
    let all = partitioned.len();
    let is_by_it = |touch: &&&Touch| touch.key == best.key && placed_alike(touch, best);
    let by_it = partitioned.iter().filter(is_by_it).count();
    let share = match (by_it, all) {
        (1, 1) => "the one access to a partitioned table is by it".to_owned(),
        _ if by_it == all => format!("all {all} accesses to partitioned tables are by it"),
        _ => format!("{by_it} of {all} accesses to partitioned tables are by it"),
    };
    if let Some(touch) = partitioned.iter().find(|touch| !is_by_it(touch)) {
        let how = match touch.key {
            _ if touch.key == best.key => "as another type".to_owned(),
            Key::Nothing => "in all partitions".to_owned(),
            Key::Computed => format!("by {}", touch.by),
            _ => format!("by {}", named(&touch.key, inputs)),
        };
        let why = format!("{share}, but {} {how}", touch.shown(reader));
        return RoutingClass::Probably { place, why };
    }
    if let Some(touch) = touches.iter().find(shared_write) {
        let why = format!("{share}, but {}, which all share", touch.shown(reader));
        return RoutingClass::Probably { place, why };
    }
    RoutingClass::Partition { place, why: share }
}

/// The key that most accesses have: of those behind no condition, then of all; the first of several.
fn best<'t>(partitioned: &[&'t Touch]) -> Option<&'t Touch> {
    let mut best: Option<(&Touch, (usize, usize))> = None;
    for touch in partitioned {
        if !matches!(touch.key, Key::Argument(_) | Key::Constant(_)) {
            continue;
        }
        let same = || partitioned.iter().filter(|other| other.key == touch.key);
        let count = (same().filter(|other| !other.guarded).count(), same().count());
        if best.is_none_or(|(_, most)| count > most) {
            best = Some((touch, count));
        }
    }
    best.map(|(touch, _)| touch)
}

fn column_of(touch: &Touch) -> SqlType {
    touch.table.partition_by.map_or(SqlType::BigInt, |column| touch.table.column_def(column).ty)
}

/// Whether one value is in the same partition for both.
fn placed_alike(a: &Touch, b: &Touch) -> bool {
    let whole = |ty: SqlType| matches!(ty, SqlType::SmallInt | SqlType::Integer | SqlType::BigInt);
    let text = |ty: SqlType| matches!(ty, SqlType::Varchar(_) | SqlType::Text);
    let (a, b) = (column_of(a), column_of(b));
    match (a, b) {
        (SqlType::Decimal { scale: a, .. }, SqlType::Decimal { scale: b, .. }) => a == b,
        _ => a == b || (whole(a) && whole(b)) || (text(a) && text(b)),
    }
}

fn placing(touch: &Touch, inputs: &[(String, Type)]) -> Placing {
    let column = column_of(touch);
    let ty = match &touch.key {
        Key::Argument(number) => inputs.get(*number).map(|(_, ty)| ty.clone()),
        Key::Constant(Value::BigInt(_)) => Some(Type::Scalar(Scalar::BigInt)),
        _ => None,
    };
    let ty = ty.unwrap_or(Type::Scalar(Scalar::of(column)));
    Placing { key: touch.key.clone(), ty, column }
}

/// The key in words.
pub(super) fn named(key: &Key, inputs: &[(String, Type)]) -> String {
    match key {
        Key::Argument(number) => {
            inputs.get(*number).map_or_else(|| format!("${}", number + 1), |(name, _)| name.clone())
        }
        Key::Constant(value) => literal(value),
        Key::Computed | Key::Nothing => "nothing".to_owned(),
    }
}
