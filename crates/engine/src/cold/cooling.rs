//! Which chunks cool: old ones that are written still, perhaps only in a few rows.
//!
//! Blocks tell when a chunk was written, not how many of its rows. So the chunk is tried: it cools, and its rows move out
//! before they are written. If few have moved by the time that the others were not written for the schedule's time, it is
//! frozen like any other. If many have, it is hot again, and is not tried for a while.
//!
//! I-1 At most [`MOST_MOVED_ROWS`] rows move in vain each time that a chunk is tried, and it is tried once in
//! [`RESTS`] of the schedule's times.
//! I-2 Few chunks of a table are tried at a time until it is known that it pays ([`Window`]). So a table all of whose rows
//! are written does not grow by what is tried: rows that move fill the holes of the chunk before.
//! I-3 A chunk that is read often is not tried: who reads a row of a cooling chunk looks in one place more.
//! I-4 A chunk of a table that is no longer frozen by itself does not stay cooling.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §3.3. There
//! an observer of pages says in advance that few are written.

use albireo_base::ids::CHUNK_SHIFT;
use albireo_base::{PartitionId, SqlError, TableId};
use albireo_partition::TableHandle;
use albireo_storage::{ChunkView, MOST_MOVED_ROWS, Table};

use super::FreezeReport;
use super::freezer::{ChunkPlace, LOOKS, Seen};
use crate::Database;

/// For so many of the schedule's times a chunk is not tried again.
const RESTS: u64 = 8;
/// A chunk is tried while at most one of so many of its slots is dead: new rows would come to these.
const DEAD: usize = 8;

/// How a chunk cools.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Cooling {
    /// Whether it cools.
    pub(super) is_on: bool,
    /// Until when it is not tried again.
    rests_until: u64,
}

impl Cooling {
    /// Whether many rows have moved out of it a while ago, or it was read often.
    pub(super) fn rests(self, now: u64) -> bool {
        now < self.rests_until
    }
}

/// How many chunks of a table may cool at a time: twice as many after each that was frozen in the end, and half as many
/// after each that was hot again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window(u32);

impl Default for Window {
    fn default() -> Self {
        Self(4)
    }
}

impl Window {
    const MOST: u32 = 1 << 20;

    /// A chunk that cooled was frozen.
    pub(super) fn widen(&mut self) {
        self.0 = (self.0 * 2).min(Self::MOST);
    }

    /// A chunk that cooled has lost too many rows.
    fn narrow(&mut self) {
        self.0 = (self.0 / 2).max(1);
    }
}

/// What is to be done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Begin,
    End,
    /// As it is.
    Stay,
}

/// Chunks of a table that begin to cool, and those that are hot again.
#[derive(Default)]
pub(super) struct Changes {
    begin: Vec<ChunkPlace>,
    end: Vec<ChunkPlace>,
    /// How many cool already, and go on.
    cooling: usize,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty()
    }

    /// A chunk that is not to be frozen, or not by itself, if it cools.
    pub(super) fn end(&mut self, place: ChunkPlace) {
        self.end.push(place);
    }

    /// A chunk with so many live rows that was looked at just now; it is frozen when nobody has written it for `after`.
    pub(super) fn look(
        &mut self,
        place: ChunkPlace,
        (chunk, live): (&ChunkView<'_>, usize),
        seen: &mut Seen,
        window: &mut Window,
        (after, now): (u64, u64),
    ) {
        let moved = chunk.moved_rows();
        seen.cooling.is_on = moved.is_some();
        let is_full = (chunk.slots() - live) * DEAD <= chunk.slots();
        match change(seen, moved, is_full, (after, now)) {
            Change::Begin => self.begin.push(place),
            Change::End => {
                if moved.is_some_and(|moved| moved >= MOST_MOVED_ROWS) && !seen.cooling.rests(now) {
                    window.narrow();
                }
                seen.cooling.rests_until = now.saturating_add(after.saturating_mul(RESTS));
                self.end.push(place);
            }
            Change::Stay => self.cooling += usize::from(moved.is_some()),
        }
    }

    /// All chunks of the table were looked at.
    pub(super) fn limit(&mut self, window: Window) {
        self.begin.truncate((window.0 as usize).saturating_sub(self.cooling));
    }
}

fn change(seen: &Seen, moved: Option<u32>, is_full: bool, (after, now): (u64, u64)) -> Change {
    let is_old = now.saturating_sub(seen.first) >= after;
    let was_written = now.saturating_sub(seen.since) < after / u64::from(LOOKS);
    let often = seen.is_read_often();
    match moved {
        Some(moved) if moved >= MOST_MOVED_ROWS || often => Change::End,
        None if is_old && was_written && is_full && !often && !seen.cooling.rests(now) => Change::Begin,
        _ => Change::Stay,
    }
}

impl Database {
    /// Has chunks cool, and others be hot again.
    pub(super) fn cool_due(&self, table: TableHandle, changes: &Changes, report: &mut FreezeReport) {
        for (partition, chunk) in &changes.end {
            // What cannot end now is looked at again.
            self.inner.partitions.end_cooling(table, *partition, *chunk);
        }
        for those in changes.begin.chunk_by(|(one, _), (other, _)| one == other) {
            let (partition, chunks) = (those[0].0, those.iter().map(|(_, chunk)| *chunk).collect());
            let done = self.inner.partitions.cool(table, partition, chunks);
            report.cooled += done.iter().filter(|(_, outcome)| outcome.is_ok()).count() as u64;
        }
    }

