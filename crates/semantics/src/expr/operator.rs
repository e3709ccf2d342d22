//! Operators and how they are found.
//!
//! Responsible for: what operators there are for which types. Not responsible for: the rules of choice
//! (`resolve`), computing (`evaluate`).

use std::cmp::Ordering;

use albireo_base::{SqlError, SqlState};

use super::convert::implicit_to;
use super::resolve::{Choice, NUMERIC, choose, is_text};
use super::unify::settle;
use super::{Expr, ExprKind};
use crate::types::{Scalar, Type};

/// Operators on two numbers of one type. Bits are the integers' only, `%` not the floats'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    And,
    /// `|`
    Or,
    /// `#`
    Xor,
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// Whether it holds of two values in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}

/// Operators on one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// `-` of a number or interval.
    Negate,
    /// `~` of an integer.
    BitNot,
}

/// Operators on two values, with the types they work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// On two SMALLINT.
    SmallInt(Arithmetic),
    /// On two INTEGER.
    Integer(Arithmetic),
    /// On two BIGINT.
    BigInt(Arithmetic),
    /// On two REAL.
    Real(Arithmetic),
    /// On two DOUBLE PRECISION.
    Double(Arithmetic),
    /// On two NUMERIC.
    Numeric(Arithmetic),
    /// `^` of DOUBLE PRECISION.
    DoublePower,
    /// `^` of NUMERIC.
    NumericPower,
    /// `<<` of an integer of any width by an INTEGER.
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `||` of texts.
    Concat,
    /// Arrays one behind the other.
    ArrayConcat,
    /// An element behind an array.
    ArrayAppend,
    /// An array behind an element.
    ArrayPrepend,
    /// `DATE + INTEGER`
    DatePlusDays,
    /// `DATE - INTEGER`
    DateMinusDays,
    /// `DATE - DATE`
    DateMinusDate,
    /// `DATE + TIME`
    DatePlusTime,
    /// `TIMESTAMP + INTERVAL`, with or without zone.
    MomentPlusInterval,
    /// `TIMESTAMP - INTERVAL`, with or without zone.
    MomentMinusInterval,
    /// `TIMESTAMP - TIMESTAMP`, with or without zone.
    MomentMinusMoment,
    /// `TIME + INTERVAL`
    TimePlusInterval,
    /// `TIME - INTERVAL`
    TimeMinusInterval,
    /// `TIME - TIME`
    TimeMinusTime,
    /// `INTERVAL + INTERVAL`
    IntervalPlusInterval,
    /// `INTERVAL - INTERVAL`
    IntervalMinusInterval,
    /// `INTERVAL * DOUBLE PRECISION`
    IntervalTimes,
    /// `INTERVAL / DOUBLE PRECISION`
    IntervalBy,
}

/// An operator for two types: what it takes, what it works on, what it gives.
#[derive(Clone)]
struct Candidate {
    takes: [Scalar; 2],
    works: [Scalar; 2],
    gives: Scalar,
    op: Binary,
    /// Whether the operands change places.
    swapped: bool,
}

impl Candidate {
    fn new(op: Binary, takes: [Scalar; 2], gives: Scalar) -> Self {
        Self { takes, works: takes, gives, op, swapped: false }
    }

    fn working(mut self, works: [Scalar; 2]) -> Self {
        self.works = works;
        self
    }

    fn swapped(self) -> Self {
        let turn = |[a, b]: [Scalar; 2]| [b, a];
        Self { takes: turn(self.takes), works: self.works, swapped: true, ..self }
    }
}

const INTEGERS: [Scalar; 3] = [Scalar::SmallInt, Scalar::Integer, Scalar::BigInt];
const FLOATS: [Scalar; 2] = [Scalar::Real, Scalar::Double];

/// All pairs of a family that grows, and the type each works in.
fn pairs(family: &[Scalar]) -> impl Iterator<Item = ([Scalar; 2], Scalar)> + '_ {
    family
        .iter()
        .enumerate()
        .flat_map(move |(i, a)| family.iter().enumerate().map(move |(j, b)| ([*a, *b], family[i.max(j)])))
}

