//! What stands beside aggregates: keys of GROUP BY in place of equal expressions, 42803 for other columns.
//!
//! Responsible for: the final numbers of columns of groups and windows. Not responsible for: which keys
//! there are (`group`).

use std::collections::{HashMap, HashSet};

use albireo_base::{SqlError, SqlState};
use albireo_sql::source::{Source, Span};

use super::aggregate::{AGGREGATES, WINDOWS};
use super::levels;
use super::scope::{Mention, Named};
use crate::expr::{ColumnRef, Expr, ExprKind};

/// The keys of a query, if it has groups, and its relations.
pub(super) struct Regroup<'a> {
    /// Whether the query has groups.
    grouped: bool,
    keys: &'a [Expr],
    /// The keys that are columns.
    columns: HashMap<(u16, u16), u16>,
    /// The keys that are neither columns nor constants.
    computed: Vec<u16>,
    /// Relations whose columns depend on keys.
    decided: HashSet<u16>,
    relations: &'a [Named],
    source: Source<'a>,
}

type Result<T> = std::result::Result<T, SqlError>;

impl<'a> Regroup<'a> {
    /// `sets`: the groupings by positions of keys, if there are several.
    pub(super) fn new(
        grouped: bool,
        keys: &'a [Expr],
        sets: Option<&[Vec<usize>]>,
        relations: &'a [Named],
        source: Source<'a>,
    ) -> Self {
        let mut columns = HashMap::new();
        let mut computed = Vec::new();
        let mut everywhere = HashSet::new();
        for (at, key) in keys.iter().enumerate() {
            match key.kind {
                ExprKind::Column(ColumnRef { depth: 0, relation, column }) => {
                    columns.insert((relation, column), at as u16);
                    if sets.is_none_or(|sets| sets.iter().all(|set| set.contains(&at))) {
                        everywhere.insert((relation, column));
                    }
                }
                ExprKind::Constant(_) => {}
                _ => computed.push(at as u16),
            }
        }
        let decides = |(relation, named): (usize, &Named)| {
            let relation = relation as u16;
            let key = !named.key.is_empty()
                && named.key.iter().all(|column| everywhere.contains(&(relation, *column)));
            key.then_some(relation)
        };
        let decided = relations.iter().enumerate().filter_map(decides).collect();
        Self { grouped, keys, columns, computed, decided, relations, source }
    }

    /// The key that an expression is.
    pub(super) fn key_of(&self, expr: &Expr) -> Option<u16> {
        match expr.kind {
            ExprKind::Column(ColumnRef { depth: 0, relation, column }) => {
                self.columns.get(&(relation, column)).copied()
            }
            ExprKind::Constant(_) => self.keys.iter().position(|key| key == expr).map(|at| at as u16),
            _ => self.computed.iter().copied().find(|at| self.keys[usize::from(*at)] == *expr),
        }
    }

    /// Finishes an expression; `said` are the columns referred to in it, in order.
    pub(super) fn finish(&self, expr: &mut Expr, said: &[Mention]) -> Result<()> {
        let mut seen: HashMap<(u16, u16), usize> = HashMap::new();
        levels::expr(expr, 0, &mut |part, depth| {
            if let ExprKind::Column(column) = part.kind {
                if column.depth == depth {
                    self.column(part, column, said, &mut seen)?;
                }
                return Ok(true);
            }
            if !self.grouped || depth > 0 || matches!(part.kind, ExprKind::Constant(_)) {
                return Ok(true);
            }
            let Some(key) = self.key_of(part) else { return Ok(true) };
            // Its columns were referred to as well.
            levels::expr(part, 0, &mut |inner, depth| {
                if let ExprKind::Column(column) = inner.kind
                    && column.depth == depth
                {
                    *seen.entry((column.relation, column.column)).or_default() += 1;
                }
                Ok(true)
            })?;
            part.kind = ExprKind::Column(self.of_groups(0, key));
            Ok(false)
        })
    }

    fn of_groups(&self, depth: u16, column: u16) -> ColumnRef {
        ColumnRef { depth, relation: self.relations.len() as u16, column }
    }

    fn column(
        &self,
        expr: &mut Expr,
        column: ColumnRef,
        said: &[Mention],
        seen: &mut HashMap<(u16, u16), usize>,
    ) -> Result<()> {
        let ColumnRef { depth, relation, column } = column;
        expr.kind = ExprKind::Column(match relation {
            AGGREGATES => self.of_groups(depth, self.keys.len() as u16 + column),
            WINDOWS => ColumnRef { depth, relation: self.relations.len() as u16 + 1, column },
            _ if !self.grouped => return Ok(()),
            _ => match self.columns.get(&(relation, column)) {
                Some(key) => {
                    *seen.entry((relation, column)).or_default() += 1;
                    self.of_groups(depth, *key)
                }
                None if self.decided.contains(&relation) => return Ok(()),
                None => {
                    let before = seen.get(&(relation, column)).copied().unwrap_or(0);
                    return Err(self.ungrouped((relation, column), depth, said, before));
                }
            },
        });
        Ok(())
    }

    fn ungrouped(&self, at: (u16, u16), depth: u16, said: &[Mention], before: usize) -> SqlError {
        let named = &self.relations[usize::from(at.0)];
        let name = format!("{}.{}", named.name, named.columns[usize::from(at.1)].0);
        let message = match depth {
            0 => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
            _ => format!("subquery uses ungrouped column \"{name}\" from outer query"),
        };
        let error = SqlError::new(SqlState::GROUPING_ERROR, message);
        match place(at, said, before) {
            Some(span) => self.source.locate(error, span),
            None => error,
        }
    }

    /// 42803 for arguments of GROUPING that are no keys; these otherwise, as columns of the groups.
    pub(super) fn grouping(&self, args: &mut [Expr], spans: &[Span]) -> Result<()> {
        for (arg, span) in args.iter_mut().zip(spans) {
            let Some(key) = self.key_of(arg) else {
                let message =
                    "arguments to GROUPING must be grouping expressions of the associated query level";
                return Err(self.source.locate(SqlError::new(SqlState::GROUPING_ERROR, message), *span));
            };
            arg.kind = ExprKind::Column(self.of_groups(0, key));
        }
        Ok(())
    }
}

/// Where a column was referred to for another time.
fn place((relation, column): (u16, u16), said: &[Mention], before: usize) -> Option<Span> {
    let mut places = said.iter().filter(|mention| (mention.relation, mention.column) == (relation, column));
    let last = places.clone().next_back();
    places.nth(before).or(last).map(|mention| mention.span)
}
