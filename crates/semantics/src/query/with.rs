//! WITH, bound.
//!
//! Responsible for: which queries of WITH see each other, recursive ones and the types of their columns. Not
//! responsible for: where a query may refer to itself (`recursion`).

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Cte as AstCte, CteAsMaterialized, Query as AstQuery, SetExpr, SetOperator, TableAlias, With,
};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::bind::{Bound, Columns, Tail};
use super::recursion::{self, Check};
use super::scope::{CteDef, CteLink, Env, Scope};
use super::sets::{self, How};
use super::tree::{Cte, Query, Repeated};
use crate::expr::Names;
use crate::types::{Scalar, Type};

type Result<T> = std::result::Result<T, SqlError>;

/// The queries of one WITH.
#[derive(Default)]
pub(super) struct Ctes {
    /// As they are seen.
    pub(super) defs: Vec<CteDef>,
    /// As they are computed; the same ones.
    queries: Vec<Cte>,
    /// Those of WITH inside of recursive ones, each to be computed before the query of this position.
    lifted: Vec<(usize, Cte)>,
}

impl Ctes {
    /// Those that are used, in the order they must be computed.
    pub(super) fn used(self) -> Vec<Cte> {
        let mut all = Vec::new();
        let mut lifted = self.lifted.into_iter().peekable();
        for (at, (query, def)) in self.queries.into_iter().zip(&self.defs).enumerate() {
            let uses = def.uses.get();
            while let Some((_, inner)) = lifted.next_if(|(before, _)| *before <= at) {
                if uses > 0 {
                    all.push(inner);
                }
            }
            if uses > 0 {
                all.push(Cte { uses, ..query });
            }
        }
        all
    }
}

/// Binds the queries of WITH.
pub(super) fn bind(env: Env<'_>, with: &With, pass: &mut Scope<'_>) -> Result<Ctes> {
    let names: Vec<String> = with.cte_tables.iter().map(|cte| names::fold(&cte.alias.name)).collect();
    let mut places = HashMap::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        if places.insert(name.as_str(), at).is_some() {
            let message = format!("WITH query name \"{name}\" specified more than once");
            let ident = &with.cte_tables[at].alias.name;
            return Err(pass.error(SqlState::DUPLICATE_ALIAS, message, ident));
        }
    }
    let mut own = vec![false; names.len()];
    let mut order: Vec<usize> = (0..names.len()).collect();
    if with.recursive {
        let mut needs = Vec::with_capacity(names.len());
        for (at, cte) in with.cte_tables.iter().enumerate() {
            let found = recursion::names_in(&*cte.query);
            own[at] = found.contains_key(&names[at]);
            let others = found.keys().filter_map(|name| places.get(name.as_str()).copied());
            needs.push(others.filter(|other| *other != at).collect());
        }
        order = sorted(&needs, with, pass)?;
    }
    let mut ctes = Ctes::default();
    for at in order {
        let cte = &with.cte_tables[at];
        match own[at] {
            true => recursive(env, cte, &names[at], pass, &mut ctes)?,
            false => plain(env, cte, &names[at], pass, &mut ctes)?,
        }
    }
    Ok(ctes)
}

/// The order in which each query comes after those that it refers to.
fn sorted(needs: &[Vec<usize>], with: &With, pass: &Scope<'_>) -> Result<Vec<usize>> {
    let mut waits: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut needed = vec![Vec::new(); needs.len()];
    for (at, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|need| needed[*need].push(at));
    }
    let mut ready: BTreeSet<usize> = (0..needs.len()).filter(|at| waits[*at] == 0).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for next in &needed[at] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    match waits.iter().position(|waits| *waits > 0) {
        Some(at) => {
            let message = "mutual recursion between WITH items is not implemented";
            let ident = &with.cte_tables[at].alias.name;
            Err(pass.error(SqlState::FEATURE_NOT_SUPPORTED, message, ident))
        }
        None => Ok(order),
    }
}

