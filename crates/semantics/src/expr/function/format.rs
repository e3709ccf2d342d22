//! Functions of any number of values of any type: `concat`, `concat_ws`, `format`, `pg_typeof`.

use albireo_base::{SqlError, SqlState, Value, budget};

use super::text::{quote_ident, quote_literal};
use super::{General, Result, integer, invalid, missing, text};
use crate::datum::Datum;
use crate::expr::bind::constant;
use crate::expr::convert::implicit_to;
use crate::expr::text::text_of;
use crate::expr::unify::settle;
use crate::expr::{Expr, ExprKind};
use crate::types::Scalar;

/// Their names.
pub(super) const NAMES: [&str; 8] = [
    "concat",
    "concat_ws",
    "format",
    "quote_literal",
    "quote_nullable",
    "num_nulls",
    "num_nonnulls",
    "pg_typeof",
];

/// The call, if it is one of these.
pub(super) fn bind(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    let settled = || args.iter().cloned().map(settle).collect::<Vec<Expr>>();
    let with_text = || -> Result<Vec<Expr>> {
        let Some(first) = args.first() else { return Err(missing(name, args)) };
        let first = implicit_to(first.clone(), Scalar::Text).map_err(|_| missing(name, args))?;
        Ok(std::iter::once(first).chain(args[1..].iter().cloned().map(settle)).collect())
    };
    let (function, args, ty) = match name {
        "concat" if !args.is_empty() => (General { name: "concat", run: concat }, settled(), Scalar::Text),
        "concat_ws" if args.len() > 1 => {
            (General { name: "concat_ws", run: concat_ws }, with_text()?, Scalar::Text)
        }
        "format" => (General { name: "format", run: format }, with_text()?, Scalar::Text),
        "quote_nullable" if args.len() == 1 => {
            let general = General { name: "quote_nullable", run: quote_nullable };
            (general, vec![shown_as_text(&args[0])?], Scalar::Text)
        }
        "quote_literal" if args.len() == 1 => {
            let run = |args: &[Datum]| match args.first().and_then(text_of) {
                Some(shown) => text(quote_literal(&shown)),
                None => Ok(Datum::NULL),
            };
            (General { name: "quote_literal", run }, vec![shown_as_text(&args[0])?], Scalar::Text)
        }
        "num_nulls" if !args.is_empty() => {
            let run = |args: &[Datum]| integer(args.iter().filter(|arg| arg.is_null()).count());
            (General { name: "num_nulls", run }, settled(), Scalar::Integer)
        }
        "num_nonnulls" if !args.is_empty() => {
            let run = |args: &[Datum]| integer(args.iter().filter(|arg| !arg.is_null()).count());
            (General { name: "num_nonnulls", run }, settled(), Scalar::Integer)
        }
        "pg_typeof" if args.len() == 1 => {
            let ty = args[0].ty.to_string();
            return Ok(Some(constant(Value::Text(ty), Scalar::Text)));
        }
        _ => return Ok(None),
    };
    Ok(Some(Expr::scalar(ExprKind::General(function, args), ty)))
}

fn shown_as_text(arg: &Expr) -> Result<Expr> {
    crate::expr::convert::shown(settle(arg.clone()))
}

fn concat(args: &[Datum]) -> Result<Datum> {
    joined(&args.iter().filter_map(text_of).collect::<Vec<String>>(), "")
}

/// Several texts as one.
pub(super) fn joined(parts: &[String], separator: &str) -> Result<Datum> {
    let separators = separator.len().saturating_mul(parts.len().saturating_sub(1));
    budget::value(parts.iter().fold(separators, |sum, part| sum.saturating_add(part.len())))?;
    text(parts.join(separator))
}

fn concat_ws(args: &[Datum]) -> Result<Datum> {
    match args.split_first() {
        Some((Datum::Value(Value::Text(separator)), rest)) => {
            joined(&rest.iter().filter_map(text_of).collect::<Vec<String>>(), separator)
        }
        _ => Ok(Datum::NULL),
    }
}

fn quote_nullable(args: &[Datum]) -> Result<Datum> {
    match args.first().and_then(text_of) {
        Some(shown) => text(quote_literal(&shown)),
        None => text("NULL"),
    }
}

