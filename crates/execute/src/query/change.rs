//! INSERT, UPDATE, DELETE and MERGE at work.
//!
//! The rows to change and their new values are all found before the first is changed, here or by a query on a
//! snapshot: a statement does not see what it does itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlError, SqlState, Tid, Value};
use albireo_partition::Site;
use albireo_semantics::query::tree::{
    Change, Conflict, ConflictUpdate, Cte, Insert, Merge, MergeAction, Relation, RelationSource, Target,
};
use albireo_sql::TableDef;
use albireo_storage::KeyBuilder;

use super::frame::{Row, Running};
use super::keys;
use super::scan::Flow;
use crate::Stop;
use crate::datum::Datum;
use crate::expr::{ColumnRef, Expr};

/// What is done, and where the row is if there is one.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The row.
    pub at: Option<(PartitionId, Tid)>,
    /// What is done.
    pub decision: Decision,
}

/// How many rows a change concerned, and what RETURNING says of each.
type Outcome = (u64, Vec<Vec<Datum>>);

/// A row that a query found for a change, or made for an INSERT.
#[derive(Clone, Debug)]
pub struct FoundRow {
    /// Where the table's row is, if there is one.
    pub at: Option<(PartitionId, Tid)>,
    /// New values, in the order of SET, or those of INSERT, defaults included; then what is carried.
    pub values: Vec<Datum>,
}

/// The rows that a query found, and which columns they carry.
pub struct FoundRows<'f> {
    /// These columns.
    pub carried: &'f [ColumnRef],
    /// The rows.
    pub rows: &'f mut dyn Iterator<Item = Result<FoundRow, SqlError>>,
}

/// A row to change: the current rows, and what is done.
struct Pending {
    rows: Vec<Row>,
    action: Decision,
}

/// What is done with a row.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It gets these values.
    Update(Vec<(ColumnId, Value)>),
    /// It goes.
    Delete,
    /// One with these values comes.
    Insert(Vec<Value>),
}

/// What was done so far.
#[derive(Default)]
struct Done {
    count: u64,
    returned: Vec<Vec<Datum>>,
    /// The rows that must not be changed once more.
    touched: BTreeSet<(Site, Tid)>,
}

/// What happened to a row of INSERT.
enum Inserted {
    Row(Site, Tid),
    Nothing,
}

