//! DataFusion's and Arrow's errors as SQL errors with SQLSTATE.
//!
//! Responsible for: one table from every error the analytical engine can meet to SQLSTATE,
//! message and remedy. Our own functions raise [`SqlError`]s, which travel through DataFusion as
//! `External` and come out unchanged; texts are matched only for errors of foreign functions.

use std::io;

use albireo_base::{SqlError, SqlState};
use arrow::error::ArrowError;
use datafusion::common::DataFusionError;

/// Wraps a SQL error so that it passes through DataFusion.
pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error of a cancelled query.
pub(crate) fn cancelled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// The error of a query that ran out of its time.
pub(crate) fn timed_out() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}

/// Division by zero.
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// A floating-point result beyond its type.
pub(crate) fn float_overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// A floating-point result too near to zero.
pub(crate) fn float_underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// A result does not fit `type_name`.
pub(crate) fn out_of_range(type_name: &str) -> SqlError {
    let error = SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"));
    match type_name {
        "numeric" => error.with_detail("The result needs more than 38 digits."),
        _ => error,
    }
}

/// Our own bug: something that must not happen did.
///
/// What follows the first line of `message`, a plan or the cause of a cause, becomes the detail.
pub(crate) fn internal(message: impl std::fmt::Display) -> SqlError {
    let message = message.to_string();
    let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
    let error = SqlError::new(SqlState::INTERNAL_ERROR, format!("internal error: {}", first.trim_end()));
    if rest.trim().is_empty() { error } else { error.with_detail(rest.trim()) }
}

/// Turns a panic's payload into an error.
pub(crate) fn from_panic(payload: &(dyn std::any::Any + Send)) -> SqlError {
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    internal(format!("the query engine panicked: {text}"))
}

/// Converts any DataFusion error.
pub fn to_sql_error(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::ArrowError(e, _) => from_arrow(e),
        DataFusionError::ParquetError(e) => from_parquet(e),
        DataFusionError::ObjectStore(e) => from_object_store(e),
        DataFusionError::IoError(e) => from_io(e),
        DataFusionError::NotImplemented(m) => not_implemented(m),
        DataFusionError::Plan(m) => from_plan_text(m),
        DataFusionError::SchemaError(e, _) => internal(e),
        DataFusionError::Execution(m) => from_text(m),
        DataFusionError::ExecutionJoin(e) => internal(e),
        DataFusionError::ResourcesExhausted(m) => from_resources(m),
        DataFusionError::External(e) => from_boxed(e.as_ref()),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => to_sql_error(inner),
        DataFusionError::Collection(all) => {
            all.first().map_or_else(|| internal("empty error collection"), to_sql_error)
        }
        DataFusionError::Shared(inner) => to_sql_error(inner),
        DataFusionError::Configuration(m) => SqlError::new(SqlState::INVALID_PARAMETER_VALUE, m.clone()),
        DataFusionError::Internal(m) | DataFusionError::Substrait(m) | DataFusionError::Ffi(m) => internal(m),
    }
}

fn from_boxed(error: &(dyn std::error::Error + Send + Sync + 'static)) -> SqlError {
    if let Some(e) = error.downcast_ref::<SqlError>() {
        return e.clone();
    }
    if let Some(e) = error.downcast_ref::<DataFusionError>() {
        return to_sql_error(e);
    }
    if let Some(e) = error.downcast_ref::<ArrowError>() {
        return from_arrow(e);
    }
    if let Some(e) = error.downcast_ref::<io::Error>() {
        return from_io(e);
    }
    from_text(&error.to_string())
}

/// Converts an Arrow error.
pub fn from_arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::DivideByZero => division_by_zero(),
        ArrowError::ArithmeticOverflow(_) => out_of_range("numeric value"),
        ArrowError::ExternalError(e) => from_boxed(e.as_ref()),
        ArrowError::IoError(_, e) => from_io(e),
        ArrowError::NotYetImplemented(m) => not_implemented(m),
        ArrowError::MemoryError(m) => from_resources(m),
        ArrowError::CsvError(m) => SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, m.clone()),
        ArrowError::CastError(m)
        | ArrowError::ParseError(m)
        | ArrowError::ComputeError(m)
        | ArrowError::InvalidArgumentError(m) => from_text(m),
        other => from_text(&other.to_string()),
    }
}

fn from_object_store(error: &datafusion::object_store::Error) -> SqlError {
    use datafusion::object_store::Error;
    match error {
        Error::NotFound { path, .. } => {
            SqlError::new(SqlState::UNDEFINED_FILE, format!("there is no file {path}"))
        }
        other => SqlError::new(SqlState::IO_ERROR, other.to_string()),
    }
}

