//! File calls that may take for ever, such as those below a network file system whose server is gone, kept away from the
//! threads that keep the node alive.
//!
//! Each call runs on a thread that may block. Calls about one thing take turns, so that a pod whose volume hangs holds
//! one thread however often it is tried again; all calls together have no more than [`MAX_THREADS`].

use std::sync::Arc;

use kubelet_node::turns::Turns;
use tokio::sync::{AcquireError, OwnedMutexGuard, Semaphore};
use tokio::task::JoinError;

use crate::interfaces::SideError;

/// Threads that may hang at once. Far fewer than the runtime has, so that others find one.
const MAX_THREADS: usize = 64;

/// Why a call was not made, or not to its end: the process ends.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("a file call was not made: {0}")]
    NoThread(#[from] AcquireError),
    #[error("a file call was not made: {0}")]
    Lost(#[from] JoinError),
}

impl From<CallError> for SideError {
    fn from(error: CallError) -> Self {
        Self::new(error.to_string())
    }
}

/// The calls of one kubelet.
pub struct FileCalls {
    threads: Arc<Semaphore>,
    turns: Turns,
}

impl Default for FileCalls {
    fn default() -> Self {
        Self { threads: Arc::new(Semaphore::new(MAX_THREADS)), turns: Turns::default() }
    }
}

impl FileCalls {
    /// Runs a call about `what`, after those before it. A caller that stops waiting leaves the call running, and its
    /// successors wait for it.
    pub async fn run<T: Send + 'static>(
        &self,
        what: &str,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let turn = self.turns.of(what).lock_owned().await;
        self.go(turn, call).await
    }

    /// Runs a call about `what`; `None` where one is still running.
    pub async fn run_if_idle<T: Send + 'static>(
        &self,
        what: &str,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Result<T, CallError>> {
        let turn = self.turns.of(what).try_lock_owned().ok()?;
        Some(self.go(turn, call).await)
    }

    async fn go<T: Send + 'static>(
        &self,
        turn: OwnedMutexGuard<()>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let thread = Arc::clone(&self.threads).acquire_owned().await?;
        let done = tokio::task::spawn_blocking(move || {
            let _held = (turn, thread);
            call()
        });
        Ok(done.await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_hangs_holds_one_thread_and_nobody_else_up() {
        let calls = Arc::new(FileCalls::default());
        let (finish, hang) = mpsc::channel::<()>();
        let patience = Duration::from_millis(50);
        let hanging = calls.run("dead", move || hang.recv().is_ok());
        assert!(tokio::time::timeout(patience, hanging).await.is_err());
        for _ in 0..3 {
            let again = calls.run("dead", || true);
            assert!(tokio::time::timeout(patience, again).await.is_err(), "it waits for its turn");
            assert!(calls.run_if_idle("dead", || true).await.is_none());
        }
        assert_eq!(calls.threads.available_permits(), MAX_THREADS - 1);
        assert_eq!(calls.run("alive", || 7).await.unwrap(), 7);
        finish.send(()).unwrap();
        assert_eq!(calls.run("dead", || 8).await.unwrap(), 8);
        assert_eq!(calls.run("other", || 9).await.unwrap(), 9);
    }
}
