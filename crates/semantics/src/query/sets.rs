//! UNION, INTERSECT and EXCEPT, bound.
//!
//! Responsible for: one type for each column of all branches, by PostgreSQL's rule of two at a time. Not
//! responsible for: the branches (`bind`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{SetExpr, SetOperator, SetQuantifier};
use albireo_sql::source::{Source, Span};

use super::bind::{Bound, Columns};
use super::scope::{Env, Scope};
use super::tree::{Body, Distinct, Pool, Query, Relation, RelationSource, Select, SetKind, SetOperation};
use crate::expr::{self, CastKind, ColumnRef, Expr, ExprKind, Names};
use crate::types::{Scalar, Type};

type Result<T> = std::result::Result<T, SqlError>;

/// Chains up to this length become left-deep trees, longer ones flat trees.
const SHORT: usize = 16;

/// How the branches of a chain are put together.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct How {
    pub(super) kind: SetKind,
    pub(super) all: bool,
}

impl How {
    pub(super) fn of(op: SetOperator, quantifier: SetQuantifier) -> Result<Self> {
        let kind = match op {
            SetOperator::Union => SetKind::Union,
            SetOperator::Intersect => SetKind::Intersect,
            SetOperator::Except | SetOperator::Minus => SetKind::Except,
        };
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Err(SqlError::unsupported("a set operation BY NAME")),
        };
        Ok(Self { kind, all })
    }

    fn word(self) -> &'static str {
        match self.kind {
            SetKind::Union => "UNION",
            SetKind::Intersect => "INTERSECT",
            SetKind::Except => "EXCEPT",
        }
    }

    /// Whether several may be put together in any grouping.
    fn is_flat(self) -> bool {
        self.kind != SetKind::Except
    }
}

/// The branches of a set operation: the first, and the others with how each is put to those before.
pub(super) fn branches(tree: &SetExpr) -> Result<(&SetExpr, Vec<(How, &SetExpr)>)> {
    let mut others = Vec::new();
    let mut left = tree;
    while let SetExpr::SetOperation { left: next, op, set_quantifier, right } = left {
        let how = How::of(*op, *set_quantifier)?;
        let mut flat = Vec::new();
        flatten(right, how, &mut flat);
        others.extend(flat.into_iter().rev().map(|right| (how, right)));
        left = next;
    }
    others.reverse();
    Ok((left, others))
}

/// The parser gives long chains a flat form; this is their order.
fn flatten<'t>(tree: &'t SetExpr, how: How, into: &mut Vec<&'t SetExpr>) {
    let mut waiting = vec![tree];
    while let Some(tree) = waiting.pop() {
        match tree {
            SetExpr::SetOperation { left, op, set_quantifier, right }
                if how.is_flat() && How::of(*op, *set_quantifier).is_ok_and(|inner| inner == how) =>
            {
                waiting.extend([&**right, &**left]);
            }
            other => into.push(other),
        }
    }
}

/// Binds a set operation.
pub(super) fn bind(env: Env<'_>, tree: &SetExpr, pass: &mut Scope<'_>) -> Result<Bound> {
    let (first, others) = branches(tree)?;
    let mut bound = super::bind::branch(env, first, pass)?;
    let mut others = others.into_iter().peekable();
    while let Some((how, tree)) = others.next() {
        let mut parts = vec![bound, super::bind::branch(env, tree, pass)?];
        while let Some((_, tree)) = others.next_if(|(next, _)| how.is_flat() && *next == how) {
            parts.push(super::bind::branch(env, tree, pass)?);
        }
        bound = combine(how, parts, pass.source())?;
    }
    Ok(bound)
}

/// Puts branches together.
pub(super) fn combine(how: How, parts: Vec<Bound>, source: Source<'_>) -> Result<Bound> {
    let word = how.word();
    let mut columns: Columns = Vec::new();
    let mut unknown: Vec<bool> = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut queries: Vec<(Query, Vec<Type>)> = Vec::with_capacity(parts.len());
    for part in parts {
        let mut query = as_query(part.body);
        let mut types: Vec<Type> = part.columns.iter().map(|(_, ty)| ty.clone()).collect();
        if queries.is_empty() {
            (columns, unknown, spans) = (part.columns, part.unknown, part.spans);
            queries.push((query, types));
            continue;
        }
        if columns.len() != types.len() {
            let message = format!("each {word} query must have the same number of columns");
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            return Err(source.locate(error, part.spans.first().copied().unwrap_or_else(Span::empty)));
        }
        for (at, (_, ty)) in columns.iter_mut().enumerate() {
            let literals = [unknown[at], part.unknown[at]];
            let there = |error: SqlError| source.locate(error, part.spans[at]);
            let common = common(ty, &types[at], literals, word).map_err(there)?;
            // A literal takes the type it meets first.
            if literals[0] && common != *ty {
                let here = |error: SqlError| source.locate(error, spans[at]);
                retype(&mut queries[0].0, at, &common).map_err(here)?;
                queries[0].1[at] = common.clone();
            }
            if literals[1] && common != types[at] {
                retype(&mut query, at, &common).map_err(there)?;
                types[at] = common.clone();
            }
            *ty = common;
        }
        // Two literals make a column of texts.
        unknown.iter_mut().for_each(|unknown| *unknown = false);
        queries.push((query, types));
    }
    for (query, types) in &mut queries {
        for (at, (from, (_, to))) in types.iter().zip(&columns).enumerate() {
            if from != to {
                retype(query, at, to)?;
            }
        }
    }
    let body = join(how, queries.into_iter().map(|(query, _)| query).collect()).body;
    Ok(Bound { body, columns, order: Vec::new(), unknown, spans, visible: Vec::new() })
}

