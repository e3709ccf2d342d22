//! Calls of routines as command records of the redo log, and back.
//!
//! ```text
//! command  := routine:number version:number moved:number argument*
//! argument := kind:byte value
//! ```
//!
//! A statement that changed many rows of one table is there as its text:
//!
//! ```text
//! statement := table:number rows:number text:bytes argument*
//! ```
//!
//! `moved` is how many rows the call inserted and deleted: when it is done again it must be as many, or
//! recovery stops; so are `rows`, those that the statement concerned.

use albireo_base::packed::{Input, Malformed, put_bytes, put_number, put_signed, put_wide};
use albireo_base::{Decimal, TableId, Value, ValueRef};

use super::{Argument, ArgumentRef};

/// What a command record says.
#[derive(Debug)]
pub(crate) struct CommandRecord {
    /// The routine's id.
    pub(crate) routine: u64,
    /// Which of its definitions ran.
    pub(crate) version: u64,
    /// How many rows it inserted and deleted.
    pub(crate) moved: u64,
    arguments: Vec<Given>,
}

/// An argument as it was given.
#[derive(Debug)]
enum Given {
    Value(Value),
    SmallInts(Vec<i16>),
    Integers(Vec<i32>),
    BigInts(Vec<i64>),
    Values(Vec<Value>),
}

/// The kinds of values, and of arrays behind them.
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const SMALLINT: u8 = 3;
    pub(super) const INTEGER: u8 = 4;
    pub(super) const BIGINT: u8 = 5;
    pub(super) const REAL: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const DECIMAL: u8 = 8;
    pub(super) const TEXT: u8 = 9;
    pub(super) const BYTEA: u8 = 10;
    pub(super) const DATE: u8 = 11;
    pub(super) const TIME: u8 = 12;
    pub(super) const TIMESTAMP: u8 = 13;
    pub(super) const TIMESTAMPTZ: u8 = 14;
    pub(super) const UUID: u8 = 15;
    pub(super) const SMALLINTS: u8 = 16;
    pub(super) const INTEGERS: u8 = 17;
    pub(super) const BIGINTS: u8 = 18;
    pub(super) const VALUES: u8 = 19;
}

/// Appends a command record.
pub(super) fn put_command(
    out: &mut Vec<u8>,
    (routine, version, moved): (u32, u32, u64),
    args: &[ArgumentRef<'_>],
) {
    put_number(out, u64::from(routine));
    put_number(out, u64::from(version));
    put_number(out, moved);
    args.iter().for_each(|argument| put_argument(out, *argument));
}

/// Appends the record of a statement.
pub(crate) fn put_statement(
    out: &mut Vec<u8>,
    (table, rows): (TableId, u64),
    text: &str,
    parameters: &[Value],
) {
    put_number(out, u64::from(table.0));
    put_number(out, rows);
    put_bytes(out, text.as_bytes());
    parameters.iter().for_each(|value| put_value(out, value.into()));
}

/// What the record of a statement says.
#[derive(Debug)]
pub(crate) struct StatementRecord {
    /// The table.
    pub(crate) table: TableId,
    /// How many rows it concerned.
    pub(crate) rows: u64,
    /// The statement.
    pub(crate) text: String,
    /// Its parameters.
    pub(crate) parameters: Vec<Value>,
}

impl StatementRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// The bytes are none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let table = input.number()?;
        let table = TableId(u32::try_from(table).map_err(|_| input.wrong("a table's number is too large"))?);
        let rows = input.number()?;
        let text = input.text()?.to_owned();
        let mut parameters = Vec::new();
        while !input.is_empty() {
            match given(&mut input)? {
                Given::Value(value) => parameters.push(value),
                _ => return Err(input.wrong("a parameter of a statement is an array")),
            }
        }
        Ok(Self { table, rows, text, parameters })
    }
}

