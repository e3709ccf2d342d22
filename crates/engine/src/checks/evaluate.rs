//! The typed tree of a condition and its value for a row.

use std::cmp::Ordering;
use std::fmt;

use albireo_base::text::{lower, upper};
use albireo_base::{ColumnId, Decimal, SqlError, SqlState, SqlType, Value};

/// An expression over a row.
pub(super) enum Node {
    Column(ColumnId),
    Constant(Value),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    IsNull {
        operand: Box<Node>,
        negated: bool,
    },
    /// IS TRUE, IS FALSE, IS UNKNOWN.
    Is {
        operand: Box<Node>,
        wanted: Option<bool>,
        negated: bool,
    },
    Like {
        operand: Box<Node>,
        pattern: Box<Node>,
    },
    /// The type is that of the result.
    Arithmetic(Arithmetic, Box<Node>, Box<Node>, SqlType),
    Negate(Box<Node>, SqlType),
    Absolute(Box<Node>, SqlType),
    Text(TextFunction, Box<Node>),
}

#[derive(Clone, Copy)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy)]
pub(super) enum TextFunction {
    Length,
    Upper,
    Lower,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Node {
    /// The value for the row that `read` gives the columns of.
    pub(super) fn evaluate(&self, read: &dyn Fn(ColumnId) -> Value) -> Result<Value, SqlError> {
        let truth = |node: &Node| node.evaluate(read).map(|value| as_truth(&value));
        Ok(match self {
            Self::Column(column) => read(*column),
            Self::Constant(value) => value.clone(),
            Self::Not(operand) => truth(operand)?.map(|b| !b).into(),
            Self::And(a, b) => match truth(a)? {
                Some(false) => Value::Bool(false),
                a => match (a, truth(b)?) {
                    (_, Some(false)) => Value::Bool(false),
                    (Some(true), Some(true)) => Value::Bool(true),
                    _ => Value::Null,
                },
            },
            Self::Or(a, b) => match truth(a)? {
                Some(true) => Value::Bool(true),
                a => match (a, truth(b)?) {
                    (_, Some(true)) => Value::Bool(true),
                    (Some(false), Some(false)) => Value::Bool(false),
                    _ => Value::Null,
                },
            },
            Self::Compare(how, a, b) => {
                compare(&a.evaluate(read)?, &b.evaluate(read)?).map(|order| how.holds(order)).into()
            }
            Self::IsNull { operand, negated } => Value::Bool(operand.evaluate(read)?.is_null() != *negated),
            Self::Is { operand, wanted, negated } => Value::Bool((truth(operand)? == *wanted) != *negated),
            Self::Like { operand, pattern } => match (operand.evaluate(read)?, pattern.evaluate(read)?) {
                (Value::Text(text), Value::Text(pattern)) => Value::Bool(like(&text, &pattern)?),
                _ => Value::Null,
            },
            Self::Arithmetic(how, a, b, ty) => arithmetic(*how, &a.evaluate(read)?, &b.evaluate(read)?, *ty)?,
            Self::Negate(operand, ty) => {
                arithmetic(Arithmetic::Subtract, &Value::SmallInt(0), &operand.evaluate(read)?, *ty)?
            }
            Self::Absolute(operand, ty) => {
                let value = operand.evaluate(read)?;
                match compare(&value, &Value::SmallInt(0)) {
                    Some(Ordering::Less) => {
                        arithmetic(Arithmetic::Subtract, &Value::SmallInt(0), &value, *ty)?
                    }
                    _ => value,
                }
            }
            Self::Text(function, operand) => match (function, operand.evaluate(read)?) {
                (TextFunction::Length, Value::Text(text)) => {
                    Value::Integer(i32::try_from(text.chars().count()).unwrap_or(i32::MAX))
                }
                (TextFunction::Upper, Value::Text(text)) => Value::Text(upper(&text)),
                (TextFunction::Lower, Value::Text(text)) => Value::Text(lower(&text)),
                _ => Value::Null,
            },
        })
    }
}

fn as_truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        _ => None,
    }
}

/// A number in the widest form of its kind.
enum Number {
    Exact(Decimal),
    Float(f64),
}

fn number(value: &Value) -> Option<Number> {
    let whole = |n: i64| Number::Exact(Decimal::new(i128::from(n), 0));
    Some(match value {
        Value::SmallInt(n) => whole(i64::from(*n)),
        Value::Integer(n) => whole(i64::from(*n)),
        Value::BigInt(n) => whole(*n),
        Value::Decimal(n) => Number::Exact(*n),
        Value::Real(n) => Number::Float(f64::from(*n)),
        Value::Double(n) => Number::Float(*n),
        _ => return None,
    })
}

