//! Rows that die together, and rows that arrive in steps, among all other operations.

use std::sync::Arc;

use albireo_base::{StatementProgress, Tid, Value};
use albireo_storage::{Arrival, Entering, RowSet, TableError};

use crate::append::Staged;
use crate::world::World;

/// Rows on their way into the table.
pub struct Arriving {
    arrival: Arrival,
    rows: Vec<Vec<Value>>,
    has_more: bool,
}

impl World {
    /// Kills some rows in a moment.
    pub fn kill_some(&mut self, pick: u16) {
        self.commit();
        if self.rewriting.is_some() {
            return;
        }
        let mut set = RowSet::default();
        let chosen = |tid: &&Tid| (tid.0.wrapping_mul(0x9e37_79b9) >> 7) % 4 == u64::from(pick) % 4;
        let tids: Vec<Tid> = self.current.keys().filter(chosen).copied().collect();
        tids.iter().for_each(|tid| set.set(*tid, true));
        match self.table.prepare_to_kill(&set) {
            Ok(()) => {}
            Err(TableError::OutOfMemory(_)) => return assert!(self.is_squeezed(), "there was memory"),
            Err(other) => panic!("unexpected {other}"),
        }
        self.table.kill_all(&set);
        self.ghosts.extend(&tids);
        self.current.retain(|tid, _| !set.has(*tid));
        self.commit();
    }

    /// Tidies some of those away that were killed.
    pub fn tidy_some(&mut self, count: usize) {
        self.commit();
        let count = count.min(self.ghosts.len());
        let keys = self.table.frozen_keys(self.ghosts[..count].iter().map(|tid| tid.chunk()));
        keys.iter().for_each(|keys| keys.bring().expect("a box gives what was put there"));
        self.table.tidy_away(self.ghosts.drain(..count));
    }

    /// Lets what was staged begin to arrive.
    pub fn arrive(&mut self) {
        self.commit();
        if self.arriving.is_some() || self.rewriting.is_some() {
            return;
        }
        let Some(Staged { mut staging, rows }) = self.staged.take() else { return };
        match staging.lay_down() {
            Ok(()) => {
                self.arriving = Some(Arriving { arrival: staging.into_arrival(), rows, has_more: true })
            }
            Err(fault) => {
                assert!(matches!(fault.error, TableError::OutOfMemory(_)) && self.is_squeezed(), "{fault:?}");
            }
        }
    }

    /// Goes on with what arrives, for so many steps.
    pub fn arrive_on(&mut self, steps: usize) {
        self.commit();
        for _ in 0..steps {
            let Some(mut arriving) = self.arriving.take() else { return };
            let Arriving { arrival, has_more, .. } = &mut arriving;
            let stepped = match *has_more {
                true => self.table.admit_some(arrival).map(|more| {
                    *has_more = more;
                    Entering::Again
                }),
                false => self.table.enter_some(arrival, &StatementProgress::default()),
            };
            match stepped {
                Ok(Entering::Again) => self.arriving = Some(arriving),
                Ok(Entering::Sort) => {
                    arriving.arrival.sort();
                    self.arriving = Some(arriving);
                }
                Ok(Entering::Done) => self.settle(arriving),
                Err(TableError::OutOfMemory(_)) => {
                    assert!(self.is_squeezed(), "there was memory");
                    self.send_away(arriving.arrival);
                }
                Err(other) => panic!("unexpected {other}"),
            }
            self.check();
        }
    }

    fn settle(&mut self, arriving: Arriving) {
        let Arriving { mut arrival, rows, .. } = arriving;
        if self.table.fault_of(&arrival).is_some() {
            // The row that was in the way may have gone since.
            return self.send_away(arrival);
        }
        let fault = self.first_fault(&rows);
        match self.table.settle(&mut arrival) {
            Ok(()) => {
                assert_eq!(fault, None, "a unique key is there twice");
                let tids: Vec<Tid> = arrival.rows().from(Tid(0)).collect();
                self.table.wake(arrival);
                assert_eq!(tids.len(), rows.len());
                for tid in tids {
                    self.assert_unseen(tid);
                    self.current.insert(tid, Arc::new(self.table.row(tid)));
                }
                let sorted = |rows: &mut dyn Iterator<Item = String>| {
                    let mut rows: Vec<String> = rows.collect();
                    rows.sort_unstable();
                    rows
                };
                let come = self.current.iter().filter(|(tid, _)| !self.committed_has(**tid));
                let found = sorted(&mut come.map(|(_, row)| format!("{row:?}")));
                assert_eq!(
                    found,
                    sorted(&mut rows.iter().map(|row| format!("{row:?}"))),
                    "the rows that were staged"
                );
                self.commit();
            }
            Err(fault) if matches!(fault.error, TableError::OutOfMemory(_)) => {
                assert!(self.is_squeezed(), "there was memory");
                self.send_away(arrival);
            }
            Err(found) => {
                assert!(matches!(found.error, TableError::Duplicate { .. }), "{found:?}");
                assert!(fault.is_some(), "no key is there twice, but {found:?}");
                self.send_away(arrival);
            }
        }
    }

    fn send_away(&mut self, mut arrival: Arrival) {
        self.table.leave_some(arrival.rows().from(Tid(0)));
        while self.table.dismiss_some(&mut arrival) {}
        self.check();
    }
}
