//! Calls of aggregates, bound.
//!
//! Responsible for: which calls are aggregates, where they may stand, of which query they are. Not
//! responsible for: their types (`signature`), GROUP BY (`group`), computing them.
//!
//! Invariant: while a SELECT is bound, results of its aggregates are columns of the relation [`AGGREGATES`],
//! and those of its window functions columns of [`WINDOWS`]; `regroup` gives them their final numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectNamePart, OrderByExpr, Spanned,
};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::bind::order_options;
use super::levels;
use super::scope::{Mention, Phase, Scope};
use super::signature::{self, hides_routines, is_ordered_set, kind_of};
use super::tree::{Aggregate, AggregateKind, OrderBy, OrderKey, WindowCall};
use super::window::{self, Window};
use crate::expr::{self, ColumnRef, Expr, ExprKind, Names};
use crate::types::{Scalar, Type};

/// The relation of aggregates until all are known.
pub(super) const AGGREGATES: u16 = u16::MAX - 1;
/// The relation of window functions until all are known.
pub(super) const WINDOWS: u16 = u16::MAX;
/// The most aggregates or window functions of one query.
const MAX_CALLS: usize = 20_000;

/// The aggregates and window functions of a query while it is bound.
#[derive(Default, Debug)]
pub(super) struct Calls {
    pub(super) aggregates: Vec<Aggregate>,
    /// The aggregates by the digests of what they compute.
    known: HashMap<u64, Vec<usize>>,
    /// The calls of GROUPING among them, and where their arguments stand.
    pub(super) groupings: Vec<(usize, Vec<Span>)>,
    /// Those whose first arguments must be of the group, and the columns in these.
    pub(super) direct: Vec<(usize, Vec<Mention>)>,
    /// The calls of window functions, and the columns in them.
    pub(super) windows: Vec<(WindowCall, Vec<Mention>)>,
    known_windows: HashMap<u64, Vec<usize>>,
    /// The windows of WINDOW.
    pub(super) named: Vec<(String, Window)>,
}

impl Calls {
    /// Adds an aggregate, unless it is there; its number.
    fn add(&mut self, aggregate: Aggregate) -> Result<usize, SqlError> {
        let digest = expr::digest(&aggregate.args);
        let same = self.known.entry(digest).or_default();
        if let Some(at) = same.iter().find(|at| self.aggregates[**at] == aggregate) {
            return Ok(*at);
        }
        check_count(self.aggregates.len())?;
        same.push(self.aggregates.len());
        self.aggregates.push(aggregate);
        Ok(self.aggregates.len() - 1)
    }

    /// Adds a call of a window function, unless it is there; its number.
    pub(super) fn add_window(&mut self, call: WindowCall, said: Vec<Mention>) -> Result<usize, SqlError> {
        let digest = expr::digest(call.args.iter().chain(&call.partition));
        let same = self.known_windows.entry(digest).or_default();
        if let Some(at) = same.iter().find(|at| self.windows[**at].0 == call) {
            return Ok(*at);
        }
        check_count(self.windows.len())?;
        same.push(self.windows.len());
        self.windows.push((call, said));
        Ok(self.windows.len() - 1)
    }
}

fn check_count(count: usize) -> Result<(), SqlError> {
    if count < MAX_CALLS {
        return Ok(());
    }
    let message = format!("a query has more than {MAX_CALLS} aggregates or window functions");
    Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message))
}

/// The column in which a call's result stands while the query is bound.
pub(super) fn result(relation: u16, at: usize, ty: Type) -> Expr {
    Expr { kind: ExprKind::Column(ColumnRef { depth: 0, relation, column: at as u16 }), ty }
}

/// A call's name, if it can be one of a function that is built in.
pub(super) fn name_of(function: &Function) -> Option<&Ident> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name),
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)]
            if names::fold(schema) == "pg_catalog" =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// Whether a call is one of an aggregate, which no routine of its name hides.
pub(super) fn is_aggregate(function: &Function) -> bool {
    name_of(function).and_then(|name| kind_of(&names::fold(name))).is_some_and(hides_routines)
}

