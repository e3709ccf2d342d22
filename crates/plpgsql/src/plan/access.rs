//! Access paths: in which order relations are joined, and by which index each is read.
//!
//! Responsible for: which conditions an index or hash table answers, and which are left as filters.
//! Not responsible for: keys (`key`), what conditions say of how texts begin (`beginnings`), reading (`run`).
//!
//! Greedy: the relation that can be read best with what is known already comes next. Ranks, best first:
//! a row by a unique index; rows by all columns of an index; by more of the first columns, by a range; a
//! hash table; all rows.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlType};
use albireo_sql::{IndexDef, IndexKind, TableDef};

use super::beginnings::{self, Beginning, beginnings};
use super::key;
use super::tree::{
    Access, Bound, Condition, HashUse, IndexUse, Item, Pool, RangeUse, Relation, RelationSource, Step, mask,
};
use crate::expr::{ColumnRef, Comparison, Conversion, Expr, ExprKind, Says};
use crate::types::{Scalar, Type};

/// The order that is asked for: columns, whether descending, whether with NULLs first.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) keys: Vec<(ColumnRef, bool, bool)>,
    /// Whether rows with NULL are not wanted.
    pub(super) present: bool,
}

/// Plans the FROM of one SELECT or change.
pub(super) struct Planner<'r> {
    relations: &'r [Relation],
    wanted: Option<Wanted>,
    /// Whether the order is worth reading all of a table by an index.
    limited: bool,
    hashes: usize,
    /// What the partitioning columns of the relations placed so far equal.
    known: Vec<(u16, Expr)>,
    /// Whether the rows come in the order asked for.
    pub(super) ordered: bool,
}

/// One side of a comparison that is a column.
struct Side<'c> {
    relation: u16,
    column: u16,
    op: Comparison,
    key: &'c Expr,
    /// What the key refers to.
    needs: u64,
    /// Whether the column stands there as it is.
    plain: bool,
}

/// A way to read a relation.
struct Candidate {
    access: Access,
    /// The conditions that need no more test.
    used: Vec<usize>,
    rank: u32,
    ordered: bool,
}

impl<'r> Planner<'r> {
    pub(super) fn new(relations: &'r [Relation], wanted: Option<Wanted>, limited: bool) -> Self {
        let limited = limited || wanted.as_ref().is_some_and(|wanted| wanted.present);
        Self { relations, wanted, limited, hashes: 0, known: Vec::new(), ordered: false }
    }

    /// The steps that read a pool.
    pub(super) fn steps(&mut self, pool: Pool) -> Vec<Step> {
        self.pool(pool, 0, true)
    }

    fn pool(&mut self, pool: Pool, mut placed: u64, first: bool) -> Vec<Step> {
        let Pool { mut items, mut conditions } = pool;
        let mut steps = Vec::with_capacity(items.len());
        while !items.is_empty() {
            let leads = first && steps.is_empty();
            let mut best: Option<(usize, u32, Option<Candidate>)> = None;
            for (at, item) in items.iter().enumerate() {
                let found = match item {
                    Item::One { requires, .. }
                    | Item::Left { requires, .. }
                    | Item::Full { requires, .. }
                        if requires & !placed != 0 =>
                    {
                        continue;
                    }
                    Item::One { relation, .. } => {
                        let candidate = self.best(*relation, &conditions, placed, leads);
                        (at, candidate.rank, Some(candidate))
                    }
                    Item::Left { .. } | Item::Full { .. } => (at, RANK_LEFT, None),
                };
                if best.as_ref().is_none_or(|(_, rank, _)| found.1 < *rank) {
                    best = Some(found);
                }
            }
            // Requirements point to relations written before, so something can always be placed.
            let Some((at, _, candidate)) = best else { break };
            let item = items.remove(at);
            let mut step = match (item, candidate) {
                (Item::One { relation, .. }, Some(candidate)) => {
                    placed |= 1 << relation;
                    if leads {
                        self.ordered = candidate.ordered;
                    }
                    remove(&mut conditions, candidate.used);
                    self.known
                        .extend(candidate.access.site.iter().map(|site| (relation, site.value.clone())));
                    Step::Inner { access: candidate.access, filters: Vec::new() }
                }
                (Item::Left { pool, .. }, _) => {
                    let set = pool.relations();
                    let steps = self.pool(pool, placed, false);
                    placed |= set;
                    let relations = (0..64).filter(|at| set >> at & 1 == 1).collect();
                    Step::Left { steps, relations, filters: Vec::new() }
                }
                // Refused before (`refuse`).
                (Item::One { .. }, None) | (Item::Full { .. }, _) => break,
            };
            let (Step::Inner { filters, .. } | Step::Left { filters, .. }) = &mut step;
            let (ready, rest) =
                conditions.into_iter().partition(|condition| condition.relations() & !placed == 0);
            conditions = rest;
            filters.extend(ready.into_iter().map(|condition: Condition| condition.expr));
            steps.push(step);
        }
        steps
    }

