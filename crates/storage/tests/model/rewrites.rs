//! New values of columns, written beside the table while all other operations go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, StatementProgress, TableId, Tid, Value};
use albireo_storage::{Rewrite, TableError};

use crate::world::{Rows, World};

/// New values that are not in the table yet.
pub struct Rewriting {
    rewrite: Rewrite,
    columns: Vec<ColumnId>,
    /// The rows that get new values.
    wanted: BTreeMap<Tid, Vec<Value>>,
    /// The rows as they were when they were looked at last.
    base: Rows,
    _heaps: Arc<()>,
}

fn mixed(tid: Tid, pick: u16) -> u64 {
    (tid.0 + u64::from(pick)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

impl World {
    fn new_values(&self, columns: &[ColumnId], tid: Tid, pick: u16) -> Vec<Value> {
        let picks: Vec<u16> = (0..9).map(|at| (mixed(tid, pick.wrapping_add(at)) % 45) as u16).collect();
        let row = self.shape.row(&picks);
        columns.iter().map(|column| row[column.index()].clone()).collect()
    }

    /// Whether an error is one that a rewrite may meet.
    fn may_end(&self, error: &TableError) -> bool {
        match error {
            TableError::Check { .. } => true,
            TableError::OutOfMemory(_) => self.is_squeezed(),
            _ => false,
        }
    }

    /// Begins to write new values for some rows.
    pub fn begin_rewrite(&mut self, pick: u16) {
        self.take_snapshot();
        // One works beside the table at a time.
        if self.rewriting.is_some() || self.arriving.is_some() || !self.ghosts.is_empty() {
            return;
        }
        let spec = Arc::clone(self.table.spec());
        let columns = (0..spec.columns.len() as u16).map(ColumnId);
        let chosen = |column: &ColumnId| pick >> column.0 & 1 == 1 && spec.reindexes(&[*column]);
        let mut columns: Vec<ColumnId> = columns.filter(chosen).collect();
        // Of two columns each may tell rows apart in the index of the other.
        while !spec.reindexes(&columns) {
            columns.pop();
        }
        if columns.is_empty() {
            return;
        }
        let view = self.snapshots.last().and_then(|seen| seen.snapshot.table(TableId(3)));
        let view = view.expect("the table is in the snapshot");
        let rewrite = view.rewrite(PartitionId(0), spec, &columns).expect("the table is there");
        let (base, heaps) = (self.current.clone(), self.table.keep_heaps());
        let mut rewriting = Rewriting { rewrite, columns, wanted: BTreeMap::new(), base, _heaps: heaps };
        let tids: Vec<Tid> =
            self.current.keys().filter(|tid| !mixed(**tid, pick).is_multiple_of(3)).copied().collect();
        for tid in tids {
            let values = self.new_values(&rewriting.columns, tid, pick);
            match rewriting.rewrite.put(tid, &values) {
                Ok(()) => drop(rewriting.wanted.insert(tid, values)),
                Err(error) => return assert!(self.may_end(&error), "{error}"),
            }
        }
        let rewrite = &mut rewriting.rewrite;
        match rewrite.seal().and_then(|()| rewrite.reindex(&StatementProgress::default())) {
            Ok(()) => self.rewriting = Some(rewriting),
            Err(error) => assert!(self.may_end(&error), "{error}"),
        }
    }

    /// Takes rows over that were changed since; puts all in place if this is the `end`.
    pub fn rewrite_on(&mut self, pick: u16, end: bool) {
        self.commit();
        let Some(mut rewriting) = self.rewriting.take() else { return };
        let tids = rewriting.base.keys().chain(self.current.keys());
        let is_other = |tid: &&Tid| rewriting.base.get(tid) != self.current.get(tid);
        let mut tids: Vec<Tid> = tids.filter(is_other).copied().collect();
        tids.sort_unstable();
        tids.dedup();
        for tid in tids {
            let gets = self.current.contains_key(&tid) && !mixed(tid, pick).is_multiple_of(3);
            let values = gets.then(|| self.new_values(&rewriting.columns, tid, pick));
            if let Err(error) = rewriting.rewrite.put_live(&self.table, tid, values.as_deref()) {
                return assert!(self.may_end(&error), "{error}");
            }
            match values {
                Some(values) => drop(rewriting.wanted.insert(tid, values)),
                None => drop(rewriting.wanted.remove(&tid)),
            }
        }
        rewriting.base = self.current.clone();
        if !end {
            self.rewriting = Some(rewriting);
            return;
        }
        let Rewriting { mut rewrite, columns, wanted, .. } = rewriting;
        if let Err(error) = rewrite.settle() {
            return assert!(self.may_end(&error), "{error}");
        }
        assert_eq!(rewrite.rows().count(), wanted.len() as u64);
        assert!(rewrite.rows().from(Tid(0)).eq(wanted.keys().copied()));
        drop(self.table.install(rewrite));
        for (tid, values) in wanted {
            let mut row = self.current[&tid].as_ref().clone();
            for (column, value) in columns.iter().zip(values) {
                row[column.index()] = value;
            }
            self.current.insert(tid, Arc::new(row));
        }
        self.commit();
        self.check();
    }
}