fn from_parquet(error: &datafusion::parquet::errors::ParquetError) -> SqlError {
    use datafusion::parquet::errors::ParquetError;
    if let ParquetError::External(e) = error {
        if let Some(e) = e.downcast_ref::<SqlError>() {
            return e.clone();
        }
        if let Some(e) = e.downcast_ref::<datafusion::object_store::Error>() {
            return from_object_store(e);
        }
        if let Some(e) = e.downcast_ref::<io::Error>() {
            return from_io(e);
        }
    }
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, format!("malformed Parquet file: {error}"))
}

/// Converts an operating system error.
pub fn from_io(error: &io::Error) -> SqlError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => disk_full(&error.to_string()),
        io::ErrorKind::NotFound => SqlError::new(SqlState::UNDEFINED_FILE, error.to_string()),
        io::ErrorKind::OutOfMemory => from_resources(&error.to_string()),
        // DataFusion's disk manager says so in words alone.
        _ if error.to_string().contains("used disk space during the spilling") => {
            disk_full(&error.to_string())
        }
        _ => match error.get_ref() {
            Some(inner) if inner.is::<DataFusionError>() || inner.is::<SqlError>() => from_boxed(inner),
            _ => SqlError::new(SqlState::IO_ERROR, error.to_string()),
        },
    }
}

fn disk_full(detail: &str) -> SqlError {
    SqlError::new(SqlState::DISK_FULL, "no space left for the query's temporary files")
        .with_detail(detail)
        .with_hint("Free space in the spill directory, raise its limit, or raise the query's memory limit so that it need not spill.")
}

fn from_resources(message: &str) -> SqlError {
    let lower = message.to_ascii_lowercase();
    if lower.contains("disk") || lower.contains("no space left") {
        return disk_full(message);
    }
    SqlError::new(SqlState::OUT_OF_MEMORY, "the query needs more memory than its limit")
        .with_detail(first_line(message))
        .with_hint("Raise the memory limit, configure a spill directory, or make the query touch less data.")
}

fn not_implemented(message: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, decapitalize(&first_line(message)))
}

/// Errors of planning. What a statement can get wrong is found before a plan is made of it
/// (`albireo_semantics`), so all but a missing file is ours.
fn from_plan_text(message: &str) -> SqlError {
    if message.to_ascii_lowercase().contains("no files found") {
        return SqlError::new(SqlState::UNDEFINED_FILE, decapitalize(&first_line(message)));
    }
    internal(message)
}

/// Errors of functions that are not ours, raised while rows are computed.
fn from_text(message: &str) -> SqlError {
    let lower = message.to_ascii_lowercase();
    let has = |needle: &str| lower.contains(needle);
    let state = if has("divide by zero") || has("division by zero") {
        return division_by_zero();
    } else if has("negative count not allowed") || has("negative substring length") {
        return SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed");
    } else if has("unsupported date_trunc granularity") {
        SqlState::INVALID_PARAMETER_VALUE
    } else if has("no space left") {
        return disk_full(message);
    } else if has("resources exhausted") {
        return from_resources(message);
    } else if has("more than one row") || has("more than one value") {
        return SqlError::new(
            SqlState::CARDINALITY_VIOLATION,
            "more than one row returned by a subquery used as an expression",
        );
    } else if has("no such file") || has("not found") && has("file") {
        SqlState::UNDEFINED_FILE
    } else if has("can't cast value")
        || has("overflow")
        || has("out of range")
        || has("too large to store")
        || has("too small to store")
    {
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE
    } else if has("parsing timestamp")
        || has("parsing date")
        || has("error parsing")
        || has("to value of date")
        || has("to value of timestamp")
        || has("interval")
    {
        SqlState::INVALID_DATETIME_FORMAT
    } else if has("cannot cast string") || has("cannot parse") || has("parser error") {
        SqlState::INVALID_TEXT_REPRESENTATION
    } else if has("not implemented") || has("not supported") || has("unsupported") {
        SqlState::FEATURE_NOT_SUPPORTED
    } else {
        SqlState::INVALID_PARAMETER_VALUE
    };
    SqlError::new(state, decapitalize(&first_line(message)))
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

fn decapitalize(message: &str) -> String {
    let mut chars = message.chars();
    match (chars.next(), message.chars().nth(1)) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().collect::<String>() + chars.as_str()
        }
        _ => message.to_owned(),
    }
}
