//! Paused time that stands still while something real is under way.
//!
//! A runtime on paused time jumps to the next timer as soon as all tasks wait. For a task that waits for another process
//! that is wrong: to the process no time has passed. Tokio does not jump while a blocking call runs, so that one such
//! call, which ends with the last hold, is all that is needed.

use std::sync::Arc;
use std::sync::mpsc;

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// The time of a runtime, which stands while somebody holds it. On a runtime with real time a hold does nothing.
pub(super) struct HeldTime {
    runtime: Handle,
    holds: Mutex<Holds>,
}

#[derive(Default)]
struct Holds {
    count: usize,
    /// Dropping it ends the blocking call.
    call: Option<mpsc::Sender<()>>,
}

/// Time stands until the last of these is dropped.
pub(super) struct Hold(Arc<HeldTime>);

impl HeldTime {
    /// The time of the runtime that this is called on.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { runtime: Handle::current(), holds: Mutex::default() })
    }

    pub(super) fn hold(self: &Arc<Self>) -> Hold {
        let mut holds = self.holds.lock();
        holds.count += 1;
        if holds.call.is_none() {
            let (call, end) = mpsc::channel::<()>();
            holds.call = Some(call);
            // It ends with an error, as nothing is ever sent.
            self.runtime.spawn_blocking(move || end.recv().is_err());
        }
        Hold(Arc::clone(self))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.0.holds.lock();
        holds.count -= 1;
        if holds.count == 0 {
            holds.call = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// A thread that takes real time, as another process does.
    async fn real_work() {
        let (done, wait) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            done.send(()).expect("somebody waits");
        });
        tokio::time::timeout(Duration::from_secs(60), wait).await.ok();
    }

    #[tokio::test(start_paused = true)]
    async fn time_stands_while_it_is_held() {
        let (time, start) = (HeldTime::new(), Instant::now());
        for _ in 0..3 {
            let first = time.hold();
            let second = time.hold();
            drop(first);
            real_work().await;
            drop(second);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        real_work().await;
        assert_eq!(start.elapsed(), Duration::from_secs(60), "not held, it jumps to the limit");
    }
}
