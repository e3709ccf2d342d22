//! Type names to [`SqlType`], with PostgreSQL's aliases.

use albireo_base::{SqlError, SqlState, SqlType};
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, ObjectNamePart, TimezoneInfo};

use crate::names;

/// The longest CHAR or VARCHAR, in characters; PostgreSQL's limit.
const MAX_CHARACTERS: u64 = 10_485_760;

const KNOWN: [&str; 24] = [
    "boolean",
    "bool",
    "smallint",
    "int2",
    "integer",
    "int",
    "int4",
    "bigint",
    "int8",
    "real",
    "float4",
    "double precision",
    "float8",
    "numeric",
    "decimal",
    "char",
    "varchar",
    "text",
    "bytea",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];

/// The column type a type name means. `VARCHAR` and `STRING` without a length are TEXT, `CHAR` is
/// `CHAR(1)`, `DECIMAL(p)` is `DECIMAL(p, 0)`.
///
/// # Errors
/// 42704 for a name that is no type, 0A000 for a type of PostgreSQL we do not have, among them
/// NUMERIC without a precision: its digits are unlimited, ours end at 38.
pub fn sql_type(ty: &DataType) -> Result<SqlType, SqlError> {
    Ok(match ty {
        DataType::Bool | DataType::Boolean => SqlType::Bool,
        DataType::SmallInt(None) | DataType::Int2(None) => SqlType::SmallInt,
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => SqlType::Integer,
        DataType::BigInt(None) | DataType::Int8(None) => SqlType::BigInt,
        DataType::Real | DataType::Float4 => SqlType::Real,
        DataType::DoublePrecision | DataType::Float8 | DataType::Float(ExactNumberInfo::None) => {
            SqlType::Double
        }
        DataType::Float(ExactNumberInfo::Precision(bits)) => match bits {
            1..=24 => SqlType::Real,
            25..=53 => SqlType::Double,
            _ => return Err(invalid("precision for type float must be between 1 and 53 bits")),
        },
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => decimal(info)?,
        DataType::Char(length) | DataType::Character(length) => {
            SqlType::Char(characters(length, "char")?.unwrap_or(1))
        }
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            characters(length, "varchar")?.map_or(SqlType::Text, SqlType::Varchar)
        }
        DataType::Text | DataType::String(None) => SqlType::Text,
        DataType::Bytea => SqlType::Bytea,
        DataType::Date => SqlType::Date,
        DataType::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            microseconds(*precision, SqlType::Time)?
        }
        DataType::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            microseconds(*precision, SqlType::Timestamp)?
        }
        DataType::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            microseconds(*precision, SqlType::TimestampTz)?
        }
        DataType::Uuid => SqlType::Uuid,
        DataType::Custom(name, modifiers) => return custom(&name.0, modifiers),
        other => return Err(unsupported(other)),
    })
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn decimal(info: &ExactNumberInfo) -> Result<SqlType, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => {
            return Err(SqlError::unsupported("type numeric without a precision").with_hint(
                "Give the digits in all and after the point, such as NUMERIC(18,2), or use double precision.",
            ));
        }
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let limit = u64::from(SqlType::MAX_DECIMAL_PRECISION);
    if precision == 0 || precision > limit {
        let message = format!("NUMERIC precision {precision} must be between 1 and {limit}");
        return Err(invalid(message));
    }
    match u64::try_from(scale) {
        // Both are at most 38 here.
        Ok(scale) if scale <= precision => {
            Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8 })
        }
        _ => Err(invalid(format!("NUMERIC scale {scale} must be between 0 and the precision {precision}"))),
    }
}

fn characters(length: &Option<CharacterLength>, name: &str) -> Result<Option<u32>, SqlError> {
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length: 0, .. }) => {
            Err(invalid(format!("length for type {name} must be at least 1")))
        }
        Some(CharacterLength::IntegerLength { length, unit: None }) if *length <= MAX_CHARACTERS => {
            Ok(Some(*length as u32))
        }
        Some(CharacterLength::IntegerLength { unit: None, .. }) => {
            Err(invalid(format!("length for type {name} cannot exceed {MAX_CHARACTERS}")))
        }
        Some(_) => Err(SqlError::unsupported(format!("this length for type {name}"))),
    }
}

fn microseconds(precision: Option<u64>, ty: SqlType) -> Result<SqlType, SqlError> {
    match precision {
        None | Some(6) => Ok(ty),
        Some(other) => Err(SqlError::unsupported(format!("{ty} with precision {other}"))
            .with_hint("Leave the precision out; times are kept to the microsecond.")),
    }
}

