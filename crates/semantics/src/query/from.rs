//! FROM, bound: relations and how they are joined.
//!
//! Responsible for: tables, derived tables, functions in FROM, how joins nest, aliases. Not responsible for:
//! ON and USING (`join`), the order of joins and the use of indexes.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Expr as Ast, Ident, JoinConstraint, JoinOperator, ObjectName, Spanned, TableAlias, TableFactor,
    TableWithJoins,
};
use albireo_sql::{TableDef, names};

use super::file;
use super::join::{self, Kind};
use super::scope::{Named, Phase, Scope, lengths};
use super::tree::{Pool, Query, Relation, RelationSource, mask};
use crate::expr::{self, Actual, Choice, Expr, Names};
use crate::types::{Scalar, Type};

const NUMERIC: Scalar = Scalar::Numeric { scale: None };

/// The relations bound so far.
#[derive(Default)]
pub(super) struct From {
    pub(super) relations: Vec<Relation>,
}

impl From {
    /// Adds a table; the statement's own comes first.
    pub(super) fn add_table(
        &mut self,
        scope: &mut Scope<'_>,
        table: &Arc<TableDef>,
        alias: Option<&TableAlias>,
    ) -> Result<u16, SqlError> {
        let columns = table.columns.iter().map(|c| (c.name.clone(), Type::Scalar(Scalar::of(c.ty))));
        let columns: Vec<(String, Type)> = columns.collect();
        let key = table.primary_key().unwrap_or_default().iter().map(|column| column.0).collect();
        let named = Named {
            name: table.name.clone(),
            schema: Some(table.schema.clone()),
            hidden: Some(table.name.clone()),
            columns,
            key,
            lengths: lengths(table),
        };
        self.add(scope, RelationSource::Table(Arc::clone(table)), named, alias)
    }

    /// Adds a relation under its alias.
    pub(super) fn add(
        &mut self,
        scope: &mut Scope<'_>,
        source: RelationSource,
        mut named: Named,
        alias: Option<&TableAlias>,
    ) -> Result<u16, SqlError> {
        if let Some(alias) = alias {
            let name = names::fold(&alias.name);
            let function = match &source {
                RelationSource::Series(_) | RelationSource::Unnest(_) => true,
                RelationSource::Routine(call, _) => call.scalar,
                _ => false,
            };
            if function && alias.columns.is_empty() {
                named.columns[0].0.clone_from(&name);
            }
            if alias.columns.len() > named.columns.len() {
                let message = format!(
                    "table \"{name}\" has {} columns available but {} columns specified",
                    named.columns.len(),
                    alias.columns.len()
                );
                return Err(scope.error(SqlState::INVALID_COLUMN_REFERENCE, message, &alias.name));
            }
            for (column, alias) in named.columns.iter_mut().zip(&alias.columns) {
                column.0 = names::fold(&alias.name);
            }
            if name == named.name {
                named.hidden = None;
            }
            named.name = name;
            named.schema = None;
        } else if !matches!(source, RelationSource::Table(_)) {
            named.hidden = None;
        }
        check_taken(scope, &named.name, named.schema.as_deref(), alias)?;
        self.relations.push(Relation { source, columns: named.columns.clone() });
        scope.add(named)
    }

    /// Binds the items of FROM.
    pub(super) fn items(
        &mut self,
        scope: &mut Scope<'_>,
        items: &[TableWithJoins],
    ) -> Result<Pool, SqlError> {
        let mut pool = Pool::default();
        for item in items {
            pool.merge(self.item(scope, item)?);
        }
        Ok(pool)
    }

    fn item(&mut self, scope: &mut Scope<'_>, item: &TableWithJoins) -> Result<Pool, SqlError> {
        let first = scope.mark();
        let mut pool = self.factor(scope, &item.relation)?;
        for join in &item.joins {
            let middle = scope.mark();
            let (kind, constraint) = kind_of(&join.join_operator)?;
            // A row of the right side may have no partner on the left that it could refer to.
            let apart = matches!(kind, Kind::Right | Kind::Full);
            let left = first.entries..middle.entries;
            if apart {
                scope.entries[left.clone()].iter_mut().for_each(|entry| entry.lateral = false);
            }
            let right = self.factor(scope, &join.relation)?;
            scope.entries[left].iter_mut().for_each(|entry| entry.lateral = true);
            let floor = std::mem::replace(&mut scope.floor, first);
            let on = join::condition(scope, constraint, (first, middle), kind)?;
            scope.floor = floor;
            pool = join::joined(kind, pool, right, on)?;
        }
        Ok(pool)
    }

