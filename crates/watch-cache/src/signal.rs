//! A value whose changes can be waited for. Unlike tokio's `watch` it wakes those who wait in the order in which they
//! came, not in a random one, so that a simulation replays.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A value that one side sets and the other waits for.
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn get(&self) -> T {
        *self.value.lock()
    }

    pub(crate) fn set(&self, value: T) {
        *self.value.lock() = value;
        self.changed.notify_waiters();
    }

    /// Waits until the value is a wanted one.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(T) -> bool) {
        loop {
            // Made before the look, so that a change in between is not missed.
            let changed = self.changed.notified();
            if wanted(self.get()) {
                return;
            }
            changed.await;
        }
    }
}
