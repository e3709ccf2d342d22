//! The error that reaches a user: SQLSTATE, message, and where known position, detail and remedy.

use std::fmt;

/// A five-character SQLSTATE code, as in PostgreSQL's appendix A.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

states! {
    /// Division by zero.
    DIVISION_BY_ZERO = b"22012";
    /// A number does not fit its type.
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003";
    /// A string is longer than its column allows.
    STRING_DATA_RIGHT_TRUNCATION = b"22001";
    /// NULL where a value must be.
    NULL_VALUE_NOT_ALLOWED = b"22004";
    /// A date or time is malformed.
    INVALID_DATETIME_FORMAT = b"22007";
    /// A date or time does not exist or does not fit.
    DATETIME_FIELD_OVERFLOW = b"22008";
    /// An interval beyond its range.
    INTERVAL_FIELD_OVERFLOW = b"22015";
    /// The logarithm of zero or of a negative number.
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E";
    /// A root of a negative number, or a power that is no real number.
    INVALID_ARGUMENT_FOR_POWER = b"2201F";
    /// Bounds or number of buckets make no sense.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = b"2201G";
    /// A negative LIMIT.
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W";
    /// A negative OFFSET.
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X";
    /// A substring of negative length.
    SUBSTRING_ERROR = b"22011";
    /// A pattern that ends within an escape.
    INVALID_ESCAPE_SEQUENCE = b"22025";
    /// An offset from UTC that no clock has.
    INVALID_TIME_ZONE_DISPLACEMENT = b"22009";
    /// A text does not read as a value of its type.
    INVALID_TEXT_REPRESENTATION = b"22P02";
    /// A text is not valid UTF-8.
    CHARACTER_NOT_IN_REPERTOIRE = b"22021";
    /// A file for COPY is malformed.
    BAD_COPY_FILE_FORMAT = b"22P04";
    /// A parameter's value is not allowed.
    INVALID_PARAMETER_VALUE = b"22023";
    /// NULL in a NOT NULL column.
    NOT_NULL_VIOLATION = b"23502";
    /// A foreign key points nowhere.
    FOREIGN_KEY_VIOLATION = b"23503";
    /// A duplicate key.
    UNIQUE_VIOLATION = b"23505";
    /// A CHECK does not hold.
    CHECK_VIOLATION = b"23514";
    /// The statement needs another transaction state.
    INVALID_TRANSACTION_STATE = b"25000";
    /// A write in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = b"25006";
    /// An open transaction waited too long for its client.
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = b"25P03";
    /// An open transaction took too long.
    TRANSACTION_TIMEOUT = b"25P04";
    /// A serialization conflict; the client should try again.
    SERIALIZATION_FAILURE = b"40001";
    /// Transactions wait for each other.
    DEADLOCK_DETECTED = b"40P01";
    /// A lock that somebody else has.
    LOCK_NOT_AVAILABLE = b"55P03";
    /// The text is not SQL.
    SYNTAX_ERROR = b"42601";
    /// The object is not in the state that is wanted.
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000";
    /// Someone uses what is to be changed.
    OBJECT_IN_USE = b"55006";
    /// A name that cannot be used here.
    INVALID_NAME = b"42602";
    /// A name longer than 63 bytes.
    NAME_TOO_LONG = b"42622";
    /// A name kept for the system.
    RESERVED_NAME = b"42939";
    /// The object is used in a way its type does not allow.
    WRONG_OBJECT_TYPE = b"42809";
    /// Types do not match.
    DATATYPE_MISMATCH = b"42804";
    /// A type cannot be converted.
    CANNOT_COERCE = b"42846";
    /// No such table.
    UNDEFINED_TABLE = b"42P01";
    /// No such column.
    UNDEFINED_COLUMN = b"42703";
    /// No such function or operator.
    UNDEFINED_FUNCTION = b"42883";
    /// No such parameter.
    UNDEFINED_PARAMETER = b"42P02";
    /// No such object of another kind.
    UNDEFINED_OBJECT = b"42704";
    /// No such schema.
    INVALID_SCHEMA_NAME = b"3F000";
    /// A name means more than one column.
    AMBIGUOUS_COLUMN = b"42702";
    /// The table exists already.
    DUPLICATE_TABLE = b"42P07";
    /// The column exists already.
    DUPLICATE_COLUMN = b"42701";
    /// The schema exists already.
    DUPLICATE_SCHEMA = b"42P06";
    /// The object exists already.
    DUPLICATE_OBJECT = b"42710";
    /// The table's definition makes no sense.
    INVALID_TABLE_DEFINITION = b"42P16";
    /// An object others depend on.
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01";
    /// An ordinal or name refers to no usable column.
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// The same table alias twice.
    DUPLICATE_ALIAS = b"42712";
    /// A parameter whose type cannot be known.
    INDETERMINATE_DATATYPE = b"42P18";
    /// A recursive query whose two halves do not fit together.
    INVALID_RECURSION = b"42P19";
    /// A window function where there is no window.
    WINDOWING_ERROR = b"42P20";
    /// A column must appear in GROUP BY.
    GROUPING_ERROR = b"42803";
    /// We do not do that (yet).
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// Resources are spent.
    INSUFFICIENT_RESOURCES = b"53000";
    /// The disk is full.
    DISK_FULL = b"53100";
    /// Memory, or its budget, is spent.
    OUT_OF_MEMORY = b"53200";
    /// A configured limit is reached.
    CONFIGURATION_LIMIT_EXCEEDED = b"53400";
    /// A limit of the program.
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    /// The statement is nested too deeply.
    STATEMENT_TOO_COMPLEX = b"54001";
    /// The query was cancelled.
    QUERY_CANCELED = b"57014";
    /// The database is shutting down.
    ADMIN_SHUTDOWN = b"57P01";
    /// The session was ended to free its snapshot's memory.
    SNAPSHOT_TOO_OLD = b"72000";
    /// An error of the operating system.
    IO_ERROR = b"58030";
    /// A file does not exist.
    UNDEFINED_FILE = b"58P01";
    /// A procedure raised an error of its own.
    RAISE_EXCEPTION = b"P0001";
    /// A subquery gave more than one row.
    CARDINALITY_VIOLATION = b"21000";
    /// Our own bug.
    INTERNAL_ERROR = b"XX000";
    /// Files are damaged.
    DATA_CORRUPTED = b"XX001";
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or("XX000"))
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error with everything a user needs to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    inner: Box<Inner>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
}

impl SqlError {
    /// An error with a message that says what is wrong, in lower case and without a full stop.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { inner: Box::new(Inner { state, message, detail: None, hint: None, position: None }) }
    }

    /// The statement asks for something we do not do.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// Adds the facts behind the message.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.inner.detail = Some(detail.into());
        self
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// Adds where in the statement's text, in characters from 1, as PostgreSQL counts.
    #[must_use]
    pub fn with_position(mut self, position: usize) -> Self {
        self.inner.position = Some(position);
        self
    }

    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.inner.state
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The facts behind it.
    pub fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// Where in the statement's text, in characters from 1.
    pub fn position(&self) -> Option<usize> {
        self.inner.position
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}: {}", self.inner.state, self.inner.message)?;
        if let Some(position) = self.inner.position {
            write!(f, " (at character {position})")?;
        }
        if let Some(detail) = &self.inner.detail {
            write!(f, "\nDETAIL: {detail}")?;
        }
        if let Some(hint) = &self.inner.hint {
            write!(f, "\nHINT: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {}
