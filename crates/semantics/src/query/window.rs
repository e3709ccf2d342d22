//! Calls of window functions, bound.
//!
//! Responsible for: the window functions and their types, windows with and without names, frames. Not
//! responsible for: which columns may stand in them in a query with groups (`regroup`), computing them.

use albireo_base::{SqlError, SqlState, SqlType};
use albireo_sql::ast::{
    Expr as Ast, Function, Ident, NamedWindowDefinition, NamedWindowExpr, Spanned, WindowFrame as AstFrame,
    WindowFrameBound as AstBound, WindowFrameUnits, WindowSpec, WindowType,
};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::aggregate::{WINDOWS, Written, check_star, result, written};
use super::scope::{Mention, Phase, Scope};
use super::signature::{self, is_ordered_set, missing, undetermined};
use super::tree::{
    AggregateKind, FrameBound, FrameUnit, OrderBy, OrderKey, WindowCall, WindowFrame, WindowFunction,
};
use crate::expr::{self, CastKind, Choice, Expr, ExprKind, Names};
use crate::types::{Scalar, Type};

/// A window, and the columns in its definition.
#[derive(Clone, Debug)]
pub(super) struct Window {
    partition: Vec<Expr>,
    order: Vec<OrderKey>,
    frame: WindowFrame,
    /// Whether the frame was written.
    framed: bool,
    said: Vec<Mention>,
}

/// The window function of this name.
pub(super) fn kind_of(name: &str) -> Option<WindowFunction> {
    use WindowFunction as W;
    Some(match name {
        "row_number" => W::RowNumber,
        "rank" => W::Rank,
        "dense_rank" => W::DenseRank,
        "percent_rank" => W::PercentRank,
        "cume_dist" => W::CumeDist,
        "ntile" => W::Ntile,
        "lag" => W::Lag,
        "lead" => W::Lead,
        "first_value" => W::FirstValue,
        "last_value" => W::LastValue,
        "nth_value" => W::NthValue,
        _ => return None,
    })
}

fn error(state: SqlState, message: impl Into<String>) -> SqlError {
    SqlError::new(state, message)
}

fn unsupported(message: &str) -> SqlError {
    error(SqlState::FEATURE_NOT_SUPPORTED, message)
}

