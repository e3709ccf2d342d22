//! FROM, bound: relations and how they are joined.
//!
//! Responsible for: tables, derived tables, functions in FROM, joins, aliases, USING. Not responsible
//! for: the order of joins and the use of indexes (`access`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType};
use albireo_sql::ast::{
    BinaryOperator, Expr as Ast, Ident, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor,
    TableWithJoins,
};
use albireo_sql::{TableDef, names};

use super::scope::{Named, Scope, Visible};
use super::tree::{Condition, Item, Pool, Query, Relation, RelationSource, mask};
use crate::expr::{self, Actual, CastKind, Expr, Names};
use crate::types::{Scalar, Type};

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
        };
        self.add(scope, RelationSource::Table(Arc::clone(table)), named, alias)
    }

    /// Adds a relation under its alias.
    fn add(
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
        if scope.relations.iter().any(|other| other.name == named.name) {
            let message = format!("table name \"{}\" specified more than once", named.name);
            let error = SqlError::new(SqlState::DUPLICATE_ALIAS, message);
            return Err(match alias {
                Some(alias) => scope.source().locate(error, alias.name.span),
                None => error,
            });
        }
        self.relations.push(Relation { source, columns: named.columns.clone() });
        scope.add(named, true)
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
        let first = scope.visible.len();
        let mut pool = self.factor(scope, &item.relation)?;
        for join in &item.joins {
            let middle = scope.visible.len();
            let right = self.factor(scope, &join.relation)?;
            let place = (first, middle);
            pool = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::CrossJoin(on) => {
                    pool.merge(right);
                    pool.conditions.extend(join_condition(scope, on, place, false)?);
                    pool
                }
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => {
                    let on = join_condition(scope, on, place, false)?;
                    outer_join(pool, right, on)?
                }
                JoinOperator::Right(on) | JoinOperator::RightOuter(on) => {
                    let on = join_condition(scope, on, place, true)?;
                    outer_join(right, pool, on)?
                }
                JoinOperator::FullOuter(_) => {
                    return Err(SqlError::unsupported("FULL JOIN in a procedure")
                        .with_hint("Write it as a UNION ALL of a LEFT JOIN and the rows without partner."));
                }
                _ => return Err(SqlError::unsupported("this kind of join")),
            };
        }
        Ok(pool)
    }

    fn factor(&mut self, scope: &mut Scope<'_>, factor: &TableFactor) -> Result<Pool, SqlError> {
        match factor {
            TableFactor::Table { name, alias, args: None, with_ordinality: false, sample: None, .. } => {
                self.table(scope, name, alias.as_ref())
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. } => {
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
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let env = scope.env;
                let (query, columns) = super::bind::bind_nested(env, subquery, scope)?;
                let Some(alias) = alias else {
                    let message = "subquery in FROM must have an alias";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                        .with_hint("For example, FROM (SELECT ...) [AS] foo."));
                };
                self.derived(scope, query, columns, alias).map(|relation| Pool::one(relation, 0))
            }
            TableFactor::Derived { lateral: true, .. } => {
                Err(SqlError::unsupported("LATERAL in a procedure")
                    .with_hint("Loop over the rows of one query and run the other for each."))
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.item(scope, table_with_joins),
            _ => Err(SqlError::unsupported("this form of FROM in a procedure")),
        }
    }

    fn derived(
        &mut self,
        scope: &mut Scope<'_>,
        query: Query,
        columns: Vec<(String, Type)>,
        alias: &TableAlias,
    ) -> Result<u16, SqlError> {
        let named = unkeyed(String::new(), columns);
        self.add(scope, RelationSource::Query(Box::new(query)), named, Some(alias))
    }

    fn table(
        &mut self,
        scope: &mut Scope<'_>,
        name: &ObjectName,
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let source = scope.source();
        let qualified = names::qualified(name, source)?;
        if qualified.schema.is_none() {
            let mut link = scope.env.ctes;
            while let Some(ctes) = link {
                if let Some(cte) = ctes.ctes.iter().find(|cte| cte.name == qualified.name) {
                    cte.used.set(true);
                    let named = unkeyed(cte.name.clone(), cte.columns.clone());
                    let relation = self.add(scope, RelationSource::Cte(cte.id), named, alias)?;
                    return Ok(Pool::one(relation, 0));
                }
                link = ctes.parent;
            }
        }
        let table = Arc::clone(scope.env.catalog.resolve_table(&qualified, source)?);
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
        let bound = args.iter().map(|(_, arg)| expr::bind(arg, scope)).collect::<Result<Vec<_>, _>>()?;
        let requires = mask(&scope.take_uses());
        let actuals: Vec<Actual> = args.iter().map(|(actual, _)| actual.clone()).collect();
        // What is built in has no parameters with names.
        let named = actuals.iter().any(|actual| actual.name.is_some());
        let built_in = (!named).then_some(written.name.as_str());
        let (source, ty) = match (built_in.unwrap_or_default(), bound.as_slice()) {
            ("generate_series", [_, _] | [_, _, _]) => series(bound).ok_or_else(|| {
                SqlError::unsupported("generate_series of other than integers in a procedure")
            })?,
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
                        SqlError::unsupported(format!("{}() in FROM in a procedure", written.name))
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
fn unkeyed(name: String, columns: Vec<(String, Type)>) -> Named {
    Named { name, schema: None, hidden: None, columns, key: Vec::new() }
}

/// `generate_series` of integers, all made of the widest type.
fn series(args: Vec<Expr>) -> Option<(RelationSource, Scalar)> {
    let mut wide = Scalar::Integer;
    for arg in &args {
        match arg.ty {
            Type::Scalar(Scalar::SmallInt | Scalar::Integer) => {}
            Type::Scalar(Scalar::BigInt) => wide = Scalar::BigInt,
            _ => return None,
        }
    }
    let to = if wide == Scalar::BigInt { SqlType::BigInt } else { SqlType::Integer };
    let args = args.into_iter().map(|arg| expr::cast(arg, to, CastKind::Assignment).ok());
    Some((RelationSource::Series(args.collect::<Option<Vec<_>>>()?), wide))
}

fn outer_join(mut left: Pool, mut right: Pool, on: Vec<Condition>) -> Result<Pool, SqlError> {
    right.conditions.extend(on);
    let inside = right.relations();
    if left.requires() & inside != 0 {
        return Err(SqlError::unsupported("a function over columns of the other side of an outer join"));
    }
    let requires = (left.relations() | right.requires()) & !inside;
    left.items.push(Item::Left { pool: right, requires });
    Ok(left)
}

/// The conditions of a join. `place` is where the columns of its left and right side begin.
fn join_condition(
    scope: &mut Scope<'_>,
    constraint: &JoinConstraint,
    place: (usize, usize),
    keep_right: bool,
) -> Result<Vec<Condition>, SqlError> {
    let columns: Vec<String> = match constraint {
        JoinConstraint::None => return Ok(Vec::new()),
        JoinConstraint::On(on) => {
            let mut conditions = Vec::new();
            super::bind::conditions(scope, on, "JOIN/ON", &mut conditions)?;
            return Ok(conditions);
        }
        JoinConstraint::Using(columns) => columns
            .iter()
            .map(|name| names::qualified(name, scope.source()).map(|name| name.name))
            .collect::<Result<_, _>>()?,
        JoinConstraint::Natural => {
            let (left, right) = scope.visible[place.0..].split_at(place.1 - place.0);
            let both = left.iter().filter(|l| right.iter().any(|r| r.name == l.name));
            both.map(|visible| visible.name.clone()).collect()
        }
    };
    let mut conditions = Vec::new();
    let mut middle = place.1;
    for (at, name) in columns.iter().enumerate() {
        let left = position(scope, name, place.0..middle)?;
        let right = position(scope, name, middle..scope.visible.len())?;
        let side = |scope: &Scope<'_>, visible: &Visible| {
            let relation = &scope.relations[usize::from(visible.relation)].name;
            Ast::CompoundIdentifier(vec![names::quoted(relation), names::quoted(name)])
        };
        let equal = Ast::BinaryOp {
            left: Box::new(side(scope, &scope.visible[left])),
            op: BinaryOperator::Eq,
            right: Box::new(side(scope, &scope.visible[right])),
        };
        super::bind::conditions(scope, &equal, "JOIN/USING", &mut conditions)?;
        // One column is left of the two, and it comes first.
        let (right, left) = (scope.visible.remove(right), scope.visible.remove(left));
        scope.visible.insert(place.0 + at, if keep_right { right } else { left });
        middle = middle.max(place.0 + at + 1);
    }
    Ok(conditions)
}

fn position(scope: &Scope<'_>, name: &str, range: std::ops::Range<usize>) -> Result<usize, SqlError> {
    let side = if range.end == scope.visible.len() { "right" } else { "left" };
    let mut found = range.filter(|at| scope.visible[*at].name == name);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => {
            let message =
                format!("column \"{name}\" specified in USING clause does not exist in {side} table");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
        _ => {
            let message = format!("common column name \"{name}\" appears more than once in {side} table");
            Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message))
        }
    }
}
