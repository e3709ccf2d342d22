//! GROUP BY, bound.
//!
//! Responsible for: the keys, GROUPING SETS, ROLLUP and CUBE and their products. Not responsible for:
//! aggregates (`aggregate`), which columns may stand beside them (`regroup`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select as AstSelect,
    Spanned,
};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::aggregate::{AGGREGATES, WINDOWS};
use super::bind::ordinal;
use super::output::{Output, named_output};
use super::scope::{Phase, Scope};
use crate::expr::{self, Expr, ExprKind};

/// As many groupings as PostgreSQL has at most.
const MAX_SETS: usize = 4096;
/// As many parts of CUBE as PostgreSQL has at most.
const MAX_CUBE: usize = 12;

/// GROUP BY, bound.
#[derive(Default)]
pub(super) struct Keys {
    /// The keys, each once.
    pub(super) keys: Vec<Expr>,
    /// The groupings, if there are several or one of no keys.
    pub(super) sets: Option<Vec<Vec<usize>>>,
    /// Whether GROUP BY was written.
    pub(super) written: bool,
}

type Result<T> = std::result::Result<T, SqlError>;
/// Alternatives, each of which is a list of keys.
type Sets = Vec<Vec<usize>>;

/// Binds GROUP BY.
pub(super) fn bind(scope: &mut Scope<'_>, select: &AstSelect, outputs: &[Output]) -> Result<Keys> {
    let GroupByExpr::Expressions(elements, modifiers) = &select.group_by else {
        return Err(SqlError::unsupported("GROUP BY ALL"));
    };
    if !modifiers.is_empty() {
        return Err(SqlError::unsupported("this form of GROUP BY"));
    }
    scope.phase = Phase::Refused("GROUP BY");
    let mut binder = Binder { scope, outputs, keys: Vec::new() };
    let mut plain = true;
    let mut sets: Sets = vec![Vec::new()];
    for element in elements {
        plain &= is_plain(element);
        let alternatives = binder.element(element)?;
        sets = product(&sets, &alternatives)?;
    }
    let keys = binder.keys;
    let whole = |sets: &Sets| matches!(sets.as_slice(), [one] if one.len() == keys.len());
    let nothing = sets.len() == 1 && keys.is_empty();
    let written = !nothing;
    let sets = if plain || whole(&sets) { None } else { Some(sets) };
    Ok(Keys { keys, sets, written })
}

/// Whether GROUP BY makes the query one of groups.
pub(super) fn is_written(select: &AstSelect) -> bool {
    matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty())
}

fn is_plain(element: &Ast) -> bool {
    match element {
        Ast::Rollup(_) | Ast::Cube(_) | Ast::GroupingSets(_) => false,
        Ast::Tuple(items) => !items.is_empty(),
        _ => true,
    }
}

