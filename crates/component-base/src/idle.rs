//! What a thread of the runtime does before it sleeps.

use std::cell::Cell;
use std::time::Duration;

use base::Tidy;
use parking_lot::Mutex;
use tokio::time::Instant;

/// From one look at the memory of a thread to the next: a look goes through all pages that the thread holds.
const BETWEEN_THREADS: Duration = Duration::from_secs(10);
/// From one look at the memory of the process to the next, at the least, by a thread that looks at its own: what is needed again after it costs a thousandth of a second.
const BETWEEN_PROCESS: Duration = Duration::from_mins(1);

thread_local! {
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// When memory was last looked at, for the threads of a runtime.
pub(crate) struct Idle {
    tidy: Tidy,
    /// Since then what a start alone needs has come and gone.
    process_looked: Mutex<Instant>,
}

impl Idle {
    pub(crate) fn new(tidy: Tidy) -> Self {
        Self { tidy, process_looked: Mutex::new(Instant::now()) }
    }

    /// Now and then has memory let go of that is not used: the thread may sleep for long, and nobody else can do it then.
    pub(crate) fn before_sleep(&self) {
        let now = Instant::now();
        if !LOOKED.get().is_none_or(|looked| is_due(looked, now, BETWEEN_THREADS)) {
            return;
        }
        LOOKED.set(Some(now));
        (self.tidy.thread)();
        // Who finds it locked knows that another thread looks already.
        let Some(mut looked) = self.process_looked.try_lock() else { return };
        if is_due(*looked, now, BETWEEN_PROCESS) {
            *looked = now;
            (self.tidy.process)();
        }
    }
}

fn is_due(looked: Instant, now: Instant, between: Duration) -> bool {
    now.saturating_duration_since(looked) >= between
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static THREAD: AtomicU32 = AtomicU32::new(0);
    static PROCESS: AtomicU32 = AtomicU32::new(0);

    /// Seconds that pass, and how often memory of the thread and of the process was let go of since the start.
    #[tokio::test(start_paused = true)]
    async fn memory_is_looked_at_now_and_then() {
        let idle = Idle::new(Tidy {
            thread: || _ = THREAD.fetch_add(1, Ordering::Relaxed),
            process: || _ = PROCESS.fetch_add(1, Ordering::Relaxed),
        });
        for (seconds, thread, process) in
            [(0, 1, 0), (0, 1, 0), (9, 1, 0), (1, 2, 0), (49, 3, 0), (9, 3, 0), (1, 4, 1), (1, 4, 1), (59, 5, 2)]
        {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            idle.before_sleep();
            let calls = (THREAD.load(Ordering::Relaxed), PROCESS.load(Ordering::Relaxed));
            assert_eq!(calls, (thread, process), "after {seconds} more seconds");
        }
    }
}