/// Whether a call is one of an aggregate, of a window function or of GROUPING.
pub(super) fn is_special(function: &Function) -> bool {
    name_of(function).map(names::fold).is_some_and(|name| {
        name == "grouping" || kind_of(&name).is_some() || window::kind_of(&name).is_some()
    })
}

/// What a call's arguments are.
pub(super) struct Written<'f> {
    pub(super) args: Vec<Cow<'f, Ast>>,
    pub(super) star: bool,
    pub(super) distinct: bool,
    pub(super) order: &'f [OrderByExpr],
}

/// Reads the arguments of a call of an aggregate or window function.
pub(super) fn written(function: &Function) -> Result<Written<'_>, SqlError> {
    let unsupported = || SqlError::unsupported("this form of argument");
    let FunctionArguments::List(list) = &function.args else {
        let what = "a query as the only argument";
        return match function.args {
            FunctionArguments::Subquery(_) => Err(SqlError::unsupported(what)),
            _ => Ok(Written { args: Vec::new(), star: false, distinct: false, order: &[] }),
        };
    };
    let star = matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
    let mut args = Vec::with_capacity(list.args.len());
    if !star {
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => args.push(Cow::Borrowed(expr)),
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    let parts = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                    args.push(Cow::Owned(Ast::CompoundIdentifier(parts)));
                }
                _ => return Err(unsupported()),
            }
        }
    }
    let mut order: &[OrderByExpr] = &[];
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(keys) => order = keys,
            _ => return Err(SqlError::unsupported("this clause of an aggregate")),
        }
    }
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    Ok(Written { args, star, distinct, order })
}

