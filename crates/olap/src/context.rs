//! What the operators of a running query find in its session: its snapshot, and whether it is to stop.

use std::fmt;
use std::sync::Arc;

use albireo_base::CancelFlag;
use tokio::sync::Notify;

use crate::relation::Snapshot;

/// Stops a query from another thread. Clones stop the same query.
#[derive(Clone, Default)]
pub struct CancelToken {
    inner: Arc<CancelState>,
}

#[derive(Default)]
struct CancelState {
    flag: CancelFlag,
    notify: Notify,
    /// Cancelling it cancels this one too.
    parent: Option<CancelToken>,
}

impl CancelToken {
    /// A token that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the query to stop; it ends with 57014 within about ten milliseconds.
    pub fn cancel(&self) {
        self.inner.flag.set();
        self.inner.notify.notify_waiters();
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.flag.is_set() || self.inner.parent.as_ref().is_some_and(Self::is_cancelled)
    }

    /// What is set once [`Self::cancel`] was called.
    pub fn flag(&self) -> CancelFlag {
        self.inner.flag.clone()
    }

    /// A token for a part of what this one stops: it can be stopped without the rest.
    pub(crate) fn child(&self) -> Self {
        Self { inner: Arc::new(CancelState { parent: Some(self.clone()), ..CancelState::default() }) }
    }

    /// Ends when the token is cancelled.
    pub(crate) async fn wait(&self) {
        let notified = self.inner.notify.notified();
        if self.is_cancelled() {
            return;
        }
        match &self.inner.parent {
            None => notified.await,
            Some(parent) => {
                let parent = Box::pin(parent.wait());
                futures::future::select(std::pin::pin!(notified), parent).await;
            }
        }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
    }
}

/// What operators find in the session while a query runs.
pub(crate) struct QueryContext {
    pub(crate) snapshot: Arc<dyn Snapshot>,
    pub(crate) cancel: CancelToken,
}

impl QueryContext {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.snapshot.is_cancelled()
    }
}
