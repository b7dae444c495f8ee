//! Running containers on the processors that they may use: what all share changes when somebody gets some for itself.
//!
//! Upstream: the CPU manager's reconcile loop.

use std::collections::HashMap;
use std::sync::Arc;

use node_api::cri::v1::{LinuxContainerResources, UpdateContainerResourcesRequest};
use tokio::time::MissedTickBehavior;

use super::Inner;

/// The processors that each container was told to use last, by its id.
pub(super) type Told = HashMap<String, String>;

impl Inner {
    pub(super) async fn keep_cpu_sets(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.settings.cpu_sets_period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = Told::new();
        loop {
            ticks.tick().await;
            self.keep_cpu_sets_once(&mut told).await;
        }
    }

    pub(super) async fn keep_cpu_sets_once(&self, told: &mut Told) {
        let mut seen_now = Told::new();
        for pod in self.workers.syncing() {
            let uid = &pod.metadata.uid;
            let Some(seen) = self.runtime.cache.get(uid) else { continue };
            for record in seen.running() {
                let Some(wanted) = self.side.setup.cpu_set(uid, &record.name) else { continue };
                let before = told.remove(&record.id);
                if before.as_ref() == Some(&wanted) || self.put_on(&record.id, &wanted).await {
                    seen_now.insert(record.id.clone(), wanted);
                }
            }
        }
        *told = seen_now;
    }

    /// Whether the runtime took it; otherwise it is asked again.
    async fn put_on(&self, id: &str, cpus: &str) -> bool {
        let resources = LinuxContainerResources { cpuset_cpus: cpus.to_owned(), ..LinuxContainerResources::default() };
        let request = UpdateContainerResourcesRequest {
            container_id: id.to_owned(),
            linux: Some(resources),
            ..UpdateContainerResourcesRequest::default()
        };
        let done = self.runtime.runtime.update_container_resources(request).await;
        if let Err(error) = &done {
            tracing::error!(container = id, cpus, %error, "Changing the processors of a container failed");
        }
        done.is_ok()
    }
}