    fn best(&mut self, relation: u16, conditions: &[Condition], placed: u64, leads: bool) -> Candidate {
        let texts = match &self.relations[usize::from(relation)].source {
            RelationSource::Table(table) => beginnings(table, relation, conditions),
            _ => Vec::new(),
        };
        let sides: Vec<(usize, Side<'_>)> = conditions
            .iter()
            .enumerate()
            .flat_map(|(at, condition)| sides(condition).into_iter().map(move |side| (at, side)))
            .chain(texts.iter().filter_map(|text| Some((text.at, whole_text(relation, text)?))))
            .filter(|(_, side)| side.relation == relation && side.needs & !placed == 0)
            .collect();
        let RelationSource::Table(table) = &self.relations[usize::from(relation)].source else {
            return self.other(relation, conditions, &sides);
        };
        let table = Arc::clone(table);
        let wanted = if leads { self.wanted.clone() } else { None };
        let site = table.partition_by.and_then(|column| equal_to(&table, &sides, column));
        let mut site = site
            .map(|(_, bound)| Bound { value: through(&bound.value, self.relations, &self.known), ..bound });
        let mut best: Option<Candidate> = None;
        for index in &table.indexes {
            let Some(mut candidate) = by_index(
                &table,
                index,
                relation,
                (sides.as_slice(), texts.as_slice()),
                wanted.as_ref(),
                self.limited,
            ) else {
                continue;
            };
            candidate.access.site.clone_from(&site);
            if best.as_ref().is_none_or(|best| candidate.rank < best.rank) {
                best = Some(candidate);
            }
        }
        let mut candidate = best.unwrap_or_else(|| self.hash(relation, conditions, &sides, RANK_SCAN));
        if candidate.access.hash.is_some() {
            // It is made once, whatever row is at hand.
            site = site.filter(|bound| !of_a_row(&bound.value));
        }
        candidate.access.site = site;
        if candidate.access.index.is_none() {
            candidate.access.unserved = unserved(&table, &sides);
        }
        candidate
    }

    fn other(&mut self, relation: u16, conditions: &[Condition], sides: &[(usize, Side<'_>)]) -> Candidate {
        let rank = match self.relations[usize::from(relation)].source {
            RelationSource::Given => 0,
            _ => RANK_DERIVED,
        };
        match self.relations[usize::from(relation)].source {
            RelationSource::Query(_) | RelationSource::Cte(..) => {
                self.hash(relation, conditions, sides, rank)
            }
            _ => Candidate { access: all(relation), used: Vec::new(), rank, ordered: false },
        }
    }

    /// By a hash table if something of another relation is to be equal, else all rows.
    fn hash(
        &mut self,
        relation: u16,
        conditions: &[Condition],
        sides: &[(usize, Side<'_>)],
        rank: u32,
    ) -> Candidate {
        let mut access = all(relation);
        let serves =
            |side: &&(usize, Side<'_>)| side.1.op == Comparison::Eq && side.1.needs != 0 && side.1.plain;
        let joins: Vec<&(usize, Side<'_>)> = sides.iter().filter(serves).collect();
        if joins.is_empty() {
            return Candidate { access, used: Vec::new(), rank, ordered: false };
        }
        let keys = joins.iter().map(|(_, side)| (side.column, side.key.clone())).collect();
        let mut used: Vec<usize> = joins.iter().map(|(at, _)| *at).collect();
        let mut filters = Vec::new();
        for (at, condition) in conditions.iter().enumerate() {
            if condition.relations() == 1 << relation {
                filters.push(condition.expr.clone());
                used.push(at);
            }
        }
        access.hash = Some(HashUse { keys, filters, number: self.hashes });
        self.hashes += 1;
        Candidate { access, used, rank: rank.min(RANK_HASH), ordered: false }
    }
}

const RANK_SCAN: u32 = 200;
const RANK_HASH: u32 = 180;
const RANK_DERIVED: u32 = 150;
const RANK_LEFT: u32 = 120;
/// By an index, less for what it is good at.
const RANK_INDEX: u32 = 100;

/// All rows of a relation.
pub(super) fn all(relation: u16) -> Access {
    Access { relation, index: None, site: None, hash: None, unserved: Vec::new() }
}

fn remove(conditions: &mut Vec<Condition>, used: Vec<usize>) {
    let mut at = 0;
    conditions.retain(|_| {
        at += 1;
        !used.contains(&(at - 1))
    });
}

/// The columns that a condition compares with something else.
fn sides(condition: &Condition) -> Vec<Side<'_>> {
    let ExprKind::Compare(op, pair) = &condition.expr.kind else { return Vec::new() };
    let (left, right) = &**pair;
    let mut found = Vec::new();
    for (op, this, key) in [(*op, left, right), (flipped(*op), right, left)] {
        let Some((ColumnRef { depth: 0, relation, column }, plain)) = column_in(this) else { continue };
        // The key may be anything but of the same relation.
        if op == Comparison::Ne || condition.uses.get(usize::from(relation)) != Some(&1) {
            continue;
        }
        let needs = mask(&condition.uses) & !(1 << relation);
        found.push(Side { relation, column, op, key, needs, plain });
    }
    found
}

/// The column that a pattern without signs compares with the text that it is.
fn whole_text(relation: u16, text: &Beginning) -> Option<Side<'_>> {
    let side =
        Side { relation, column: text.column, op: Comparison::Eq, key: &text.text, needs: 0, plain: true };
    (text.says == Says::Equal).then_some(side)
}

fn flipped(op: Comparison) -> Comparison {
    match op {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        same => same,
    }
}

/// The column that an expression is, if need be in a type that keeps values and order; and whether it
/// is the column as it is.
fn column_in(expr: &Expr) -> Option<(ColumnRef, bool)> {
    match &expr.kind {
        ExprKind::Column(column) => Some((*column, true)),
        ExprKind::Convert(of, conversion) => {
            let keeps = matches!(
                (&of.ty, conversion),
                (
                    Type::Scalar(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt),
                    Conversion::Scalar(Scalar::Integer | Scalar::BigInt | Scalar::Numeric { .. }),
                ) | (Type::Scalar(Scalar::Numeric { .. }), Conversion::Scalar(Scalar::Numeric { .. }))
                    | (
                        Type::Scalar(Scalar::Bpchar | Scalar::Text),
                        Conversion::Scalar(Scalar::Text) | Conversion::Text,
                    )
            );
            let column = column_in(of)?.0;
            keeps.then_some((column, false))
        }
        _ => None,
    }
}

fn bound_of(table: &TableDef, column: ColumnId, key: &Expr) -> Option<Bound> {
    let def = table.column_def(column);
    let serves = key::serves(def.ty, &key.ty);
    serves.then(|| Bound { column, ty: def.ty, nullable: def.nullable, value: key.clone() })
}

/// An expression; of a partitioning column that is known to equal another expression, that.
pub(super) fn through(value: &Expr, relations: &[Relation], known: &[(u16, Expr)]) -> Expr {
    let Some((ColumnRef { depth: 0, relation, column }, _)) = column_in(value) else { return value.clone() };
    let partitioned = relations.get(usize::from(relation)).is_some_and(|relation| match &relation.source {
        RelationSource::Table(table) => table.partition_by.is_some_and(|by| by.0 == column),
        _ => false,
    });
    let equal = known.iter().find(|(other, _)| partitioned && *other == relation);
    equal.map_or_else(|| value.clone(), |(_, equal)| equal.clone())
}

/// The column that an expression is.
pub(super) fn column_of(expr: &Expr) -> Option<ColumnRef> {
    match expr.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    }
}

/// Whether the value may be another one for another row.
fn of_a_row(value: &Expr) -> bool {
    let mut is = false;
    value.walk(&mut |part| {
        is |= matches!(part.kind, ExprKind::Column(ColumnRef { depth: 0, .. }) | ExprKind::Subquery(_));
    });
    is
}

/// Which columns an index could have been asked for.
fn unserved(table: &TableDef, sides: &[(usize, Side<'_>)]) -> Vec<ColumnId> {
    let mut columns: Vec<ColumnId> = Vec::new();
    for (_, side) in sides.iter().filter(|(_, side)| side.op == Comparison::Eq) {
        let column = ColumnId(side.column);
        if !columns.contains(&column) && bound_of(table, column, side.key).is_some() {
            columns.push(column);
        }
    }
    // Rows of one partition are found within it.
    columns.sort_by_key(|column| Some(*column) != table.partition_by);
    columns
}

fn equal_to(table: &TableDef, sides: &[(usize, Side<'_>)], column: ColumnId) -> Option<(usize, Bound)> {
    sides
        .iter()
        .filter(|(_, side)| side.op == Comparison::Eq && side.column == column.0)
        .find_map(|(at, side)| Some((*at, bound_of(table, column, side.key)?)))
}

fn by_index(
    table: &TableDef,
    index: &IndexDef,
    relation: u16,
    (sides, texts): (&[(usize, Side<'_>)], &[Beginning]),
    wanted: Option<&Wanted>,
    limited: bool,
) -> Option<Candidate> {
    let mut used = Vec::new();
    let mut equal = Vec::new();
    for column in &index.columns {
        let Some((at, bound)) = equal_to(table, sides, *column) else { break };
        used.push(at);
        equal.push(bound);
    }
    let whole = equal.len() == index.columns.len();
    if index.kind == IndexKind::Hash && !whole {
        return None;
    }
    let next = index.columns.get(equal.len()).copied().filter(|_| index.kind == IndexKind::Ordered);
    let text = next.and_then(|column| Some((column, beginnings::best(texts, column)?)));
    let mut range = next.and_then(|column| range(table, column, sides, &mut used));
    if let Some((column, text)) = text.filter(|(_, text)| text.is_certain()) {
        text.narrow(range.get_or_insert_with(|| unbounded(table, column)), &mut used);
    }
    let order = wanted.and_then(|wanted| {
        let one_row = whole && index.unique;
        if index.kind == IndexKind::Hash && !one_row {
            return None;
        }
        if one_row { Some(false) } else { order(table, index, relation, equal.len(), &equal, wanted) }
    });
    if equal.is_empty() && range.is_none() && !(order.is_some() && limited) {
        return None;
    }
    let rank = rank(index, equal.len(), range.is_some(), order.is_some());
    if let (Some(wanted), Some(column), None, Some(_)) = (wanted, next, &range, order)
        && wanted.present
        && wanted.keys.iter().any(|(key, ..)| key.column == column.0)
    {
        range = Some(unbounded(table, column));
    }
    if let Some((column, text)) = text.filter(|(_, text)| !text.is_certain()) {
        text.narrow(range.get_or_insert_with(|| unbounded(table, column)), &mut used);
    }
    let use_of = IndexUse {
        name: index.name.clone(),
        kind: index.kind,
        whole,
        equal,
        range,
        backward: order.unwrap_or(false),
    };
    let access = Access { index: Some(use_of), ..all(relation) };
    Some(Candidate { access, used, rank, ordered: order.is_some() })
}

/// How good an index is by which so many columns, or a range, are known, or which has the rows in the order asked for.
fn rank(index: &IndexDef, equal: usize, has_range: bool, has_order: bool) -> u32 {
    if equal == index.columns.len() {
        return if index.unique { 1 } else { 20 };
    }
    if equal == 0 && !has_range {
        return RANK_SCAN - 1;
    }
    RANK_INDEX - 8 * (equal.min(8) as u32) - 3 * u32::from(has_range) - u32::from(has_order)
}

/// All values of a column but NULL.
fn unbounded(table: &TableDef, column: ColumnId) -> RangeUse {
    let def = table.column_def(column);
    RangeUse { column, ty: def.ty, nullable: def.nullable, low: None, high: None, begins: None }
}

fn range(
    table: &TableDef,
    column: ColumnId,
    sides: &[(usize, Side<'_>)],
    used: &mut Vec<usize>,
) -> Option<RangeUse> {
    let mut range = unbounded(table, column);
    let ty = range.ty;
    for (at, side) in sides.iter().filter(|(_, side)| side.column == column.0) {
        let place = match side.op {
            Comparison::Gt | Comparison::Ge => &mut range.low,
            Comparison::Lt | Comparison::Le => &mut range.high,
            _ => continue,
        };
        if place.is_none() && key::serves(ty, &side.key.ty) && orders(ty) {
            *place = Some((side.key.clone(), matches!(side.op, Comparison::Ge | Comparison::Le)));
            used.push(*at);
        }
    }
    (range.low.is_some() || range.high.is_some()).then_some(range)
}

/// Whether the index has values in the order of comparisons.
fn orders(ty: SqlType) -> bool {
    !matches!(ty, SqlType::Bytea)
}

/// Whether an index, after its first `equal` columns, has rows in the order that is asked for; then
/// whether from its end.
fn order(
    table: &TableDef,
    index: &IndexDef,
    relation: u16,
    equal: usize,
    bound: &[Bound],
    wanted: &Wanted,
) -> Option<bool> {
    let mut rest = index.columns[equal..].iter();
    let mut backward = None;
    for (column, descending, nulls_first) in &wanted.keys {
        if column.relation != relation {
            return None;
        }
        let id = ColumnId(column.column);
        if bound.iter().any(|bound| bound.column == id) {
            continue;
        }
        if rest.next() != Some(&id) || !orders(table.column_def(id).ty) {
            return None;
        }
        let nullable = table.column_def(id).nullable;
        if backward.is_some_and(|backward| backward != *descending)
            || (nullable && !wanted.present && descending != nulls_first)
        {
            return None;
        }
        backward = Some(*descending);
    }
    Some(backward.unwrap_or(false))
}
