//! What containers have of devices, of claims and of plugins: who is gone uses none, and who has some hears how they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, Pod, ResourceStatus};
use kubelet_node::dra::DynamicResources;
use kubelet_node::topology::TopologyManager;

use super::Inner;

/// How often it is looked for claims of pods that are gone.
const KEEP_PERIOD: Duration = Duration::from_secs(60);

impl Inner {
    /// Starts what follows the devices of pods.
    pub(super) fn follow_resources(self: &Arc<Self>) {
        if let Some(claims) = self.side.claims.clone() {
            let (me, own) = (Arc::clone(self), Arc::clone(&claims));
            self.tasks.spawn_cancellable("claims", async move { me.keep_claims(&own).await });
            let me = Arc::clone(self);
            self.tasks.spawn_cancellable("claims-health", async move {
                loop {
                    me.wake_all(&claims.health_changed().await);
                }
            });
        }
        if let Some(topology) = self.side.topology.clone().filter(|_| self.settings.resource_health) {
            let me = Arc::clone(self);
            self.tasks.spawn_cancellable("devices-health", async move {
                loop {
                    me.wake_all(&topology.devices.health_changed().await);
                }
            });
        }
    }

    fn wake_all(&self, uids: &BTreeSet<String>) {
        uids.iter().for_each(|uid| self.workers.wake(uid));
    }

    /// Has drivers let go of claims whose pods ended while nobody looked, as before this kubelet was started.
    async fn keep_claims(&self, claims: &DynamicResources) {
        loop {
            tokio::time::sleep(KEEP_PERIOD).await;
            if self.sources_ready() {
                claims.keep(|| self.workers.active().iter().map(|pod| pod.metadata.uid.clone()).collect()).await;
            }
        }
    }

    /// How the devices of a container are, as its status shows it (gate `ResourceHealthStatus`).
    pub(super) fn resource_health(&self, pod: &Pod, container: &Container) -> Vec<ResourceStatus> {
        if !self.settings.resource_health {
            return Vec::new();
        }
        let of_plugins = |topology: &Arc<TopologyManager>| topology.devices.health(&pod.metadata.uid, &container.name);
        let of_plugins = self.side.topology.as_ref().map(of_plugins).unwrap_or_default();
        let of_claims = self.side.claims.as_ref().map(|claims| claims.health(pod, container)).unwrap_or_default();
        of_plugins.into_iter().chain(of_claims).collect()
    }
}
