//! Giving running containers other resources than they were started with.

use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, Pod, ResourceRequirements};
use node_api::cri::v1::{LinuxContainerResources, UpdateContainerResourcesRequest};
use node_api::cri::{Code, CriError};
use parking_lot::Mutex;

use super::PodRuntime;
use super::checkpoint::{Checkpoint, CheckpointError, Entries};
use super::kill::{Grace, KillError};
use super::record::{ContainerRecord, RuntimePod};
use crate::interfaces::{SandboxResources, SideError};
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
    #[error("cannot decrease memory limits: missing pod memory usage")]
    PodUsageUnknown,
    /// The kernel would kill one of the pod's containers.
    #[error(
        "cannot decrease memory limits: attempting to set pod memory limit ({limit}) below current usage ({usage})"
    )]
    PodBelowUsage { limit: i64, usage: u64 },
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

/// The name under which the pod as a whole stands.
const OF_POD: &str = "";

/// What each pod and its containers were given last. Kept on disk, so that a resize that was cut off by a restart goes on.
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

    /// A pod has as a whole what it says now.
    pub fn set_pod(&self, pod: &Pod) {
        let uid = &pod.metadata.uid;
        match &pod.spec.resources {
            Some(own) => self.set(uid, OF_POD, own),
            None => {
                let mut entries = self.entries.lock();
                if entries.get_mut(uid).is_some_and(|of_pod| of_pod.remove(OF_POD).is_some()) {
                    self.file.note(&entries);
                }
            }
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
    /// The pod with what it had as a whole before, where it is to have something else now. One that nothing is known of has
    /// what it shall have, unless that has been `changed` since.
    pub fn former(&self, pod: &Pod, changed: bool) -> Option<Pod> {
        let had = self.actuated.get(&pod.metadata.uid, OF_POD);
        if had == pod.spec.resources {
            return None;
        }
        if had.is_none() && !changed {
            self.actuated.set_pod(pod);
            return None;
        }
        let mut former = pod.clone();
        former.spec.resources = had;
        Some(former)
    }

    /// The running containers whose resources differ from what they were given last, or may do so as the pod's as a whole
    /// do. Containers that nothing is known of count as given what they shall have.
    pub fn resized<'a>(&self, pod: &Pod, former: Option<&Pod>, seen: &'a RuntimePod) -> Vec<Resized<'a>> {
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
            if resources == member.container.resources && former.is_none() {
                continue;
            }
            let wanted = self.side.setup.resources(pod, &member.container);
            let container = member.container.into_owned();
            let before = Container { resources, ..container.clone() };
            let before = self.side.setup.resources(former.unwrap_or(pod), &before);
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
    pub async fn check_resize(&self, pod: &Pod, former: Option<&Pod>, seen: &RuntimePod) -> Result<(), ResizeError> {
        if let Some(former) = former {
            self.check_decrease_of_pod(pod, former, seen).await?;
        }
        for one in self.resized(pod, former, seen).iter().filter(|one| !one.wants_restart()) {
            self.check_decrease(one).await?;
        }
        Ok(())
    }

    /// Tells the runtime, decreases first; containers that want it are stopped to be started anew.
    pub async fn actuate(&self, pod: &Arc<Pod>, former: Option<&Pod>, seen: &RuntimePod) -> Result<(), ResizeError> {
        let mut all = self.resized(pod, former, seen);
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

    /// Tells the runtime what the pod's sandbox may use as a whole, once its group has it. Only a runtime that keeps the pod in a
    /// machine of its own, or a plug-in of it, has use for that: what comes of it holds nothing up.
    pub async fn tell_sandbox(&self, pod: &Pod, seen: &RuntimePod) {
        let Some(sandbox) = seen.sandboxes.iter().find(|sandbox| sandbox.ready) else { return };
        let SandboxResources { containers, overhead } = self.side.setup.sandbox_resources(pod);
        match self.runtime.update_pod_sandbox_resources(&sandbox.id, overhead, Some(containers)).await {
            Ok(()) => {}
            Err(error) if error.code() == Code::Unimplemented => {
                tracing::debug!(pod = %pod.metadata.name, "The runtime takes no resources of sandboxes");
            }
            Err(error) => {
                tracing::warn!(pod = %pod.metadata.name, sandbox = %sandbox.id, %error, "Resources of a sandbox were not taken");
            }
        }
    }

    /// A limit below what is used would have the kernel kill the container.
    async fn check_decrease(&self, one: &Resized<'_>) -> Result<(), ResizeError> {
        let (limit, before) = (one.wanted.memory_limit_in_bytes, one.before.memory_limit_in_bytes);
        if limit <= 0 || (before > 0 && limit >= before) {
            return Ok(());
        }
        let name = &one.container.name;
        let Some(usage) = self.memory_of(one.record).await else {
            return Err(ResizeError::UsageUnknown { container: name.clone() });
        };
        if usage < u64::try_from(limit).unwrap_or(u64::MAX) {
            return Ok(());
        }
        Err(ResizeError::BelowUsage { container: name.clone(), limit, usage })
    }

    /// The same of all containers together.
    async fn check_decrease_of_pod(&self, pod: &Pod, former: &Pod, seen: &RuntimePod) -> Result<(), ResizeError> {
        let limit = |pod: &Pod| pod.spec.resources.as_ref()?.limits.get("memory").map(Quantity::value);
        let (Some(limit), before) = (limit(pod), limit(former)) else { return Ok(()) };
        if before.is_some_and(|before| limit >= before) {
            return Ok(());
        }
        let mut usage = 0_u64;
        for record in seen.running() {
            usage = usage.saturating_add(self.memory_of(record).await.ok_or(ResizeError::PodUsageUnknown)?);
        }
        if usage < u64::try_from(limit).unwrap_or(u64::MAX) {
            return Ok(());
        }
        Err(ResizeError::PodBelowUsage { limit, usage })
    }

    /// How much memory a container uses, in bytes.
    async fn memory_of(&self, record: &ContainerRecord) -> Option<u64> {
        let memory = self.runtime.container_stats(&record.id).await.ok()?.memory?;
        Some(memory.usage_bytes.or(memory.working_set_bytes)?.value)
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