impl Running<'_> {
    /// Makes a change.
    pub(super) fn change(&mut self, change: &Change) -> Result<Outcome, Stop> {
        let mut done = Done::default();
        match (change, change.target()) {
            (Change::Insert(insert), _) => {
                let rows = self.query(&insert.source, usize::MAX)?;
                self.insert_level(insert)?;
                for row in rows {
                    self.tick()?;
                    let mut values = place(insert, insert.columns.iter().copied().zip(row))?;
                    for (column, default) in &insert.defaults {
                        values[column.index()] = self.scalar(default)?;
                    }
                    self.insert(insert, values, &mut done)?;
                }
            }
            (_, Some(target)) => {
                self.compute(&target.ctes)?;
                self.target_level(&target.relations)?;
                for pending in self.targets(change, target)? {
                    self.tick()?;
                    self.make(change, pending, &mut done)?;
                }
            }
            (_, None) => {}
        }
        self.levels.pop();
        Ok((done.count, done.returned))
    }

    /// Makes a change of rows that a query found. Where a row comes several times, the first counts.
    pub(super) fn apply(&mut self, change: &Change, found: FoundRows<'_>) -> Result<Outcome, Stop> {
        let mut done = Done::default();
        match (change, change.target()) {
            (Change::Insert(insert), _) => {
                self.compute(&insert.source.ctes)?;
                self.insert_level(insert)?;
                let defaults = || insert.defaults.iter().map(|(column, _)| *column);
                for row in found.rows {
                    self.tick()?;
                    let columns = insert.columns.iter().copied().chain(defaults());
                    let values = place(insert, columns.zip(row?.values))?;
                    self.insert(insert, values, &mut done)?;
                }
            }
            (_, Some(target)) => {
                self.compute(&target.ctes)?;
                self.push_level(&target.relations, Vec::new())?;
                self.apply_to(change, target, found, &mut done)?;
            }
            (_, None) => {}
        }
        self.levels.pop();
        Ok((done.count, done.returned))
    }

    /// What a change does with rows that a query found, as they are now; nothing is done.
    pub(super) fn decide_all(&mut self, change: &Change, found: FoundRows<'_>) -> Result<Vec<Decided>, Stop> {
        let Some(target) = change.target() else { return Ok(Vec::new()) };
        self.push_level(&target.relations, Vec::new())?;
        let mut decided = Vec::new();
        for row in found.rows {
            self.tick()?;
            let row = row?;
            let (at, pending) = (row.at, self.decide_found(change, target, found.carried, row)?);
            decided.extend(pending.map(|pending| Decided { at, decision: pending.action }));
        }
        self.levels.pop();
        Ok(decided)
    }

    /// What a change does with a row that a query found.
    fn decide_found(
        &mut self,
        change: &Change,
        target: &Target,
        columns: &[ColumnRef],
        row: FoundRow,
    ) -> Result<Option<Pending>, Stop> {
        let set = change.found_values();
        let FoundRow { at, mut values } = row;
        let carried = values.split_off(set.len().min(values.len()));
        let mut rows = carry(target, columns, carried);
        let stored = match at {
            Some((partition, tid)) => Row::Stored(self.host.live().site_of_partition(partition)?, tid),
            None => Row::Missing,
        };
        if let Change::Merge(merge) = change {
            rows[0] = stored;
            self.level().rows.clone_from(&rows);
            return Ok(self.decide(merge)?.map(|action| Pending { rows, action }));
        }
        if let Some(conditions) = &target.late {
            // As it was found: what is read of it need not be in memory.
            self.level().rows.clone_from(&rows);
            if !self.all(conditions)? {
                return Ok(None);
            }
        }
        rows[0] = stored;
        let action = match change {
            Change::Update(update) if target.late.is_some() => Decision::Update(self.assigned(&update.set)?),
            Change::Update(_) => {
                let values = set.iter().zip(values).map(|((column, _), value)| Ok((*column, scalar(value)?)));
                Decision::Update(values.collect::<Result<_, Stop>>()?)
            }
            _ => Decision::Delete,
        };
        Ok(Some(Pending { rows, action }))
    }

    /// What an UPDATE or DELETE of one table makes of rows as they are now: new values, in the order of SET; none of
    /// those that it does not concern.
    pub(super) fn judge(
        &mut self,
        change: &Change,
        rows: &[(PartitionId, Tid)],
    ) -> Result<Vec<Option<Vec<Value>>>, Stop> {
        let Some(target) = change.target() else { return Ok(Vec::new()) };
        let set = match change {
            Change::Update(update) => update.set.as_slice(),
            _ => &[],
        };
        self.push_level(&target.relations, Vec::new())?;
        let mut judged = Vec::with_capacity(rows.len());
        for (partition, tid) in rows {
            self.tick()?;
            let live = self.host.live();
            let site = live.site_of_partition(*partition)?;
            let mut concerned = live.table(site, target.table.id).is_live(*tid);
            if concerned {
                self.set(0, Row::Stored(site, *tid));
            }
            for condition in &target.from.conditions {
                concerned = concerned && self.is_true(&condition.expr)?;
            }
            judged.push(match concerned {
                true => Some(self.assigned(set)?.into_iter().map(|(_, value)| value).collect()),
                false => None,
            });
        }
        self.levels.pop();
        Ok(judged)
    }

    fn apply_to(
        &mut self,
        change: &Change,
        target: &Target,
        found: FoundRows<'_>,
        done: &mut Done,
    ) -> Result<(), Stop> {
        let is_merge = matches!(change, Change::Merge(_));
        let mut seen = BTreeSet::new();
        let mut decided = Vec::new();
        for row in found.rows {
            self.tick()?;
            let row = row?;
            let at = row.at;
            let is_done = |seen: &BTreeSet<_>| target.relations.len() > 1 && seen.contains(&at);
            if !is_merge && (at.is_none() || is_done(&seen)) {
                continue;
            }
            let Some(pending) = self.decide_found(change, target, found.carried, row)? else { continue };
            if target.relations.len() > 1 {
                seen.insert(at);
            }
            match is_merge || target.late.is_some() {
                // What it does with later rows does not depend on what it did with this one.
                true => decided.push(self.remembered(target, pending)?),
                false => self.make(change, pending, done)?,
            }
        }
        decided.into_iter().try_for_each(|pending| self.make(change, pending, done))
    }

    /// Computes the queries of WITH.
    fn compute(&mut self, ctes: &[Cte]) -> Result<(), Stop> {
        for cte in ctes {
            let rows = self.query(&cte.query, usize::MAX)?;
            self.set_cte(cte.id, Arc::new(rows.into_iter().map(Arc::from).collect()));
        }
        Ok(())
    }

    /// Begins the level of a change.
    fn target_level(&mut self, relations: &[Relation]) -> Result<(), Stop> {
        let mut derived = Vec::with_capacity(relations.len());
        for relation in relations {
            derived.push(match &relation.source {
                RelationSource::Query(query) => {
                    let rows = self.query(query, usize::MAX)?;
                    Some(Arc::new(rows.into_iter().map(Arc::from).collect()))
                }
                RelationSource::Cte(id, _) => Some(self.ctes.get(id).cloned().unwrap_or_default()),
                _ => None,
            });
        }
        self.push_level(relations, derived)
    }

    /// Begins the level of an INSERT.
    fn insert_level(&mut self, insert: &Insert) -> Result<(), Stop> {
        let table =
            || Relation { source: RelationSource::Table(Arc::clone(&insert.table)), columns: Vec::new() };
        let excluded = Relation { source: RelationSource::Given, columns: Vec::new() };
        self.push_level(&[table(), excluded], vec![None, None])
    }

    /// The rows that a change concerns, each once.
    fn targets(&mut self, change: &Change, target: &Target) -> Result<Vec<Pending>, Stop> {
        let mut pending = Vec::new();
        if !self.all(&target.constants)? {
            return Ok(pending);
        }
        let mut seen = BTreeSet::new();
        self.steps(&target.relations, &target.steps, &mut |running| {
            let mut rows = running.level().rows.clone();
            let once = |seen: &mut BTreeSet<_>| match rows.first() {
                Some(Row::Stored(site, tid)) => target.relations.len() == 1 || seen.insert((*site, *tid)),
                _ => false,
            };
            let action = match change {
                Change::Merge(merge) => running.decide(merge)?,
                Change::Update(update) if once(&mut seen) => {
                    Some(Decision::Update(running.assigned(&update.set)?))
                }
                Change::Delete(_) if once(&mut seen) => Some(Decision::Delete),
                _ => None,
            };
            let Some(action) = action else { return Ok(Flow::More) };
            if !target.returning.is_empty() {
                running.keep_old(target, &mut rows);
            }
            pending.push(running.remembered(target, Pending { rows, action })?);
            Ok(Flow::More)
        })?;
        Ok(pending)
    }

    /// What is to be done later, without what is not needed then.
    fn remembered(&mut self, target: &Target, mut pending: Pending) -> Result<Pending, Stop> {
        if target.returning.is_empty() {
            pending.rows.truncate(1);
        }
        let values = match &pending.action {
            Decision::Update(values) => values.len(),
            Decision::Insert(values) => values.len(),
            Decision::Delete => 0,
        };
        self.host.take_memory(64 + 48 * (pending.rows.len() + values))?;
        Ok(pending)
    }

    /// What MERGE does with the current rows.
    fn decide(&mut self, merge: &Merge) -> Result<Option<Decision>, Stop> {
        let matched = matches!(self.level().rows.first(), Some(Row::Stored(..)));
        for clause in merge.clauses.iter().filter(|clause| clause.matched == matched) {
            if let Some(condition) = &clause.condition
                && !self.is_true(condition)?
            {
                continue;
            }
            return Ok(match &clause.action {
                MergeAction::Nothing => None,
                MergeAction::Delete => Some(Decision::Delete),
                MergeAction::Update(set) => Some(Decision::Update(self.assigned(set)?)),
                MergeAction::Insert(given) => {
                    let mut values = vec![Value::Null; merge.target.table.columns.len()];
                    for (column, value) in given {
                        values[column.index()] = self.scalar(value)?;
                    }
                    Some(Decision::Insert(values))
                }
            });
        }
        Ok(None)
    }

    /// Keeps the values of rows that RETURNING reads after they may have been changed.
    fn keep_old(&mut self, target: &Target, rows: &mut [Row]) {
        for (row, relation) in rows.iter_mut().zip(&target.relations).skip(1) {
            let RelationSource::Table(table) = &relation.source else { continue };
            let Row::Stored(site, tid) = *row else { continue };
            if table.id == target.table.id {
                let values = table.column_ids().map(|column| self.stored(site, table.id, tid, column));
                *row = Row::Made(values.map(Datum::from).collect());
            }
        }
    }

    fn assigned(&mut self, set: &[(ColumnId, Expr)]) -> Result<Vec<(ColumnId, Value)>, Stop> {
        let mut values = Vec::with_capacity(set.len());
        for (column, expr) in set {
            values.push((*column, self.scalar(expr)?));
        }
        Ok(values)
    }

    fn scalar(&mut self, expr: &Expr) -> Result<Value, Stop> {
        scalar(self.value(expr)?)
    }

    /// Changes a row.
    fn make(&mut self, change: &Change, pending: Pending, done: &mut Done) -> Result<(), Stop> {
        let Pending { rows, action } = pending;
        let (table, returning) = (change.table().id, change.returning());
        let at = match rows.first() {
            Some(Row::Stored(site, tid)) => Some((*site, *tid)),
            _ => None,
        };
        if let (Change::Merge(_), Some(at)) = (change, at)
            && !done.touched.insert(at)
        {
            let message = "MERGE command cannot affect row a second time";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message)
                .with_hint("Ensure that not more than one source row matches any one target row.")
                .into());
        }
        match (action, at) {
            (Decision::Update(values), Some((site, tid))) => {
                let (site, tid) = self.host.live().update(site, table, tid, &values)?;
                if !returning.is_empty() {
                    self.level().rows = rows;
                    self.set(0, Row::Stored(site, tid));
                    self.give_back(returning, &mut done.returned)?;
                }
            }
            (Decision::Delete, Some((site, tid))) => {
                if !returning.is_empty() {
                    self.level().rows = rows;
                    self.give_back(returning, &mut done.returned)?;
                }
                self.host.live().delete(site, table, tid)?;
            }
            (Decision::Insert(values), _) => {
                self.host.live().insert(table, &values)?;
            }
            (_, None) => return Ok(()),
        }
        done.count += 1;
        Ok(())
    }

    fn give_back(&mut self, returning: &[Expr], into: &mut Vec<Vec<Datum>>) -> Result<(), Stop> {
        let row = self.values(returning)?;
        self.keep(&row)?;
        into.push(row);
        Ok(())
    }

    /// Inserts a row with these values.
    fn insert(&mut self, insert: &Insert, values: Vec<Value>, done: &mut Done) -> Result<(), Stop> {
        let inserted = match &insert.conflict {
            None => {
                let (site, tid) = self.host.live().insert(insert.table.id, &values)?;
                Inserted::Row(site, tid)
            }
            Some(conflict) => self.insert_or(&insert.table, conflict, values, &mut done.touched)?,
        };
        let Inserted::Row(site, tid) = inserted else { return Ok(()) };
        done.count += 1;
        if !insert.returning.is_empty() {
            self.set(0, Row::Stored(site, tid));
            self.give_back(&insert.returning, &mut done.returned)?;
        }
        Ok(())
    }

    /// Inserts a row unless another one has its key.
    fn insert_or(
        &mut self,
        table: &TableDef,
        conflict: &Conflict,
        values: Vec<Value>,
        touched: &mut BTreeSet<(Site, Tid)>,
    ) -> Result<Inserted, Stop> {
        not_null(table, &values)?;
        let Some((site, tid)) = self.conflicting(table, conflict, &values)? else {
            let (site, tid) = self.host.live().insert(table.id, &values)?;
            touched.insert((site, tid));
            return Ok(Inserted::Row(site, tid));
        };
        self.checks(site, table, &values)?;
        let Some(update) = &conflict.update else { return Ok(Inserted::Nothing) };
        self.update_instead(table, update, values, (site, tid), touched)
    }

    fn update_instead(
        &mut self,
        table: &TableDef,
        update: &ConflictUpdate,
        values: Vec<Value>,
        (site, tid): (Site, Tid),
        touched: &mut BTreeSet<(Site, Tid)>,
    ) -> Result<Inserted, Stop> {
        if touched.contains(&(site, tid)) {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message)
                .with_hint(
                    "Ensure that no rows proposed for insertion within the same command have duplicate \
                     constrained values.",
                )
                .into());
        }
        self.set(0, Row::Stored(site, tid));
        self.set(1, Row::Made(values.into_iter().map(Datum::from).collect()));
        if let Some(filter) = &update.filter
            && !self.is_true(filter)?
        {
            return Ok(Inserted::Nothing);
        }
        let values = self.assigned(&update.set)?;
        let (site, tid) = self.host.live().update(site, table.id, tid, &values)?;
        touched.insert((site, tid));
        Ok(Inserted::Row(site, tid))
    }

    /// The row that has one of the keys of a new row.
    fn conflicting(
        &mut self,
        table: &TableDef,
        conflict: &Conflict,
        values: &[Value],
    ) -> Result<Option<(Site, Tid)>, Stop> {
        let sites = match table.partition_by {
            Some(column) => vec![self.host.live().site_of(table.id, &values[column.index()])?],
            None => self.host.live().sites(table.id).into_iter().take(1).collect(),
        };
        for (index, columns) in &conflict.indexes {
            if columns.iter().any(|column| values[column.index()].is_null()) {
                continue;
            }
            let mut builder = KeyBuilder::new();
            for column in columns {
                let def = table.column_def(*column);
                let value = match &values[column.index()] {
                    Value::Text(text) if matches!(def.ty, albireo_base::SqlType::Char(_)) => {
                        Value::Text(text.trim_end_matches(' ').to_owned())
                    }
                    value => value.clone(),
                };
                keys::push(&mut builder, &value, def.ty, def.nullable);
            }
            for site in &sites {
                let live = self.host.live();
                let stored = live.table(*site, table.id);
                let missing = |_| {
                    SqlError::new(SqlState::UNDEFINED_OBJECT, "an index was dropped during the statement")
                };
                let handle = stored.index(index).map_err(missing)?;
                let found = stored.find_key(handle, builder.key());
                let mut live = self.host.live();
                live.note_key(*site, table.id, index, builder.key().prefix);
                if let Some(tid) = found {
                    live.tx.note_row(*site, table.id, tid);
                    return Ok(Some((*site, tid)));
                }
            }
        }
        Ok(None)
    }

    /// Tests the constraints of a row that will not be inserted.
    fn checks(&mut self, site: Site, table: &TableDef, values: &[Value]) -> Result<(), Stop> {
        let live = self.host.live();
        let stored = live.table(site, table.id);
        for check in &stored.spec().checks {
            if !check.holds(&|column| values[column.index()].clone())? {
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    table.name,
                    check.name()
                );
                return Err(SqlError::new(SqlState::CHECK_VIOLATION, message).into());
            }
        }
        Ok(())
    }
}