impl Scope<'_> {
    /// A call of an aggregate or a window function; nothing if it is neither.
    pub(super) fn aggregate_or_window(&mut self, function: &Function) -> Result<Option<Expr>, SqlError> {
        let Some(at) = name_of(function) else { return Ok(None) };
        let name = names::fold(at);
        if name == "grouping" {
            return self.grouping(function, at).map(Some).map_err(|error| self.at(error, at));
        }
        let kind = kind_of(&name);
        let plain = function.over.is_none() && function.within_group.is_empty();
        let routine = plain && !kind.is_some_and(hides_routines) && self.outer.has_routine(&function.name);
        if routine {
            return Ok(None);
        }
        let found = match (kind, window::kind_of(&name)) {
            (None, None) => return Ok(None),
            (Some(kind), _) if function.over.is_some() => self.window_aggregate(kind, function, at),
            (Some(kind), _) => self.aggregate_call(kind, function, at),
            (None, Some(_)) if !function.within_group.is_empty() => {
                Err(SqlError::unsupported(format!("{name} as an aggregate with WITHIN GROUP")))
            }
            (None, Some(_)) if function.over.is_none() => {
                let message = format!("window function {name} requires an OVER clause");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            (None, Some(kind)) => self.window_function(kind, function, at),
        };
        found.map(Some).map_err(|error| self.at(error, at))
    }

    /// The error, with the position of a call if it has none.
    pub(super) fn at(&self, error: SqlError, at: &Ident) -> SqlError {
        match error.position() {
            Some(_) => error,
            None => self.source().locate(error, at.span),
        }
    }

    /// Binds expressions inside of an aggregate.
    pub(super) fn within<T>(
        &mut self,
        phase: Phase,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let outer = std::mem::replace(&mut self.phase, phase);
        let bound = bind(self);
        self.phase = outer;
        bound
    }

    fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        function: &Function,
        at: &Ident,
    ) -> Result<Expr, SqlError> {
        let name = names::fold(at);
        let within = !function.within_group.is_empty();
        let parts = written(function)?;
        if is_ordered_set(kind) != within {
            return Err(self.misplaced(kind, function, &parts, &name)?);
        }
        let mut direct = Vec::new();
        let mut aggregate = match within {
            true => self.ordered_set(kind, function, &parts, &name, &mut direct)?,
            false => self.plain_aggregate(kind, &parts, &name)?,
        };
        if let Some(filter) = &function.filter {
            let bound = self.within(Phase::Refused("FILTER"), |scope| expr::bind_open(filter, scope))?;
            aggregate.filter = Some(self.condition_of(bound, "FILTER", filter)?);
        }
        let result = self.place_aggregate(aggregate, at)?;
        if let (ExprKind::Column(column), false) = (&result.kind, direct.is_empty())
            && column.depth == 0
        {
            self.calls.direct.push((usize::from(column.column), direct));
        }
        Ok(result)
    }

    /// What is wrong with WITHIN GROUP or its absence: perhaps there is no such aggregate anyway.
    fn misplaced(
        &mut self,
        kind: AggregateKind,
        function: &Function,
        parts: &Written<'_>,
        name: &str,
    ) -> Result<SqlError, SqlError> {
        let keys = function.within_group.iter().map(|key| &key.expr);
        let mut args = self.within(Phase::Inside, |scope| {
            let args = parts.args.iter().map(AsRef::as_ref).chain(keys);
            args.map(|arg| expr::bind_open(arg, scope)).collect::<Result<Vec<Expr>, SqlError>>()
        })?;
        let message = match is_ordered_set(kind) {
            true if kind != AggregateKind::Mode && args.len() != 2 => {
                return Ok(signature::missing(name, &args));
            }
            true => format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
            false => {
                signature::resolve(kind, name, &mut args)?;
                format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")
            }
        };
        Ok(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
    }

    /// A condition that is bound.
    pub(super) fn condition_of(&self, bound: Expr, what: &str, ast: &Ast) -> Result<Expr, SqlError> {
        expr::to_bool(bound, what).map_err(|error| match error.position() {
            Some(_) => error,
            None => self.source().locate(error, ast.span()),
        })
    }

    fn plain_aggregate(
        &mut self,
        kind: AggregateKind,
        parts: &Written<'_>,
        name: &str,
    ) -> Result<Aggregate, SqlError> {
        let (mut args, order) = self.within(Phase::Inside, |scope| {
            let args: Result<Vec<Expr>, SqlError> =
                parts.args.iter().map(|arg| expr::bind_open(arg, scope)).collect();
            Ok((args?, scope.inner_order(parts.order)?))
        })?;
        check_star(kind, parts, name)?;
        if parts.distinct && !order.is_empty() {
            check_distinct_order(&order, &args).map_err(|n| {
                let message =
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message);
                self.source().locate(error, parts.order[n].expr.span())
            })?;
        }
        let ty = match (kind, parts.star) {
            (AggregateKind::Count, true) => Type::Scalar(Scalar::BigInt),
            _ => signature::resolve(kind, name, &mut args)?,
        };
        Ok(Aggregate { kind, args, distinct: parts.distinct, filter: None, order, ty })
    }

    fn ordered_set(
        &mut self,
        kind: AggregateKind,
        function: &Function,
        parts: &Written<'_>,
        name: &str,
        direct: &mut Vec<Mention>,
    ) -> Result<Aggregate, SqlError> {
        if parts.distinct || !parts.order.is_empty() {
            let what = if parts.distinct { "DISTINCT" } else { "multiple ORDER BY clauses" };
            let message = format!("cannot use {what} with WITHIN GROUP");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let before = self.take_mentions();
        let phase = if matches!(self.phase, Phase::Refused(_)) { self.phase } else { Phase::Windowed };
        let fractions = self.within(phase, |scope| {
            parts.args.iter().map(|arg| expr::bind_open(arg, scope)).collect::<Result<Vec<Expr>, _>>()
        })?;
        *direct = self.take_mentions();
        self.restore_mentions(before);
        let mut args = fractions;
        let (values, mut order) = self.within(Phase::Inside, |scope| {
            let keys = function.within_group.iter();
            let values: Result<Vec<Expr>, SqlError> =
                keys.map(|key| expr::bind_open(&key.expr, scope)).collect();
            Ok((values?, scope.inner_order(&function.within_group)?))
        })?;
        let direct_args = args.len();
        args.extend(values);
        let wanted = usize::from(kind != AggregateKind::Mode);
        if direct_args != wanted || order.len() != 1 {
            return Err(signature::missing(name, &args));
        }
        let ty = signature::resolve(kind, name, &mut args)?;
        if let (Some(key), Some(value)) = (order.first_mut(), args.last()) {
            key.by = OrderBy::Expr(value.clone());
        }
        Ok(Aggregate { kind, args, distinct: false, filter: None, order, ty })
    }

    /// ORDER BY inside of an aggregate or a window: names are columns, never results.
    pub(super) fn inner_order(&mut self, keys: &[OrderByExpr]) -> Result<Vec<OrderKey>, SqlError> {
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            let by = OrderBy::Expr(expr::bind(&key.expr, self)?);
            let (descending, nulls_first) = order_options(&key.options);
            order.push(OrderKey { by, descending, nulls_first });
        }
        Ok(order)
    }

    /// Adds an aggregate to the query that it is of: the one of its columns that is nearest.
    pub(super) fn place_aggregate(&mut self, mut aggregate: Aggregate, at: &Ident) -> Result<Expr, SqlError> {
        let nearest = levels::nearest(exprs_of(&mut aggregate));
        if nearest.is_some_and(|depth| depth > 0 || !self.level) {
            if self.level {
                levels::lift(exprs_of(&mut aggregate));
            }
            let found = self.outer.aggregate(aggregate, at)?;
            return Ok(self.outside(found));
        }
        self.check_aggregate(at, "aggregate functions")?;
        let ty = aggregate.ty.clone();
        let number = self.calls.add(aggregate)?;
        Ok(result(AGGREGATES, number, ty))
    }

    /// Whether an aggregate may stand here.
    fn check_aggregate(&self, at: &Ident, what: &str) -> Result<(), SqlError> {
        let message = match self.phase {
            Phase::Free | Phase::Having | Phase::Windowing | Phase::Windowed => return Ok(()),
            Phase::Inside => "aggregate function calls cannot be nested".to_owned(),
            Phase::Refused(clause) => format!("{what} are not allowed in {clause}"),
        };
        Err(self.error(SqlState::GROUPING_ERROR, message, at))
    }

    /// `GROUPING(...)`: its arguments are found among the keys once these are known.
    fn grouping(&mut self, function: &Function, at: &Ident) -> Result<Expr, SqlError> {
        self.check_aggregate(at, "grouping operations")?;
        let parts = written(function)?;
        if parts.args.len() >= 32 {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(SqlState(*b"54023"), message));
        }
        let before = self.take_mentions();
        let args: Result<Vec<Expr>, SqlError> = parts.args.iter().map(|arg| expr::bind(arg, self)).collect();
        self.restore_mentions(before);
        let ty = Type::Scalar(Scalar::Integer);
        let kind = AggregateKind::Grouping;
        let aggregate =
            Aggregate { kind, args: args?, distinct: false, filter: None, order: Vec::new(), ty: ty.clone() };
        let number = self.calls.add(aggregate)?;
        if !self.calls.groupings.iter().any(|(other, _)| *other == number) {
            let spans = parts.args.iter().map(|arg| arg.span()).collect();
            self.calls.groupings.push((number, spans));
        }
        Ok(result(AGGREGATES, number, ty))
    }
}

