//! GROUP BY and aggregates, bound.
//!
//! Responsible for: which calls are aggregates, where they may stand, their types, which columns may
//! stand beside them. Not responsible for: computing them (`run::aggregate`).

use std::ops::ControlFlow;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectNamePart, Query as AstQuery, Visitor, VisitorMut,
};
use albireo_sql::names;
use albireo_sql::source::Source;
use albireo_sql::walk::{Walk, WalkMut as _};

use super::bind::order_options;
use super::scope::{GROUP_KEY, Scope};
use super::tree::{Aggregate, AggregateKind, OrderBy, OrderKey};
use crate::expr::{self, ColumnRef, Expr, ExprKind, Names};
use crate::types::{Scalar, Type};

/// What an aggregate means where an expression stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// An error; the name of the clause.
    Refused(&'static str),
    /// An error, because an aggregate is around it.
    Inside,
    /// The expression is of a group: ungrouped columns are errors.
    Grouped,
}

/// What is known of a query's groups while it is bound.
#[derive(Default, Debug)]
pub(super) struct GroupScope {
    /// The columns that are keys.
    pub(super) columns: Vec<(u16, u16)>,
    /// All keys, and what they look like where they are no columns.
    pub(super) keys: Vec<(Option<String>, Expr)>,
    pub(super) aggregates: Vec<Aggregate>,
}

/// Which aggregate a call is.
pub(super) fn aggregate_kind(function: &Function) -> Option<AggregateKind> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    Some(match names::fold(name).as_str() {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "avg" => AggregateKind::Avg,
        "min" => AggregateKind::Min,
        "max" => AggregateKind::Max,
        "bool_and" | "every" => AggregateKind::BoolAnd,
        "bool_or" => AggregateKind::BoolOr,
        "string_agg" => AggregateKind::StringAgg,
        "array_agg" => AggregateKind::ArrayAgg,
        _ => return None,
    })
}

/// The arguments of a call without names, stars and clauses.
pub(super) fn plain_args<'f>(function: &'f Function, source: Source<'_>) -> Result<Vec<&'f Ast>, SqlError> {
    let unsupported = |what: &str| {
        let error = SqlError::unsupported(what);
        match function.name.0.first() {
            Some(ObjectNamePart::Identifier(name)) => source.locate(error, name.span),
            _ => error,
        }
    };
    match &function.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::Subquery(_) => Err(unsupported("a query as the only argument")),
        FunctionArguments::List(list) => list
            .args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
                _ => Err(unsupported("this form of argument")),
            })
            .collect(),
    }
}

/// Whether an aggregate stands in an expression, outside of queries in it.
pub(super) fn has_aggregate(tree: &dyn Walk) -> bool {
    struct Find(usize);
    impl Visitor for Find {
        type Break = ();
        fn pre_visit_query(&mut self, _: &AstQuery) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &AstQuery) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
            match expr {
                Ast::Function(f) if self.0 == 0 && f.over.is_none() && aggregate_kind(f).is_some() => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    tree.walk(&mut Find(0)).is_break()
}

impl Scope<'_> {
    /// Adds a key of GROUP BY.
    pub(super) fn add_key(&mut self, ast: &Ast, key: Expr) {
        let text = match &key.kind {
            ExprKind::Column(ColumnRef { depth: 0, relation, column }) => {
                self.group.columns.push((*relation, *column));
                None
            }
            _ => Some(ast.to_string()),
        };
        self.group.keys.push((text, key));
    }

    /// The expression with each part that is a key of GROUP BY replaced by a name for that key.
    pub(super) fn with_keys(&self, ast: &Ast) -> Option<Ast> {
        if self.group.keys.iter().all(|(text, _)| text.is_none()) {
            return None;
        }
        let mut ast = ast.clone();
        let _ = ast.walk_mut(&mut Replace { group: &self.group, inside: 0 });
        Some(ast)
    }

    /// The key that a name made by [`Scope::with_keys`] stands for.
    pub(super) fn group_key(&self, name: &Ident) -> Expr {
        let at = name.value.parse::<usize>().unwrap_or(0);
        let ty = self.group.keys.get(at).map_or(Type::Scalar(Scalar::Text), |(_, key)| key.ty.clone());
        let relation = self.relations.len() as u16;
        Expr { kind: ExprKind::Column(ColumnRef { depth: 0, relation, column: at as u16 }), ty }
    }

    /// Binds a call of an aggregate: its result is a column of the groups' own relation.
    pub(super) fn aggregate(&mut self, kind: AggregateKind, function: &Function) -> Result<Expr, SqlError> {
        let at = match function.name.0.first() {
            Some(ObjectNamePart::Identifier(name)) => name.clone(),
            _ => Ident::new(""),
        };
        match self.phase {
            Phase::Grouped => {}
            Phase::Inside => {
                let message = "aggregate function calls cannot be nested";
                return Err(self.error(SqlState::GROUPING_ERROR, message, &at));
            }
            Phase::Refused(clause) => {
                let message = format!("aggregate functions are not allowed in {clause}");
                return Err(self.error(SqlState::GROUPING_ERROR, message, &at));
            }
        }
        if function.over.is_some() {
            return Err(self.source().locate(SqlError::unsupported("a window function"), at.span));
        }
        self.phase = Phase::Inside;
        let bound = self.aggregate_parts(kind, function, &at);
        self.phase = Phase::Grouped;
        let aggregate = bound?;
        let ty = aggregate.ty.clone();
        let column = (self.group.keys.len() + self.group.aggregates.len()) as u16;
        self.group.aggregates.push(aggregate);
        let relation = self.relations.len() as u16;
        Ok(Expr { kind: ExprKind::Column(ColumnRef { depth: 0, relation, column }), ty })
    }

    fn aggregate_parts(
        &mut self,
        kind: AggregateKind,
        function: &Function,
        at: &Ident,
    ) -> Result<Aggregate, SqlError> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(self.source().locate(SqlError::unsupported("this form of an aggregate"), at.span));
        };
        let star = matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        let mut args = Vec::new();
        if !(star && kind == AggregateKind::Count) {
            for arg in plain_args(function, self.source())? {
                args.push(expr::bind(arg, self)?);
            }
        }
        let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        let mut order = Vec::new();
        for clause in &list.clauses {
            let FunctionArgumentClause::OrderBy(keys) = clause else {
                let error = SqlError::unsupported("this clause of an aggregate");
                return Err(self.source().locate(error, at.span));
            };
            for key in keys {
                let by = OrderBy::Expr(expr::bind(&key.expr, self)?);
                let (descending, nulls_first) = order_options(&key.options);
                order.push(OrderKey { by, descending, nulls_first });
            }
        }
        if distinct && !order.is_empty() {
            let error = SqlError::unsupported("an aggregate with DISTINCT and ORDER BY");
            return Err(self.source().locate(error, at.span));
        }
        let filter = match &function.filter {
            Some(filter) => Some(expr::to_bool(expr::bind(filter, self)?, "FILTER")?),
            None => None,
        };
        let ty = match (kind, args.is_empty() && !star) {
            (_, false) => result_type(kind, &mut args),
            (_, true) => None,
        };
        let ty = ty.ok_or_else(|| {
            let types: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
            let message = format!("function {}({}) does not exist", names::fold(at), types.join(", "));
            self.error(SqlState::UNDEFINED_FUNCTION, message, at).with_hint(
                "No function matches the given name and argument types. You might need to add explicit type \
                 casts.",
            )
        })?;
        Ok(Aggregate { kind, args, distinct, filter, order, ty })
    }
}

