//! Caches compared with the store, from time to time: every key and the revision of its last change, as of one revision.
//! While the two differ, what is read as of a certain revision comes from the store (KEP-4988).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use storage::{KeyRange, StorageError};
use watch_cache::{PAGE_KEYS, Snapshot};

use crate::registry::Registry;
use crate::store::Store;

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The two are alike.
    Success,
    /// They are not.
    Failure,
    /// The store did not answer.
    Error,
}

impl Consistency {
    pub(crate) const ALL: [Self; 3] = [Self::Success, Self::Failure, Self::Error];

    /// Its name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error => "error",
        }
    }
}

impl Registry {
    /// Compares the cache of every place in the store with it, one after the other.
    pub async fn check_caches(&self) {
        let mut checked: Vec<Arc<Store>> = Vec::new();
        for resource in self.resources() {
            // Versions of a resource share a cache.
            if !checked.iter().any(|store| Arc::ptr_eq(store, &resource.store)) {
                resource.store.check_cache().await;
                checked.push(Arc::clone(&resource.store));
            }
        }
    }
}

impl Store {
    /// Compares the cache with the store, if there is one and it is filled.
    async fn check_cache(&self) {
        if let Some(snapshot) = self.cache.as_ref().and_then(|cache| cache.snapshot().ok()) {
            self.compare_with(&snapshot).await;
        }
    }

    pub(crate) async fn compare_with(&self, snapshot: &Snapshot) {
        let found = match self.is_like(snapshot).await {
            Ok(true) => Consistency::Success,
            Ok(false) => Consistency::Failure,
            Err(error) => {
                tracing::warn!(resource = %self.resource, %error, "Cache consistency check error");
                Consistency::Error
            }
        };
        self.counts.checked(found);
        match found {
            Consistency::Success => self.differs.store(false, Ordering::Relaxed),
            Consistency::Failure => {
                tracing::error!(resource = %self.resource, revision = snapshot.revision().0, "Cache consistency check failed");
                self.differs.store(true, Ordering::Relaxed);
            }
            Consistency::Error => {}
        }
    }

    /// Whether the store has the same keys at the same revisions.
    async fn is_like(&self, snapshot: &Snapshot) -> Result<bool, StorageError> {
        let mut rest: KeyRange = self.range("");
        let mut cached = snapshot.range("", "");
        loop {
            let page = self.backend.range(&rest, PAGE_KEYS, Some(snapshot.revision())).await?;
            for kv in &page.kvs {
                let key = kv.key.to_string();
                let alike = cached.next().is_some_and(|item| {
                    item.revision() == kv.mod_revision && key.strip_prefix(&self.prefix) == Some(&**item.key())
                });
                if !alike {
                    return Ok(false);
                }
            }
            match page.kvs.last().filter(|_| page.more()) {
                Some(last) => rest = rest.after(&last.key),
                None => return Ok(cached.next().is_none()),
            }
        }
    }
}
