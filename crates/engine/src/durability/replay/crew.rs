//! The threads that do records of partitions.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use albireo_env::thread::{Scope, ScopedJoinHandle};
use parking_lot::{Condvar, Mutex};

use super::ReplayState;
use super::source::{Batch, Step};

/// Runs of a batch for one worker.
struct Task {
    batch: Arc<Batch>,
    steps: Vec<Step>,
    _busy: Busy,
}

/// Counts a task until it is dropped, whatever becomes of it.
struct Busy(Arc<Tasks>);

/// Tasks that were handed over and are not done.
#[derive(Default)]
struct Tasks {
    count: Mutex<usize>,
    none: Condvar,
}

impl Busy {
    fn begin(tasks: &Arc<Tasks>) -> Self {
        *tasks.count.lock() += 1;
        Self(Arc::clone(tasks))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut count = self.0.count.lock();
        *count -= 1;
        if *count == 0 {
            self.0.none.notify_all();
        }
    }
}

/// Workers; they end when this is dropped.
pub(super) struct Crew<'scope> {
    workers: Vec<Sender<Task>>,
    tasks: Arc<Tasks>,
    _handles: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope> Crew<'scope> {
    /// As many as the system has threads for, and no more than so many.
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        work: &'scope ReplayState<'scope>,
        count: usize,
    ) -> Self {
        let (mut workers, mut handles) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (sender, receiver) = channel::<Task>();
            let body = move || {
                for task in receiver {
                    work.run(&task.batch, &task.steps);
                }
            };
            match albireo_env::spawn_scoped(scope, "albireo-replay", body) {
                Ok(handle) => handles.push(handle),
                // Those that there are do its work.
                Err(_) => break,
            }
            workers.push(sender);
        }
        Self { workers, tasks: Arc::default(), _handles: handles }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Whether nobody has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        *self.tasks.count.lock() == 0
    }

    /// Gives each worker the runs of its lanes.
    pub(super) fn hand_over(&self, batch: &Arc<Batch>, steps: &[Step]) {
        let mut shares = vec![Vec::new(); self.workers.len()];
        for step in steps {
            shares[usize::from(step.run.lane) % self.workers.len()].push(*step);
        }
        for (worker, steps) in self.workers.iter().zip(shares) {
            if !steps.is_empty() {
                let task = Task { batch: Arc::clone(batch), steps, _busy: Busy::begin(&self.tasks) };
                // One that panicked takes nothing; its panic is everybody's when the scope ends.
                let _ = worker.send(task);
            }
        }
    }

    /// Waits until nobody has anything to do.
    pub(super) fn wait(&self) {
        let mut count = self.tasks.count.lock();
        while *count > 0 {
            self.tasks.none.wait(&mut count);
        }
    }
}
