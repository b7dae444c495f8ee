//! Shares leases between objects that live about equally long, so that a million Events need not a million leases.

use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{Backend, LeaseId, StorageError};

/// How far sharing may go.
#[derive(Debug, Clone, Copy)]
pub struct LeasePoolOptions {
    /// How much longer than asked an object may live for the sake of sharing; 5 % of its lifetime where that is less.
    pub reuse_duration: Duration,
    /// How many objects share a lease at most: its end deletes them all in one transaction.
    pub max_objects: u64,
}

impl Default for LeasePoolOptions {
    fn default() -> Self {
        Self { reuse_duration: Duration::from_secs(60), max_objects: 1_000 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Current {
    lease: LeaseId,
    ends: Instant,
    objects: u64,
}

/// Hands out leases, the same one for as long as it lasts long enough.
pub struct LeasePool {
    backend: Arc<dyn Backend>,
    clock: SharedClock,
    options: LeasePoolOptions,
    /// Held while a lease is granted, so that a burst of objects waits for one lease and does not make many.
    current: Mutex<Option<Current>>,
    told: Option<Box<dyn Fn(u64) + Send + Sync>>,
}

impl LeasePool {
    /// A pool without a lease.
    pub fn new(backend: Arc<dyn Backend>, clock: SharedClock, options: LeasePoolOptions) -> Self {
        Self { backend, clock, options, current: Mutex::new(None), told: None }
    }

    /// Has `told` called with how many objects a lease has when no further one joins it.
    #[must_use]
    pub fn telling(self, told: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { told: Some(Box::new(told)), ..self }
    }

    /// A lease that lasts at least `ttl`, for one object.
    ///
    /// # Errors
    /// When the store does not grant a lease.
    pub async fn lease(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        let mut current = self.current.lock().await;
        let now = self.clock.monotonic();
        let longest = ttl + self.slack(ttl);
        if let Some(shared) = current.as_mut() {
            let left = shared.ends.saturating_duration_since(now);
            // A lease made for much longer-lived objects would keep this one far too long.
            if left >= ttl && left <= longest && shared.objects < self.options.max_objects {
                shared.objects += 1;
                return Ok(shared.lease);
            }
        }
        let lease = self.backend.lease_grant(longest).await?;
        let former = current.replace(Current { lease, ends: now + longest, objects: 1 });
        if let (Some(told), Some(former)) = (&self.told, former) {
            told(former.objects);
        }
        Ok(lease)
    }

    fn slack(&self, ttl: Duration) -> Duration {
        (ttl / 20).min(self.options.reuse_duration)
    }
}

impl std::fmt::Debug for LeasePool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LeasePool").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use base::{TaskGroup, TokioClock};

    use super::*;
    use crate::{Memory, MemoryOptions};

    #[tokio::test(start_paused = true)]
    async fn leases_are_shared_until_they_are_too_short_or_too_full() {
        let group = TaskGroup::new("test");
        let clock = TokioClock::shared();
        let store = Memory::new(MemoryOptions::default(), Arc::clone(&clock), &group);
        let options = LeasePoolOptions { max_objects: 3, ..LeasePoolOptions::default() };
        let full = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let told = Arc::clone(&full);
        let pool = LeasePool::new(store, clock, options).telling(move |objects| told.lock().push(objects));
        let hour = Duration::from_secs(3_600);
        let first = pool.lease(hour).await.expect("a lease");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(pool.lease(hour).await, Ok(first), "it still lasts an hour");
        assert_ne!(pool.lease(Duration::from_secs(10)).await, Ok(first), "an hour is too long for this one");
        let second = pool.lease(hour).await.expect("a lease");
        tokio::time::sleep(Duration::from_secs(61)).await;
        let third = pool.lease(hour).await.expect("a lease");
        assert_ne!(second, third, "it no longer lasts an hour");
        assert_eq!((pool.lease(hour).await, pool.lease(hour).await), (Ok(third), Ok(third)));
        assert_ne!(pool.lease(hour).await, Ok(third), "three objects are enough");
        assert_eq!(*full.lock(), [2, 1, 1, 3]);
    }
}