    fn factor(&mut self, scope: &mut Scope<'_>, factor: &TableFactor) -> Result<Pool, SqlError> {
        match factor {
            TableFactor::Table { name, alias, args: None, with_ordinality: false, sample: None, .. } => {
                match file::path_of(name) {
                    Some(path) => self.path(scope, path, alias.as_ref()),
                    None => self.table(scope, name, alias.as_ref()),
                }
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. } => {
                if let Some(format) = file::format_of(name) {
                    return self.file_function(scope, (name, format), &args.args, alias.as_ref());
                }
                let args = expr::arguments(&args.args)?;
                self.function(scope, name, &args, alias.as_ref())
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                let args = expr::arguments(args)?;
                self.function(scope, name, &args, alias.as_ref())
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality: false, ..
            } => {
                let arg = |tree| (Actual { name: None, unknown: expr::is_unknown(tree) }, tree);
                let args: Vec<(Actual, &Ast)> = array_exprs.iter().map(arg).collect();
                self.function(scope, &ObjectName::from(vec![Ident::new("unnest")]), &args, alias.as_ref())
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let Some(alias) = alias else {
                    let message = "subquery in FROM must have an alias";
                    let error = SqlError::new(SqlState::SYNTAX_ERROR, message)
                        .with_hint("For example, FROM (SELECT ...) [AS] foo.");
                    return Err(scope.opening(error, subquery.span()));
                };
                let env = scope.env;
                if *lateral {
                    scope.take_uses();
                    let phase = Phase::Refused("FROM clause of their own query level");
                    let bound =
                        scope.within(phase, |scope| super::bind::bind_lateral(env, subquery, scope))?;
                    let requires = mask(&scope.take_uses());
                    return self.derived(scope, bound, RelationSource::Lateral, alias, requires);
                }
                let bound = super::bind::bind_nested(env, subquery, scope)?;
                self.derived(scope, bound, RelationSource::Query, alias, 0)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let since = scope.mark();
                let pool = self.item(scope, table_with_joins)?;
                if let Some(alias) = alias {
                    join::rename(scope, since, alias)?;
                }
                Ok(pool)
            }
            _ => Err(SqlError::unsupported("this form of FROM")),
        }
    }

    fn derived(
        &mut self,
        scope: &mut Scope<'_>,
        (query, columns): (Query, Vec<(String, Type)>),
        source: impl FnOnce(Box<Query>) -> RelationSource,
        alias: &TableAlias,
        requires: u64,
    ) -> Result<Pool, SqlError> {
        let named = unkeyed(String::new(), columns);
        let relation = self.add(scope, source(Box::new(query)), named, Some(alias))?;
        Ok(Pool::one(relation, requires))
    }

    fn table(
        &mut self,
        scope: &mut Scope<'_>,
        name: &ObjectName,
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let source = scope.source();
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident().filter(|ident| ident.quote_style.is_none())
            && names::is_reserved(&ident.value)
        {
            let message = format!("syntax error at or near \"{}\"", ident.value);
            return Err(source.locate(SqlError::new(SqlState::SYNTAX_ERROR, message), ident.span));
        }
        let qualified = names::qualified(name, source)?;
        if qualified.schema.is_none() {
            let mut link = scope.env.ctes;
            while let Some(ctes) = link {
                if let Some(cte) = ctes.ctes.iter().find(|cte| cte.name == qualified.name) {
                    cte.uses.set(cte.uses.get().saturating_add(1));
                    scope.recursive |= cte.recursive;
                    let named = unkeyed(cte.name.clone(), cte.columns.clone());
                    let relation = self.add(scope, RelationSource::Cte(cte.id, Vec::new()), named, alias)?;
                    return Ok(Pool::one(relation, 0));
                }
                link = ctes.parent;
            }
        }
        let view = qualified.schema.as_ref().and_then(|schema| scope.files()?.view(schema, &qualified.name));
        if let Some(view) = view {
            return self.view(scope, view, alias);
        }
        let source = scope.source();
        let table = scope.env.catalog.resolve_table(&qualified, source).map_err(|error| {
            let file_like = qualified.name.contains(['.', '/']) && error.hint().is_none();
            if file_like { error.with_hint("Write a file's name in single quotes.") } else { error }
        })?;
        let table = Arc::clone(table);
        let relation = self.add_table(scope, &table, alias)?;
        Ok(Pool::one(relation, 0))
    }

