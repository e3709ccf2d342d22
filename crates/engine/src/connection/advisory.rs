//! The functions that take and release advisory locks, where they stand alone in a select list: `SELECT
//! pg_advisory_lock(1)`.
//!
//! Responsible for: finding them in a statement, their arguments and results, waiting. Not responsible for: who has which
//! lock (`crate::locks`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_olap::CancelToken;
use albireo_partition::{Held, LockMode};
use albireo_sql::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};
use albireo_sql::ast::{GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, Statement};
use albireo_sql::names;

use super::Connection;
use super::block::Block;
use crate::interactive::Activity;
use crate::locks::{Key, Lasting};
use crate::{Outcome, QueryResult};

/// What one of the functions does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    /// Takes a lock; `tries`: or says that it cannot.
    Lock { mode: LockMode, transaction: bool, tries: bool },
    /// Releases a lock of the session.
    Unlock(LockMode),
    /// Releases all.
    UnlockAll,
}

/// A call of one of the functions.
pub(super) struct Call {
    deed: Deed,
    /// The name of its column.
    column: String,
    arguments: Vec<Expr>,
}

impl Deed {
    fn named(name: &str) -> Option<Self> {
        let (name, mode) = match name.strip_suffix("_shared") {
            Some(name) => (name, LockMode::Share),
            None => (name, LockMode::Update),
        };
        let lock = |transaction, tries| Some(Self::Lock { mode, transaction, tries });
        match name {
            "pg_advisory_lock" => lock(false, false),
            "pg_advisory_xact_lock" => lock(true, false),
            "pg_try_advisory_lock" => lock(false, true),
            "pg_try_advisory_xact_lock" => lock(true, true),
            "pg_advisory_unlock" => Some(Self::Unlock(mode)),
            "pg_advisory_unlock_all" if mode == LockMode::Update => Some(Self::UnlockAll),
            _ => None,
        }
    }

    /// Whether its result is `void`.
    fn is_void(self) -> bool {
        matches!(self, Self::Lock { tries: false, .. } | Self::UnlockAll)
    }
}

/// The calls of a query that is nothing but such calls: `SELECT pg_advisory_lock(1)`.
pub(super) fn calls(statement: &Statement) -> Option<Vec<Call>> {
    let Statement::Query(query) = statement else { return None };
    let Query { with: None, body, order_by: None, limit_clause: None, fetch: None, locks, .. } =
        query.as_ref()
    else {
        return None;
    };
    let SetExpr::Select(select) = body.as_ref() else { return None };
    let Select { distinct: None, projection, from, selection: None, group_by, having: None, .. } =
        select.as_ref()
    else {
        return None;
    };
    let plain = matches!(group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !plain || !from.is_empty() || !locks.is_empty() {
        return None;
    }
    projection.iter().map(call).collect()
}

fn call(item: &SelectItem) -> Option<Call> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
        _ => return None,
    };
    let Expr::Function(Function { name, args, over: None, filter: None, .. }) = expr else { return None };
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    let function = match parts.as_slice() {
        [name] => names::fold(name),
        [schema, name] if names::fold(schema) == "pg_catalog" => names::fold(name),
        _ => return None,
    };
    let deed = Deed::named(&function)?;
    let arguments = match args {
        FunctionArguments::None => Vec::new(),
        FunctionArguments::List(list) => {
            let plain = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            };
            list.args.iter().map(plain).collect::<Option<_>>()?
        }
        FunctionArguments::Subquery(_) => return None,
    };
    let counts = if deed == Deed::UnlockAll { 0..=0 } else { 1..=2 };
    // With others it is no function of this name.
    let known = counts.contains(&arguments.len());
    known.then(|| Call { deed, column: alias.map_or(function, names::fold), arguments })
}

/// The key that arguments say; `None` with a NULL among them.
///
/// # Errors
/// 22003 for two numbers that are not of four bytes each.
fn key(arguments: &[Value]) -> Result<Option<Key>, SqlError> {
    let mut numbers = Vec::with_capacity(2);
    for argument in arguments {
        match argument {
            Value::Null => return Ok(None),
            Value::BigInt(number) => numbers.push(*number),
            _ => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a key that is not a number")),
        }
    }
    let four = |number: i64| {
        let wide = SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        i32::try_from(number).map_err(|_| wide)
    };
    match numbers[..] {
        [one] => Ok(Some(Key::One(one))),
        [first, second] => Ok(Some(Key::Two(four(first)?, four(second)?))),
        _ => Ok(None),
    }
}

