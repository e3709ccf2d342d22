//! `read_csv('file', delim = ';')` and the like in FROM.
//!
//! Responsible for: their names and options. Not responsible for: reading.

use std::ops::ControlFlow;

use albireo_base::{SqlError, SqlState};
use albireo_files::{CsvDialect, Encoding};
use albireo_sql::walk::WalkMut as _;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Statement, TableFactor,
    UnaryOperator, Value, VisitorMut,
};

use super::{Format, Request};

const OPTIONS: &str =
    "The options are delim, header, quote, escape, nullstr, encoding, sample_size and all_varchar.";

/// Takes the calls out of a statement: each becomes a name, which is given with its file.
pub(super) fn take_calls(statement: &mut Statement) -> Result<Vec<(String, Request)>, SqlError> {
    let mut taker = Taker { taken: Vec::new(), error: None };
    let _ = statement.walk_mut(&mut taker);
    match taker.error {
        Some(error) => Err(error),
        None => Ok(taker.taken),
    }
}

struct Taker {
    taken: Vec<(String, Request)>,
    /// What is wrong with the call at which the walk ended.
    error: Option<SqlError>,
}

impl VisitorMut for Taker {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let (Some(format), Some(written)) = (function(name), args.as_ref()) else {
            return ControlFlow::Continue(());
        };
        let request = match request(name, format, &written.args) {
            Ok(request) => request,
            Err(error) => {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        };
        // No table can have this name.
        let table = format!("{name}#{}", self.taken.len());
        alias.get_or_insert_with(|| sqlparser::ast::TableAlias {
            explicit: true,
            name: Ident::with_quote('"', name.to_string()),
            columns: Vec::new(),
            at: None,
        });
        *name = ObjectName::from(vec![Ident::with_quote('"', &table)]);
        *args = None;
        self.taken.push((table, request));
        ControlFlow::Continue(())
    }
}

/// The format that a function of this name reads.
fn function(name: &ObjectName) -> Option<Format> {
    let [part] = name.0.as_slice() else { return None };
    match part.as_ident()?.value.to_ascii_lowercase().as_str() {
        "read_csv" | "read_csv_auto" => Some(Format::Csv),
        "read_json" | "read_json_auto" | "read_ndjson" => Some(Format::Json),
        "read_parquet" => Some(Format::Parquet),
        _ => None,
    }
}

fn request(name: &ObjectName, format: Format, args: &[FunctionArg]) -> Result<Request, SqlError> {
    let invalid = |text: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
    let path = match args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) => {
            value.value.clone().into_string()
        }
        _ => None,
    };
    let path = path.ok_or_else(|| {
        invalid(format!("{name} needs the name of a file")).with_hint("Write it in single quotes.")
    })?;
    let mut request = Request::new(&path, format);
    for arg in &args[1..] {
        let (option, value) = option(arg).ok_or_else(|| {
            let text = format!("an argument of {name} is no option: {arg}");
            invalid(text).with_hint("Options are written as in delim = ';'.")
        })?;
        let known = set(&mut request, &option, value);
        let wrong = || {
            let error = invalid(format!("the option \"{option}\" of {name} cannot be {value}"));
            match option.as_str() {
                "encoding" => error.with_hint(format!("The encodings are {}.", Encoding::NAMES)),
                _ => error,
            }
        };
        if !known.ok_or_else(wrong)? {
            return Err(invalid(format!("{name} has no option \"{option}\"")).with_hint(OPTIONS));
        }
    }
    let CsvDialect { quote, .. } = request.hints.dialect;
    match request.hints.delimiter == Some(quote) {
        true => Err(invalid(format!("delimiter and quote of {name} must be different"))),
        false => Ok(request),
    }
}

/// `name = value`, `name := value` or `name => value`.
fn option(arg: &FunctionArg) -> Option<(String, &Expr)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name.value.to_ascii_lowercase(), value))
        }
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), ..
        } => Some((name.value.to_ascii_lowercase(), value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Expr::Identifier(name) => Some((name.value.to_ascii_lowercase(), right)),
            _ => None,
        },
        _ => None,
    }
}

/// Sets an option; false if there is none of that name, `None` if the value is none of its.
fn set(request: &mut Request, option: &str, value: &Expr) -> Option<bool> {
    let hints = &mut request.hints;
    let is_csv = request.format == Format::Csv;
    match option {
        "delim" | "delimiter" | "sep" if is_csv => hints.delimiter = Some(byte(value)?),
        "header" if is_csv => hints.header = Some(boolean(value)?),
        "quote" if is_csv => hints.dialect.quote = byte(value)?,
        "escape" if is_csv => hints.dialect.escape = byte(value)?,
        "nullstr" | "null" if is_csv => hints.dialect.null = text(value)?,
        "all_varchar" if is_csv => hints.all_text = boolean(value)?,
        "encoding" if request.format != Format::Parquet => {
            request.encoding = Encoding::of_name(&text(value)?)?
        }
        "sample_size" if request.format != Format::Parquet => {
            let rows = number(value)?;
            hints.sample_rows = if rows < 0 { None } else { Some(usize::try_from(rows).ok()?.max(1)) };
        }
        _ => return Some(false),
    }
    Some(true)
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    }
}

/// A character of one byte; `'\t'` is a tab.
fn byte(value: &Expr) -> Option<u8> {
    match text(value)?.as_str() {
        "\\t" => Some(b'\t'),
        one => match one.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Some(*byte),
            _ => None,
        },
    }
}

fn boolean(value: &Expr) -> Option<bool> {
    match value {
        Expr::Value(value) => match value.value {
            Value::Boolean(on) => Some(on),
            _ => None,
        },
        _ => None,
    }
}

fn number(value: &Expr) -> Option<i64> {
    match value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr)?.checked_neg(),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
