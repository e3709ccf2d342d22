//! Functions of any number of values of any type: `concat`, `concat_ws`, `format`, `pg_typeof`.

use albireo_base::{SqlError, SqlState, Value};

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
            (General { name: "quote_nullable", run: quote_nullable }, settled(), Scalar::Text)
        }
        "quote_literal" if args.len() == 1 => {
            let run = |args: &[Datum]| match args.first().and_then(text_of) {
                Some(shown) => text(quote_literal(&shown)),
                None => Ok(Datum::NULL),
            };
            (General { name: "quote_literal", run }, settled(), Scalar::Text)
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

fn concat(args: &[Datum]) -> Result<Datum> {
    text(args.iter().filter_map(text_of).collect::<String>())
}

fn concat_ws(args: &[Datum]) -> Result<Datum> {
    match args.split_first() {
        Some((Datum::Value(Value::Text(separator)), rest)) => {
            let parts: Vec<String> = rest.iter().filter_map(text_of).collect();
            text(parts.join(separator))
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
        let spec = spec(&mut chars)?;
        let kind = chars.next().ok_or_else(unfinished)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(invalid(format!("unrecognized format() type specifier \"{kind}\""))
                .with_hint("For a single \"%\" use \"%%\"."));
        }
        let at = spec.argument.map_or(next, |n| n - 1);
        next = at + 1;
        let value = values.get(at).ok_or_else(|| invalid("too few arguments for format()"))?;
        pad(&mut out, &shown(value, kind)?, &spec);
    }
    text(out)
}

fn unfinished() -> SqlError {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
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
            return Err(invalid("format specifies argument 0, but arguments are numbered from 1"));
        }
        spec.argument = width.take();
    }
    if width.is_none() {
        while chars.next_if_eq(&'-').is_some() {
            spec.left = true;
        }
        if chars.peek() == Some(&'*') {
            return Err(SqlError::unsupported("a width from an argument in format()"));
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
