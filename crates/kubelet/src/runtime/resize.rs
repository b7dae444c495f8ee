//! Giving running containers other resources than they were started with.

use std::sync::Arc;

use api_types::core_v1::{Container, Pod};
use node_api::cri::v1::{LinuxContainerResources, UpdateContainerResourcesRequest};

use super::PodRuntime;
use super::kill::Grace;
use super::record::{ContainerRecord, RuntimePod};
use crate::pod::containers::members;

/// A running container that shall have other resources.
pub(crate) struct Resized<'a> {
    container: Container,
    record: &'a ContainerRecord,
    wanted: LinuxContainerResources,
    before: LinuxContainerResources,
}

impl PodRuntime {
    /// The running containers whose resources differ from what they were given last. Containers of an earlier kubelet
    /// count as given what they shall have.
    pub(crate) fn resized<'a>(&self, pod: &Pod, seen: &'a RuntimePod) -> Vec<Resized<'a>> {
        let mut out = Vec::new();
        let mut actuated = self.actuated.lock();
        for member in members(pod) {
            let Some(record) = seen.container(&member.container.name).filter(|record| record.is_running()) else {
                continue;
            };
            let wanted = self.side.setup.resources(pod, &member.container);
            let before = actuated.entry(record.id.clone()).or_insert_with(|| wanted.clone()).clone();
            if !same(&before, &wanted) {
                out.push(Resized { container: member.container.into_owned(), record, wanted, before });
            }
        }
        out
    }

    /// Tells the runtime, decreases first; containers that want it are stopped to be started anew.
    pub(crate) async fn actuate(&self, pod: &Arc<Pod>, seen: &RuntimePod) -> Result<(), String> {
        let mut all = self.resized(pod, seen);
        all.sort_by_key(|one| one.wanted.memory_limit_in_bytes > one.before.memory_limit_in_bytes);
        for one in all {
            if one.wants_restart() {
                let text = format!("Container {} resize requires restart, will be restarted", one.container.name);
                self.kill_container(pod, one.record, &text, Grace::OfPod).await?;
                continue;
            }
            let request = UpdateContainerResourcesRequest {
                container_id: one.record.id.clone(),
                linux: Some(one.wanted.clone()),
                ..Default::default()
            };
            self.runtime.update_container_resources(request).await.map_err(|error| error.to_string())?;
            self.actuated.lock().insert(one.record.id.clone(), one.wanted);
        }
        Ok(())
    }

    /// Forgets containers that are gone.
    pub(crate) fn prune_actuated(&self) {
        let all = self.cache.all();
        let known: std::collections::HashSet<&str> =
            all.iter().flat_map(|pod| &pod.containers).map(|record| record.id.as_str()).collect();
        self.actuated.lock().retain(|id, _| known.contains(id.as_str()));
    }
}

/// Equal in what a resize can change.
fn same(one: &LinuxContainerResources, other: &LinuxContainerResources) -> bool {
    let parts = |it: &LinuxContainerResources| (it.cpu_shares, it.cpu_quota, it.cpu_period, it.memory_limit_in_bytes);
    parts(one) == parts(other)
}

impl Resized<'_> {
    fn wants_restart(&self) -> bool {
        let memory = self.before.memory_limit_in_bytes != self.wanted.memory_limit_in_bytes;
        let cpu = (self.before.cpu_shares, self.before.cpu_quota) != (self.wanted.cpu_shares, self.wanted.cpu_quota);
        self.container.resize_policy.iter().any(|policy| {
            let changed = match policy.resource_name.as_str() {
                "cpu" => cpu,
                "memory" => memory,
                _ => false,
            };
            changed && policy.restart_policy == "RestartContainer"
        })
    }
}