/// Gives the columns the names that are written after the query's.
fn name_columns(columns: &mut Columns, alias: &TableAlias, name: &str, pass: &Scope<'_>) -> Result<()> {
    if alias.columns.len() > columns.len() {
        let message = format!(
            "WITH query \"{name}\" has {} columns available but {} columns specified",
            columns.len(),
            alias.columns.len()
        );
        return Err(pass.error(SqlState::INVALID_COLUMN_REFERENCE, message, &alias.name));
    }
    for (column, alias) in columns.iter_mut().zip(&alias.columns) {
        column.0 = names::fold(&alias.name);
    }
    Ok(())
}

fn next_id(env: Env<'_>) -> u32 {
    let id = env.next_cte.get();
    env.next_cte.set(id + 1);
    id
}

fn materialized(cte: &AstCte) -> Option<bool> {
    cte.materialized.as_ref().map(|as_said| matches!(as_said, CteAsMaterialized::Materialized))
}

fn plain(env: Env<'_>, cte: &AstCte, name: &str, pass: &mut Scope<'_>, ctes: &mut Ctes) -> Result<()> {
    let (query, mut columns) = {
        let link = CteLink { ctes: &ctes.defs, parent: env.ctes };
        let inner_env = Env { ctes: Some(&link), ..env };
        let mut inner = Scope::passing(inner_env, &mut *pass);
        let (query, columns, _) = super::bind::bind_in(inner_env, &cte.query, &mut inner)?;
        (query, columns)
    };
    name_columns(&mut columns, &cte.alias, name, pass)?;
    let id = next_id(env);
    ctes.queries.push(Cte { id, query, repeated: None, materialized: materialized(cte), uses: 0 });
    ctes.defs.push(CteDef { name: name.to_owned(), id, columns, uses: Cell::new(0), recursive: false });
    Ok(())
}

/// A query that refers to itself: the part that begins decides about its columns.
fn recursive(env: Env<'_>, cte: &AstCte, name: &str, pass: &mut Scope<'_>, ctes: &mut Ctes) -> Result<()> {
    let invalid = || {
        let message = format!(
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
        );
        pass.error(SqlState::INVALID_RECURSION, message, &cte.alias.name)
    };
    let query = unwrapped(&cte.query);
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, .. } = query.body.as_ref() else {
        return Err(invalid());
    };
    let how = How::of(SetOperator::Union, *set_quantifier)?;
    let (first, mut others) = sets::branches(&query.body)?;
    let Some((_, last)) = others.pop() else { return Err(invalid()) };
    let mut check = Check::new(name, pass.source());
    std::iter::once(first)
        .chain(others.iter().map(|(_, tree)| *tree))
        .try_for_each(|tree| check.first(tree))?;
    let refers = check.repeated(last)?;
    refuse_tail(query, pass)?;
    if !refers {
        // What refers to the name is in a query that has another one of this name.
        return plain(env, cte, name, pass, ctes);
    }
    let inner_ctes = match &query.with {
        Some(with) => {
            let link = CteLink { ctes: &ctes.defs, parent: env.ctes };
            let inner_env = Env { ctes: Some(&link), ..env };
            bind(inner_env, with, pass)?
        }
        None => Ctes::default(),
    };
    let id = next_id(env);
    let link = CteLink { ctes: &ctes.defs, parent: env.ctes };
    let inner_link = CteLink { ctes: &inner_ctes.defs, parent: Some(&link) };
    let begins_env = Env { ctes: Some(&inner_link), ..env };
    let (first, mut columns, spans) = begins(begins_env, how, first, &others, pass)?;
    name_columns(&mut columns, &cte.alias, name, pass)?;
    let def = CteDef { name: name.to_owned(), id, columns, uses: Cell::new(0), recursive: true };
    let own = std::slice::from_ref(&def);
    let own_link = CteLink { ctes: own, parent: Some(&inner_link) };
    let repeated_env = Env { ctes: Some(&own_link), ..env };
    let repeated = repeats(repeated_env, last, &def, &spans, pass)?;
    let repeated = Some(Repeated { query: repeated, all: how.all });
    let position = ctes.queries.len();
    ctes.lifted.extend(inner_ctes.used().into_iter().map(|inner| (position, inner)));
    ctes.queries.push(Cte { id, query: first, repeated, materialized: materialized(cte), uses: 0 });
    ctes.defs.push(CteDef { uses: Cell::new(0), recursive: false, ..def });
    Ok(())
}

