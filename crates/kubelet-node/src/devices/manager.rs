//! Plugins of devices: followed while they are there, and asked when a container is to have their devices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::{Container, Pod, ResourceList, ResourceStatus};
use base::{CancellationToken, SharedClock, TaskGroup};
use component_helpers::pod_requests;
use component_helpers::resource_claims::served_by_claim;
use component_helpers::resource_names::is_extended;
use futures_util::StreamExt as _;
use node_api::RpcError;
use node_api::device_plugin::DevicePluginClient;
use node_api::device_plugin::v1beta1::{ContainerPreferredAllocationRequest, DevicePluginOptions};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::checkpoint::Checkpoint;
use super::pool::{Amount, Choice, ContainerDevices, DeviceAssignments, DeviceInputs, Pool, Shortage, Slot};
use crate::topology::{Answer, NodeSet};

/// How long a plugin that has registered may take to be connected to.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// Who counts what is done with devices.
pub trait DeviceCounts: Send + Sync + 'static {
    /// A plugin registered a resource.
    fn registered(&self, resource: &str);

    /// A plugin answered what a container needs, after this time.
    fn allocated(&self, resource: &str, took: Duration);
}

/// Why a pod does not get its devices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AllocateError(String);

impl From<Shortage> for AllocateError {
    fn from(shortage: Shortage) -> Self {
        Self(shortage.to_string())
    }
}

/// A plugin that is connected.
#[derive(Clone)]
struct Plugin {
    client: DevicePluginClient,
    options: DevicePluginOptions,
    /// Cancelled when another plugin takes the resource.
    token: CancellationToken,
}

/// The devices of a node.
pub struct Devices {
    directory: PathBuf,
    pool: Mutex<Pool>,
    plugins: Mutex<BTreeMap<String, Plugin>>,
    checkpoint: Checkpoint,
    changed: Notify,
    /// The pods whose devices may be otherwise than before.
    touched: Mutex<BTreeSet<String>>,
    health_changed: Notify,
    counts: Arc<dyn DeviceCounts>,
    clock: SharedClock,
    tasks: TaskGroup,
    extended: bool,
}

/// What devices are looked after with.
pub struct DevicesDeps {
    /// Who counts.
    pub counts: Arc<dyn DeviceCounts>,
    /// Time.
    pub clock: SharedClock,
    /// Whom the connections to plugins end with.
    pub tasks: TaskGroup,
    /// Gate `DRAExtendedResource`: containers may have extended resources from a claim, and need no plugin for these.
    pub extended: bool,
}

impl Devices {
    /// The devices that plugins offer at sockets in `directory`.
    pub fn new(directory: &Path, deps: DevicesDeps) -> Arc<Self> {
        let DevicesDeps { counts, clock, tasks, extended } = deps;
        Arc::new(Self {
            directory: directory.to_owned(),
            pool: Mutex::default(),
            plugins: Mutex::default(),
            checkpoint: Checkpoint::new(directory),
            changed: Notify::new(),
            touched: Mutex::default(),
            health_changed: Notify::new(),
            counts,
            clock,
            tasks,
            extended,
        })
    }

    /// The directory of the plugins' sockets.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes over what an earlier kubelet gave away.
    pub fn restore(&self) {
        let (assigned, names) = self.checkpoint.load();
        self.pool.lock().restore(assigned, names, self.clock.monotonic());
    }

    /// Waits until the node has other devices than before.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What the node has of each resource.
    pub fn amounts(&self) -> BTreeMap<String, Amount> {
        self.pool.lock().amounts(self.clock.monotonic())
    }

    /// Connects to a plugin, and follows its devices until it is gone or another takes its place.
    ///
    /// # Errors
    /// It cannot be connected to.
    pub async fn add_plugin(self: &Arc<Self>, resource: &str, socket: &Path) -> Result<(), AllocateError> {
        let client = DevicePluginClient::dial(socket, DIAL_LIMIT).await;
        let client = client.map_err(|error| AllocateError(format!("failed to dial device plugin: {error}")))?;
        let failed = |error: RpcError| AllocateError(format!("failed to get device plugin options: {error}"));
        let options = client.options().await.map_err(failed)?;
        let plugin = Plugin { client, options, token: CancellationToken::new() };
        if let Some(former) = self.plugins.lock().insert(resource.to_owned(), plugin.clone()) {
            former.token.cancel();
        }
        self.counts.registered(resource);
        let (me, resource) = (Arc::clone(self), resource.to_owned());
        self.tasks.spawn_cancellable("device-plugin", async move { me.follow(&resource, plugin).await });
        Ok(())
    }

    /// A plugin is gone, or shall be.
    pub fn remove_plugin(&self, resource: &str) {
        if let Some(plugin) = self.plugins.lock().remove(resource) {
            plugin.token.cancel();
        }
        self.pool.lock().stop(resource, self.clock.monotonic());
        self.tell(resource);
    }