/// Each of the first with each of the second.
fn product(first: &Sets, second: &Sets) -> Result<Sets> {
    if first.len().saturating_mul(second.len()) > MAX_SETS {
        let message = format!("too many grouping sets present (maximum {MAX_SETS})");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let join = |a: &Vec<usize>, b: &Vec<usize>| {
        let mut joined = a.clone();
        joined.extend(b.iter().filter(|key| !a.contains(key)));
        joined
    };
    Ok(first.iter().flat_map(|a| second.iter().map(move |b| join(a, b))).collect())
}

struct Binder<'b, 's> {
    scope: &'b mut Scope<'s>,
    outputs: &'b [Output],
    keys: Vec<Expr>,
}

impl Binder<'_, '_> {
    fn element(&mut self, element: &Ast) -> Result<Sets> {
        match element {
            Ast::Tuple(items) => Ok(vec![self.list(items)?]),
            Ast::Rollup(parts) => self.rollup(parts),
            Ast::Cube(parts) => self.cube(parts),
            Ast::GroupingSets(parts) => self.grouping_sets(parts),
            key => Ok(vec![self.list(std::slice::from_ref(key))?]),
        }
    }

    fn grouping_sets(&mut self, parts: &[Vec<Ast>]) -> Result<Sets> {
        let mut sets = Sets::new();
        for part in parts {
            match part.as_slice() {
                [Ast::Function(function)] => match self.nested(function)? {
                    Some(inner) => sets.extend(inner),
                    None => sets.push(self.list(part)?),
                },
                [one @ (Ast::Rollup(_) | Ast::Cube(_) | Ast::GroupingSets(_))] => {
                    sets.extend(self.element(one)?);
                }
                keys => sets.push(self.list(keys)?),
            }
            if sets.len() > MAX_SETS {
                let message = format!("too many grouping sets present (maximum {MAX_SETS})");
                return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
            }
        }
        Ok(sets)
    }

    /// ROLLUP or CUBE inside of GROUPING SETS, which the parser takes for calls.
    fn nested(&mut self, function: &Function) -> Result<Option<Sets>> {
        let name = super::aggregate::name_of(function).map(names::fold).unwrap_or_default();
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        if name != "rollup" && name != "cube" {
            return Ok(None);
        }
        let part = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Tuple(items))) => Some(items.clone()),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(one)) => Some(vec![one.clone()]),
            _ => None,
        };
        let Some(parts) = list.args.iter().map(part).collect::<Option<Vec<Vec<Ast>>>>() else {
            return Ok(None);
        };
        if name == "rollup" { self.rollup(&parts).map(Some) } else { self.cube(&parts).map(Some) }
    }

    fn rollup(&mut self, parts: &[Vec<Ast>]) -> Result<Sets> {
        let mut sets: Sets = vec![Vec::new()];
        for part in parts {
            let keys = self.list(part)?;
            let last = sets.last().cloned().unwrap_or_default();
            sets.extend(product(&vec![last], &vec![keys])?);
        }
        sets.reverse();
        Ok(sets)
    }

    fn cube(&mut self, parts: &[Vec<Ast>]) -> Result<Sets> {
        if parts.len() > MAX_CUBE {
            let message = format!("CUBE is limited to {MAX_CUBE} elements");
            let error = SqlError::new(SqlState(*b"54011"), message);
            let first = parts.iter().flatten().next().map_or_else(Span::empty, Spanned::span);
            return Err(expr::Names::source(self.scope).locate(error, first));
        }
        let mut sets: Sets = vec![Vec::new()];
        for part in parts {
            let keys = self.list(part)?;
            sets = product(&sets, &vec![keys, Vec::new()])?;
        }
        Ok(sets)
    }

    /// Keys that stand together.
    fn list(&mut self, keys: &[Ast]) -> Result<Vec<usize>> {
        let mut list = Vec::with_capacity(keys.len());
        for key in keys {
            let numbers = match key {
                Ast::Tuple(items) => self.list(items)?,
                key => {
                    let bound = self.key(key)?;
                    vec![self.number(bound)]
                }
            };
            for number in numbers {
                if !list.contains(&number) {
                    list.push(number);
                }
            }
        }
        Ok(list)
    }

    fn number(&mut self, key: Expr) -> usize {
        self.keys.iter().position(|other| *other == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        })
    }

    /// What a key means: a number or the name of a result that is no column is that result.
    fn key(&mut self, key: &Ast) -> Result<Expr> {
        let found = match ordinal(key, self.outputs.len(), "GROUP BY", self.scope)? {
            Some(position) => Some(position),
            None => match key {
                Ast::Identifier(ident) => {
                    let name = names::fold(ident);
                    match self.scope.visible.iter().any(|visible| visible.name == name) {
                        true => None,
                        false => named_output(self.scope, self.outputs, ident, "GROUP BY")?,
                    }
                }
                _ => None,
            },
        };
        let Some(found) = found else { return expr::bind(key, self.scope) };
        let output = &self.outputs[found];
        self.check(&output.expr, output.span.unwrap_or_else(|| key.span()))?;
        Ok(output.expr.clone())
    }

    /// A result that is a key has no aggregates in it.
    fn check(&self, expr: &Expr, span: Span) -> Result<()> {
        let mut refused = None;
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Column(column) if column.relation == AGGREGATES && column.depth == 0 => {
                refused = refused.or(Some(("aggregate", SqlState::GROUPING_ERROR)));
            }
            ExprKind::Column(column) if column.relation == WINDOWS && column.depth == 0 => {
                refused = refused.or(Some(("window", SqlState::WINDOWING_ERROR)));
            }
            _ => {}
        });
        let Some((what, state)) = refused else { return Ok(()) };
        let message = format!("{what} functions are not allowed in GROUP BY");
        Err(expr::Names::source(self.scope).locate(SqlError::new(state, message), span))
    }
}
