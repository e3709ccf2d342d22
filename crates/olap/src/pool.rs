//! A memory account for each query, inside the account all queries share.
//!
//! Responsible for: the per-query limit and peak. Not responsible for: who spills (DataFusion's
//! operators do when an allocation is refused). Units: bytes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// One query's share of the common pool.
#[derive(Debug)]
pub(crate) struct QueryPool {
    shared: Arc<dyn MemoryPool>,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl QueryPool {
    pub(crate) fn new(shared: Arc<dyn MemoryPool>, limit_bytes: usize) -> Self {
        Self { shared, limit_bytes, used_bytes: AtomicUsize::new(0), peak_bytes: AtomicUsize::new(0) }
    }

    /// The most the query held at once.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    fn took(&self, before: usize, additional: usize) {
        self.peak_bytes.fetch_max(before + additional, Ordering::Relaxed);
    }
}

impl fmt::Display for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query(limit_bytes: {}) of {}", self.limit_bytes, self.shared)
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shared.grow(reservation, additional);
        let before = self.used_bytes.fetch_add(additional, Ordering::Relaxed);
        self.took(before, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shared.shrink(reservation, shrink);
        self.used_bytes.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let before = self.used_bytes.fetch_add(additional, Ordering::Relaxed);
        if before.saturating_add(additional) > self.limit_bytes {
            self.used_bytes.fetch_sub(additional, Ordering::Relaxed);
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} asked for {additional} bytes more; the query holds {before} of its {} bytes",
                reservation.consumer().name(),
                self.limit_bytes
            )));
        }
        if let Err(e) = self.shared.try_grow(reservation, additional) {
            self.used_bytes.fetch_sub(additional, Ordering::Relaxed);
            return Err(e);
        }
        self.took(before, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes)
    }
}