    async fn follow(&self, resource: &str, plugin: Plugin) {
        let lists = async {
            let mut lists = plugin.client.list_and_watch().await?;
            while let Some(list) = lists.next().await {
                let is_new = self.pool.lock().list(resource, list?);
                if is_new {
                    self.tell(resource);
                }
                self.note();
            }
            Ok::<(), RpcError>(())
        };
        tokio::select! {
            biased;
            // Another plugin has the resource now.
            () = plugin.token.cancelled() => return,
            ended = lists => match ended {
                Ok(()) => tracing::info!(resource, "A device plugin ended its list of devices"),
                Err(error) => tracing::error!(resource, %error, "ListAndWatch ended unexpectedly for a device plugin"),
            },
        }
        self.remove_plugin(resource);
    }

    /// There are other devices of a resource, or they are otherwise.
    fn tell(&self, resource: &str) {
        self.changed.notify_one();
        self.touched.lock().extend(self.pool.lock().users(resource));
        self.health_changed.notify_one();
    }

    /// Waits until devices may be better or worse than before; returns the uids of the pods that have them.
    pub async fn health_changed(&self) -> BTreeSet<String> {
        loop {
            let touched = std::mem::take(&mut *self.touched.lock());
            if !touched.is_empty() {
                return touched;
            }
            self.health_changed.notified().await;
        }
    }

    /// How the devices are that a container has.
    pub fn health(&self, uid: &str, container: &str) -> Vec<ResourceStatus> {
        self.pool.lock().health(uid, container)
    }

    fn plugin(&self, resource: &str) -> Option<Plugin> {
        self.plugins.lock().get(resource).cloned()
    }

    fn note(&self) {
        if let Err(error) = self.save() {
            tracing::error!(%error, "Saving the checkpoint of devices failed");
        }
    }

