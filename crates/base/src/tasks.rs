//! Task groups: every task has a name, a cancellation token and an owner that waits for it at shutdown.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that live and end together. Clones share the group; dropping it does not cancel, `shutdown` does.
#[derive(Debug, Clone)]
pub struct TaskGroup {
    name: Arc<str>,
    token: CancellationToken,
    tracker: TaskTracker,
    running: Arc<Mutex<Running>>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn until_cancelled(token: CancellationToken, task: Task) {
    tokio::select! {
        biased;
        () = token.cancelled() => {}
        () = task => {}
    }
}

/// How many tasks run, by name.
type Running = BTreeMap<Arc<str>, usize>;

/// How a shutdown ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// Every task ended in time.
    All,
    /// These tasks were still running at the deadline, with how many of each name.
    Stuck(Vec<(String, usize)>),
}

impl TaskGroup {
    /// A group with a token of its own.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::with_token(name, CancellationToken::new())
    }

    /// A group that ends when `token` is cancelled.
    #[must_use]
    pub fn with_token(name: &str, token: CancellationToken) -> Self {
        Self { name: name.into(), token, tracker: TaskTracker::new(), running: Arc::default() }
    }

    /// A group that is cancelled with this one but drained on its own.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self::with_token(name, self.token.child_token())
    }

    /// The token that tasks watch to know when to end.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Runs `task` until it ends. It must watch the group's token; use [`Self::spawn_cancellable`] where dropping the
    /// future at any await point is safe.
    pub fn spawn<F>(&self, name: &str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.launch(name, Box::pin(task));
    }

    /// One function for all tasks: each layer that takes a future by value would hold it twice, and each kind of task would
    /// have the runtime's code for its own.
    #[expect(clippy::disallowed_methods, reason = "the one place where tasks are spawned")]
    fn launch(&self, name: &str, task: Task) {
        let entry = RunningEntry::new(&self.running, name);
        let future = self.tracker.track_future(async move {
            let _entry = entry;
            task.await;
        });
        tokio::spawn(future);
    }

    /// Runs `task` until it ends or the group is cancelled, whichever comes first.
    pub fn spawn_cancellable<F>(&self, name: &str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (token, task): (_, Task) = (self.token(), Box::pin(task));
        self.launch(name, Box::pin(until_cancelled(token, task)));
    }

    /// Tells every task to end, without waiting.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Tells every task to end and waits for them, at most `deadline`.
    pub async fn shutdown(&self, deadline: Duration) -> Drained {
        self.token.cancel();
        self.tracker.close();
        if tokio::time::timeout(deadline, self.tracker.wait()).await.is_ok() {
            return Drained::All;
        }
        let stuck = self.running();
        tracing::warn!(group = %self.name, ?stuck, "tasks did not end before the deadline");
        Drained::Stuck(stuck)
    }

    /// The names of the tasks that run now, with how many of each.
    #[must_use]
    pub fn running(&self) -> Vec<(String, usize)> {
        self.running.lock().iter().map(|(name, count)| (name.to_string(), *count)).collect()
    }
}

/// Lets the tasks that can run now run first, once: for what gathers their work and does it together.
pub async fn ready_tasks_first() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut is_first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Counts a task under its name for as long as it lives, also when it panics.
struct RunningEntry {
    running: Arc<Mutex<Running>>,
    name: Arc<str>,
}

impl RunningEntry {
    fn new(running: &Arc<Mutex<Running>>, name: &str) -> Self {
        let mut counts = running.lock();
        let name = counts.get_key_value(name).map_or_else(|| name.into(), |(name, _)| Arc::clone(name));
        *counts.entry(Arc::clone(&name)).or_default() += 1;
        drop(counts);
        Self { running: Arc::clone(running), name }
    }
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if let Some(count) = running.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn ready_tasks_run_first_and_only_once() {
        let group = TaskGroup::new("test");
        let polls = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let polls = Arc::clone(&polls);
            group.spawn("busy", async move {
                loop {
                    polls.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            });
        }
        ready_tasks_first().await;
        assert_eq!(polls.load(Ordering::Relaxed), 3, "each once, although they are ready again");
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_for_tasks_that_end() {
        let group = TaskGroup::new("test");
        let token = group.token();
        group.spawn("drains", async move {
            token.cancelled().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
        assert_eq!(group.shutdown(Duration::from_secs(5)).await, Drained::All);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_names_what_is_stuck() {
        let group = TaskGroup::new("test");
        group.spawn("stuck", std::future::pending());
        group.spawn_cancellable("polite", std::future::pending());
        let outcome = group.shutdown(Duration::from_secs(5)).await;
        assert_eq!(outcome, Drained::Stuck(vec![("stuck".to_owned(), 1)]));
    }

    #[tokio::test]
    async fn a_child_is_cancelled_with_its_parent() {
        let parent = TaskGroup::new("parent");
        let child = parent.child("child");
        child.spawn_cancellable("waits", std::future::pending());
        parent.cancel();
        assert_eq!(child.shutdown(Duration::from_secs(5)).await, Drained::All);
    }
}
