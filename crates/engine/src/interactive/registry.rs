//! The open transactions of a database: how many there may be, how long they may wait for their client, what each does.
//!
//! Responsible for: the above. Not responsible for: what they have read and
//! written, the view that shows them (`view`).
//!
//! There is no clock that ends a transaction: an idle one keeps nobody up but those who wait for its locks, and takes
//! nothing but memory and a place among those that may be open. So whoever needs one of these looks which transactions
//! are overdue and ends them, and its own next statement does so too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_partition::{Held, LockOwner, Parked, Reader};
use parking_lot::Mutex;

use super::Interactive;
use crate::Database;
use crate::settings::Settings;

/// Bytes of a statement that are shown.
const MOST_SHOWN: usize = 1000;

/// See the module.
pub(crate) struct OpenTransactions {
    /// How many there may be.
    most: usize,
    /// Bytes that they may have written.
    most_bytes: u64,
    all: Mutex<BTreeMap<u64, Arc<Activity>>>,
    last: AtomicU64,
}

impl OpenTransactions {
    pub(crate) fn new(most: usize, most_bytes: u64) -> Self {
        Self { most, most_bytes, all: Mutex::default(), last: AtomicU64::new(0) }
    }

    /// All, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Activity>> {
        self.all.lock().values().cloned().collect()
    }
}

/// What others see of an open transaction.
pub(crate) struct Activity {
    pub(super) number: u64,
    began_ns: u64,
    pub(super) began_us: i64,
    pub(super) owner: Arc<LockOwner>,
    /// Of one that may write.
    pub(super) writing: Option<Writing>,
    pub(super) now: Mutex<Now>,
}

pub(super) struct Writing {
    transaction: Weak<Mutex<Interactive>>,
    pub(super) reader: Arc<Reader>,
    pub(super) parked: Arc<Parked>,
}

pub(super) struct Now {
    pub(super) state: State,
    pub(super) since_us: i64,
    pub(super) level: &'static str,
    pub(super) statement: String,
    /// When it is ended if it still waits for its client, and why: the first that comes.
    overdue: Option<(u64, Overdue)>,
    pub(super) waits_for: Option<Held>,
}

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Idle,
    Active,
    Failed,
}

/// Which time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overdue {
    /// `idle_in_transaction_session_timeout`.
    Idle,
    /// `transaction_timeout`.
    Transaction,
}

impl Overdue {
    pub(crate) fn error(self) -> SqlError {
        let (state, text, setting) = match self {
            Self::Idle => (
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "the transaction was ended because it was idle for too long",
                "idle_in_transaction_session_timeout",
            ),
            Self::Transaction => (
                SqlState::TRANSACTION_TIMEOUT,
                "the transaction was ended because it took too long",
                "transaction_timeout",
            ),
        };
        SqlError::new(state, text)
            .with_hint(format!("It was rolled back; {setting} says how long it may take."))
    }
}

/// A place among the open transactions, given back when it is dropped.
pub(crate) struct Registered {
    database: Database,
    activity: Arc<Activity>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.database.inner.transactions.all.lock().remove(&self.activity.number);
    }
}

impl Registered {
    /// A statement begins.
    ///
    /// # Errors
    /// The transaction is overdue.
    pub(crate) fn begin(&self, text: &str) -> Result<(), Overdue> {
        let mut now = self.activity.now.lock();
        if let Some(overdue) = self.database.overdue(&now) {
            return Err(overdue);
        }
        now.state = State::Active;
        now.since_us = self.database.inner.env.clock.about_unix_us();
        now.statement.clear();
        now.statement.push_str(&text[..text.floor_char_boundary(MOST_SHOWN)]);
        now.overdue = None;
        Ok(())
    }

