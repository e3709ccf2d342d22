//! `albireo.chunks`: a row for each chunk of each table.

use std::sync::Arc;

use albireo_base::Value;
use albireo_partition::TableHandle;
use albireo_semantics::query::View;
use albireo_semantics::types::Scalar;
use albireo_sql::TableDef;
use albireo_storage::{ChunkView, ColumnSet, SnapshotScope};

use super::freezer::is_mostly_free;
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
        let table = TableHandle::new(def.id, def.is_shared());
        let scope = SnapshotScope::Tables([(def.id, ColumnSet::ALL)].into());
        let Ok(snapshot) = self.inner.partitions.snapshot(&scope) else { return Vec::new() };
        let Some(view) = snapshot.table(def.id) else { return Vec::new() };
        let chunks = (0..view.chunk_count()).map(|number| view.chunk(number));
        chunks.map(|chunk| self.row_of_chunk(def, table, &chunk)).collect()
    }

    fn row_of_chunk(&self, def: &TableDef, table: TableHandle, chunk: &ChunkView<'_>) -> Vec<Value> {
        let number = |number: u64| Value::BigInt(number as i64);
        let slots = chunk.slots() as u64;
        let live_rows = chunk.live_rows();
        let live = live_rows as u64;
        let place = (chunk.partition(), chunk.number());
        let reason = match chunk.is_frozen() {
            true => None,
            false if chunk.is_encodable() && is_mostly_free(chunk, live_rows) => {
                Some("most of its slots are free".to_owned())
            }
            false => {
                let partitions = &self.inner.partitions;
                let may = |target: &albireo_storage::Table| target.may_freeze(chunk.number());
                let may = partitions.with_table_if_there(table, chunk.partition(), may);
                let reason = may.and_then(Result::err).map(|reason| reason.to_string());
                let often = || self.inner.freezing.is_read_often(def.id, place);
                let moved = chunk.moved_rows();
                let moves =
                    || moved.map(|rows| format!("rows that are written move out first: {rows} so far"));
                let reason = reason.or_else(|| often().then(|| "transactions read it often".to_owned()));
                let now = self.inner.env.clock.now();
                let many = || self.inner.freezing.rests(def.id, place, now);
                reason.or_else(moves).or_else(|| many().then(|| "many of its rows are written".to_owned()))
            }
        };
        let state = match chunk.frozen_rows() {
            Some(0) => "empty",
            Some(_) if chunk.is_evicted() => "evicted",
            Some(_) => "frozen",
            None if chunk.moved_rows().is_some() => "cooling",
            None if self.inner.freezing.cools(def.id, place, chunk.written()) => "cooling",
            None => "hot",
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
            number(live),
            number(slots - live),
            number(chunk.memory_bytes()),
            number(chunk.block_bytes()),
            number(chunk.reads()),
            forms.unwrap_or(Value::Null),
            reason.map_or(Value::Null, Value::Text),
        ]
    }
}