fn arithmetic(symbol: &str) -> Option<Arithmetic> {
    Some(match symbol {
        "+" => Arithmetic::Add,
        "-" => Arithmetic::Subtract,
        "*" => Arithmetic::Multiply,
        "/" => Arithmetic::Divide,
        "%" => Arithmetic::Modulo,
        "&" => Arithmetic::And,
        "|" => Arithmetic::Or,
        "#" => Arithmetic::Xor,
        _ => return None,
    })
}

/// The operator of a type.
fn typed(ty: Scalar, op: Arithmetic) -> Binary {
    match ty {
        Scalar::SmallInt => Binary::SmallInt(op),
        Scalar::Integer => Binary::Integer(op),
        Scalar::BigInt => Binary::BigInt(op),
        Scalar::Real => Binary::Real(op),
        Scalar::Double => Binary::Double(op),
        _ => Binary::Numeric(op),
    }
}

fn candidates(symbol: &str) -> Vec<Candidate> {
    let mut all = Vec::new();
    if let Some(op) = arithmetic(symbol) {
        let bits = matches!(op, Arithmetic::And | Arithmetic::Or | Arithmetic::Xor);
        for (takes, works) in pairs(&INTEGERS) {
            all.push(Candidate::new(typed(works, op), takes, works).working([works; 2]));
        }
        if !bits {
            all.push(Candidate::new(Binary::Numeric(op), [NUMERIC; 2], NUMERIC));
        }
        if !bits && op != Arithmetic::Modulo {
            for (takes, works) in pairs(&FLOATS) {
                all.push(Candidate::new(typed(works, op), takes, works).working([works; 2]));
            }
        }
    }
    match symbol {
        "+" | "-" => moments(symbol == "+", &mut all),
        "*" => {
            let times = || {
                let takes = [Scalar::Interval, Scalar::Double];
                Candidate::new(Binary::IntervalTimes, takes, Scalar::Interval)
            };
            all.extend([times(), times().swapped()]);
        }
        "/" => {
            let takes = [Scalar::Interval, Scalar::Double];
            all.push(Candidate::new(Binary::IntervalBy, takes, Scalar::Interval));
        }
        "^" => {
            all.push(Candidate::new(Binary::DoublePower, [Scalar::Double; 2], Scalar::Double));
            all.push(Candidate::new(Binary::NumericPower, [NUMERIC; 2], NUMERIC));
        }
        "<<" | ">>" => {
            let op = if symbol == "<<" { Binary::ShiftLeft } else { Binary::ShiftRight };
            all.extend(INTEGERS.map(|ty| Candidate::new(op, [ty, Scalar::Integer], ty)));
        }
        "||" => all.push(Candidate::new(Binary::Concat, [Scalar::Text; 2], Scalar::Text)),
        _ => {}
    }
    all
}

/// Sums and differences of days, times and intervals.
fn moments(plus: bool, all: &mut Vec<Candidate>) {
    use Scalar::{Date, Integer, Interval, Time, Timestamp, TimestampTz};
    let pick = |sum, difference| if plus { sum } else { difference };
    let days = pick(Binary::DatePlusDays, Binary::DateMinusDays);
    let span = pick(Binary::MomentPlusInterval, Binary::MomentMinusInterval);
    let clock = pick(Binary::TimePlusInterval, Binary::TimeMinusInterval);
    let spans = pick(Binary::IntervalPlusInterval, Binary::IntervalMinusInterval);
    let mut add = |candidate: Candidate, both: bool| {
        if plus && both {
            all.push(candidate.clone().swapped());
        }
        all.push(candidate);
    };
    add(Candidate::new(days, [Date, Integer], Date), true);
    let to_moment = Candidate::new(span, [Date, Interval], Timestamp).working([Timestamp, Interval]);
    add(to_moment, true);
    add(Candidate::new(span, [Timestamp, Interval], Timestamp), true);
    add(Candidate::new(span, [TimestampTz, Interval], TimestampTz), true);
    add(Candidate::new(clock, [Time, Interval], Time), true);
    add(Candidate::new(spans, [Interval, Interval], Interval), false);
    if plus {
        add(Candidate::new(Binary::DatePlusTime, [Date, Time], Timestamp), true);
    } else {
        add(Candidate::new(Binary::DateMinusDate, [Date, Date], Integer), false);
        add(Candidate::new(Binary::MomentMinusMoment, [Timestamp, Timestamp], Interval), false);
        add(Candidate::new(Binary::MomentMinusMoment, [TimestampTz, TimestampTz], Interval), false);
        add(Candidate::new(Binary::TimeMinusTime, [Time, Time], Interval), false);
    }
}