impl Number {
    fn to_f64(&self) -> f64 {
        match self {
            Self::Exact(n) => n.to_f64(),
            Self::Float(n) => *n,
        }
    }
}

/// The order of two values of comparable types; `None` if one is NULL.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        return Some(match (&x, &y) {
            (Number::Exact(x), Number::Exact(y)) => x.cmp(y),
            _ => Value::Double(x.to_f64()).cmp(&Value::Double(y.to_f64())),
        });
    }
    if std::mem::discriminant(a) == std::mem::discriminant(b) {
        return Some(a.cmp(b));
    }
    // Dates and timestamps meet as timestamps; a date beyond their range is beyond every one.
    let moment = |value: &Value| match value {
        Value::Date(days) => Some(i128::from(*days) * i128::from(albireo_base::value::MICROS_PER_DAY)),
        Value::Timestamp(us) | Value::TimestampTz(us) => Some(i128::from(*us)),
        _ => None,
    };
    Some(moment(a)?.cmp(&moment(b)?))
}

fn arithmetic(how: Arithmetic, a: &Value, b: &Value, ty: SqlType) -> Result<Value, SqlError> {
    let (Some(x), Some(y)) = (number(a), number(b)) else { return Ok(Value::Null) };
    match (ty, &x, &y) {
        (SqlType::Real | SqlType::Double, ..) => float(how, x.to_f64(), y.to_f64(), ty),
        (_, Number::Exact(x), Number::Exact(y)) if ty.is_integer() => {
            Value::Decimal(integer(how, x.unscaled, y.unscaled)?).coerce(ty)
        }
        (_, Number::Exact(x), Number::Exact(y)) => {
            let result = match how {
                Arithmetic::Add => x.checked_add(*y),
                Arithmetic::Subtract => x.checked_sub(*y),
                Arithmetic::Multiply => x.checked_mul(*y),
                Arithmetic::Divide | Arithmetic::Modulo => None,
            };
            result.map(Value::Decimal).ok_or_else(out_of_range)
        }
        _ => Err(out_of_range()),
    }
}

fn integer(how: Arithmetic, x: i128, y: i128) -> Result<Decimal, SqlError> {
    let result = match how {
        Arithmetic::Add => x.checked_add(y),
        Arithmetic::Subtract => x.checked_sub(y),
        Arithmetic::Multiply => x.checked_mul(y),
        Arithmetic::Divide | Arithmetic::Modulo if y == 0 => {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        Arithmetic::Divide => x.checked_div(y),
        Arithmetic::Modulo => x.checked_rem(y),
    };
    result.map(|n| Decimal::new(n, 0)).ok_or_else(out_of_range)
}

fn float(how: Arithmetic, x: f64, y: f64, ty: SqlType) -> Result<Value, SqlError> {
    let result = match how {
        Arithmetic::Add => x + y,
        Arithmetic::Subtract => x - y,
        Arithmetic::Multiply => x * y,
        Arithmetic::Divide if y == 0.0 => {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        Arithmetic::Divide => x / y,
        Arithmetic::Modulo => return Err(out_of_range()),
    };
    if result.is_infinite() && x.is_finite() && y.is_finite() {
        return Err(out_of_range());
    }
    Value::Double(result).coerce(ty)
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
}

/// SQL's LIKE with the backslash as escape: `%` is any text, `_` any character.
fn like(text: &str, pattern: &str) -> Result<bool, SqlError> {
    let mut tokens = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '%' => Token::Any,
            '_' => Token::One,
            '\\' => Token::Char(chars.next().ok_or_else(|| {
                let text = "LIKE pattern must not end with escape character";
                SqlError::new(SqlState(*b"22025"), text)
            })?),
            c => Token::Char(c),
        });
    }
    let text: Vec<char> = text.chars().collect();
    Ok(matches(&text, &tokens))
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Any,
    One,
    Char(char),
}

/// Greedy matching with one point to go back to, so in time proportional to the product.
fn matches(text: &[char], tokens: &[Token]) -> bool {
    let (mut at, mut token) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        match tokens.get(token) {
            Some(Token::Any) => {
                back = Some((at, token));
                token += 1;
            }
            Some(Token::One) => (at, token) = (at + 1, token + 1),
            Some(Token::Char(c)) if *c == text[at] => (at, token) = (at + 1, token + 1),
            _ => match back {
                Some((start, any)) => {
                    back = Some((start + 1, any));
                    (at, token) = (start + 1, any + 1);
                }
                None => return false,
            },
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Any)
}