fn put_argument(out: &mut Vec<u8>, argument: ArgumentRef<'_>) {
    match argument {
        ArgumentRef::Value(value) => put_value(out, value),
        ArgumentRef::SmallInts(items) => {
            put_items(out, kind::SMALLINTS, items, |out, n| put_signed(out, i64::from(*n)))
        }
        ArgumentRef::Integers(items) => {
            put_items(out, kind::INTEGERS, items, |out, n| put_signed(out, i64::from(*n)))
        }
        ArgumentRef::BigInts(items) => put_items(out, kind::BIGINTS, items, |out, n| put_signed(out, *n)),
        ArgumentRef::Values(items) => {
            put_items(out, kind::VALUES, items, |out, value| put_value(out, value.into()))
        }
    }
}

fn put_items<T>(out: &mut Vec<u8>, kind: u8, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    out.push(kind);
    put_number(out, items.len() as u64);
    items.iter().for_each(|item| put(out, item));
}

fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let mut signed = |kind: u8, number: i64| {
        out.push(kind);
        put_signed(out, number);
    };
    match value {
        ValueRef::Null | ValueRef::Other(Value::Null) => out.push(kind::NULL),
        ValueRef::Bool(b) => out.push(if b { kind::TRUE } else { kind::FALSE }),
        ValueRef::SmallInt(n) => signed(kind::SMALLINT, i64::from(n)),
        ValueRef::Integer(n) => signed(kind::INTEGER, i64::from(n)),
        ValueRef::BigInt(n) => signed(kind::BIGINT, n),
        ValueRef::Date(n) => signed(kind::DATE, i64::from(n)),
        ValueRef::Time(n) => signed(kind::TIME, n),
        ValueRef::Timestamp(n) => signed(kind::TIMESTAMP, n),
        ValueRef::TimestampTz(n) => signed(kind::TIMESTAMPTZ, n),
        ValueRef::Double(n) => {
            out.push(kind::DOUBLE);
            out.extend_from_slice(&n.to_le_bytes());
        }
        ValueRef::Decimal(Decimal { unscaled, scale }) => {
            out.extend_from_slice(&[kind::DECIMAL, scale]);
            put_wide(out, unscaled);
        }
        ValueRef::Text(text) => {
            out.push(kind::TEXT);
            put_bytes(out, text.as_bytes());
        }
        ValueRef::Other(Value::Real(n)) => {
            out.push(kind::REAL);
            out.extend_from_slice(&n.to_le_bytes());
        }
        ValueRef::Other(Value::Bytea(bytes)) => {
            out.push(kind::BYTEA);
            put_bytes(out, bytes);
        }
        ValueRef::Other(Value::Uuid(bytes)) => {
            out.push(kind::UUID);
            out.extend_from_slice(bytes);
        }
        // Has a variant of its own.
        ValueRef::Other(value) => put_value(out, value.into()),
    }
}

impl CommandRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// The bytes are none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let (routine, version, moved) = (input.number()?, input.number()?, input.number()?);
        let mut arguments = Vec::new();
        while !input.is_empty() {
            arguments.push(given(&mut input)?);
        }
        Ok(Self { routine, version, moved, arguments })
    }

    /// The arguments as a call takes them.
    pub(crate) fn arguments(&self) -> Vec<ArgumentRef<'_>> {
        let borrowed = self.arguments.iter().map(|given| match given {
            Given::Value(value) => ArgumentRef::Value(value.into()),
            Given::SmallInts(items) => ArgumentRef::SmallInts(items),
            Given::Integers(items) => ArgumentRef::Integers(items),
            Given::BigInts(items) => ArgumentRef::BigInts(items),
            Given::Values(items) => ArgumentRef::Values(items),
        });
        borrowed.collect()
    }

    /// The arguments by themselves.
    pub(crate) fn into_arguments(self) -> Vec<Argument> {
        let array = |items: Vec<Value>| Argument::Array(items);
        let owned = self.arguments.into_iter().map(|given| match given {
            Given::Value(value) => Argument::Value(value),
            Given::SmallInts(items) => array(items.into_iter().map(Value::from).collect()),
            Given::Integers(items) => array(items.into_iter().map(Value::from).collect()),
            Given::BigInts(items) => array(items.into_iter().map(Value::from).collect()),
            Given::Values(items) => array(items),
        });
        owned.collect()
    }
}