/// The type that two columns have in common.
pub(super) fn common(left: &Type, right: &Type, literals: [bool; 2], word: &str) -> Result<Type> {
    let of_type = |ty: &Type, literal: bool| match literal {
        true => Expr::null(),
        false => Expr { ty: ty.clone(), ..Expr::null() },
    };
    expr::common_type(&mut [of_type(left, literals[0]), of_type(right, literals[1])], word)
}

fn join(how: How, mut queries: Vec<Query>) -> Query {
    if queries.len() > SHORT && how.is_flat() {
        let right = queries.split_off(queries.len() / 2);
        return operation(how, join(how, queries), join(how, right));
    }
    let mut queries = queries.into_iter();
    let first = queries.next().unwrap_or_else(|| as_query(Body::Values(Vec::new())));
    queries.fold(first, |left, right| operation(how, left, right))
}

fn operation(How { kind, all }: How, left: Query, right: Query) -> Query {
    as_query(Body::Set(Box::new(SetOperation { kind, all, left, right })))
}

pub(super) fn as_query(body: Body) -> Query {
    Query { ctes: Vec::new(), body, order: Vec::new(), limit: None, offset: None }
}

/// Gives a column of a query another type.
pub(super) fn retype(query: &mut Query, column: usize, ty: &Type) -> Result<()> {
    if !is_plain(query) && !keeps_apart(&output_types(query)[column], ty) {
        wrap(query);
    }
    let convert = |expr: &mut Expr| {
        let mut taken = std::mem::replace(expr, Expr::null());
        let literal = matches!(taken.kind, ExprKind::Constant(_)) && taken.ty == Type::Scalar(Scalar::Text);
        if literal || expr::is_open(&taken) {
            taken = expr::unsettled(taken);
        }
        let cast = expr::cast_to(taken, ty, None, CastKind::Assignment)?;
        expr::check_literal(&cast)?;
        let numbers = |ty: &Type| matches!(ty, Type::Scalar(Scalar::Numeric { .. }));
        *expr = if numbers(ty) && numbers(&cast.ty) { Expr { ty: ty.clone(), ..cast } } else { cast };
        Ok::<(), SqlError>(())
    };
    match &mut query.body {
        Body::Select(select) => convert(&mut select.outputs[column]),
        Body::Values(rows) => rows.iter_mut().try_for_each(|row| convert(&mut row[column])),
        Body::Nested(inner) => retype(inner, column, ty),
        Body::Set(set) => {
            retype(&mut set.left, column, ty)?;
            retype(&mut set.right, column, ty)
        }
    }
}

/// Whether different values stay different, and in their order.
fn keeps_apart(from: &Type, to: &Type) -> bool {
    use Scalar::{BigInt, Date, Integer, Numeric, SmallInt, Text, Timestamp, TimestampTz};
    let (Type::Scalar(from), Type::Scalar(to)) = (from, to) else { return from == to };
    match (from, to) {
        // Literals are among the texts.
        (Text, _) | (SmallInt | Integer | BigInt, Numeric { .. }) => true,
        (SmallInt, Integer | BigInt) | (Integer, BigInt) => true,
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) => true,
        (from, to) => from.same(*to),
    }
}

/// Whether nothing looks at the values of a query's columns before they are cast, as DISTINCT, ORDER BY
/// and set operations do.
pub(super) fn is_plain(query: &Query) -> bool {
    query.order.is_empty()
        && match &query.body {
            Body::Select(select) => matches!(select.distinct, Distinct::No),
            Body::Values(_) => true,
            Body::Nested(_) | Body::Set(_) => false,
        }
}

/// Makes a query `SELECT * FROM (query)`.
pub(super) fn wrap(query: &mut Query) {
    let inner = std::mem::replace(query, as_query(Body::Values(Vec::new())));
    query.body = Body::Select(Box::new(around(inner)));
}

/// `SELECT * FROM (query)`.
pub(super) fn around(inner: Query) -> Select {
    let types = output_types(&inner);
    let outputs = types.iter().enumerate().map(|(column, ty)| Expr {
        kind: ExprKind::Column(ColumnRef { depth: 0, relation: 0, column: column as u16 }),
        ty: ty.clone(),
    });
    let columns = types.iter().map(|ty| (String::new(), ty.clone())).collect();
    let outputs = outputs.collect();
    let relations = vec![Relation { source: RelationSource::Query(Box::new(inner)), columns }];
    Select::plain(relations, Pool::one(0, 0), outputs)
}

pub(super) fn output_types(query: &Query) -> Vec<Type> {
    match &query.body {
        Body::Select(select) => select.outputs.iter().map(|output| output.ty.clone()).collect(),
        Body::Values(rows) => rows.first().into_iter().flatten().map(|value| value.ty.clone()).collect(),
        Body::Nested(inner) => output_types(inner),
        Body::Set(set) => output_types(&set.left),
    }
}