/// A `%` of a format: which argument, how wide, left-aligned, as what.
#[derive(Default)]
struct Spec {
    argument: Option<usize>,
    left: bool,
    width: usize,
    width_from: Option<WidthFrom>,
}

/// The argument that says how wide a `%` is.
#[derive(Clone, Copy)]
enum WidthFrom {
    Next,
    Argument(usize),
}

fn format(args: &[Datum]) -> Result<Datum> {
    let Some((Datum::Value(Value::Text(pattern)), values)) = args.split_first() else {
        return Ok(Datum::NULL);
    };
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut spec = spec(&mut chars)?;
        if let Some(from) = spec.width_from {
            let at = match from {
                WidthFrom::Next => next,
                WidthFrom::Argument(n) => n - 1,
            };
            next = at + 1;
            spec.set_width(values.get(at).ok_or_else(|| invalid("too few arguments for format()"))?)?;
        }
        let kind = chars.next().ok_or_else(unfinished)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(invalid(format!("unrecognized format() type specifier \"{kind}\""))
                .with_hint("For a single \"%\" use \"%%\"."));
        }
        let at = spec.argument.map_or(next, |n| n - 1);
        next = at + 1;
        let value = values.get(at).ok_or_else(|| invalid("too few arguments for format()"))?;
        let shown = shown(value, kind)?;
        budget::value(out.len().saturating_add(shown.len().max(spec.width)))?;
        pad(&mut out, &shown, &spec);
    }
    text(out)
}

fn unfinished() -> SqlError {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

fn argument_zero() -> SqlError {
    invalid("format specifies argument 0, but arguments are numbered from 1")
}

impl Spec {
    /// Takes the width from an argument; a negative one aligns left, NULL is none.
    fn set_width(&mut self, width: &Datum) -> Result<()> {
        let text = text_of(width).unwrap_or_else(|| "0".to_owned());
        let number: i32 = match text.trim().parse() {
            Ok(number) => number,
            Err(_) => {
                let message = format!("invalid input syntax for type integer: \"{text}\"");
                return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
        };
        self.left |= number < 0;
        self.width = number.unsigned_abs() as usize;
        if self.width > 1 << 20 { Err(invalid("number is out of range")) } else { Ok(()) }
    }
}

fn spec(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Spec> {
    let mut spec = Spec::default();
    let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut n: Option<usize> = None;
        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
            chars.next();
            n = Some(n.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
        }
        n
    };
    let mut width = number(chars);
    if width.is_some() && chars.next_if_eq(&'$').is_some() {
        if width == Some(0) {
            return Err(argument_zero());
        }
        spec.argument = width.take();
    }
    if width.is_none() {
        while chars.next_if_eq(&'-').is_some() {
            spec.left = true;
        }
        if chars.next_if_eq(&'*').is_some() {
            spec.width_from = Some(match number(chars) {
                None => WidthFrom::Next,
                Some(0) => return Err(argument_zero()),
                Some(n) if chars.next_if_eq(&'$').is_some() => WidthFrom::Argument(n),
                Some(_) => {
                    return Err(invalid("width argument position must be ended by \"$\""));
                }
            });
            return Ok(spec);
        }
        width = number(chars);
    }
    spec.width = width.unwrap_or(0);
    if spec.width > 1 << 20 {
        return Err(invalid("number is out of range"));
    }
    Ok(spec)
}

fn shown(value: &Datum, kind: char) -> Result<String> {
    match (kind, text_of(value)) {
        ('s', shown) => Ok(shown.unwrap_or_default()),
        ('I', None) => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "null values cannot be formatted as an SQL identifier",
        )),
        ('I', Some(shown)) => Ok(quote_ident(&shown)),
        (_, None) => Ok("NULL".to_owned()),
        (_, Some(shown)) => Ok(quote_literal(&shown)),
    }
}

fn pad(out: &mut String, shown: &str, spec: &Spec) {
    let blanks = spec.width.saturating_sub(shown.chars().count());
    if spec.left {
        out.push_str(shown);
    }
    out.extend(std::iter::repeat_n(' ', blanks));
    if !spec.left {
        out.push_str(shown);
    }
}