fn given(input: &mut Input<'_>) -> Result<Given, Malformed> {
    Ok(match input.byte()? {
        kind::SMALLINTS => Given::SmallInts(items(input, Input::narrow)?),
        kind::INTEGERS => Given::Integers(items(input, Input::narrow)?),
        kind::BIGINTS => Given::BigInts(items(input, Input::signed)?),
        kind::VALUES => Given::Values(items(input, |input| {
            let kind = input.byte()?;
            value(input, kind)
        })?),
        kind => Given::Value(value(input, kind)?),
    })
}

fn items<'a, T>(
    input: &mut Input<'a>,
    read: impl Fn(&mut Input<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = input.number()?;
    // Each has a byte at least, so that no wrong number takes all memory.
    if count > input.rest().len() as u64 {
        return Err(input.wrong("an array is longer than the record"));
    }
    (0..count).map(|_| read(input)).collect()
}

fn value(input: &mut Input<'_>, kind: u8) -> Result<Value, Malformed> {
    Ok(match kind {
        kind::NULL => Value::Null,
        kind::FALSE => Value::Bool(false),
        kind::TRUE => Value::Bool(true),
        kind::SMALLINT => Value::SmallInt(input.narrow()?),
        kind::INTEGER => Value::Integer(input.narrow()?),
        kind::BIGINT => Value::BigInt(input.signed()?),
        kind::REAL => Value::Real(f32::from_le_bytes(input.fixed()?)),
        kind::DOUBLE => Value::Double(f64::from_le_bytes(input.fixed()?)),
        kind::DECIMAL => {
            let scale = input.byte()?;
            if scale > 38 {
                return Err(input.wrong("a decimal has more than 38 digits after its point"));
            }
            Value::Decimal(Decimal { unscaled: input.signed_wide()?, scale })
        }
        kind::TEXT => Value::Text(input.text()?.to_owned()),
        kind::BYTEA => Value::Bytea(input.string()?.to_vec()),
        kind::DATE => Value::Date(input.narrow()?),
        kind::TIME => Value::Time(input.signed()?),
        kind::TIMESTAMP => Value::Timestamp(input.signed()?),
        kind::TIMESTAMPTZ => Value::TimestampTz(input.signed()?),
        kind::UUID => Value::Uuid(input.fixed()?),
        _ => return Err(input.wrong("an argument is of no known kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_as_they_were_given() {
        let decimal = Decimal { unscaled: -123_456, scale: 2 };
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Real(1.5),
            Value::Double(-0.0),
            Value::Decimal(Decimal { unscaled: i128::MIN + 1, scale: 38 }),
            Value::Text("äö".to_owned()),
            Value::Bytea(vec![0, 255]),
            Value::Date(-5),
            Value::Time(86_400_000_000),
            Value::Timestamp(i64::MIN),
            Value::TimestampTz(i64::MAX),
            Value::Uuid([7; 16]),
        ];
        let given: Vec<ArgumentRef<'_>> = vec![
            ArgumentRef::from(-3_i16),
            ArgumentRef::from(1_i32 << 30),
            ArgumentRef::from(i64::MIN),
            ArgumentRef::from(decimal),
            ArgumentRef::from("name"),
            ArgumentRef::from(None::<i32>),
            ArgumentRef::SmallInts(&[1, -1]),
            ArgumentRef::Integers(&[]),
            ArgumentRef::BigInts(&[i64::MAX]),
            ArgumentRef::Values(&values),
        ];
        let mut bytes = Vec::new();
        put_command(&mut bytes, (7, 2, 11), &given);
        let record = CommandRecord::read(&bytes).unwrap();
        assert_eq!((record.routine, record.version, record.moved), (7, 2, 11));
        assert_eq!(format!("{:?}", record.arguments()), format!("{given:?}"));
        for length in 0..bytes.len() {
            let _ = CommandRecord::read(&bytes[..length]);
        }
        assert_eq!(record.into_arguments()[6], Argument::Array(vec![1_i16.into(), (-1_i16).into()]));
    }

    #[test]
    fn array_that_is_longer_than_its_record_is_refused() {
        let error = CommandRecord::read(&[1, 1, 0, kind::INTEGERS, 0xff, 0xff, 0xff, 0x7f]).unwrap_err();
        assert_eq!(error.what, "an array is longer than the record");
    }
}
