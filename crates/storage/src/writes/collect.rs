//! The net effect of a transaction, from its undo records.

use albireo_base::{ColumnId, Tid};

use crate::rows::RowRun;
use crate::undo::{Change, UndoLog, UndoRecord};

/// Which rows a transaction touched; kept from one to the next for its memory.
#[derive(Default)]
pub struct WriteSet {
    pub(super) runs: Vec<ChangeRun>,
    pub(super) spans: Vec<Span>,
}

/// Rows that were appended together. Those of them that were touched again have a [`ChangeRun`] too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) site: u16,
    pub(super) table: u32,
    pub(super) first: u64,
    pub(super) rows: u64,
}

impl Span {
    /// Whether all of its rows come before those of another.
    fn is_before(&self, other: &Self) -> bool {
        (self.site, self.table) != (other.site, other.table) || self.first + self.rows <= other.first
    }

    pub(super) fn has(&self, tid: u64) -> bool {
        tid.wrapping_sub(self.first) < self.rows
    }
}

/// What was done to one table.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) site: u16,
    pub(super) table: u32,
    /// In order.
    pub(super) runs: &'a [ChangeRun],
    pub(super) spans: &'a [Span],
}

/// Undo records of one row that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChangeRun {
    pub(super) site: u16,
    pub(super) table: u32,
    pub(super) tid: u64,
    start: u32,
    end: u32,
}

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It came and went.
    Nothing,
    Inserted,
    Updated,
    Deleted,
}

/// A row that was touched.
#[derive(Clone, Copy)]
pub(super) struct Touched<'a> {
    pub(super) tid: Tid,
    runs: &'a [ChangeRun],
}

impl WriteSet {
    /// Finds the rows that the transaction touched whose undo records these are.
    ///
    /// # Panics
    /// There are more than 2^32 undo records.
    pub fn collect(&mut self, undo: &UndoLog) {
        self.runs.clear();
        self.spans.clear();
        let records = undo.records();
        let count = u32::try_from(records.len()).expect("a transaction has fewer than 2^32 changes");
        let mut is_sorted = true;
        for (at, record) in (0..count).zip(records) {
            let &UndoRecord { site, table, tid: Tid(tid), .. } = record;
            if let Some(RowRun { rows, .. }) = record.appended() {
                self.spans.push(Span { site, table, first: tid, rows });
                continue;
            }
            match self.runs.last_mut() {
                Some(run) if (run.site, run.table, run.tid) == (site, table, tid) => run.end = at + 1,
                last => {
                    is_sorted &= last.is_none_or(|run| (run.site, run.table, run.tid) < (site, table, tid));
                    self.runs.push(ChangeRun { site, table, tid, start: at, end: at + 1 });
                }
            }
        }
        if !is_sorted {
            self.runs.sort_unstable();
        }
        self.spans.sort_unstable();
        let in_runs: usize = self.runs.iter().map(|run| (run.end - run.start) as usize).sum();
        assert!(in_runs + self.spans.len() >= records.len(), "each change is in the set");
        debug_assert!(self.runs.is_sorted(), "the changes of a row stand together");
        debug_assert!(self.spans.windows(2).all(|pair| pair[0].is_before(&pair[1])), "spans do not overlap");
    }

    /// Whether no row was touched.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.spans.is_empty()
    }

    /// What was done to each table, in order.
    pub(super) fn tables(&self) -> impl Iterator<Item = Written<'_>> {
        let (mut runs, mut spans) = (&self.runs[..], &self.spans[..]);
        std::iter::from_fn(move || {
            let run = runs.first().map(|run| (run.site, run.table));
            let span = spans.first().map(|span| (span.site, span.table));
            let (site, table) = run.into_iter().chain(span).min()?;
            let of_run = runs.partition_point(|run| (run.site, run.table) == (site, table));
            let of_span = spans.partition_point(|span| (span.site, span.table) == (site, table));
            let written = Written { site, table, runs: &runs[..of_run], spans: &spans[..of_span] };
            (runs, spans) = (&runs[of_run..], &spans[of_span..]);
            Some(written)
        })
    }
}

/// The rows of one table that were touched, by TID.
pub(super) fn rows(runs: &[ChangeRun]) -> impl Iterator<Item = Touched<'_>> {
    runs.chunk_by(|a, b| a.tid == b.tid).map(|runs| Touched { tid: Tid(runs[0].tid), runs })
}

impl<'a> Touched<'a> {
    /// Its undo records, oldest first.
    pub(super) fn records(self, undo: &'a UndoLog) -> impl Iterator<Item = &'a UndoRecord> {
        self.runs.iter().flat_map(|run| &undo.records()[run.start as usize..run.end as usize])
    }

    pub(super) fn fate(self, undo: &'a UndoLog) -> Fate {
        let (mut inserted, mut deleted, mut wrote) = (false, false, false);
        for record in self.records(undo) {
            match record.change {
                Change::Inserted => inserted = true,
                Change::Deleted => deleted = true,
                Change::Wrote { .. } => wrote = true,
                Change::Indexed(_)
                | Change::Unindexed(_)
                | Change::Appended { .. }
                | Change::Moved { .. } => {}
            }
        }
        match (inserted, deleted) {
            (true, true) => Fate::Nothing,
            (true, false) => Fate::Inserted,
            (false, true) => Fate::Deleted,
            (false, false) if wrote => Fate::Updated,
            (false, false) => Fate::Nothing,
        }
    }

    /// The columns that were overwritten, ascending.
    pub(super) fn columns(self, undo: &'a UndoLog, columns: &mut Vec<ColumnId>) {
        columns.clear();
        columns.extend(self.records(undo).filter_map(|record| match record.change {
            Change::Wrote { column, .. } => Some(column),
            _ => None,
        }));
        if !columns.is_sorted_by(|a, b| a < b) {
            columns.sort_unstable();
            columns.dedup();
        }
        debug_assert!(columns.is_sorted_by(|a, b| a < b), "columns are read in order, each once");
    }
}
