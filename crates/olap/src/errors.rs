//! DataFusion's and Arrow's errors as SQL errors with SQLSTATE.
//!
//! Responsible for: one table from every error the analytical engine can meet to SQLSTATE,
//! message and remedy. Our own functions raise [`SqlError`]s, which travel through DataFusion as
//! `External` and come out unchanged; texts are matched only for errors of foreign functions.

use std::io;

use albireo_base::{SqlError, SqlState};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};

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
pub(crate) fn internal(message: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("internal error: {message}"))
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
        DataFusionError::SchemaError(e, _) => from_schema(e),
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
        DataFusionError::Internal(m) | DataFusionError::Substrait(m) | DataFusionError::Ffi(m) => {
            from_internal_text(m)
        }
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
    let lower = message.to_ascii_lowercase();
    if lower.contains("does not support logical expression windowfunction") {
        let text = "window functions are not allowed here: only in SELECT and ORDER BY";
        return SqlError::new(SqlState::WINDOWING_ERROR, text);
    }
    if lower.contains("does not support logical expression outerreferencecolumn") {
        return SqlError::unsupported("this use of a column from outside the subquery");
    }
    if lower.contains("does not support logical expression exists") {
        return SqlError::unsupported("a subquery in this place");
    }
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, decapitalize(&first_line(message)))
}

fn from_schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, .. } => {
            let text = error.to_string();
            let suggestion = text
                .split_once("Did you mean '")
                .and_then(|(_, rest)| rest.split_once('\''))
                .map(|(name, _)| name.to_owned());
            let e = SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column {} does not exist", field.flat_name()),
            );
            match suggestion {
                Some(name) => e.with_hint(format!("Perhaps you meant {name}.")),
                None => e,
            }
        }
        SchemaError::AmbiguousReference { field } => SqlError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("column reference {} is ambiguous", field.flat_name()),
        ),
        SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => {
            SqlError::new(SqlState::DUPLICATE_COLUMN, decapitalize(&error.to_string()))
        }
    }
}

/// Errors of planning: what the user wrote does not make sense.
fn from_plan_text(message: &str) -> SqlError {
    let message = inner_reason(message);
    let lower = message.to_ascii_lowercase();
    let has = |needle: &str| lower.contains(needle);
    let state = if has("no files found") {
        SqlState::UNDEFINED_FILE
    } else if has("non-boolean predicate")
        || has("requires a boolean expression")
        || has("logical boolean operation")
    {
        SqlState::DATATYPE_MISMATCH
    } else if has("invalid function") || has("no function matches") || has("not supported for") {
        SqlState::UNDEFINED_FUNCTION
    } else if has("limit must be >=") {
        return SqlError::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT must not be negative");
    } else if has("offset must be >=") {
        return SqlError::new(SqlState::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET must not be negative");
    } else if has("window functions are not allowed") {
        SqlState::WINDOWING_ERROR
    } else if has("correlated scalar subquery can only be used in") || has("null_aware anti join only") {
        SqlState::FEATURE_NOT_SUPPORTED
    } else if has("table") && has("not found") {
        SqlState::UNDEFINED_TABLE
    } else if has("must be in the group by")
        || has("aggregate functions are not allowed in")
        || has("aggregate function calls cannot be nested")
        || has("could not be resolved from available columns")
        || has("appear in the group by")
        || has("expressions from group by")
    {
        SqlState::GROUPING_ERROR
    } else if has("cannot coerce arithmetic")
        || has("cannot infer common argument type")
        || has("failed to coerce arguments")
        || has("no possible custom coercion")
        || has("isn't a common type to coerce")
        || has("cannot infer common string type")
        || has("cannot automatically convert")
        || has("unary operator '-' only supports")
        || has("result type for temporal operation")
    {
        SqlState::UNDEFINED_FUNCTION
    } else if has("union") && (has("types") || has("coerce")) || has("incompatible") {
        SqlState::DATATYPE_MISMATCH
    } else if has("cannot cast") || has("unsupported cast") {
        SqlState::CANNOT_COERCE
    } else if has("unsupported") || has("not supported") || has("not implemented") {
        SqlState::FEATURE_NOT_SUPPORTED
    } else if has("placeholder") {
        SqlState::UNDEFINED_PARAMETER
    } else if has("ambiguous") {
        SqlState::AMBIGUOUS_COLUMN
    } else {
        SqlState::SYNTAX_ERROR
    };
    SqlError::new(state, decapitalize(&first_line(message)))
}

/// What a failed call says beneath DataFusion's own words about the call.
fn inner_reason(message: &str) -> &str {
    let Some((_, reason)) = message.rsplit_once("coercion failed with: ") else { return message };
    let reason = reason.split(". No function matches the given name").next().unwrap_or(reason);
    reason.strip_prefix("Error during planning: ").unwrap_or(reason)
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

/// DataFusion calls some user errors internal; keep those apart from bugs.
fn from_internal_text(message: &str) -> SqlError {
    let lower = message.to_ascii_lowercase();
    if lower.contains("physical plan does not support logical expression")
        || lower.contains("unsupported")
        || lower.contains("not supported")
    {
        return not_implemented(message);
    }
    internal(first_line(message))
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
