//! `WITH (name = value, ...)` of tables, and `ALTER TABLE ... SET (...)`.
//!
//! Responsible for: which parameters there are, each at most once, and when rows are frozen. Not responsible for: what
//! `layout` and `groups` mean (`layout`).

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{AlterTable, AlterTableOperation, CreateTableOptions, Expr, Ident, SqlOption, Value};

use super::DdlPlan;
use crate::catalog::{Catalog, DdlChange, Freeze};
use crate::names;
use crate::source::Source;

const NAMES: [&str; 3] = ["layout", "groups", "freeze"];

/// What was said of each parameter, and where.
#[derive(Default)]
pub(super) struct Options<'a> {
    pub(super) layout: Option<(String, &'a Ident)>,
    pub(super) groups: Option<(String, &'a Ident)>,
    freeze: Option<(String, &'a Ident)>,
}

/// Reads WITH.
pub(super) fn read<'a>(options: &'a CreateTableOptions, source: Source<'_>) -> Result<Options<'a>, SqlError> {
    match options {
        CreateTableOptions::None => Ok(Options::default()),
        CreateTableOptions::With(options) => Options::of(options, source),
        _ => Err(SqlError::unsupported("this kind of table option")),
    }
}

impl<'a> Options<'a> {
    fn of(list: &'a [SqlOption], source: Source<'_>) -> Result<Self, SqlError> {
        let mut all = Self::default();
        for option in list {
            let SqlOption::KeyValue { key, value } = option else {
                return Err(SqlError::unsupported("this kind of table option"));
            };
            let place = match names::fold(key).as_str() {
                "layout" => &mut all.layout,
                "groups" => &mut all.groups,
                "freeze" => &mut all.freeze,
                other => return Err(source.locate(unknown(other), key.span)),
            };
            let wants_text = || source.locate(invalid(format!("option \"{key}\" wants a string")), key.span);
            let text = text_of(value).ok_or_else(wants_text)?;
            if place.replace((text, key)).is_some() {
                let message = format!("parameter \"{key}\" specified more than once");
                return Err(source.locate(invalid(message), key.span));
            }
        }
        Ok(all)
    }

    /// When rows are frozen.
    pub(super) fn freeze(&self, source: Source<'_>) -> Result<Freeze, SqlError> {
        let Some((text, key)) = &self.freeze else { return Ok(Freeze::default()) };
        Freeze::parse(text).ok_or_else(|| {
            let error = invalid(format!("invalid value for parameter \"freeze\": \"{text}\"")).with_hint(
                "Available values: auto, off, or how long nobody has written a row, such as '10 min', in us, ms, s, \
                 min, h or d.",
            );
            source.locate(error, key.span)
        })
    }
}

/// `ALTER TABLE [IF EXISTS] name SET (freeze = ...)`.
pub(super) fn plan_alter(
    catalog: &Catalog,
    alter: &AlterTable,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    const TAG: &str = "ALTER TABLE";
    let name = names::qualified(&alter.name, source)?;
    let table = match catalog.resolve_table(&name, source) {
        Err(error) if alter.if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
            let notice = format!("relation \"{}\" does not exist, skipping", name.name);
            return Ok(DdlPlan::nothing(TAG, notice));
        }
        found => found?.id,
    };
    let mut plan = DdlPlan { changes: Vec::new(), notices: Vec::new(), tag: TAG };
    for operation in &alter.operations {
        let AlterTableOperation::SetOptionsParens { options } = operation else {
            return Err(SqlError::unsupported(TAG));
        };
        let options = Options::of(options, source)?;
        if let Some((_, key)) = options.layout.as_ref().or(options.groups.as_ref()) {
            let error = SqlError::unsupported(format!("changing the parameter \"{key}\" of a table"))
                .with_hint("Make a table with it, and copy the rows by INSERT ... SELECT.");
            return Err(source.locate(error, key.span));
        }
        plan.changes.push(DdlChange::SetFreeze { table, freeze: options.freeze(source)? });
    }
    Ok(plan)
}

pub(super) fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn unknown(name: &str) -> SqlError {
    let error = invalid(format!("unrecognized parameter \"{name}\""));
    match names::closest(name, NAMES) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error.with_hint("Tables have the options layout, groups and freeze."),
    }
}

/// A string, or a bare word.
pub(super) fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            Value::Boolean(is_on) => Some(is_on.to_string()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(names::fold(ident)),
        _ => None,
    }
}
