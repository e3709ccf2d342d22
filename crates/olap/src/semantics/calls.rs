//! Casts and function calls: which function is meant, and what its arguments must be.

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use sqlparser::ast::{self, CharacterLength, ExactNumberInfo, TimezoneInfo};
use std::sync::Arc;

use super::unify::{self, cast};
use crate::errors::external;
use crate::functions::conditional::Conditional;
use crate::functions::rowwise::{RowFunction, is_text, type_name};
use crate::functions::{casts, numbers, round, strings, temporal};

/// Set in the type of a cast to CHAR(n) or VARCHAR(n): n.
const LENGTH: &str = "albireo.length";
/// Set beside it for CHAR.
const IS_CHAR: &str = "albireo.char";
/// Set in the type of a cast to NUMERIC without precision.
const ANY_SCALE: &str = "albireo.any_scale";

/// Type names in casts, where ours are not DataFusion's.
#[derive(Debug)]
pub(crate) struct TypeNames;

impl TypePlanner for TypeNames {
    fn plan_type_field(&self, ty: &ast::DataType) -> Result<Option<FieldRef>> {
        use ast::DataType as Sql;
        let plain = |ty: DataType| Some(Arc::new(Field::new("", ty, true)));
        let marked = |ty: DataType, marks: Vec<(&str, String)>| {
            let marks = marks.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Some(Arc::new(Field::new("", ty, true).with_metadata(marks)))
        };
        let utc = || DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
        Ok(match ty {
            Sql::Char(length) | Sql::Character(length) => {
                let n = characters(length.as_ref()).unwrap_or(1).to_string();
                marked(DataType::Utf8View, vec![(LENGTH, n), (IS_CHAR, String::new())])
            }
            Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => {
                match characters(length.as_ref()) {
                    Some(n) => marked(DataType::Utf8View, vec![(LENGTH, n.to_string())]),
                    None => plain(DataType::Utf8View),
                }
            }
            Sql::Text => plain(DataType::Utf8View),
            Sql::Bytea => plain(DataType::BinaryView),
            Sql::Uuid => plain(DataType::FixedSizeBinary(16)),
            Sql::Numeric(ExactNumberInfo::None)
            | Sql::Decimal(ExactNumberInfo::None)
            | Sql::Dec(ExactNumberInfo::None) => {
                marked(DataType::Decimal128(38, 16), vec![(ANY_SCALE, String::new())])
            }
            Sql::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                plain(DataType::Time64(TimeUnit::Microsecond))
            }
            Sql::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => plain(casts::TIMESTAMP),
            Sql::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => plain(utc()),
            Sql::Custom(name, _) if name.to_string().eq_ignore_ascii_case("timestamptz") => plain(utc()),
            _ => None,
        })
    }
}

fn characters(length: Option<&CharacterLength>) -> Option<u64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        _ => None,
    }
}

/// A cast as PostgreSQL does it.
///
/// # Errors
/// 42846: there is no such cast; a literal is no value of the type.
pub(super) fn settle_cast(inner: Expr, field: FieldRef, schema: &DFSchema) -> Result<Expr> {
    let target = field.data_type().clone();
    let Ok(from) = inner.get_type(schema) else {
        return Ok(Expr::Cast(Cast { expr: Box::new(inner), field }));
    };
    if is_text(&target) {
        return Ok(to_text(inner, &from, &field));
    }
    if field.metadata().contains_key(ANY_SCALE) {
        return to_numeric(inner, &from);
    }
    if is_text(&from) && casts::is_readable(&target) {
        return match unify::unknown(&inner) {
            Some(text) => Ok(Expr::Literal(casts::parse(text, &target).map_err(external)?, None)),
            None => Ok(casts::read(inner, &target)),
        };
    }
    if !casts::exists(&from, &target) {
        let message = format!("cannot cast type {} to {}", type_name(&from), type_name(&target));
        return Err(external(SqlError::new(SqlState::CANNOT_COERCE, message)));
    }
    if target.is_signed_integer() && round::applies_to(&from) {
        let rounded = round::function().call(vec![inner]);
        return Ok(Expr::Cast(Cast { expr: Box::new(rounded), field }));
    }
    Ok(Expr::Cast(Cast { expr: Box::new(inner), field }))
}

fn to_text(inner: Expr, from: &DataType, field: &FieldRef) -> Expr {
    let text = match from {
        from if is_text(from) => match unify::unknown(&inner) {
            // No longer of unknown type.
            Some(_) => cast(inner, &DataType::Utf8View),
            // Nor a CHAR, if it was one.
            None if matches!(inner, Expr::Column(_)) => cast(inner, &DataType::Utf8View),
            None => inner,
        },
        DataType::Null => cast(inner, &DataType::Utf8View),
        from if from.is_integer() => cast(inner, &DataType::Utf8View),
        _ => casts::write(inner),
    };
    let length = field.metadata().get(LENGTH).and_then(|n| n.parse::<usize>().ok());
    match length {
        Some(length) => casts::cut(text, length, field.metadata().contains_key(IS_CHAR)),
        None => text,
    }
}

