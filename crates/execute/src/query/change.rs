//! INSERT, UPDATE and DELETE at work.
//!
//! The rows to change and their new values are all found before the first is changed: a statement does
//! not see what it does itself.
use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, Tid, Value};
use albireo_partition::Site;
use albireo_semantics::query::tree::{
    Change, Conflict, ConflictUpdate, Insert, Relation, RelationSource, Target, Update,
};
use albireo_sql::TableDef;
use albireo_storage::KeyBuilder;

use super::frame::{Row, Running};
use super::keys;
use super::scan::Flow;
use crate::Stop;
use crate::datum::Datum;
use crate::expr::Expr;

/// How many rows a change concerned, and what RETURNING says of each.
type Outcome = (u64, Vec<Vec<Datum>>);

/// A row to change: the current rows, and new values.
struct Pending {
    rows: Vec<Row>,
    values: Vec<(ColumnId, Value)>,
}

/// What happened to a row of INSERT.
enum Inserted {
    Row(Site, Tid),
    Nothing,
}

impl Running<'_> {
    /// Makes a change.
    pub(in albireo_plpgsql::plan) fn change(&mut self, change: &Change) -> Result<Outcome, Stop> {
        match change {
            Change::Insert(insert) => self.insert(insert),
            Change::Update(update) => self.update(update),
            Change::Delete(target) => self.delete(target),
        }
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
                _ => None,
            });
        }
        self.push_level(relations, derived)
    }

    /// The rows that a change concerns, each once.
    fn targets(&mut self, target: &Target, set: &[(ColumnId, Expr)]) -> Result<Vec<Pending>, Stop> {
        let mut pending = Vec::new();
        if !self.all(&target.constants)? {
            return Ok(pending);
        }
        let mut seen = BTreeSet::new();
        self.steps(&target.relations, &target.steps, &mut |running| {
            let mut rows = running.level().rows.clone();
            if let Some(Row::Stored(site, tid)) = rows.first()
                && (target.relations.len() == 1 || seen.insert((*site, *tid)))
            {
                let values = running.assigned(set)?;
                if !target.returning.is_empty() {
                    running.keep_old(target, &mut rows);
                }
                running.host.take_memory(64 + 48 * (rows.len() + values.len()))?;
                pending.push(Pending { rows, values });
            }
            Ok(Flow::More)
        })?;
        Ok(pending)
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

    fn update(&mut self, update: &Update) -> Result<Outcome, Stop> {
        let Update { target, set } = update;
        self.target_level(&target.relations)?;
        let pending = self.targets(target, set)?;
        let (mut count, mut returned) = (0, Vec::new());
        for Pending { rows, values } in pending {
            self.tick()?;
            let Some(Row::Stored(site, tid)) = rows.first() else { continue };
            let (site, tid) = self.host.live().update(*site, target.table.id, *tid, &values)?;
            count += 1;
            if !target.returning.is_empty() {
                self.level().rows = rows;
                self.set(0, Row::Stored(site, tid));
                self.give_back(&target.returning, &mut returned)?;
            }
        }
        self.levels.pop();
        Ok((count, returned))
    }

    fn delete(&mut self, target: &Target) -> Result<Outcome, Stop> {
        self.target_level(&target.relations)?;
        let pending = self.targets(target, &[])?;
        let (mut count, mut returned) = (0, Vec::new());
        for Pending { rows, .. } in pending {
            self.tick()?;
            let Some(Row::Stored(site, tid)) = rows.first() else { continue };
            let (site, tid) = (*site, *tid);
            if !target.returning.is_empty() {
                self.level().rows = rows;
                self.give_back(&target.returning, &mut returned)?;
            }
            self.host.live().delete(site, target.table.id, tid)?;
            count += 1;
        }
        self.levels.pop();
        Ok((count, returned))
    }

    fn give_back(&mut self, returning: &[Expr], into: &mut Vec<Vec<Datum>>) -> Result<(), Stop> {
        let row = self.values(returning)?;
        self.keep(&row)?;
        into.push(row);
        Ok(())
    }

    fn insert(&mut self, insert: &Insert) -> Result<Outcome, Stop> {
        let rows = self.query(&insert.source, usize::MAX)?;
        let table =
            || Relation { source: RelationSource::Table(Arc::clone(&insert.table)), columns: Vec::new() };
        let excluded = Relation { source: RelationSource::Given, columns: Vec::new() };
        self.push_level(&[table(), excluded], vec![None, None])?;
        let (mut count, mut returned) = (0, Vec::new());
        let mut touched = BTreeSet::new();
        for row in rows {
            self.tick()?;
            let values = self.new_row(insert, row)?;
            let inserted = match &insert.conflict {
                None => {
                    let (site, tid) = self.host.live().insert(insert.table.id, &values)?;
                    Inserted::Row(site, tid)
                }
                Some(conflict) => self.insert_or(&insert.table, conflict, values, &mut touched)?,
            };
            let Inserted::Row(site, tid) = inserted else { continue };
            count += 1;
            if !insert.returning.is_empty() {
                self.set(0, Row::Stored(site, tid));
                self.give_back(&insert.returning, &mut returned)?;
            }
        }
        self.levels.pop();
        Ok((count, returned))
    }

    /// The values of a new row, defaults included.
    fn new_row(&mut self, insert: &Insert, row: Vec<Datum>) -> Result<Vec<Value>, Stop> {
        let mut values = vec![Value::Null; insert.table.columns.len()];
        for (column, value) in insert.columns.iter().zip(row) {
            values[column.index()] = scalar(value)?;
        }
        for (column, default) in &insert.defaults {
            values[column.index()] = self.scalar(default)?;
        }
        Ok(values)
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
                if let Some(tid) = stored.find_key(handle, builder.key()) {
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
