//! A memory account for each query, inside the account all queries share.
//!
//! Responsible for: the per-query limit and peak. Not responsible for: who spills (DataFusion's
//! operators do when an allocation is refused). Units: bytes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
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

/// A query's pool, as expressions find it among the options that they are planned with.
#[derive(Clone, Debug)]
pub(crate) struct Account(Arc<QueryPool>);

impl Account {
    /// Options that carry a query's pool.
    pub(crate) fn put(options: &ConfigOptions, pool: &Arc<QueryPool>) -> Arc<ConfigOptions> {
        let mut options = options.clone();
        options.extensions.insert(Self(Arc::clone(pool)));
        Arc::new(options)
    }

    /// The pool of the query that is run; none while it is planned.
    pub(crate) fn of(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get()
    }

    /// Bytes that the query may still take.
    pub(crate) fn left_bytes(&self) -> usize {
        self.0.limit_bytes.saturating_sub(self.0.reserved())
    }

    /// An account of its own within the query's, still empty.
    pub(crate) fn reservation(&self, name: &str) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = Arc::clone(&self.0) as _;
        MemoryConsumer::new(name).register(&pool)
    }
}

impl ConfigExtension for Account {
    const PREFIX: &'static str = "albireo_account";
}

impl ExtensionOptions for Account {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} cannot be set")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