/// A query without parentheses around it.
fn unwrapped(query: &AstQuery) -> &AstQuery {
    let mut query = query;
    while let (SetExpr::Query(inner), true) = (query.body.as_ref(), is_bare(query)) {
        query = inner;
    }
    query
}

fn is_bare(query: &AstQuery) -> bool {
    query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none()
}

/// ORDER BY and LIMIT of a recursive query as a whole.
fn refuse_tail(query: &AstQuery, pass: &Scope<'_>) -> Result<()> {
    let tail = Tail::of(query)?;
    let [order, limit, offset] = tail.places();
    let refused = [
        (!tail.order.is_empty(), order),
        (tail.offset.is_some(), offset),
        (tail.limit.is_some(), limit),
        (!query.locks.is_empty(), ("FOR UPDATE/SHARE", Span::empty())),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, (what, span))) => {
            let message = format!("{what} in a recursive query is not implemented");
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            Err(pass.source().locate(error, span))
        }
        None => Ok(()),
    }
}

/// The part that begins. Its numbers may get other scales when it is repeated.
fn begins(
    env: Env<'_>,
    how: How,
    first: &SetExpr,
    others: &[(How, &SetExpr)],
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<Span>)> {
    let mut inner = Scope::passing(env, &mut *pass);
    let mut parts = vec![super::bind::branch(env, first, &mut inner)?];
    let mut last = how;
    for (how, tree) in others {
        if *how != last && parts.len() > 1 {
            parts = vec![sets::combine(last, parts, inner.source())?];
        }
        last = *how;
        parts.push(super::bind::branch(env, tree, &mut inner)?);
    }
    let bound = match parts.len() {
        1 => parts.remove(0),
        _ => sets::combine(last, parts, inner.source())?,
    };
    let Bound { body, mut columns, spans, .. } = bound;
    let mut query = sets::as_query(body);
    for (at, (_, ty)) in columns.iter_mut().enumerate() {
        let general = general(ty);
        if general != *ty {
            sets::retype(&mut query, at, &general)?;
            *ty = general;
        }
    }
    Ok((query, columns, spans))
}

/// The type without what is known of its scale.
fn general(ty: &Type) -> Type {
    match ty {
        Type::Scalar(Scalar::Numeric { .. }) => Type::Scalar(Scalar::Numeric { scale: None }),
        Type::Array(Scalar::Numeric { .. }) => Type::Array(Scalar::Numeric { scale: None }),
        other => other.clone(),
    }
}

/// The repeated part, which must give the types of the part that begins.
fn repeats(
    env: Env<'_>,
    tree: &SetExpr,
    def: &CteDef,
    begun: &[Span],
    pass: &mut Scope<'_>,
) -> Result<Query> {
    let mut inner = Scope::passing(env, &mut *pass);
    let Bound { body, columns, unknown, spans, .. } = super::bind::branch(env, tree, &mut inner)?;
    if columns.len() != def.columns.len() {
        let message = "each UNION query must have the same number of columns";
        let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
        return Err(inner.source().locate(error, spans.first().copied().unwrap_or_else(Span::empty)));
    }
    let mut query = sets::as_query(body);
    for (at, ((_, ty), (_, wanted))) in columns.iter().zip(&def.columns).enumerate() {
        let there = |error: SqlError| inner.source().locate(error, spans[at]);
        let common = sets::common(wanted, ty, [false, unknown[at]], "UNION").map_err(there)?;
        if general(&common) != general(wanted) {
            let message = format!(
                "recursive query \"{}\" column {} has type {wanted} in non-recursive term but type {common} \
                 overall",
                def.name,
                at + 1
            );
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("Cast the output of the non-recursive term to the correct type.");
            return Err(inner.source().locate(error, begun.get(at).copied().unwrap_or_else(Span::empty)));
        }
        if ty != wanted || unknown[at] {
            sets::retype(&mut query, at, wanted).map_err(there)?;
        }
    }
    Ok(query)
}
