//! What the watch over the node takes back from pods.

use std::sync::Arc;

use api_types::core_v1::Pod;
use async_trait::async_trait;

use super::{Eviction, PodEngine};
use crate::eviction::Reclaim;
use crate::interfaces::SideError;

#[async_trait]
impl Reclaim for PodEngine {
    fn is_up(&self) -> bool {
        self.inner.health.status().is_some()
    }

    fn candidates(&self) -> Vec<Arc<Pod>> {
        self.inner.workers.syncing()
    }

    async fn evict(&self, uid: &str, eviction: Eviction) -> Result<(), SideError> {
        self.inner.evict(uid, eviction).await
    }

    fn is_clean(&self, uid: &str) -> bool {
        self.inner.workers.is_finished(uid)
    }

    async fn remove_dead_containers(&self) {
        self.inner.collect_containers_once(super::housekeeping::Finished::Emptied).await;
    }

    async fn remove_unused_images(&self) {
        let now = self.inner.clock.wall();
        let mut collector = self.inner.images.lock().await;
        if let Err(error) = collector.remove_unused(&self.inner.runtime, &self.inner.mounted_images(), now).await {
            tracing::warn!(%error, "Removing unused images failed");
        }
    }
}
