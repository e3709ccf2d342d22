//! The value of a node whose parts are known: what compiled code asks for where it has no code.

use super::{as_bool, binary, compared, element, extreme_of, field, is_null, moment, truth, unary};
use crate::Stop;
use crate::datum::{Array, Datum};
use crate::expr::convert::{apply, modify, unexpected};
use crate::expr::{Comparison, Conversion, Expr, ExprKind, Frame, compare, function};

/// The value of an expression whose parts ([`Expr::each_part`]) have these values. Of the kinds whose
/// parts are all evaluated, whatever their values.
///
/// # Errors
/// As [`evaluate`](super::evaluate).
pub fn evaluate_node(expr: &Expr, parts: Vec<Datum>, frame: &mut dyn Frame) -> Result<Datum, Stop> {
    match &expr.kind {
        ExprKind::Function(builtin, _) => return Ok(function::run(builtin, &parts)?),
        ExprKind::General(general, _) => return Ok((general.run)(&parts)?),
        ExprKind::Array(_) => {
            return Ok(Datum::Array(std::sync::Arc::new(Array { lower: 1, items: parts })));
        }
        ExprKind::Row(_) => return Ok(Datum::Row(parts.into())),
        ExprKind::Constant(datum) => return Ok(datum.clone()),
        ExprKind::Call(routine, _) => return frame.call(*routine, parts),
        ExprKind::Extreme(wanted, _) => return Ok(extreme_of(*wanted, parts)),
        ExprKind::Now => return moment(expr, frame),
        _ => {}
    }
    let mut parts = parts.into_iter();
    let a = parts.next().ok_or_else(unexpected)?;
    let one = match &expr.kind {
        ExprKind::Not(_) => match a {
            Datum::Value(albireo_base::Value::Bool(b)) => truth(!b),
            other => other,
        },
        ExprKind::Cast(_, to, kind) => modify(a, *to, *kind)?,
        ExprKind::Convert(_, conversion) => apply(a, *conversion)?,
        ExprKind::Unary(op, _) => unary(*op, a)?,
        ExprKind::Field(_, n) => field(a, *n)?,
        ExprKind::IsNull(_) => truth(is_null(&a, true)),
        ExprKind::IsNotNull(_) => truth(is_null(&a, false)),
        ExprKind::Is(_, wanted) => truth(as_bool(&a) == *wanted),
        _ => {
            let b = parts.next().ok_or_else(unexpected)?;
            return two(expr, a, b);
        }
    };
    Ok(one)
}

fn two(expr: &Expr, a: Datum, b: Datum) -> Result<Datum, Stop> {
    Ok(match &expr.kind {
        ExprKind::Binary(op, _) => binary(*op, a, b)?,
        ExprKind::Compare(op, _) => compared(*op, &a, &b),
        ExprKind::IsDistinct(_) => truth(compare(&a, &b).is_ne()),
        ExprKind::Element(..) => element(&a, &b),
        ExprKind::AnyOf { op, all, .. } => super::any_of(*op, *all, &a, &b),
        ExprKind::NullIf(_, conversion) => {
            let converted = match conversion {
                Some(to) => apply(a.clone(), Conversion::Scalar(*to))?,
                None => a.clone(),
            };
            match as_bool(&compared(Comparison::Eq, &converted, &b)) {
                Some(true) => Datum::NULL,
                _ => a,
            }
        }
        _ => return Err(unexpected().into()),
    })
}