/// A cast to NUMERIC without precision keeps all digits there are.
fn to_numeric(inner: Expr, from: &DataType) -> Result<Expr> {
    Ok(match from {
        DataType::Decimal128(..) => inner,
        from if from.is_integer() => {
            cast(inner, &DataType::Decimal128(if *from == DataType::Int64 { 19 } else { 10 }, 0))
        }
        _ if unify::unknown(&inner).is_some() => unify::known(inner, &DataType::Decimal128(38, 16))?,
        from if is_text(from) => casts::read(inner, &DataType::Decimal128(38, 16)),
        _ => cast(inner, &DataType::Decimal128(38, 16)),
    })
}

/// A call as PostgreSQL understands it.
///
/// # Errors
/// 42883: there is no such function for these types; a literal is no value of an argument's type.
pub(super) fn settle_call(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let ScalarFunction { mut func, args } = call;
    let inner: &dyn std::any::Any = func.inner().as_ref();
    if let Some(conditional) = inner.downcast_ref::<Conditional>() {
        func = conditional.computed();
    }
    let name = func.name().to_owned();
    check_texts(&name, &args, schema)?;
    match (name.as_str(), args.as_slice()) {
        ("coalesce", _) => Ok(func.call(unify::unify(args, schema, "COALESCE")?)),
        ("concat" | "concat_ws", _) => {
            let shown = args.into_iter().map(|arg| {
                let ty = arg.get_type(schema)?;
                let plain = is_text(&ty) || ty.is_integer() || ty == DataType::Null;
                Ok(if plain { arg } else { casts::show(arg) })
            });
            Ok(func.call(shown.collect::<Result<_>>()?))
        }
        ("greatest", _) => Ok(func.call(unify::unify(args, schema, "GREATEST")?)),
        ("least", _) => Ok(func.call(unify::unify(args, schema, "LEAST")?)),
        ("nullif", [a, _]) => {
            let ty = a.get_type(schema)?;
            let known = args.into_iter().map(|arg| unify::known(arg, &ty));
            Ok(func.call(known.collect::<Result<_>>()?))
        }
        ("trunc", [number, Expr::Literal(places, _)]) => {
            let ty = truncated(&number.get_type(schema)?, places);
            let call = func.call(args);
            Ok(ty.map_or(call.clone(), |ty| cast(call, &ty)))
        }
        ("date_part", [Expr::Literal(field, _), _]) if !field.is_null() => {
            let field = field.try_as_str().flatten().unwrap_or_default().to_owned();
            let mut args = args;
            let argument = args.pop().unwrap_or(Expr::Literal(ScalarValue::Null, None));
            let ty = argument.get_type(schema).ok();
            temporal::extract(&field, argument, false, ty.as_ref())
        }
        ("date_part", _) => Err(external(SqlError::unsupported("date_part with a computed field"))),
        (name, [_]) if numbers::replacement(name).is_some() => {
            let replacement = numbers::replacement(name);
            Ok(replacement.map_or_else(|| func.call(args.clone()), |function| function.call(args.clone())))
        }
        _ => {
            let inner: &dyn std::any::Any = func.inner().as_ref();
            if inner.is::<RowFunction>() {
                return Ok(func.call(with_types(&func, args, schema)?));
            }
            Ok(func.call(args))
        }
    }
}

/// The type of a decimal cut to so many digits after the point; `None` if it keeps its own.
fn truncated(ty: &DataType, places: &ScalarValue) -> Option<DataType> {
    let places = match places {
        ScalarValue::Int32(Some(n)) => i8::try_from(*n).ok()?,
        ScalarValue::Int64(Some(n)) => i8::try_from(*n).ok()?,
        _ => return None,
    };
    match ty {
        DataType::Decimal128(p, s) if (0..*s).contains(&places) => {
            Some(DataType::Decimal128(p - (s - places) as u8, places))
        }
        _ => None,
    }
}

/// Bare literals as values of the types the function takes.
fn with_types(
    func: &datafusion::logical_expr::ScalarUDF,
    args: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.get_type(schema)).collect::<Result<_>>()?;
    let wanted = func.coerce_types(&types)?;
    args.into_iter()
        .zip(wanted)
        .map(|(arg, ty)| if is_text(&ty) { Ok(arg) } else { unify::known(arg, &ty) })
        .collect()
}

fn check_texts(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    for &i in strings::text_arguments(name) {
        let Some(arg) = args.get(i) else { continue };
        let ty = arg.get_type(schema)?;
        let is_bytes = matches!(ty, DataType::BinaryView | DataType::Binary | DataType::LargeBinary);
        if !is_text(&ty) && ty != DataType::Null && !is_bytes && !matches!(ty, DataType::Dictionary(..)) {
            let types: Vec<String> = args
                .iter()
                .map(|arg| arg.get_type(schema).map(|ty| type_name(&ty)))
                .collect::<Result<_>>()?;
            let message = format!("function {name}({}) does not exist", types.join(", "));
            return Err(external(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )));
        }
    }
    Ok(())
}