/// The type of an aggregate's result; `None` if there is no such aggregate.
fn result_type(kind: AggregateKind, args: &mut [Expr]) -> Option<Type> {
    if let (AggregateKind::StringAgg, [value, by]) = (kind, &*args) {
        let text = |expr: &Expr| matches!(expr.ty, Type::Scalar(Scalar::Text | Scalar::Bpchar));
        return (text(value) && text(by)).then_some(Type::Scalar(Scalar::Text));
    }
    if kind == AggregateKind::Count && args.len() <= 1 {
        return Some(Type::Scalar(Scalar::BigInt));
    }
    let [arg] = args else { return None };
    let Type::Scalar(scalar) = arg.ty else { return None };
    let number = match scalar {
        Scalar::SmallInt | Scalar::Integer => Scalar::BigInt,
        Scalar::BigInt => Scalar::Numeric { scale: Some(0) },
        other => other,
    };
    let is_number = matches!(
        scalar,
        Scalar::SmallInt
            | Scalar::Integer
            | Scalar::BigInt
            | Scalar::Real
            | Scalar::Double
            | Scalar::Numeric { .. }
    );
    let ty = match kind {
        AggregateKind::Sum if is_number => number,
        AggregateKind::Avg if matches!(scalar, Scalar::Real | Scalar::Double) => Scalar::Double,
        AggregateKind::Avg if is_number => Scalar::Numeric { scale: None },
        AggregateKind::Min | AggregateKind::Max if scalar != Scalar::Bool && scalar != Scalar::Uuid => scalar,
        AggregateKind::BoolAnd | AggregateKind::BoolOr if scalar == Scalar::Bool => Scalar::Bool,
        AggregateKind::ArrayAgg => return Some(Type::Array(scalar)),
        _ => return None,
    };
    Some(Type::Scalar(ty))
}

/// Puts names for the keys of GROUP BY that are no columns, outside of aggregates and queries.
struct Replace<'g> {
    group: &'g GroupScope,
    inside: usize,
}

fn is_aggregate(expr: &Ast) -> bool {
    matches!(expr, Ast::Function(function) if aggregate_kind(function).is_some())
}

impl VisitorMut for Replace<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut AstQuery) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut AstQuery) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if is_aggregate(expr) {
            self.inside += 1;
        }
        if self.inside > 0 || matches!(expr, Ast::Identifier(_) | Ast::Value(_)) {
            return ControlFlow::Continue(());
        }
        let text = expr.to_string();
        if let Some(at) = self.group.keys.iter().position(|(key, _)| key.as_ref() == Some(&text)) {
            let mut name = Ident::new(at.to_string());
            name.quote_style = Some(GROUP_KEY);
            *expr = Ast::Identifier(name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if is_aggregate(expr) {
            self.inside -= 1;
        }
        ControlFlow::Continue(())
    }
}