/// A name the parser does not know as a type.
fn custom(name: &[ObjectNamePart], modifiers: &[String]) -> Result<SqlType, SqlError> {
    let parts: Vec<String> = name.iter().filter_map(|part| part.as_ident().map(names::fold)).collect();
    let name = parts.last().map_or("", String::as_str);
    let number = |modifier: &String| modifier.parse::<u64>().ok();
    let length = modifiers.first().and_then(number);
    match (name, length) {
        ("bpchar", None) => return Ok(SqlType::Text),
        ("bpchar", Some(length)) => {
            let length = Some(CharacterLength::IntegerLength { length, unit: None });
            return Ok(SqlType::Char(characters(&length, "char")?.unwrap_or(1)));
        }
        ("string", None) => return Ok(SqlType::Text),
        ("timestamptz", _) => return microseconds(length, SqlType::TimestampTz),
        ("serial" | "serial4" | "bigserial" | "serial8" | "smallserial", _) => {
            return Err(SqlError::unsupported(format!("type {name}"))
                .with_hint("Use an integer column and give its values on INSERT."));
        }
        _ => {}
    }
    let error = SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    Err(match suggestion(name) {
        Some(known) => error.with_hint(format!("Perhaps you meant the type \"{known}\".")),
        None => error,
    })
}

/// The type of ours that does what a type of another database does, or is spelt like it.
fn suggestion(name: &str) -> Option<&'static str> {
    Some(match name {
        "blob" | "binary" | "varbinary" => "bytea",
        "datetime" => "timestamp",
        "tinyint" => "smallint",
        "double" | "float64" => "double precision",
        "float32" => "real",
        "number" => "numeric",
        "clob" | "nvarchar" | "varchar2" => "text",
        _ => return names::closest(name, KNOWN),
    })
}

/// A type the parser knows and we do not have.
fn unsupported(ty: &DataType) -> SqlError {
    let text = ty.to_string().to_lowercase();
    let bare = text.split('(').next().unwrap_or_default().trim();
    let postgres = matches!(
        ty,
        DataType::JSON
            | DataType::JSONB
            | DataType::Interval { .. }
            | DataType::Array(_)
            | DataType::Time(..)
            | DataType::Bit(_)
            | DataType::BitVarying(_)
            | DataType::VarBit(_)
            | DataType::Regclass
            | DataType::TsVector
            | DataType::TsQuery
            | DataType::GeometricType(_)
    );
    if postgres {
        return SqlError::unsupported(format!("type {text}"));
    }
    let error = SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{bare}\" does not exist"));
    match suggestion(bare) {
        Some(known) => error.with_hint(format!("Perhaps you meant the type \"{known}\".")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expr;
    use sqlparser::ast::Expr;

    fn read(name: &str) -> Result<String, String> {
        let Expr::Cast { data_type, .. } = parse_expr(&format!("cast(x as {name})")).unwrap() else {
            panic!("no cast")
        };
        sql_type(&data_type).map(|ty| ty.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn type_name_in_every_alias_is_known() {
        let cases = [
            ("bool", "boolean"),
            ("int2", "smallint"),
            ("smallint", "smallint"),
            ("int", "integer"),
            ("int4", "integer"),
            ("int8", "bigint"),
            ("float4", "real"),
            ("float", "double precision"),
            ("float(24)", "real"),
            ("float8", "double precision"),
            ("double precision", "double precision"),
            ("numeric(12,2)", "numeric(12,2)"),
            ("decimal(5)", "numeric(5,0)"),
            ("dec(5,1)", "numeric(5,1)"),
            ("char", "character(1)"),
            ("bpchar(3)", "character(3)"),
            ("character varying(9)", "character varying(9)"),
            ("varchar", "text"),
            ("string", "text"),
            ("timestamptz", "timestamp with time zone"),
            ("timestamp(6) with time zone", "timestamp with time zone"),
            ("timestamp", "timestamp without time zone"),
            ("time", "time without time zone"),
            ("uuid", "uuid"),
            ("bytea", "bytea"),
            ("date", "date"),
        ];
        for (name, expected) in cases {
            assert_eq!(read(name).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn type_we_do_not_have_is_refused_with_a_remedy() {
        let cases = [
            ("numeric", "0A000", "NUMERIC(18,2)"),
            ("numeric(39,2)", "22023", "between 1 and 38"),
            ("numeric(5,6)", "22023", "between 0 and the precision"),
            ("char(0)", "22023", "at least 1"),
            ("blob", "42704", "\"bytea\""),
            ("datetime", "42704", "\"timestamp\""),
            ("tinyint", "42704", "\"smallint\""),
            ("integr", "42704", "\"integer\""),
            ("serial", "0A000", "integer column"),
            ("json", "0A000", "json"),
            ("int[]", "0A000", "int[]"),
            ("timestamp(3)", "0A000", "microsecond"),
            ("time with time zone", "0A000", "time zone"),
        ];
        for (name, code, part) in cases {
            let error = read(name).unwrap_err();
            assert!(error.contains(code) && error.contains(part), "{name}: {error}");
        }
    }
}