    /// It has ended, and the client has the word.
    pub(crate) fn end(&self, failed: bool, level: Option<&'static str>, settings: &Settings) {
        let clock = &self.database.inner.env.clock;
        let after = |from: u64, longest: Duration| {
            from.saturating_add(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX))
        };
        let idle = settings.idle_in_transaction_timeout;
        let idle = idle.map(|longest| (after(clock.now(), longest), Overdue::Idle));
        let whole = settings.transaction_timeout;
        let whole = whole.map(|longest| (after(self.activity.began_ns, longest), Overdue::Transaction));
        let mut now = self.activity.now.lock();
        now.level = level.unwrap_or("read only");
        now.state = if failed { State::Failed } else { State::Idle };
        now.since_us = clock.about_unix_us();
        now.overdue = [idle, whole].into_iter().flatten().min_by_key(|(at, _)| *at);
    }

    /// Whether its client has taken too long.
    pub(crate) fn is_overdue(&self) -> bool {
        self.database.overdue(&self.activity.now.lock()).is_some()
    }

    /// How long the transaction may go on, if not for ever.
    pub(crate) fn left(&self, settings: &Settings) -> Option<Duration> {
        let longest = settings.transaction_timeout?;
        let lasted = self.database.inner.env.clock.now().saturating_sub(self.activity.began_ns);
        Some(longest.saturating_sub(Duration::from_nanos(lasted)))
    }

    /// What others see.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Activity {
    /// It waits as long as the result is there.
    pub(crate) fn waits_for(&self, held: &Held) -> Waits<'_> {
        self.now.lock().waits_for = Some(held.clone());
        Waits(self)
    }
}

/// A transaction is shown to wait.
pub(crate) struct Waits<'a>(&'a Activity);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.now.lock().waits_for = None;
    }
}

impl Database {
    /// A place for a new transaction.
    ///
    /// # Errors
    /// 53400 if there are as many as there may be.
    pub(crate) fn register(
        &self,
        owner: &Arc<LockOwner>,
        writing: Option<&Arc<Mutex<Interactive>>>,
        settings: &Settings,
    ) -> Result<Registered, SqlError> {
        let open = &self.inner.transactions;
        let most = open.most;
        if open.all.lock().len() >= most {
            self.end_overdue();
        }
        let clock = &self.inner.env.clock;
        let (number, began_ns, began_us) =
            (open.last.fetch_add(1, Ordering::Relaxed) + 1, clock.now(), clock.unix_us());
        let now = Now {
            state: State::Idle,
            since_us: began_us,
            level: "",
            statement: String::new(),
            overdue: None,
            waits_for: None,
        };
        let level = writing.map(|open| open.lock().isolation().name());
        let writing = writing.map(|transaction| {
            let open = transaction.lock();
            let (reader, parked) = (Arc::clone(&open.reader), Arc::clone(&open.parked));
            Writing { transaction: Arc::downgrade(transaction), reader, parked }
        });
        let (owner, now) = (Arc::clone(owner), Mutex::new(now));
        let activity = Arc::new(Activity { number, began_ns, began_us, owner, writing, now });
        let mut all = open.all.lock();
        if all.len() >= most {
            let text = format!("too many open transactions: {}", all.len());
            return Err(SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, text)
                .with_hint("End some of albireo.transactions, or raise open_transactions."));
        }
        all.insert(number, Arc::clone(&activity));
        drop(all);
        let registered = Registered { database: self.clone(), activity };
        registered.end(false, level, settings);
        Ok(registered)
    }

    pub(super) fn overdue(&self, now: &Now) -> Option<Overdue> {
        let (at, overdue) = now.overdue?;
        (now.state != State::Active && self.inner.env.clock.now() >= at).then_some(overdue)
    }

    /// Ends transactions that are overdue: their places, their locks and what they have written are no more. The snapshot
    /// of a read-only one stays, until its client comes or the budget of snapshots ends it.
    pub(crate) fn end_overdue(&self) {
        for activity in self.inner.transactions.all() {
            let overdue = self.overdue(&activity.now.lock());
            let writing = activity.writing.as_ref().and_then(|writing| writing.transaction.upgrade());
            let Some(overdue) = overdue else { continue };
            if let Some(writing) = writing {
                // Who has it is about to look at the time itself.
                let Some(mut open) = writing.try_lock() else { continue };
                self.expire(&mut open, overdue);
            }
            self.inner.transactions.all.lock().remove(&activity.number);
        }
    }

    /// # Errors
    /// 53200 if open transactions have written more than they may hold.
    pub(crate) fn check_room(&self) -> Result<(), SqlError> {
        let most = self.inner.transactions.most_bytes;
        let held = || self.inner.partitions.parked_bytes();
        if held() <= most {
            return Ok(());
        }
        self.end_overdue();
        match held() <= most {
            true => Ok(()),
            false => {
                let text =
                    format!("open transactions have written {} bytes, more than they may: {most}", held());
                Err(SqlError::new(SqlState::OUT_OF_MEMORY, text)
                    .with_hint("Commit in smaller parts, or raise open_writes_bytes."))
            }
        }
    }
}