    /// Writes down who has what.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        self.checkpoint.save(&self.pool.lock())
    }

    /// Where a container, or all of a pod, may have its devices among the nodes of memory of the machine.
    pub(crate) fn places(&self, pod: &Pod, container: Option<&Container>, nodes: NodeSet) -> Answer {
        let wishes = match container {
            Some(container) => self.wishes(pod, container),
            None => self.wishes_of_pod(pod),
        };
        let (uid, pool) = (&pod.metadata.uid, self.pool.lock());
        let place = |(resource, wanted): (String, usize)| {
            let had = pool.had(uid, container.map(|container| container.name.as_str()), &resource);
            let hints = pool.places(&resource, wanted, &had, &pool.reusable(pod, &resource), nodes);
            (resource, hints)
        };
        wishes.into_iter().map(place).collect()
    }

    /// Gives a container its devices, near to `nodes` if that can be. They may be those of init containers of its pod
    /// that have ended by then. One call at a time.
    ///
    /// # Errors
    /// Why it does not get what it asks for. It may have some of it then.
    pub(crate) async fn allocate(
        &self,
        pod: &Pod,
        container: &Container,
        nodes: Option<NodeSet>,
    ) -> Result<(), AllocateError> {
        for (resource, wanted) in self.wishes(pod, container) {
            let slot = Slot { uid: pod.metadata.uid.clone(), container: container.name.clone(), resource };
            let reusable = self.pool.lock().reusable(pod, &slot.resource);
            self.allocate_one(&slot, wanted, &reusable, nodes).await?;
        }
        Ok(())
    }

    /// The sums of what the containers of a pod ask for at a time.
    fn wishes_of_pod(&self, pod: &Pod) -> Vec<(String, usize)> {
        let of = |container: &Container| -> ResourceList {
            let quantity =
                |count: usize| Quantity::from_value(i64::try_from(count).unwrap_or(i64::MAX), Format::DecimalSi);
            self.wishes(pod, container).into_iter().map(|(resource, wanted)| (resource, quantity(wanted))).collect()
        };
        let total = pod_requests::aggregate(&pod.spec, of);
        total.into_iter().map(|(name, amount)| (name, usize::try_from(amount.value()).unwrap_or_default())).collect()
    }

    /// What a container asks for that plugins offer, and that it does not have from a claim.
    fn wishes(&self, pod: &Pod, container: &Container) -> Vec<(String, usize)> {
        let pool = self.pool.lock();
        let claimed = |name: &str| self.extended && served_by_claim(pod, name).any(|own| own == container.name);
        let limits = container.resources.limits.iter();
        let extended = limits.filter(|(name, _)| is_extended(name) && pool.knows(name) && !claimed(name));
        let counted =
            extended.map(|(name, amount)| (name.clone(), usize::try_from(amount.value()).unwrap_or_default()));
        counted.filter(|(_, wanted)| *wanted > 0).collect()
    }

    async fn allocate_one(
        &self,
        slot: &Slot,
        wanted: usize,
        reusable: &BTreeSet<String>,
        nodes: Option<NodeSet>,
    ) -> Result<(), AllocateError> {
        let choice = self.pool.lock().choose(slot, wanted, reusable, nodes)?;
        let Choice::Among { wanted, must, free } = choice else { return Ok(()) };
        let resource = &slot.resource;
        let plugin = self.plugin(resource);
        let plugin = plugin.ok_or_else(|| AllocateError(format!("unknown Device Plugin {resource}")))?;
        let ids = pick(&plugin, wanted, must, free).await;
        self.pool.lock().assign(slot, &ids);
        let began = self.clock.monotonic();
        let answer = tokio::select! {
            biased;
            () = plugin.token.cancelled() => return Err(AllocateError(format!("endpoint {resource} has been stopped"))),
            answer = plugin.client.allocate(ids.iter().cloned().collect()) => answer,
        };
        self.counts.allocated(resource, self.clock.monotonic().duration_since(began));
        let answer = answer.map_err(|error| AllocateError(error.to_string()))?;
        let none = || AllocateError(format!("no containers return in allocation response for resource {resource}"));
        let answer = answer.ok_or_else(none)?;
        if let Some(assignment) = self.pool.lock().assigned.get_mut(slot) {
            assignment.response = Some(answer);
        }
        Ok(())
    }

    /// What one pod has.
    pub(crate) fn of_pod(&self, uid: &str) -> DeviceAssignments {
        self.pool.lock().of_pod(uid)
    }

    /// Gives a pod what it had.
    pub(crate) fn put_back(&self, uid: &str, had: DeviceAssignments) {
        let mut pool = self.pool.lock();
        pool.assigned.retain(|slot, _| slot.uid != uid);
        pool.assigned.extend(had.0);
    }

    /// Takes back what pods have that are not among these; whether there was something.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) -> bool {
        self.pool.lock().keep(uids)
    }

    /// What a container that is about to start is given to use its devices; plugins that want to know are told.
    ///
    /// # Errors
    /// A plugin says that the container may not start.
    pub async fn inputs(&self, uid: &str, container: &str) -> Result<DeviceInputs, AllocateError> {
        let mut inputs = DeviceInputs::default();
        let mut told = Vec::new();
        {
            let pool = self.pool.lock();
            for (resource, assignment) in pool.of(uid, container) {
                if let Some(response) = &assignment.response {
                    inputs.add(resource, response);
                }
                told.push((resource.to_owned(), assignment.ids().cloned().collect::<Vec<_>>()));
            }
        }
        for (resource, ids) in told {
            let Some(plugin) = self.plugin(&resource).filter(|plugin| plugin.options.pre_start_required) else {
                continue;
            };
            let failed = |error: RpcError| {
                AllocateError(format!("device plugin PreStartContainer rpc failed with err: {error}"))
            };
            plugin.client.pre_start(ids).await.map_err(failed)?;
        }
        Ok(inputs)
    }

    /// The devices that a container has.
    pub fn of_container(&self, uid: &str, container: &str) -> Vec<ContainerDevices> {
        let pool = self.pool.lock();
        let of = |(resource, assignment): (&str, &super::pool::Assignment)| {
            let sets = assignment.devices.clone().into_iter();
            let resource = resource.to_owned();
            sets.map(move |(node, ids)| {
                let nodes = if node < 0 { Vec::new() } else { vec![node] };
                ContainerDevices { resource: resource.clone(), ids, nodes }
            })
        };
        pool.of(uid, container).flat_map(of).collect()
    }

    /// The devices that may be given away, given away or not.
    pub fn allocatable(&self) -> Vec<ContainerDevices> {
        self.pool.lock().allocatable()
    }
}

/// The devices that a container gets: what the plugin would rather give, as far as it keeps to what was asked. Of the free
/// ones the first are as good as any.
async fn pick(plugin: &Plugin, wanted: usize, must: BTreeSet<String>, free: Vec<String>) -> BTreeSet<String> {
    let any = |must: BTreeSet<String>| -> BTreeSet<String> {
        let missing = wanted.saturating_sub(must.len());
        let rest: Vec<String> = free.iter().filter(|id| !must.contains(*id)).take(missing).cloned().collect();
        must.into_iter().chain(rest).collect()
    };
    if !plugin.options.get_preferred_allocation_available || must.len() >= wanted {
        return any(must);
    }
    let wish = ContainerPreferredAllocationRequest {
        available_device_ids: must.iter().chain(&free).cloned().collect(),
        must_include_device_ids: must.iter().cloned().collect(),
        allocation_size: i32::try_from(wanted).unwrap_or(i32::MAX),
    };
    match plugin.client.preferred(wish).await {
        Ok(preferred) => {
            let preferred: BTreeSet<String> = preferred.into_iter().collect();
            let allowed = preferred.iter().all(|id| must.contains(id) || free.contains(id));
            if allowed && preferred.is_superset(&must) && preferred.len() <= wanted {
                any(preferred)
            } else {
                tracing::warn!(?preferred, "A device plugin prefers devices that it was not offered");
                any(must)
            }
        }
        Err(error) => {
            tracing::warn!(%error, "A device plugin does not say which devices it prefers");
            any(must)
        }
    }
}

#[cfg(test)]
#[path = "manager_tests.rs"]
mod tests;
