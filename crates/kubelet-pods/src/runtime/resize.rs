//! Giving running containers other resources than they were started with.

use std::sync::Arc;

use api_types::core_v1::{Container, Pod, ResourceRequirements};
use node_api::cri::CriError;
use node_api::cri::v1::{LinuxContainerResources, UpdateContainerResourcesRequest};
use parking_lot::Mutex;

use super::PodRuntime;
use super::checkpoint::{Checkpoint, CheckpointError, Entries};
use super::kill::{Grace, KillError};
use super::record::{ContainerRecord, RuntimePod};
use crate::interfaces::SideError;
use crate::pod::containers::members;

/// Why other resources are not in force yet. Each is tried again at the next sync: what is in the way may be gone then.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    #[error("cannot decrease memory limits: missing container {container:?} memory usage")]
    UsageUnknown { container: String },
    /// The kernel would kill the container.
    #[error(
        "cannot decrease memory limits: attempting to set container {container:?} memory limit ({limit}) below current \
         usage ({usage})"
    )]
    BelowUsage { container: String, limit: i64, usage: u64 },
    /// A container that has to be started anew does not stop.
    #[error(transparent)]
    Kill(#[from] KillError),
    /// The runtime refuses.
    #[error(transparent)]
    Runtime(#[from] CriError),
    /// The pod's group does not take it.
    #[error(transparent)]
    Group(#[from] SideError),
}

/// What the containers of each pod were given last. Kept on disk, so that a resize that was cut off by a restart goes on.
pub struct Actuated {
    entries: Mutex<Entries>,
    file: Checkpoint,
}

impl Actuated {
    pub fn new(root: &std::path::Path) -> Self {
        Self { entries: Mutex::default(), file: Checkpoint::new(root, "actuated_pods_state") }
    }

    pub fn restore(&self) -> Result<(), CheckpointError> {
        *self.entries.lock() = self.file.load()?;
        Ok(())
    }

    pub fn get(&self, uid: &str, container: &str) -> Option<ResourceRequirements> {
        self.entries.lock().get(uid)?.get(container).cloned()
    }

    pub fn set(&self, uid: &str, container: &str, given: &ResourceRequirements) {
        let mut entries = self.entries.lock();
        let of_pod = entries.entry(uid.to_owned()).or_default();
        if of_pod.get(container) != Some(given) {
            of_pod.insert(container.to_owned(), given.clone());
            self.file.note(&entries);
        }
    }

    /// Forgets all pods but these.
    pub fn keep(&self, known: impl Fn(&str) -> bool) {
        let mut entries = self.entries.lock();
        let before = entries.len();
        entries.retain(|uid, _| known(uid));
        if entries.len() != before {
            self.file.note(&entries);
        }
    }
}

/// A running container that shall have other resources.
pub struct Resized<'a> {
    container: Container,
    record: &'a ContainerRecord,
    wanted: LinuxContainerResources,
    before: LinuxContainerResources,
}

impl PodRuntime {
    /// The running containers whose resources differ from what they were given last. Containers that nothing is known
    /// of count as given what they shall have.
    pub fn resized<'a>(&self, pod: &Pod, seen: &'a RuntimePod) -> Vec<Resized<'a>> {
        let mut out = Vec::new();
        for member in members(pod) {
            let Some(record) = seen.container(&member.container.name).filter(|record| record.is_running()) else {
                continue;
            };
            let (uid, name) = (&pod.metadata.uid, &member.container.name);
            let Some(resources) = self.actuated.get(uid, name) else {
                self.actuated.set(uid, name, &member.container.resources);
                continue;
            };
            if resources == member.container.resources {
                continue;
            }
            let wanted = self.side.setup.resources(pod, &member.container);
            let container = member.container.into_owned();
            let before = self.side.setup.resources(pod, &Container { resources, ..container.clone() });
            if same(&before, &wanted) {
                // Nothing that the runtime could see, such as 1m of a processor instead of 2m.
                self.actuated.set(&pod.metadata.uid, &container.name, &container.resources);
            } else {
                out.push(Resized { container, record, wanted, before });
            }
        }
        out
    }

    /// Whether every limit can be put into force while its container goes on; to be asked before groups are changed.
    pub async fn check_resize(&self, pod: &Pod, seen: &RuntimePod) -> Result<(), ResizeError> {
        for one in self.resized(pod, seen).iter().filter(|one| !one.wants_restart()) {
            self.check_decrease(one).await?;
        }
        Ok(())
    }

    /// Tells the runtime, decreases first; containers that want it are stopped to be started anew.
    pub async fn actuate(&self, pod: &Arc<Pod>, seen: &RuntimePod) -> Result<(), ResizeError> {
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
            self.runtime.update_container_resources(request).await?;
            self.actuated.set(&pod.metadata.uid, &one.container.name, &one.container.resources);
        }
        Ok(())
    }

    /// A limit below what is used would have the kernel kill the container.
    async fn check_decrease(&self, one: &Resized<'_>) -> Result<(), ResizeError> {
        let (limit, before) = (one.wanted.memory_limit_in_bytes, one.before.memory_limit_in_bytes);
        if limit <= 0 || (before > 0 && limit >= before) {
            return Ok(());
        }
        let name = &one.container.name;
        let stats = self.runtime.container_stats(&one.record.id).await.ok().and_then(|stats| stats.memory);
        let used = stats.and_then(|memory| memory.usage_bytes.or(memory.working_set_bytes));
        let Some(used) = used else {
            return Err(ResizeError::UsageUnknown { container: name.clone() });
        };
        if used.value < u64::try_from(limit).unwrap_or(u64::MAX) {
            return Ok(());
        }
        Err(ResizeError::BelowUsage { container: name.clone(), limit, usage: used.value })
    }
}

/// Equal in what a resize can change.
fn same(one: &LinuxContainerResources, other: &LinuxContainerResources) -> bool {
    let parts = |it: &LinuxContainerResources| (it.cpu_shares, it.cpu_quota, it.cpu_period, it.memory_limit_in_bytes);
    parts(one) == parts(other) && one.unified == other.unified
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