impl Connection {
    /// Runs the calls of a query that is nothing but calls of these functions, from left to right.
    ///
    /// # Errors
    /// Those of their arguments; 40P01, 55P03, 57014: what was locked before stays locked, as in PostgreSQL.
    pub(super) fn run_advisory(
        &self,
        (calls, text): (&[Call], &str),
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        if self.state.lock().failed {
            return Err(super::aborted());
        }
        let arguments: Vec<&Expr> = calls.iter().flat_map(|call| &call.arguments).collect();
        let numbers = self.numbers(&arguments, parameters, cancel)?;
        // That was a statement of its own; the transaction is not idle while it waits.
        self.enter_block(text)?;
        let mut numbers = numbers.as_slice();
        let column = |call: &Call| {
            let (own, others) = numbers.split_at(call.arguments.len());
            numbers = others;
            let result = self.run_one(call, own, cancel)?;
            Ok(format!("{result} AS \"{}\"", call.column.replace('"', "\"\"")))
        };
        let columns: Result<Vec<String>, SqlError> = calls.iter().map(column).collect();
        let columns = self.leave_block(columns);
        if !self.state.lock().in_block() {
            // Each statement is a transaction.
            self.database.inner.advisory.release_since(&self.locks, 0);
        }
        self.database
            .execute(&format!("SELECT {}", columns?.join(", ")))
            .map(|mut outcomes| outcomes.remove(0))
    }

    /// Runs a call with these arguments; its result as SQL.
    fn run_one(
        &self,
        call: &Call,
        arguments: &[Value],
        cancel: &CancelToken,
    ) -> Result<&'static str, SqlError> {
        let advisory = &self.database.inner.advisory;
        let key = match arguments {
            [] => None,
            arguments => match key(arguments)? {
                Some(key) => Some(key),
                // As any strict function.
                None => return Ok(if call.deed.is_void() { "NULL::text" } else { "NULL::boolean" }),
            },
        };
        match (call.deed, key) {
            (Deed::Lock { mode, transaction, tries }, Some(key)) => {
                let lasting = match transaction {
                    true => Lasting::Transaction(self.step()),
                    false => Lasting::Session,
                };
                let done = match (advisory.lock(key, &self.locks, (mode, lasting)), tries) {
                    (Ok(()), _) => true,
                    (Err(_), true) => false,
                    (Err(held), false) => self.wait_for_advisory((key, mode, lasting), held, cancel)?,
                };
                Ok(match (tries, done) {
                    (false, _) => "''::text",
                    (true, true) => "true",
                    (true, false) => "false",
                })
            }
            (Deed::Unlock(mode), Some(key)) => {
                Ok(if advisory.unlock(key, &self.locks, mode) { "true" } else { "false" })
            }
            (_, _) => {
                advisory.unlock_all(&self.locks);
                Ok("''::text")
            }
        }
    }

    fn wait_for_advisory(
        &self,
        (key, mode, lasting): (Key, LockMode, Lasting),
        mut held: Held,
        cancel: &CancelToken,
    ) -> Result<bool, SqlError> {
        let settings = self.state.lock().settings_in_block();
        let limits = self.database.limits(&settings, cancel);
        loop {
            let activity = self.activity();
            let how = (&settings, &limits, activity.as_deref());
            self.database.wait_for_lock(&self.locks, &held, how, &|| Ok(()))?;
            match self.database.inner.advisory.lock(key, &self.locks, (mode, lasting)) {
                Ok(()) => return Ok(true),
                Err(other) => held = other,
            }
        }
    }

    /// Arguments as numbers of eight bytes.
    fn numbers(
        &self,
        arguments: &[&Expr],
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Vec<Value>, SqlError> {
        let columns: Vec<String> = arguments.iter().map(|argument| format!("({argument})::bigint")).collect();
        let text = format!("SELECT {}", if columns.is_empty() { "0".to_owned() } else { columns.join(", ") });
        let parsed = albireo_sql::parse_one(&text)?;
        let rows: QueryResult = self.query_parsed(&parsed, &text, parameters, cancel)?.into_rows()?;
        Ok((0..arguments.len()).map(|column| rows.value(0, column)).collect())
    }

    /// What others see of the open transaction.
    fn activity(&self) -> Option<Arc<Activity>> {
        let state = self.state.lock();
        state.registered.as_ref().map(|registered| Arc::clone(registered.activity()))
    }

    /// The step of the open transaction.
    fn step(&self) -> u32 {
        match &self.state.lock().block {
            Some(Block::Writing(open)) => open.lock().step(),
            _ => 0,
        }
    }
}