/// A row of a table with values in some columns, and NULL in the others.
fn place(insert: &Insert, given: impl Iterator<Item = (ColumnId, Datum)>) -> Result<Vec<Value>, Stop> {
    let mut values = vec![Value::Null; insert.table.columns.len()];
    for (column, value) in given {
        values[column.index()] = scalar(value)?;
    }
    Ok(values)
}

/// The rows of relations with the columns that were carried.
fn carry(target: &Target, columns: &[ColumnRef], values: Vec<Datum>) -> Vec<Row> {
    let mut made: Vec<Vec<Datum>> = vec![Vec::new(); target.relations.len()];
    for (column, value) in columns.iter().zip(values) {
        let row = &mut made[usize::from(column.relation)];
        let at = usize::from(column.column);
        row.resize(row.len().max(at + 1), Datum::NULL);
        row[at] = value;
    }
    made.into_iter().map(|row| Row::Made(Arc::from(row))).chain([Row::Missing]).collect()
}

fn scalar(datum: Datum) -> Result<Value, Stop> {
    match datum {
        Datum::Value(value) => Ok(value),
        _ => Err(SqlError::unsupported("storing an array, row or interval in a column").into()),
    }
}

fn not_null(table: &TableDef, values: &[Value]) -> Result<(), SqlError> {
    let missing = table.columns.iter().zip(values).find(|(def, value)| !def.nullable && value.is_null());
    match missing {
        Some((def, _)) => {
            let message = format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                def.name, table.name
            );
            Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message))
        }
        None => Ok(()),
    }
}
