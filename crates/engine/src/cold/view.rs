//! `albireo.chunks`: a row for each chunk of each table.
//!
//! The state of a chunk that has blocks is its [`Temperature`]; its reason says why it is not frozen, and names its table's
//! time, not how much of that has passed. An evicted one has a reason if most of its rows are gone and it is there still.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{Value, duration};
use albireo_partition::TableHandle;
use albireo_semantics::query::View;
use albireo_semantics::types::Scalar;
use albireo_sql::TableDef;
use albireo_storage::{ChunkView, ColumnSet, SnapshotScope, Table, WhyHot};

use super::freezer::{Seen, Temperature, is_mostly_free};
use super::packing::is_mostly_holes;
use crate::Database;

impl Database {
    /// The view as it is now; nothing of tables for which there is no memory for a snapshot.
    pub(crate) fn chunks_view(&self) -> View {
        let (text, number) = (Scalar::Text, Scalar::BigInt);
        let columns = vec![
            ("schema", text),
            ("table", text),
            ("partition", number),
            ("chunk", number),
            ("state", text),
            ("rows", number),
            ("dead", number),
            ("bytes", number),
            ("block_bytes", number),
            ("reads", number),
            ("encoding", text),
            ("reason", text),
        ];
        let rows = self.catalog().tables().flat_map(|def| self.chunks_of(def)).collect();
        View { schema: "albireo", name: "chunks", columns, rows }
    }

    fn chunks_of(&self, def: &Arc<TableDef>) -> Vec<Vec<Value>> {
        // What nobody has written until the snapshot, nobody has written until then.
        let now = self.inner.env.clock.now();
        let scope = SnapshotScope::Tables([(def.id, ColumnSet::ALL)].into());
        let Ok(snapshot) = self.inner.partitions.snapshot(&scope) else { return Vec::new() };
        let Some(view) = snapshot.table(def.id) else { return Vec::new() };
        let chunks = (0..view.chunk_count()).map(|number| view.chunk(number));
        chunks.map(|chunk| self.row_of_chunk(def, &chunk, now)).collect()
    }

    fn row_of_chunk(&self, def: &TableDef, chunk: &ChunkView<'_>, now: u64) -> Vec<Value> {
        let number = |number: u64| Value::BigInt(number as i64);
        let (slots, live) = (chunk.slots(), chunk.live_rows());
        let (state, reason) = match chunk.frozen_rows() {
            Some(0) => ("empty", None),
            Some(_) if chunk.is_evicted() => ("evicted", self.unpacked(def, chunk, live)),
            Some(_) => ("frozen", None),
            None => {
                let unfrozen = self.unfrozen(def, chunk, live, now);
                (unfrozen.state(), Some(unfrozen.reason()))
            }
        };
        let column = |at: usize| def.columns.get(at).map_or("", |column| column.name.as_str());
        let forms = chunk.forms().map(|forms| {
            let each = forms.iter().enumerate().map(|(at, form)| format!("{}: {form}", column(at)));
            Value::Text(each.collect::<Vec<_>>().join("; "))
        });
        vec![
            Value::Text(def.schema.clone()),
            Value::Text(def.name.clone()),
            number(chunk.partition().index() as u64),
            number(u64::from(chunk.number())),
            Value::Text(state.to_owned()),
            number(live as u64),
            number((slots - live) as u64),
            number(chunk.memory_bytes()),
            number(chunk.block_bytes()),
            number(chunk.reads()),
            forms.unwrap_or(Value::Null),
            reason.map_or(Value::Null, Value::Text),
        ]
    }

    /// Why an evicted chunk most of whose rows are gone, of which so many live, is as it is.
    fn unpacked(&self, def: &TableDef, chunk: &ChunkView<'_>, live: usize) -> Option<String> {
        if !is_mostly_holes(chunk, live) {
            return None;
        }
        match self.inner.freezing.unread.why(chunk) {
            Some(why) => Some(format!("most of its rows are gone, the others cannot be read: {why}")),
            None => {
                let by_itself = self.inner.freezing.after(def);
                by_itself.map(|_| {
                    "most of its rows are gone, the others wait for a look and for memory".to_owned()
                })
            }
        }
    }

    /// What is known of a chunk that has blocks, of whose rows so many live.
    fn unfrozen<'v>(&self, def: &TableDef, chunk: &'v ChunkView<'v>, live: usize, now: u64) -> Unfrozen<'v> {
        let table = TableHandle::new(def.id, def.is_shared());
        let (freezing, partitions) = (&self.inner.freezing, &self.inner.partitions);
        let may = |target: &Table| target.may_freeze(chunk.number());
        let may = partitions.with_table_if_there(table, chunk.partition(), may);
        // One that was frozen since the snapshot had blocks there.
        let kept = may.and_then(Result::err).filter(|why| *why != WhyHot::IsFrozen);
        let seen = freezing.seen_of(def.id, (chunk.partition(), chunk.number()));
        Unfrozen { chunk, live, after: freezing.after(def), kept, seen, now }
    }
}

/// What is known of a chunk that has blocks.
struct Unfrozen<'v> {
    chunk: &'v ChunkView<'v>,
    /// Rows that live.
    live: usize,
    /// When its table is frozen by itself, if it is.
    after: Option<Duration>,
    /// Why its table keeps it as it is at the moment, whoever asks.
    kept: Option<WhyHot>,
    /// What was seen of it.
    seen: Option<Seen>,
    now: u64,
}

impl Unfrozen<'_> {
    fn temperature(&self) -> Temperature {
        // Of a table that is not frozen by itself any more, what was seen is out of date.
        let (Some(after), Some(seen)) = (self.after, self.seen) else { return Temperature::Hot };
        seen.temperature(self.chunk.written(), after, self.now)
    }

    fn state(&self) -> &'static str {
        match self.temperature() {
            Temperature::Cold => "cold",
            Temperature::Cooling => "cooling",
            Temperature::Hot if self.chunk.moved_rows().is_some() => "cooling",
            Temperature::Hot => "hot",
        }
    }

    /// Why it is not frozen. What is behind a colon differs from chunk to chunk.
    fn reason(&self) -> String {
        let kept = self.kept.map(|why| why.to_string());
        let Some(after) = self.after else { return kept.unwrap_or_else(|| "freeze is off".to_owned()) };
        if self.chunk.is_encodable() && is_mostly_free(self.chunk, self.live) {
            return "most of its slots are free".to_owned();
        }
        if let Some(kept) = kept {
            return kept;
        }
        let reason = match (self.temperature(), self.chunk.moved_rows(), self.seen) {
            (_, _, Some(seen)) if seen.is_read_often() => "transactions read it often",
            (Temperature::Cold, ..) => "it waits for the next look",
            (_, Some(rows), _) => return format!("rows that are written move out first: {rows} so far"),
            (_, None, None) => "no look has come to it yet",
            (_, None, Some(seen)) if seen.cooling.rests(self.now) => "many of its rows are written",
            (_, None, Some(_)) => {
                return format!("it waits until nobody has written it for {}", duration::show(after));
            }
        };
        reason.to_owned()
    }
}