/// No operator of this name takes these types.
pub(super) fn missing(symbol: &str, left: &Type, right: &Type) -> SqlError {
    let message = format!("operator does not exist: {left} {symbol} {right}");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

fn ambiguous(symbol: &str, left: &Type, right: &Type) -> SqlError {
    let message = format!("operator is not unique: {left} {symbol} {right}");
    SqlError::new(SqlState(*b"42725"), message)
        .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

/// The operator of this name on two values.
pub(super) fn binary(symbol: &str, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    if symbol == "||" {
        return concat(left, right);
    }
    let (Type::Scalar(a), Type::Scalar(b)) = (&left.ty, &right.ty) else {
        return Err(missing(symbol, &left.ty, &right.ty));
    };
    let all = candidates(symbol);
    let takes: Vec<&[Scalar]> = all.iter().map(|candidate| candidate.takes.as_slice()).collect();
    match choose(&takes, &[*a, *b]) {
        Choice::One(n) => apply(&all[n], left, right),
        Choice::Missing => Err(missing(symbol, &left.ty, &right.ty)),
        Choice::Ambiguous => Err(ambiguous(symbol, &left.ty, &right.ty)),
    }
}

fn apply(candidate: &Candidate, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    let (left, right) = (implicit_to(left, candidate.takes[0])?, implicit_to(right, candidate.takes[1])?);
    let (left, right) = if candidate.swapped { (right, left) } else { (left, right) };
    let (left, right) = (implicit_to(left, candidate.works[0])?, implicit_to(right, candidate.works[1])?);
    let ty = match candidate.op {
        Binary::Numeric(op) => Scalar::Numeric { scale: scale_of(op, &left.ty, &right.ty) },
        _ => candidate.gives,
    };
    Ok(Expr::scalar(ExprKind::Binary(candidate.op, Box::new((left, right))), ty))
}

/// The scale of a result, if it is the same for all values.
fn scale_of(op: Arithmetic, left: &Type, right: &Type) -> Option<u8> {
    let (Type::Scalar(Scalar::Numeric { scale: a }), Type::Scalar(Scalar::Numeric { scale: b })) =
        (left, right)
    else {
        return None;
    };
    let (a, b) = ((*a)?, (*b)?);
    match op {
        Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Modulo => Some(a.max(b)),
        Arithmetic::Multiply => Some(a.saturating_add(b)).filter(|scale| *scale <= 38),
        _ => None,
    }
}

fn concat(left: Expr, right: Expr) -> Result<Expr, SqlError> {
    match (&left.ty, &right.ty) {
        (Type::Array(a), other) | (other, Type::Array(a)) => concat_arrays(*a, other.clone(), left, right),
        (Type::Scalar(a), Type::Scalar(b)) => {
            let bytes = |ty: Scalar| ty == Scalar::Bytea || ty == Scalar::Unknown;
            if bytes(*a) && bytes(*b) && (*a == Scalar::Bytea || *b == Scalar::Bytea) {
                return super::function::call(&super::function::CONCAT_BYTES, vec![left, right]);
            }
            let text = |ty: Scalar| is_text(ty) || ty == Scalar::Unknown;
            if !text(*a) && !text(*b) {
                return Err(missing("||", &left.ty, &right.ty));
            }
            let (left, right) = (super::convert::shown(left)?, super::convert::shown(right)?);
            let kind = ExprKind::Binary(Binary::Concat, Box::new((left, right)));
            Ok(Expr::scalar(kind, Scalar::Text))
        }
        _ => Err(missing("||", &left.ty, &right.ty)),
    }
}

fn concat_arrays(element: Scalar, other: Type, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    let first = matches!(left.ty, Type::Array(_));
    let (op, wanted) = match other {
        Type::Array(other) => {
            let common = super::unify::common(&[element, other]).ok_or(());
            let Ok(common) = common else { return Err(missing("||", &left.ty, &right.ty)) };
            (Binary::ArrayConcat, common)
        }
        Type::Scalar(Scalar::Unknown) => (Binary::ArrayConcat, element),
        Type::Scalar(other) => {
            let Some(common) = super::unify::common(&[element, other]) else {
                return Err(missing("||", &left.ty, &right.ty));
            };
            (if first { Binary::ArrayAppend } else { Binary::ArrayPrepend }, common)
        }
        _ => return Err(missing("||", &left.ty, &right.ty)),
    };
    let array = Type::Array(wanted);
    let convert = |expr: Expr, is_array: bool| match is_array {
        true => super::convert::implicit_to_type(expr, &array),
        false => implicit_to(expr, wanted),
    };
    let left = convert(left, op != Binary::ArrayPrepend)?;
    let right = convert(right, op != Binary::ArrayAppend)?;
    let kind = ExprKind::Binary(op, Box::new((left, right)));
    Ok(Expr { kind, ty: array })
}

/// A sign or `~`.
pub(super) fn unary(symbol: &str, operand: Expr) -> Result<Expr, SqlError> {
    let bad = |ty: &Type| {
        let message = format!("operator does not exist: {symbol} {ty}");
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
            "No operator matches the given name and argument type. You might need to add an explicit type \
             cast.",
        )
    };
    if operand.ty == Type::Scalar(Scalar::Unknown) {
        let message = format!("operator is not unique: {symbol} unknown");
        return Err(SqlError::new(SqlState(*b"42725"), message));
    }
    let Type::Scalar(ty) = operand.ty else { return Err(bad(&operand.ty)) };
    let number = super::resolve::category(ty) == 'N';
    let op = match symbol {
        "+" if number => return Ok(operand),
        "-" if number || ty == Scalar::Interval => Unary::Negate,
        "~" if INTEGERS.contains(&ty) => Unary::BitNot,
        _ => return Err(bad(&operand.ty)),
    };
    Ok(Expr::scalar(ExprKind::Unary(op, Box::new(operand)), ty))
}

/// A pair of types that can be compared, and the type in which they are.
pub(super) fn comparison_types(a: Scalar, b: Scalar) -> Pairing {
    use Scalar::{Bool, Bpchar, Bytea, Date, Interval, Text, Time, Timestamp, TimestampTz, Uuid};
    let mut takes: Vec<([Scalar; 2], Scalar)> = Vec::new();
    takes.extend(pairs(&INTEGERS));
    takes.extend(pairs(&FLOATS));
    takes.extend(pairs(&[Date, Timestamp, TimestampTz]));
    let alone = [NUMERIC, Bool, Text, Bpchar, Bytea, Time, Interval, Uuid];
    takes.extend(alone.map(|ty| ([ty; 2], ty)));
    let lists: Vec<&[Scalar]> = takes.iter().map(|(takes, _)| takes.as_slice()).collect();
    match choose(&lists, &[a, b]) {
        Choice::One(n) => Pairing::Found(takes[n].0, takes[n].1),
        Choice::Missing => Pairing::Missing,
        Choice::Ambiguous => Pairing::Ambiguous,
    }
}

/// How two types are compared.
pub(super) enum Pairing {
    /// As these types, both converted to the last.
    Found([Scalar; 2], Scalar),
    /// Not at all.
    Missing,
    /// In several ways.
    Ambiguous,
}

/// Converts two values to a type in which they can be compared.
pub(super) fn comparable(symbol: &str, left: Expr, right: Expr) -> Result<(Expr, Expr), SqlError> {
    match (&left.ty, &right.ty) {
        (Type::Scalar(Scalar::Unknown), Type::Scalar(Scalar::Unknown)) => Ok((settle(left), settle(right))),
        (Type::Scalar(a), Type::Scalar(b)) => match comparison_types(*a, *b) {
            Pairing::Found(takes, works) => {
                let left = implicit_to(implicit_to(left, takes[0])?, works)?;
                let right = implicit_to(implicit_to(right, takes[1])?, works)?;
                Ok((left, right))
            }
            Pairing::Missing => Err(missing(symbol, &left.ty, &right.ty)),
            Pairing::Ambiguous => Err(ambiguous(symbol, &left.ty, &right.ty)),
        },
        (Type::Array(a), Type::Array(b)) if a.same(*b) => Ok((left, right)),
        (Type::Array(_), Type::Scalar(Scalar::Unknown)) => {
            let right = super::convert::implicit_to_type(right, &left.ty.clone())?;
            Ok((left, right))
        }
        (Type::Scalar(Scalar::Unknown), Type::Array(_)) => {
            let left = super::convert::implicit_to_type(left, &right.ty.clone())?;
            Ok((left, right))
        }
        (Type::Row(a), Type::Row(b)) => same_rows(&a.fields, &b.fields).map(|()| (left, right)),
        _ => Err(missing(symbol, &left.ty, &right.ty)),
    }
}

/// Records are compared only if their fields have the same types.
fn same_rows(a: &[(String, Scalar)], b: &[(String, Scalar)]) -> Result<(), SqlError> {
    let mismatch = |message: String| Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    if a.len() != b.len() {
        return mismatch("cannot compare record types with different numbers of columns".to_owned());
    }
    for (n, ((_, a), (_, b))) in a.iter().zip(b).enumerate() {
        if !a.same(*b) {
            let column = n + 1;
            return mismatch(format!(
                "cannot compare dissimilar column types {a} and {b} at record column {column}"
            ));
        }
    }
    Ok(())
}

/// A comparison of two values.
pub(crate) fn compare(op: Comparison, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    let rows = matches!((&left.ty, &right.ty), (Type::Row(_), Type::Row(_)));
    if rows && (matches!(left.kind, ExprKind::Row(_)) || matches!(right.kind, ExprKind::Row(_))) {
        return compare_rows(op, left, right);
    }
    let pair = comparable(op.symbol(), left, right)?;
    Ok(Expr::condition(ExprKind::Compare(op, Box::new(pair))))
}

/// Rows of which one is written as such: by the types of the fields.
fn compare_rows(op: Comparison, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    let pairs: Result<Vec<(Expr, Expr)>, SqlError> =
        row_pairs(left, right)?.into_iter().map(|(a, b)| comparable(op.symbol(), a, b)).collect();
    Ok(Expr::condition(ExprKind::CompareRows(op, pairs?)))
}

/// The fields of two rows, side by side.
pub(super) fn row_pairs(left: Expr, right: Expr) -> Result<Vec<(Expr, Expr)>, SqlError> {
    let (a, b) = (fields(left)?, fields(right)?);
    if a.len() != b.len() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions"));
    }
    Ok(a.into_iter().zip(b).collect())
}

/// The fields of a row, each an expression of its own. What computes the row should be cheap: it is a
/// variable, a column, or a query that a row is compared with.
fn fields(row: Expr) -> Result<Vec<Expr>, SqlError> {
    match (&row.kind, &row.ty) {
        (ExprKind::Row(_), _) => {}
        (ExprKind::Variable(_) | ExprKind::Column(_) | ExprKind::Subquery(_), Type::Row(ty)) => {
            let field = |(n, (_, ty)): (usize, &(String, Scalar))| {
                Expr::scalar(ExprKind::Field(Box::new(row.clone()), n), *ty)
            };
            return Ok(ty.fields.iter().enumerate().map(field).collect());
        }
        _ => return Err(SqlError::unsupported("this comparison of rows")),
    }
    match row.kind {
        ExprKind::Row(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}