    fn function(
        &mut self,
        scope: &mut Scope<'_>,
        name: &ObjectName,
        args: &[(Actual, &Ast)],
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let written = names::qualified(name, scope.source())?;
        scope.take_uses();
        let bound = scope.within(Phase::Refused("functions in FROM"), |scope| {
            args.iter().map(|(_, arg)| expr::bind_open(arg, scope)).collect::<Result<Vec<_>, _>>()
        })?;
        let requires = mask(&scope.take_uses());
        let actuals: Vec<Actual> = args.iter().map(|(actual, _)| actual.clone()).collect();
        // What is built in has no parameters with names.
        let named = actuals.iter().any(|actual| actual.name.is_some());
        let built_in = if named { "" } else { written.name.as_str() };
        let open = built_in == "generate_series" && matches!(bound.len(), 2 | 3);
        let bound = if open { bound } else { bound.into_iter().map(expr::settle).collect() };
        let (source, ty) = match (built_in, bound.as_slice()) {
            _ if open => {
                series(bound, &written.name).map_err(|error| scope.source().locate(error, written.span))?
            }
            ("unnest", [array]) if matches!(array.ty, Type::Array(_)) => {
                let element = match array.ty {
                    Type::Array(element) => element,
                    _ => Scalar::Text,
                };
                let array = bound.into_iter().next().unwrap_or_else(Expr::null);
                (RelationSource::Unnest(array), element)
            }
            _ => {
                let Some(call) = scope.outer.rows_of(name, &actuals, bound)? else {
                    let error = if named {
                        let message = format!("function {} has no parameters with names", written.name);
                        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                    } else {
                        SqlError::unsupported(format!("{}() in FROM", written.name))
                    };
                    return Err(scope.source().locate(error, written.span));
                };
                let columns = call.columns.clone();
                let source = RelationSource::Routine(call, requires == 0);
                let relation = self.add(scope, source, unkeyed(written.name, columns), alias)?;
                return Ok(Pool::one(relation, requires));
            }
        };
        let columns = vec![(written.name.clone(), Type::Scalar(ty))];
        let relation = self.add(scope, source, unkeyed(written.name, columns), alias)?;
        Ok(Pool::one(relation, requires))
    }
}

/// A relation without alias and key.
pub(super) fn unkeyed(name: String, columns: Vec<(String, Type)>) -> Named {
    Named { name, schema: None, hidden: None, columns, key: Vec::new(), lengths: Vec::new() }
}

/// `generate_series` of numbers or moments, and the type of its values.
fn series(mut args: Vec<Expr>, name: &str) -> Result<(RelationSource, Scalar), SqlError> {
    const LISTS: &[&[Scalar]] = &[
        &[Scalar::Integer; 2],
        &[Scalar::Integer; 3],
        &[Scalar::BigInt; 2],
        &[Scalar::BigInt; 3],
        &[NUMERIC; 2],
        &[NUMERIC; 3],
        &[Scalar::Timestamp, Scalar::Timestamp, Scalar::Interval],
        &[Scalar::TimestampTz, Scalar::TimestampTz, Scalar::Interval],
    ];
    let scalar = |arg: &Expr| match arg.ty {
        Type::Scalar(scalar) => Some(scalar),
        _ => None,
    };
    let scalars: Option<Vec<Scalar>> = args.iter().map(scalar).collect();
    let chosen = scalars.map(|scalars| expr::choose(LISTS, &scalars));
    let list = match chosen {
        Some(Choice::One(at)) => LISTS[at],
        Some(Choice::Ambiguous) => return Err(super::signature::ambiguous(name, &args)),
        _ => return Err(super::signature::missing(name, &args)),
    };
    for (arg, to) in args.iter_mut().zip(list) {
        let taken = std::mem::replace(arg, Expr::null());
        *arg = expr::implicit_to(taken, *to).map(expr::settle)?;
        expr::check_literal(arg)?;
    }
    Ok((RelationSource::Series(args), list[0]))
}

/// The kind of a join, and its condition.
fn kind_of(operator: &JoinOperator) -> Result<(Kind, &JoinConstraint), SqlError> {
    let (kind, constraint) = match operator {
        JoinOperator::CrossJoin(constraint @ JoinConstraint::None) => return Ok((Kind::Inner, constraint)),
        JoinOperator::Join(on) | JoinOperator::Inner(on) => (Kind::Inner, on),
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (Kind::Left, on),
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (Kind::Right, on),
        JoinOperator::FullOuter(on) => (Kind::Full, on),
        JoinOperator::CrossJoin(_) => {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "CROSS JOIN has no condition"));
        }
        _ => return Err(SqlError::unsupported("this kind of join")),
    };
    match constraint {
        JoinConstraint::None => {
            Err(SqlError::new(SqlState::SYNTAX_ERROR, "a join needs ON, USING or NATURAL"))
        }
        _ => Ok((kind, constraint)),
    }
}

/// 42712 if a name of FROM is taken.
pub(super) fn check_taken(
    scope: &Scope<'_>,
    name: &str,
    schema: Option<&str>,
    alias: Option<&TableAlias>,
) -> Result<(), SqlError> {
    if !scope.is_taken(name, schema) {
        return Ok(());
    }
    let message = format!("table name \"{name}\" specified more than once");
    let error = SqlError::new(SqlState::DUPLICATE_ALIAS, message);
    Err(match alias {
        Some(alias) => scope.source().locate(error, alias.name.span),
        None => error,
    })
}
