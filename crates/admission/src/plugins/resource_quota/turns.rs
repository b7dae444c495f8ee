//! One request of a namespace at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Turns by namespace. Those that nobody waits for are dropped, so there are no more than requests in flight.
#[derive(Default)]
pub(super) struct Turns {
    by_namespace: Mutex<BTreeMap<String, Weak<Turn<()>>>>,
}

impl Turns {
    /// Waits for the namespace's turn; it ends with the guard.
    pub(super) async fn take(&self, namespace: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.by_namespace.lock();
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(namespace).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::new(Turn::new(()));
                turns.insert(namespace.to_owned(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}