/// Whether `*` or nothing stands where it may.
pub(super) fn check_star(kind: AggregateKind, parts: &Written<'_>, name: &str) -> Result<(), SqlError> {
    if parts.star && kind == AggregateKind::Count {
        return match parts.distinct || !parts.order.is_empty() {
            false => Ok(()),
            true => Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"*\"")),
        };
    }
    if parts.args.is_empty() {
        if kind == AggregateKind::Count {
            let message = "count(*) must be used to call a parameterless aggregate function";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        return Err(signature::missing(name, &[]));
    }
    Ok(())
}

/// The first key that is no argument.
fn check_distinct_order(order: &[OrderKey], args: &[Expr]) -> Result<(), usize> {
    let is_arg = |key: &OrderKey| match &key.by {
        OrderBy::Expr(by) => args.iter().any(|arg| expr::settle(arg.clone()) == *by),
        OrderBy::Output(_) => true,
    };
    order.iter().position(|key| !is_arg(key)).map_or(Ok(()), Err)
}

/// The expressions of an aggregate.
fn exprs_of(aggregate: &mut Aggregate) -> impl Iterator<Item = &mut Expr> {
    let keys = aggregate.order.iter_mut().filter_map(|key| match &mut key.by {
        OrderBy::Expr(by) => Some(by),
        OrderBy::Output(_) => None,
    });
    aggregate.args.iter_mut().chain(&mut aggregate.filter).chain(keys)
}
