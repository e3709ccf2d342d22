//! Transactions that have run and wait for the disk.

use std::collections::VecDeque;

use albireo::Receipt;
use albireo_base::SqlError;
use albireo_env::Clock;

use super::{Outcome, SystemUnderTest};
use crate::tpcc::input::Kind;

/// Those of one worker, oldest first: they count in the order in which they ran.
pub(super) struct InFlight<'a> {
    target: &'a dyn SystemUnderTest,
    clock: &'a Clock,
    limit: usize,
    waiting: VecDeque<Started>,
}

/// One of them.
pub(super) struct Started {
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
    /// When it began, in nanoseconds.
    pub(super) began_ns: u64,
    receipt: Receipt,
}

impl Started {
    pub(super) fn new(kind: Kind, outcome: Outcome, began_ns: u64, receipt: Receipt) -> Self {
        Self { kind, outcome, began_ns, receipt }
    }
}

impl<'a> InFlight<'a> {
    /// None yet; at most `limit`.
    pub(super) fn new(target: &'a dyn SystemUnderTest, clock: &'a Clock, limit: usize) -> Self {
        Self { target, clock, limit, waiting: VecDeque::new() }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// One that has run just now; tells `count` of those that count now and when, and waits for the oldest
    /// while there are too many.
    #[inline]
    pub(super) fn add(
        &mut self,
        started: Started,
        now_ns: u64,
        count: &mut impl FnMut(Started, u64),
    ) -> Result<(), SqlError> {
        if self.waiting.is_empty() && self.target.is_acknowledged(started.receipt) {
            count(started, now_ns);
            return Ok(());
        }
        self.waiting.push_back(started);
        self.settle(now_ns, count);
        while self.waiting.len() >= self.limit {
            self.wait(count)?;
        }
        Ok(())
    }

    /// Waits for all.
    pub(super) fn finish(&mut self, count: &mut impl FnMut(Started, u64)) -> Result<(), SqlError> {
        while !self.waiting.is_empty() {
            self.wait(count)?;
        }
        Ok(())
    }

    fn wait(&mut self, count: &mut impl FnMut(Started, u64)) -> Result<(), SqlError> {
        if let Some(oldest) = self.waiting.front() {
            self.target.acknowledge(oldest.receipt)?;
        }
        self.settle(self.clock.now(), count);
        Ok(())
    }

    fn settle(&mut self, now_ns: u64, count: &mut impl FnMut(Started, u64)) {
        while let Some(started) =
            self.waiting.pop_front_if(|oldest| self.target.is_acknowledged(oldest.receipt))
        {
            count(started, now_ns);
        }
    }
}