impl Scope<'_> {
    /// Binds WINDOW; each window may continue those before it.
    pub(super) fn define_windows(&mut self, definitions: &[NamedWindowDefinition]) -> Result<(), SqlError> {
        for NamedWindowDefinition(ident, definition) in definitions {
            let name = names::fold(ident);
            if self.calls.named.iter().any(|(other, _)| *other == name) {
                let message = format!("window \"{name}\" is already defined");
                let place = match definition {
                    NamedWindowExpr::WindowSpec(spec) => start_of(spec),
                    NamedWindowExpr::NamedWindow(other) => other.span,
                };
                return Err(self.opening(error(SqlState::WINDOWING_ERROR, message), place));
            }
            let window = match definition {
                NamedWindowExpr::NamedWindow(other) => self.named_window(other)?.clone(),
                NamedWindowExpr::WindowSpec(spec) => self.window(spec)?,
            };
            self.calls.named.push((name, window));
        }
        Ok(())
    }

    fn named_window(&self, ident: &Ident) -> Result<&Window, SqlError> {
        let name = names::fold(ident);
        let found = self.calls.named.iter().find(|(other, _)| *other == name);
        found.map(|(_, window)| window).ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            self.opening(error(SqlState::UNDEFINED_OBJECT, message), ident.span)
        })
    }

    /// Binds what stands in parentheses after OVER, or in WINDOW.
    fn window(&mut self, spec: &WindowSpec) -> Result<Window, SqlError> {
        let base = match &spec.window_name {
            Some(ident) => Some((ident, self.named_window(ident)?.clone())),
            None => None,
        };
        let before = self.take_mentions();
        let own = self.within(Phase::Windowing, |scope| {
            let partition = spec.partition_by.iter().map(|key| expr::bind(key, scope));
            let partition: Vec<Expr> = partition.collect::<Result<_, _>>()?;
            Ok((partition, scope.inner_order(&spec.order_by)?))
        });
        let mut said = self.take_mentions();
        self.restore_mentions(before);
        let (mut partition, mut order) = own?;
        if let Some((ident, base)) = base {
            self.check_continued(ident, &base, spec)?;
            partition = base.partition;
            if order.is_empty() {
                order = base.order;
            }
            said.splice(0..0, base.said);
        }
        let frame = match &spec.window_frame {
            Some(frame) => self.frame(frame, &order).map_err(|error| match error.position() {
                Some(_) => error,
                None => self.opening(error, start_of(spec)),
            })?,
            None => {
                WindowFrame { unit: FrameUnit::Range, start: FrameBound::First, end: FrameBound::Current }
            }
        };
        Ok(Window { partition, order, frame, framed: spec.window_frame.is_some(), said })
    }

    /// Whether a window may take over what another one has.
    fn check_continued(&self, ident: &Ident, base: &Window, spec: &WindowSpec) -> Result<(), SqlError> {
        let name = names::fold(ident);
        let refused = if !spec.partition_by.is_empty() {
            format!("cannot override PARTITION BY clause of window \"{name}\"")
        } else if !spec.order_by.is_empty() && !base.order.is_empty() {
            format!("cannot override ORDER BY clause of window \"{name}\"")
        } else if base.framed {
            format!("cannot copy window \"{name}\" because it has a frame clause")
        } else {
            return Ok(());
        };
        Err(self.opening(error(SqlState::WINDOWING_ERROR, refused), ident.span))
    }

    fn frame(&mut self, frame: &AstFrame, order: &[OrderKey]) -> Result<WindowFrame, SqlError> {
        check_bounds(&frame.start_bound, frame.end_bound.as_ref())?;
        let unit = match frame.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        let ends = std::iter::once(&frame.start_bound).chain(&frame.end_bound);
        let counts = ends
            .clone()
            .any(|bound| matches!(bound, AstBound::Preceding(Some(_)) | AstBound::Following(Some(_))));
        if unit == FrameUnit::Range && counts && order.len() != 1 {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(error(SqlState::WINDOWING_ERROR, message));
        }
        if unit == FrameUnit::Groups && order.is_empty() {
            return Err(error(SqlState::WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause"));
        }
        let start = self.frame_bound(&frame.start_bound, unit, order)?;
        let end = match &frame.end_bound {
            Some(end) => self.frame_bound(end, unit, order)?,
            None => FrameBound::Current,
        };
        Ok(WindowFrame { unit, start, end })
    }

    fn frame_bound(
        &mut self,
        bound: &AstBound,
        unit: FrameUnit,
        order: &[OrderKey],
    ) -> Result<FrameBound, SqlError> {
        Ok(match bound {
            AstBound::CurrentRow => FrameBound::Current,
            AstBound::Preceding(None) => FrameBound::First,
            AstBound::Following(None) => FrameBound::Last,
            AstBound::Preceding(Some(by)) => FrameBound::Before(self.offset(by, unit, order)?),
            AstBound::Following(Some(by)) => FrameBound::After(self.offset(by, unit, order)?),
        })
    }

    fn offset(&mut self, ast: &Ast, unit: FrameUnit, order: &[OrderKey]) -> Result<Expr, SqlError> {
        let (word, clause) = match unit {
            FrameUnit::Rows => ("ROWS", "window ROWS"),
            FrameUnit::Range => ("RANGE", "window RANGE"),
            FrameUnit::Groups => ("GROUPS", "window GROUPS"),
        };
        let literal;
        let ast = match ast {
            // The parser takes a literal in quotes for an interval.
            Ast::Interval(interval) if interval.leading_field.is_none() => {
                literal = (*interval.value).clone();
                &literal
            }
            other => other,
        };
        let bound = self.within(Phase::Refused(clause), |scope| expr::bind_open(ast, scope))?;
        let locate = |error: SqlError| match error.position() {
            Some(_) => error,
            None => self.source().locate(error, ast.span()),
        };
        let offset = match (unit, order.first()) {
            (FrameUnit::Range, Some(OrderKey { by: OrderBy::Expr(key), .. })) => range_offset(bound, &key.ty),
            _ => {
                let from = bound.ty.clone();
                expr::cast(bound, SqlType::BigInt, CastKind::Assignment).map_err(|_| {
                    let message = format!("argument of {word} must be type bigint, not type {from}");
                    error(SqlState::DATATYPE_MISMATCH, message)
                })
            }
        };
        let offset =
            offset.and_then(|offset| expr::check_literal(&offset).map(|()| offset)).map_err(locate)?;
        let mut own = false;
        offset.walk(&mut |part| own |= matches!(&part.kind, ExprKind::Column(column) if column.depth == 0));
        if own {
            let message = format!("argument of {word} must not contain variables");
            return Err(locate(error(SqlState::INVALID_COLUMN_REFERENCE, message)));
        }
        Ok(offset)
    }

    /// An aggregate over a window.
    pub(super) fn window_aggregate(
        &mut self,
        kind: AggregateKind,
        function: &Function,
        at: &Ident,
    ) -> Result<Expr, SqlError> {
        let name = names::fold(at);
        if is_ordered_set(kind) {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(unsupported(&message));
        }
        if !function.within_group.is_empty() {
            let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
            return Err(error(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let parts = written(function)?;
        check_star(kind, &parts, &name)?;
        check_plain(&parts)?;
        let before = self.take_mentions();
        let mut args = self.window_args(&parts)?;
        let ty = match (kind, parts.star) {
            (AggregateKind::Count, true) => Type::Scalar(Scalar::BigInt),
            _ => signature::resolve(kind, &name, &mut args)?,
        };
        let filter = match &function.filter {
            Some(filter) => {
                let bound = self.within(Phase::Refused("FILTER"), |scope| expr::bind_open(filter, scope))?;
                Some(self.condition_of(bound, "FILTER", filter)?)
            }
            None => None,
        };
        let said = self.take_mentions();
        self.restore_mentions(before);
        self.add_call(WindowFunction::Aggregate(kind), function, at, (args, filter, ty), said)
    }

    /// A call of a function that only windows have.
    pub(super) fn window_function(
        &mut self,
        kind: WindowFunction,
        function: &Function,
        at: &Ident,
    ) -> Result<Expr, SqlError> {
        let name = names::fold(at);
        let parts = written(function)?;
        check_plain(&parts)?;
        if function.filter.is_some() {
            return Err(unsupported("FILTER is not implemented for non-aggregate window functions"));
        }
        let before = self.take_mentions();
        let mut args = self.window_args(&parts)?;
        if parts.star {
            return Err(missing(&name, &args));
        }
        let ty = types(kind, &name, &mut args)?;
        let said = self.take_mentions();
        self.restore_mentions(before);
        self.add_call(kind, function, at, (args, None, ty), said)
    }

    fn window_args(&mut self, parts: &Written<'_>) -> Result<Vec<Expr>, SqlError> {
        let phase = if matches!(self.phase, Phase::Free) { Phase::Windowed } else { self.phase };
        self.within(phase, |scope| parts.args.iter().map(|arg| expr::bind_open(arg, scope)).collect())
    }

    fn add_call(
        &mut self,
        kind: WindowFunction,
        function: &Function,
        at: &Ident,
        (args, filter, ty): (Vec<Expr>, Option<Expr>, Type),
        mut said: Vec<Mention>,
    ) -> Result<Expr, SqlError> {
        self.check_window(at)?;
        let window = match &function.over {
            Some(WindowType::NamedWindow(name)) => self.named_window(name)?.clone(),
            Some(WindowType::WindowSpec(spec)) => self.window(spec)?,
            None => return Err(SqlError::unsupported("a window function without a window")),
        };
        said.extend(window.said);
        let Window { partition, order, frame, .. } = window;
        let call = WindowCall { function: kind, args, filter, partition, order, frame, ty: ty.clone() };
        let number = self.calls.add_window(call, said)?;
        Ok(result(WINDOWS, number, ty))
    }

    /// Whether a window function may stand here.
    fn check_window(&self, at: &Ident) -> Result<(), SqlError> {
        let message = match self.phase {
            Phase::Free => return Ok(()),
            Phase::Inside => {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(self.error(SqlState::GROUPING_ERROR, message, at));
            }
            Phase::Having => "window functions are not allowed in HAVING".to_owned(),
            Phase::Windowing => "window functions are not allowed in window definitions".to_owned(),
            Phase::Windowed => "window function calls cannot be nested".to_owned(),
            Phase::Refused(clause) if clause.starts_with("window ") => {
                "window functions are not allowed in window definitions".to_owned()
            }
            Phase::Refused(clause) => format!("window functions are not allowed in {clause}"),
        };
        Err(self.error(SqlState::WINDOWING_ERROR, message, at))
    }
}

/// Where the first thing in a window stands.
fn start_of(spec: &WindowSpec) -> Span {
    let parts = spec.partition_by.iter().chain(spec.order_by.iter().map(|key| &key.expr)).map(Spanned::span);
    let name = spec.window_name.iter().map(|name| name.span);
    name.chain(parts).next().unwrap_or_else(Span::empty)
}

fn check_plain(parts: &Written<'_>) -> Result<(), SqlError> {
    if parts.distinct {
        return Err(unsupported("DISTINCT is not implemented for window functions"));
    }
    if !parts.order.is_empty() {
        return Err(unsupported("aggregate ORDER BY is not implemented for window functions"));
    }
    Ok(())
}

/// Whether a frame can begin and end so.
fn check_bounds(start: &AstBound, end: Option<&AstBound>) -> Result<(), SqlError> {
    use AstBound::{CurrentRow, Following, Preceding};
    let refused = match (start, end.unwrap_or(&CurrentRow)) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Preceding(Some(_))) => "frame starting from current row cannot have preceding rows",
        (Following(Some(_)), Preceding(Some(_)) | CurrentRow) if end.is_some() => {
            "frame starting from following row cannot have preceding rows"
        }
        (Following(Some(_)), CurrentRow) => "frame starting from following row cannot end with current row",
        _ => return Ok(()),
    };
    Err(error(SqlState::WINDOWING_ERROR, refused))
}

/// What a bound of RANGE counts, by the type of the key.
fn range_offset(offset: Expr, key: &Type) -> Result<Expr, SqlError> {
    use Scalar::{BigInt, Date, Double, Integer, Interval, Real, SmallInt, Time, Timestamp, TimestampTz};
    let prefix = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type";
    let takes: &[Scalar] = match key {
        Type::Scalar(SmallInt | Integer) => &[SmallInt, Integer, BigInt],
        Type::Scalar(BigInt) => &[BigInt],
        Type::Scalar(Real | Double) => &[Double],
        Type::Scalar(Scalar::Numeric { .. }) => &[Scalar::Numeric { scale: None }],
        Type::Scalar(Date | Time | Timestamp | TimestampTz | Interval) => &[Interval],
        _ => return Err(unsupported(&format!("{prefix} {key}"))),
    };
    let from = offset.ty.clone();
    let Type::Scalar(scalar) = from else {
        return Err(unsupported(&format!("{prefix} {key} and offset type {from}")));
    };
    let wanted = match key {
        Type::Scalar(key) if scalar == Scalar::Unknown => *key,
        _ => scalar,
    };
    let exact = takes.iter().find(|to| to.same(wanted));
    let to = exact.or_else(|| takes.iter().find(|to| expr::implicit(scalar, **to))).ok_or_else(|| {
        unsupported(&format!("{prefix} {key} and offset type {from}"))
            .with_hint("Cast the offset value to an appropriate type.")
    })?;
    expr::implicit_to(offset, *to)
}

/// Converts the arguments of a window function to what it takes; the type of its result.
fn types(kind: WindowFunction, name: &str, args: &mut Vec<Expr>) -> Result<Type, SqlError> {
    use WindowFunction as W;
    let fixed = |takes: &[Scalar]| takes.len() == args.len();
    let ty = match kind {
        W::RowNumber | W::Rank | W::DenseRank if fixed(&[]) => Type::Scalar(Scalar::BigInt),
        W::PercentRank | W::CumeDist if fixed(&[]) => Type::Scalar(Scalar::Double),
        W::Ntile if args.len() == 1 => {
            integer(name, args, 0)?;
            Type::Scalar(Scalar::Integer)
        }
        W::FirstValue | W::LastValue if args.len() == 1 => known(&args[0])?,
        W::NthValue if args.len() == 2 => {
            integer(name, args, 1)?;
            known(&args[0])?
        }
        W::Lag | W::Lead if (1..=3).contains(&args.len()) => {
            if args.len() > 1 {
                integer(name, args, 1)?;
            }
            if args.len() == 3 { with_default(name, args)? } else { known(&args[0])? }
        }
        _ => return Err(missing(name, args)),
    };
    Ok(ty)
}

fn known(arg: &Expr) -> Result<Type, SqlError> {
    match &arg.ty {
        Type::Scalar(Scalar::Unknown) => Err(undetermined()),
        ty => Ok(ty.clone()),
    }
}

fn integer(name: &str, args: &mut [Expr], at: usize) -> Result<(), SqlError> {
    let fits = match args[at].ty {
        Type::Scalar(from) => matches!(expr::choose(&[&[Scalar::Integer]], &[from]), Choice::One(_)),
        _ => false,
    };
    if !fits {
        return Err(missing(name, args));
    }
    args[at] = expr::implicit_to(std::mem::replace(&mut args[at], Expr::null()), Scalar::Integer)?;
    expr::check_literal(&args[at])
}

/// `lag(x, n, default)`: x and the default become of one type.
fn with_default(name: &str, args: &mut Vec<Expr>) -> Result<Type, SqlError> {
    let shown = missing(name, args);
    let mut parts = std::mem::take(args).into_iter();
    let (Some(value), Some(offset), Some(default)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(shown);
    };
    let mut pair = [value, default];
    let ty = expr::common_type(&mut pair, "lag").map_err(|_| shown)?;
    pair.iter().try_for_each(expr::check_literal)?;
    let [value, default] = pair;
    *args = vec![value, offset, default];
    Ok(ty)
}
