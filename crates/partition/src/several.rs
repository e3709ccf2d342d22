//! Transactions over some partitions: they take the tokens that they need, and nobody else stands still.
//!
//! Responsible for: taking the tokens of some partitions, running one transaction over them, asking for more. Not
//! responsible for: all of them at once (`exclusive`), which a snapshot, a change of tables or of a shared table needs.
//!
//! ```text
//!         reaches for partition 2             reaches for partition 5
//!   {0} ─────────────────────────► {0, 2} ─────────────────────────► {0, 2, 5} ──► commit
//!        rolled back, run again            rolled back, run again        │ reaches for any, or too many
//!                                                                        └─────────────────────────────► all
//! ```
//!
//! I-1 Tokens are taken in the order of partitions, whether some or all: so no two owners wait for each other.
//! I-2 Its record in the log is ordered against those of all partitions, as that of a transaction over all, and is done
//! again alone.
//!
//! Papers: Kemper and Neumann, HyPer, 2010, §3.1 (transactions that cross partitions); Kallman and others, *H-Store: A
//! High-Performance, Distributed Main Memory Transaction Processing System*, VLDB 2008 (transaction classes).

use std::sync::Arc;

use albireo_base::PartitionId;
use albireo_redo::Log;

use crate::data::PartitionState;
use crate::executor::{Partition, Purpose};
use crate::journal::{self, Receipt};
use crate::run::{count, run};
use crate::token::Token;
use crate::{Abort, Call, CallError, Partitions, Transaction};

/// A transaction that needs more partitions than this takes all.
const MOST: usize = 8;

/// The tokens of some partitions. Dropped, they are given back.
struct Several<'a> {
    partitions: Vec<&'a Arc<Partition>>,
    states: Vec<Token<'a>>,
}

impl<'a> Several<'a> {
    /// Takes them: at least one, in their order.
    fn enter(all: &'a [Arc<Partition>], set: &[PartitionId]) -> Self {
        debug_assert!(set.is_sorted_by(|a, b| a < b), "each partition once, in their order (I-1)");
        let partitions: Vec<&Arc<Partition>> = set.iter().map(|partition| &all[partition.index()]).collect();
        partitions.iter().for_each(|partition| partition.raise(Purpose::Work));
        let states = partitions.iter().map(|partition| partition.enter_raised()).collect();
        Self { partitions, states }
    }

    /// Runs one transaction over them, at home in that of this number among them.
    fn run<R>(
        &mut self,
        home: usize,
        log: Option<&Log>,
        call: &Call<'_>,
        work: impl FnOnce(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<(R, Receipt), CallError> {
        let lent = Lent::new(&mut self.states);
        let result = run(&mut lent.first.tx, log, home as u16, call, work);
        drop(lent);
        count(&mut self.states[home], &result);
        result
    }
}

impl Drop for Several<'_> {
    fn drop(&mut self) {
        self.states.clear();
        self.partitions.iter().for_each(|partition| partition.lower(Purpose::Work));
    }
}

/// The data of several partitions in the hands of the first one's transaction; the others get it back at its end, also by
/// a panic.
struct Lent<'l, 'a> {
    first: &'l mut PartitionState,
    others: &'l mut [Token<'a>],
}

impl<'l, 'a> Lent<'l, 'a> {
    fn new(states: &'l mut [Token<'a>]) -> Self {
        let (first, others) = states.split_first_mut().expect("there is one at least");
        let data = others.iter_mut().map(|state| state.tx.sites.pop().expect("a partition has its data"));
        first.tx.sites.extend(data);
        first.tx.crossing = true;
        Self { first, others }
    }
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        self.first.tx.crossing = false;
        for (state, data) in self.others.iter_mut().zip(self.first.tx.sites.drain(1..)) {
            state.tx.sites.push(data);
        }
    }
}

impl Partitions {
    /// Runs `work` as one transaction over these partitions, at home in the first; over more if it reaches for more.
    ///
    /// # Errors
    /// As [`Partitions::transact`].
    pub fn transact_over<R>(
        &self,
        partitions: impl IntoIterator<Item = PartitionId>,
        call: &Call<'_>,
        work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let mut set: Vec<PartitionId> = partitions.into_iter().collect();
        let home = set.first().copied().unwrap_or(PartitionId(0));
        set.sort_unstable();
        set.dedup();
        let (value, receipt) = self.run_over(set, home, call, work)?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(value)
    }

    /// Runs `work`, which has reached from its home for another partition, or for all.
    pub(crate) fn run_across<R>(
        &self,
        home: PartitionId,
        reached: Option<PartitionId>,
        call: &Call<'_>,
        mut work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<(R, Receipt), CallError> {
        match reached.and_then(|reached| self.with(vec![home], reached)) {
            Some(set) => self.run_over(set, home, call, work),
            None => self.room().with_rows(|| self.own_all().run(home.0, call, &mut work)),
        }
    }

    fn run_over<R>(
        &self,
        mut set: Vec<PartitionId>,
        home: PartitionId,
        call: &Call<'_>,
        mut work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<(R, Receipt), CallError> {
        if let Some(log) = self.log() {
            journal::wait_for_room(log);
        }
        while (1..usize::from(self.count())).contains(&set.len()) {
            let at = set.iter().position(|partition| *partition == home).unwrap_or(0);
            self.after_who_wants_all();
            let mut reached = None;
            let result = self.room().with_rows(|| {
                let mut several = Several::enter(self.all(), &set);
                let result = several.run(at, self.log(), call, &mut work);
                reached = several.states[0].tx.take_reached();
                result
            });
            let Err(CallError::Aborted(Abort::Crossing)) = result else { return result };
            match reached.and_then(|reached| self.with(set, reached)) {
                Some(more) => set = more,
                None => break,
            }
        }
        self.room().with_rows(|| self.own_all().run(home.0, call, &mut work))
    }

    /// The partitions with one more; `None` if they are too many, or it is one of them.
    fn with(&self, mut set: Vec<PartitionId>, partition: PartitionId) -> Option<Vec<PartitionId>> {
        let at = set.binary_search(&partition).err()?;
        set.insert(at, partition);
        (set.len() <= MOST && set.len() < usize::from(self.count())).then_some(set)
    }
}
