//! How a long statement shares a partition with short transactions.
//!
//! It owns the partition for small steps. If it took it again at once, whoever waits would hardly ever get it: so after
//! each step it rests half as long as the step took, while others are about. Where they change rows as fast as it takes
//! these up, it rests less and less: it is to end.

use std::time::Duration;

use albireo_base::PartitionId;

use crate::Partitions;

/// The longest step that is rested for in full.
const MOST_NS: u64 = 1_000_000;
/// Beyond that it does not rest at all.
const MOST_HASTE: u32 = 20;

/// Steps in one partition after another.
pub struct Pace<'p> {
    partitions: &'p Partitions,
    since_ns: u64,
    /// Where the last step was, and the transactions of that partition until then.
    last: Option<(PartitionId, u64)>,
    /// It rests for so many times a step's time, divided by two to this power.
    times: u64,
    haste: u32,
}

impl<'p> Pace<'p> {
    pub(crate) fn new(partitions: &'p Partitions) -> Self {
        Self { partitions, since_ns: partitions.clock().now(), last: None, times: 1, haste: 1 }
    }

    /// It rests twice as long as each step took: the other side has most of the partition's time. As long is not half of
    /// what it would do alone, since each step takes the caches from it.
    #[must_use]
    pub fn patiently(self) -> Self {
        Self { times: 2, haste: 0, ..self }
    }

    /// It has come no nearer to its end, and rests half as long from now on.
    pub fn hurry(&mut self) {
        self.haste = (self.haste + 1).min(MOST_HASTE);
    }

    /// A step begins. It will find memory that has been touched.
    pub fn begin(&mut self) {
        self.partitions.registry().pool().replenish();
        self.since_ns = self.partitions.clock().now();
    }

    /// A step in a partition has ended, which itself counts as so many transactions.
    pub fn rest(&mut self, partition: PartitionId, own: u64) {
        let clock = self.partitions.clock();
        let took_ns = clock.now().saturating_sub(self.since_ns);
        let now = self.partitions.transactions_so_far(partition);
        let before = self.last.replace((partition, now.unwrap_or(u64::MAX)));
        let is_alone = before.is_some_and(|(other, before)| {
            other == partition && now.is_some_and(|now| now == before.saturating_add(own))
        });
        if !is_alone {
            clock.sleep(Duration::from_nanos((self.times * took_ns.min(MOST_NS)) >> self.haste));
        }
        albireo_env::give_way();
    }
}