    /// Has all chunks of a table cool that may, or all that do be hot again; tells how many. For simulations: a database that
    /// runs by itself chooses some ([`crate::FreezeSchedule`]).
    ///
    /// # Errors
    /// 42P01: there is no such table.
    pub fn cool_table(&self, name: &str, cools: bool) -> Result<u64, SqlError> {
        let def = self.table_called(name)?;
        Ok(self.cool_all_of(TableHandle::new(def.id, def.is_shared()), cools))
    }

    /// Has all chunks cool that may, or all that do be hot again; tells how many.
    pub(super) fn cool_all_of(&self, table: TableHandle, cools: bool) -> u64 {
        let partitions = &self.inner.partitions;
        partitions.end_chunks(table);
        let count = if table.is_shared() { 1 } else { partitions.count() };
        let mut done = 0;
        for partition in (0..count).map(PartitionId) {
            let slots = partitions.with_table_if_there(table, partition, Table::slots).unwrap_or(0);
            let chunks = 0..(slots >> CHUNK_SHIFT) as u32;
            done += match cools {
                true => {
                    let outcomes = partitions.cool(table, partition, chunks.collect());
                    outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count()
                }
                false => chunks.filter(|chunk| partitions.end_cooling(table, partition, *chunk)).count(),
            } as u64;
        }
        done
    }

    /// Has chunks be hot again that were seen cooling, of tables that are no longer frozen by themselves.
    pub(super) fn end_cooling_of(&self, seen: impl IntoIterator<Item = (TableId, ChunkPlace)>) {
        let catalog = self.catalog();
        for (id, (partition, chunk)) in seen {
            let Some(def) = catalog.tables().find(|def| def.id == id) else { continue };
            let table = TableHandle::new(id, def.is_shared());
            self.inner.partitions.end_cooling(table, partition, chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use albireo_base::Epoch;

    use super::super::freezer::Habits;
    use super::*;

    const AFTER: u64 = 1_000_000_000;

    /// What is done at each quarter of the time after which a chunk is frozen, which is written before each.
    fn changes(looks: u64, moved: impl Fn(u64) -> Option<u32>) -> Vec<(u64, Change)> {
        let (mut habits, mut seen) = (Habits::default(), Seen::new(Epoch(0), 0, 0));
        let mut all = Vec::new();
        for look in 1..=looks {
            let now = look * AFTER / 4;
            seen.look((Epoch(look), 0), now, &mut habits);
            let done = change(&seen, moved(look), true, (AFTER, now));
            if done == Change::End {
                seen.cooling.rests_until = now + RESTS * AFTER;
            }
            if done != Change::Stay {
                all.push((look, done));
            }
        }
        all
    }

    #[test]
    fn chunk_cools_when_it_is_old_and_rests_when_too_many_rows_have_moved() {
        assert_eq!(changes(3, |_| None), []);
        assert_eq!(changes(4, |_| None), [(4, Change::Begin)]);
        let too_many = |look| (look == 5).then_some(MOST_MOVED_ROWS);
        assert_eq!(changes(36, too_many), [(4, Change::Begin), (5, Change::End)]);
        assert_eq!(changes(37, too_many), [(4, Change::Begin), (5, Change::End), (37, Change::Begin)]);
        let few = |look| (look >= 5).then_some(MOST_MOVED_ROWS - 1);
        assert_eq!(changes(9, few), [(4, Change::Begin)]);
    }

    #[test]
    fn few_chunks_cool_at_a_time_until_it_pays() {
        let limited = |window: Window, cooling: usize| {
            let begin = (0..100).map(|chunk| (albireo_base::PartitionId(0), chunk)).collect();
            let mut changes = Changes { begin, end: Vec::new(), cooling };
            changes.limit(window);
            changes.begin.len()
        };
        let mut window = Window::default();
        assert_eq!((limited(window, 0), limited(window, 3), limited(window, 9)), (4, 1, 0));
        (0..3).for_each(|_| window.narrow());
        assert_eq!(limited(window, 0), 1);
        (0..40).for_each(|_| window.widen());
        assert_eq!(limited(window, 50), 100);
    }

    #[test]
    fn chunk_that_is_not_written_or_has_holes_does_not_cool() {
        let (mut habits, mut seen) = (Habits::default(), Seen::new(Epoch(1), 0, 0));
        seen.look((Epoch(2), 0), AFTER / 2, &mut habits);
        seen.look((Epoch(2), 0), AFTER, &mut habits);
        assert_eq!(change(&seen, None, true, (AFTER, AFTER)), Change::Stay);
        seen.look((Epoch(3), 0), 2 * AFTER, &mut habits);
        assert_eq!(change(&seen, None, false, (AFTER, 2 * AFTER)), Change::Stay);
        assert_eq!(change(&seen, None, true, (AFTER, 2 * AFTER)), Change::Begin);
        // Two million reads in a second.
        seen.look((Epoch(4), 2_000_000), 3 * AFTER, &mut habits);
        assert_eq!(change(&seen, None, true, (AFTER, 3 * AFTER)), Change::Stay);
        assert_eq!(change(&seen, Some(0), true, (AFTER, 3 * AFTER)), Change::End);
    }
}
