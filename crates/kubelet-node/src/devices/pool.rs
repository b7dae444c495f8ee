//! Which devices there are, and which container has which. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_types::core_v1::constants::resource_health_status;
use api_types::core_v1::{Pod, ResourceHealth, ResourceStatus};
use node_api::device_plugin::HEALTHY;
use node_api::device_plugin::v1beta1::{ContainerAllocateResponse, Device, ListAndWatchResponse};
use tokio::time::Instant;

use crate::topology::{Hint, NodeSet, is_ending, places};

/// How long the resource of a plugin that is gone is still shown.
const GRACE: Duration = Duration::from_secs(5 * 60);
/// The node of memory that a device without one is listed under.
pub(super) const NO_NODE: i64 = -1;
/// Devices that one plugin may offer, and resources of a node.
const MAX_DEVICES: usize = 100_000;
const MAX_RESOURCES: usize = 1000;

/// What a node has of a resource, and what of it may be given away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub capacity: usize,
    pub allocatable: usize,
}

/// A resource and its devices.
#[derive(Debug)]
pub(super) struct Resource {
    /// Each device: whether it is well, and the nodes of memory it is near to.
    devices: BTreeMap<String, (bool, Vec<i64>)>,
    /// Since when its plugin is gone; it may not have come yet.
    pub(super) stopped: Option<Instant>,
}

impl Resource {
    pub(super) fn healthy(&self) -> impl Iterator<Item = &String> {
        // Of a plugin that is gone no device is known to be well.
        let there = self.stopped.is_none();
        self.devices.iter().filter(move |(_, (well, _))| there && *well).map(|(id, _)| id)
    }

    fn nodes_of(&self, id: &str) -> &[i64] {
        self.devices.get(id).map(|(_, nodes)| nodes.as_slice()).unwrap_or_default()
    }

    /// Whether a device is near to one of these nodes.
    fn is_near(&self, id: &str, nodes: NodeSet) -> bool {
        self.nodes_of(id).iter().any(|node| u32::try_from(*node).is_ok_and(|node| nodes.contains(node)))
    }

    /// Whether it is known of any device what it is near to.
    fn has_topology(&self) -> bool {
        self.devices.values().any(|(_, nodes)| !nodes.is_empty())
    }

    /// Of the free devices those near to `nodes`, if they are enough; otherwise all of them, and of the others rather
    /// those that are somewhere than those that are nowhere.
    fn by_nearness(
        &self,
        mut must: BTreeSet<String>,
        free: BTreeSet<String>,
        wanted: usize,
        nodes: Option<NodeSet>,
    ) -> (BTreeSet<String>, Vec<String>) {
        let Some(nodes) = nodes else { return (must, free.into_iter().collect()) };
        let (near, far): (Vec<String>, Vec<String>) = free.into_iter().partition(|id| self.is_near(id, nodes));
        if must.len() + near.len() >= wanted {
            return (must, near);
        }
        must.extend(near);
        let (somewhere, nowhere): (Vec<String>, Vec<String>) =
            far.into_iter().partition(|id| !self.nodes_of(id).is_empty());
        (must, somewhere.into_iter().chain(nowhere).collect())
    }
}

/// Devices by the node of memory that they are near to.
pub(super) type ByNode = BTreeMap<i64, Vec<String>>;

/// Which devices of a resource a container has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assignment {
    pub(super) devices: ByNode,
    /// What the plugin said that the container needs; `None` while it is asked.
    pub(super) response: Option<ContainerAllocateResponse>,
}

impl Assignment {
    pub(super) fn ids(&self) -> impl Iterator<Item = &String> {
        self.devices.values().flatten()
    }
}

/// A container of a pod, and a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) uid: String,
    pub(super) container: String,
    pub(super) resource: String,
}

/// Why a container does not get its devices, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Shortage {
    #[error("pod {:?} container {:?} changed request for resource {:?} from {had} to {wanted}", .slot.uid, .slot.container, .slot.resource)]
    Changed { slot: Slot, had: usize, wanted: usize },
    #[error("cannot allocate unregistered device {0}")]
    Unregistered(String),
    #[error("no healthy devices present; cannot allocate unhealthy devices {0}")]
    NoneHealthy(String),
    #[error("previously allocated devices are no longer healthy; cannot allocate unhealthy devices {0}")]
    NoLongerHealthy(String),
    #[error("requested number of devices unavailable for {resource}. Requested: {wanted}, Available: {available}")]
    TooFew { resource: String, wanted: usize, available: usize },
}

/// What is to be done for a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It has what it wants.
    Had,
    /// So many of these devices: those that it must have, and of the others rather the first.
    Among { wanted: usize, must: BTreeSet<String>, free: Vec<String> },
}

/// Which devices one pod has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceAssignments(pub(super) BTreeMap<Slot, Assignment>);

/// The devices of a node.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) resources: BTreeMap<String, Resource>,
    pub(super) assigned: BTreeMap<Slot, Assignment>,
}

impl Pool {
    /// What an earlier kubelet knew: its plugins have not come back yet.
    pub(super) fn restore(&mut self, assigned: BTreeMap<Slot, Assignment>, names: Vec<String>, now: Instant) {
        self.assigned = assigned;
        for name in names.into_iter().take(MAX_RESOURCES) {
            self.resources.entry(name).or_insert(Resource { devices: BTreeMap::new(), stopped: Some(now) });
        }
    }

    /// A plugin says what devices there are now; whether that is new.
    pub(super) fn list(&mut self, resource: &str, list: ListAndWatchResponse) -> bool {
        if !self.resources.contains_key(resource) && self.resources.len() >= MAX_RESOURCES {
            return false;
        }
        let near = |device: &Device| {
            let nodes = device.topology.iter().flat_map(|topology| &topology.nodes);
            nodes.map(|node| node.id).collect()
        };
        let devices = list.devices.iter().take(MAX_DEVICES);
        let devices = devices.map(|device| (device.id.clone(), (device.health == HEALTHY, near(device)))).collect();
        let new = Resource { devices, stopped: None };
        let old = self.resources.insert(resource.to_owned(), new);
        old.is_none_or(|old| old.stopped.is_some() || old.devices != self.resources[resource].devices)
    }

    /// A plugin is gone.
    pub(super) fn stop(&mut self, resource: &str, now: Instant) {
        if let Some(resource) = self.resources.get_mut(resource) {
            resource.stopped.get_or_insert(now);
        }
    }

    /// What the node has of each resource. One whose plugin has been gone for long is told as nothing once, and forgotten.
    pub(super) fn amounts(&mut self, now: Instant) -> BTreeMap<String, Amount> {
        let over = |resource: &Resource| resource.stopped.is_some_and(|at| now.duration_since(at) >= GRACE);
        let of = |resource: &Resource| match over(resource) {
            true => Amount::default(),
            false => Amount { capacity: resource.devices.len(), allocatable: resource.healthy().count() },
        };
        let amounts = self.resources.iter().map(|(name, resource)| (name.clone(), of(resource))).collect();
        self.resources.retain(|_, resource| !over(resource));
        amounts
    }

    /// Whether a plugin offers, or offered, the resource.
    pub(super) fn knows(&self, resource: &str) -> bool {
        self.resources.contains_key(resource) || self.assigned.keys().any(|slot| slot.resource == resource)
    }

    /// From which devices a container is to be given some, near to `nodes` if that can be. `reusable` are those of its
    /// pod's init containers that have ended by then.
    pub(super) fn choose(
        &self,
        slot: &Slot,
        wanted: usize,
        reusable: &BTreeSet<String>,
        nodes: Option<NodeSet>,
    ) -> Result<Choice, Shortage> {
        let name = slot.resource.clone();
        let had = self.assigned.get(slot);
        let resource = self.resources.get(&name);
        if let Some(had) = had {
            let count = had.ids().count();
            if count != wanted {
                return Err(Shortage::Changed { slot: slot.clone(), had: count, wanted });
            }
            // It was given them by an earlier kubelet, and the plugin has not come back: what runs goes on.
            if resource.is_none_or(|resource| resource.stopped.is_some() && resource.devices.is_empty()) {
                return Ok(Choice::Had);
            }
        }
        let resource = resource.filter(|resource| !resource.devices.is_empty() || resource.stopped.is_none());
        let resource = resource.ok_or_else(|| Shortage::Unregistered(name.clone()))?;
        let healthy: BTreeSet<String> = resource.healthy().cloned().collect();
        if healthy.is_empty() {
            return Err(Shortage::NoneHealthy(name));
        }
        if let Some(had) = had {
            let well = had.ids().all(|id| healthy.contains(id));
            return if well { Ok(Choice::Had) } else { Err(Shortage::NoLongerHealthy(name)) };
        }
        let must: BTreeSet<String> = reusable.intersection(&healthy).take(wanted).cloned().collect();
        let free = self.free(&name, resource);
        let available = must.len() + free.len();
        if available < wanted {
            return Err(Shortage::TooFew { resource: name, wanted: wanted - must.len(), available: free.len() });
        }
        let (must, free) = resource.by_nearness(must, free, wanted, nodes);
        Ok(Choice::Among { wanted, must, free })
    }

    /// The healthy devices that nobody has.
    fn free(&self, name: &str, resource: &Resource) -> BTreeSet<String> {
        let of_resource = self.assigned.iter().filter(|(slot, _)| slot.resource == name);
        let used: BTreeSet<&String> = of_resource.flat_map(|(_, had)| had.ids()).collect();
        resource.healthy().filter(|id| !used.contains(id)).cloned().collect()
    }

    /// The devices of a resource that a pod's init containers had and nobody else of the pod has. What sidecars have is
    /// not free for those after them.
    pub(super) fn reusable(&self, pod: &Pod, resource: &str) -> BTreeSet<String> {
        let (mut ended, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let own = self.assigned.iter().filter(|(slot, _)| slot.uid == pod.metadata.uid && slot.resource == resource);
        for (slot, had) in own {
            if is_ending(pod, &slot.container) { &mut ended } else { &mut kept }.extend(had.ids().cloned());
        }
        &ended - &kept
    }

    /// The devices of a resource that a container has, or all of a pod.
    pub(super) fn had(&self, uid: &str, container: Option<&str>, resource: &str) -> BTreeSet<String> {
        let own = self.assigned.iter().filter(|(slot, _)| {
            slot.uid == uid && slot.resource == resource && container.is_none_or(|name| slot.container == name)
        });
        own.flat_map(|(_, had)| had.ids().cloned()).collect()
    }

    /// Where so many devices of a resource may be; none where they may be anywhere. `had` are those that are had already.
    pub(super) fn places(
        &self,
        name: &str,
        wanted: usize,
        had: &BTreeSet<String>,
        reusable: &BTreeSet<String>,
        nodes: NodeSet,
    ) -> Option<Vec<Hint>> {
        let resource = self.resources.get(name).filter(|resource| resource.has_topology())?;
        let (free, reused) = match had.len() {
            0 => (self.free(name, resource), reusable.clone()),
            own if own == wanted => (had.clone(), BTreeSet::new()),
            _ => return Some(Vec::new()),
        };
        if free.union(&reused).count() < wanted {
            return Some(Vec::new());
        }
        let near = |nodes: NodeSet, id: &String| resource.is_near(id, nodes);
        let placed = |id: &&String| resource.is_near(id, nodes);
        let (hints, _) = places(
            nodes,
            |nodes| resource.devices.keys().filter(|id| near(nodes, id)).count() >= wanted,
            |nodes| {
                let again = reused.iter().filter(placed).count();
                let fits = reused.iter().filter(placed).all(|id| near(nodes, id));
                fits && again + free.iter().filter(|id| near(nodes, id)).count() >= wanted
            },
        );
        Some(hints)
    }

    /// Which devices one pod has.
    pub(super) fn of_pod(&self, uid: &str) -> DeviceAssignments {
        let own = self.assigned.iter().filter(|(slot, _)| slot.uid == uid);
        DeviceAssignments(own.map(|(slot, had)| (slot.clone(), had.clone())).collect())
    }

    /// Gives a container devices.
    pub(super) fn assign(&mut self, slot: &Slot, ids: &BTreeSet<String>) {
        let mut devices = ByNode::new();
        for id in ids {
            let near = self.resources.get(&slot.resource).and_then(|resource| resource.devices.get(id));
            let nodes = near.map(|(_, nodes)| nodes.clone()).filter(|nodes| !nodes.is_empty());
            for node in nodes.unwrap_or_else(|| vec![NO_NODE]).into_iter().take(1) {
                devices.entry(node).or_default().push(id.clone());
            }
        }
        self.assigned.insert(slot.clone(), Assignment { devices, response: None });
    }

    /// Takes back what pods have that are not among these; whether there was something.
    pub(super) fn keep(&mut self, uids: &BTreeSet<String>) -> bool {
        let before = self.assigned.len();
        self.assigned.retain(|slot, _| uids.contains(&slot.uid));
        self.assigned.len() != before
    }

    /// What a container has: each resource with its assignment.
    pub(super) fn of<'a>(
        &'a self,
        uid: &'a str,
        container: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Assignment)> {
        let own = self.assigned.iter().filter(move |(slot, _)| slot.uid == uid && slot.container == container);
        own.map(|(slot, assignment)| (slot.resource.as_str(), assignment))
    }

    /// The pods that have devices of a resource.
    pub(super) fn users(&self, resource: &str) -> BTreeSet<String> {
        self.assigned.keys().filter(|slot| slot.resource == resource).map(|slot| slot.uid.clone()).collect()
    }

    /// How the devices are that a container has.
    pub(super) fn health(&self, uid: &str, container: &str) -> Vec<ResourceStatus> {
        let state = |resource: &str, id: &String| match self.resources.get(resource) {
            // Its plugin has not come back since this kubelet was started.
            None => resource_health_status::UNKNOWN,
            Some(resource) if resource.stopped.is_some() && resource.devices.is_empty() => {
                resource_health_status::UNKNOWN
            }
            Some(resource) if resource.healthy().any(|own| own == id) => resource_health_status::HEALTHY,
            Some(_) => resource_health_status::UNHEALTHY,
        };
        let of = |resource: &str, id: &String| ResourceHealth {
            resource_id: id.clone(),
            health: state(resource, id).to_owned(),
            message: None,
        };
        let status = |(name, assignment): (&str, &Assignment)| {
            let resources = assignment.ids().map(|id| of(name, id)).collect();
            ResourceStatus { name: name.to_owned(), resources }
        };
        self.of(uid, container).map(status).collect()
    }

    /// All devices that may be given away.
    pub(super) fn allocatable(&self) -> Vec<ContainerDevices> {
        let of = |(name, resource): (&String, &Resource)| {
            let mut sets: BTreeMap<Vec<i64>, Vec<String>> = BTreeMap::new();
            for id in resource.healthy() {
                let nodes = resource.devices.get(id).map(|(_, nodes)| nodes.clone()).unwrap_or_default();
                sets.entry(nodes).or_default().push(id.clone());
            }
            let name = name.clone();
            sets.into_iter().map(move |(nodes, ids)| ContainerDevices { resource: name.clone(), ids, nodes })
        };
        self.resources.iter().flat_map(of).collect()
    }
}

/// Devices of a resource that are near to the same nodes of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerDevices {
    pub resource: String,
    pub ids: Vec<String>,
    pub nodes: Vec<i64>,
}

/// What a container is given to use its devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceInputs {
    pub env: BTreeMap<String, String>,
    pub mounts: Vec<node_api::cri::v1::Mount>,
    pub devices: Vec<node_api::cri::v1::Device>,
    pub annotations: BTreeMap<String, String>,
    /// Devices of the Container Device Interface, by name.
    pub cdi_devices: Vec<String>,
}

impl DeviceInputs {
    /// Adds what one plugin wants; where two of them want the same, the first wins.
    pub(super) fn add(&mut self, resource: &str, response: &ContainerAllocateResponse) {
        let conflict = |what: &str, key: &str| {
            tracing::warn!(resource, what, key, "Two device plugins set the same for a container; the first one wins");
        };
        let merge = |all: &mut BTreeMap<String, String>, what: &str, (key, value): (&String, &String)| {
            let present = all.entry(key.clone()).or_insert_with(|| value.clone());
            if present != value {
                conflict(what, key);
            }
        };
        response.envs.iter().for_each(|pair| merge(&mut self.env, "environment variable", pair));
        response.annotations.iter().for_each(|pair| merge(&mut self.annotations, "annotation", pair));
        for device in &response.devices {
            match self.devices.iter().find(|other| other.container_path == device.container_path) {
                Some(other) if other.host_path == device.host_path => {}
                Some(_) => conflict("device", &device.container_path),
                None => self.devices.push(node_api::cri::v1::Device {
                    container_path: device.container_path.clone(),
                    host_path: device.host_path.clone(),
                    permissions: device.permissions.clone(),
                }),
            }
        }
        for mount in &response.mounts {
            match self.mounts.iter().find(|other| other.container_path == mount.container_path) {
                Some(other) if other.host_path == mount.host_path => {}
                Some(_) => conflict("mount", &mount.container_path),
                None => self.mounts.push(node_api::cri::v1::Mount {
                    container_path: mount.container_path.clone(),
                    host_path: mount.host_path.clone(),
                    readonly: mount.read_only,
                    ..Default::default()
                }),
            }
        }
        for device in &response.cdi_devices {
            if !self.cdi_devices.contains(&device.name) {
                self.cdi_devices.push(device.name.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use node_api::device_plugin::v1beta1::{DeviceSpec, Mount};

    use super::*;

    const NAME: &str = "example.com/gpu";

    fn list(devices: &[(&str, &str)]) -> ListAndWatchResponse {
        let devices = devices.iter().map(|(id, health)| Device {
            id: (*id).to_owned(),
            health: (*health).to_owned(),
            topology: None,
        });
        ListAndWatchResponse { devices: devices.collect() }
    }

    fn slot(uid: &str) -> Slot {
        Slot { uid: uid.into(), container: "main".into(), resource: NAME.into() }
    }

    fn ids(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn who_may_have_devices_and_who_not() {
        let now = Instant::now();
        let mut pool = Pool::default();
        let none = BTreeSet::new();
        let refused =
            |pool: &Pool, slot: &Slot, wanted| pool.choose(slot, wanted, &none, None).unwrap_err().to_string();
        assert_eq!(refused(&pool, &slot("a"), 1), "cannot allocate unregistered device example.com/gpu");
        pool.list(NAME, list(&[("0", "Unhealthy")]));
        let text = "no healthy devices present; cannot allocate unhealthy devices example.com/gpu";
        assert_eq!(refused(&pool, &slot("a"), 1), text);
        pool.list(NAME, list(&[("0", "Healthy"), ("1", "Healthy"), ("2", "Unhealthy")]));
        let choice = Choice::Among { wanted: 1, must: BTreeSet::new(), free: vec!["0".into(), "1".into()] };
        assert_eq!(pool.choose(&slot("a"), 1, &none, None), Ok(choice));
        pool.assign(&slot("a"), &ids(&["0"]));
        let text = "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1";
        assert_eq!(refused(&pool, &slot("b"), 2), text);
        let shared = pool.choose(&slot("b"), 2, &ids(&["0"]), None);
        assert_eq!(
            shared,
            Ok(Choice::Among { wanted: 2, must: ids(&["0"]), free: vec!["1".into()] }),
            "an init container's"
        );
        assert_eq!(pool.choose(&slot("a"), 1, &none, None), Ok(Choice::Had), "asked again it has what it had");
        let text = "pod \"a\" container \"main\" changed request for resource \"example.com/gpu\" from 1 to 2";
        assert_eq!(refused(&pool, &slot("a"), 2), text);
        pool.list(NAME, list(&[("0", "Unhealthy"), ("1", "Healthy")]));
        let text =
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/gpu";
        assert_eq!(refused(&pool, &slot("a"), 1), text);
        assert!(pool.keep(&BTreeSet::new()) && !pool.keep(&BTreeSet::new()));
        pool.stop(NAME, now);
        assert!(pool.choose(&slot("b"), 1, &none, None).is_err(), "the plugin is gone");
    }

    /// Devices near to these nodes; a negative one stands for nowhere.
    fn placed(devices: &[(&str, i64)]) -> Pool {
        use node_api::device_plugin::v1beta1::{NumaNode, TopologyInfo};
        let device = |(id, node): &(&str, i64)| {
            let topology = (*node >= 0).then(|| TopologyInfo { nodes: vec![NumaNode { id: *node }] });
            Device { id: (*id).to_owned(), health: HEALTHY.to_owned(), topology }
        };
        let mut pool = Pool::default();
        pool.list(NAME, ListAndWatchResponse { devices: devices.iter().map(device).collect() });
        pool
    }

    #[test]
    fn devices_near_to_the_nodes_come_first_and_those_nowhere_last() {
        let pool = placed(&[("a", 0), ("b", -1), ("c", 1), ("d", 1), ("e", 0)]);
        let node = |number: u32| Some([number].into_iter().collect::<NodeSet>());
        let chosen = |wanted, nodes| match pool.choose(&slot("u"), wanted, &BTreeSet::new(), nodes) {
            Ok(Choice::Among { must, free, .. }) => (must.into_iter().collect::<Vec<_>>().join(""), free.join("")),
            other => panic!("{other:?}"),
        };
        let text = |must: &str, free: &str| (must.to_owned(), free.to_owned());
        assert_eq!(chosen(2, None), text("", "abcde"));
        assert_eq!(chosen(1, node(1)), text("", "cd"));
        assert_eq!(chosen(3, node(1)), text("cd", "aeb"));
        assert_eq!(chosen(1, node(7)), text("", "acdeb"));
    }

    #[test]
    fn devices_say_where_they_could_be() {
        let nodes: NodeSet = [0, 1].into_iter().collect();
        let none = BTreeSet::new();
        let places = |pool: &Pool, wanted, had: &BTreeSet<String>, reusable: &BTreeSet<String>| {
            let hints = pool.places(NAME, wanted, had, reusable, nodes)?;
            let mut hints: Vec<(Vec<u32>, bool)> =
                hints.into_iter().map(|hint| (hint.nodes.unwrap().iter().collect(), hint.preferred)).collect();
            hints.sort();
            Some(hints)
        };
        let mut pool = placed(&[("a", 0), ("b", 0), ("c", 1), ("d", -1)]);
        let both = (vec![0, 1], false);
        assert_eq!(places(&pool, 1, &none, &none), Some(vec![(vec![0], true), both.clone(), (vec![1], true)]));
        assert_eq!(places(&pool, 2, &none, &none), Some(vec![(vec![0], true), both.clone()]));
        assert_eq!(places(&pool, 5, &none, &none), Some(vec![]));
        assert_eq!(places(&pool, 1, &ids(&["c"]), &none), Some(vec![both.clone(), (vec![1], true)]), "as it has it");
        assert_eq!(places(&pool, 2, &ids(&["c"]), &none), Some(vec![]), "it asks for something else now");
        pool.assign(&slot("v"), &ids(&["a"]));
        assert_eq!(places(&pool, 2, &none, &none), Some(vec![both.clone()]), "not as narrow as could be");
        assert_eq!(
            places(&pool, 2, &none, &ids(&["a"])),
            Some(vec![(vec![0], true), both]),
            "with an init container's"
        );
        assert_eq!(places(&placed(&[("a", -1)]), 1, &none, &none), None, "it may be anywhere");
        assert_eq!(places(&Pool::default(), 1, &none, &none), None);
    }

    #[test]
    fn what_runs_goes_on_while_its_plugin_has_not_come_back() {
        let now = Instant::now();
        let mut before = Pool::default();
        before.list(NAME, list(&[("0", "Healthy")]));
        before.assign(&slot("a"), &ids(&["0"]));
        let mut after = Pool::default();
        after.restore(before.assigned.clone(), vec![NAME.into()], now);
        assert_eq!(after.choose(&slot("a"), 1, &BTreeSet::new(), None), Ok(Choice::Had));
        let refused = after.choose(&slot("b"), 1, &BTreeSet::new(), None).unwrap_err();
        assert_eq!(refused, Shortage::Unregistered(NAME.into()), "nobody new is let in");
        assert_eq!(after.amounts(now)[NAME], Amount::default(), "the node has none until then");
    }

    #[test]
    fn a_plugin_that_is_gone_is_counted_for_a_while() {
        let now = Instant::now();
        let mut pool = Pool::default();
        assert!(pool.list(NAME, list(&[("0", "Healthy"), ("1", "Unhealthy")])));
        assert!(!pool.list(NAME, list(&[("0", "Healthy"), ("1", "Unhealthy")])), "no news");
        let shown = |pool: &mut Pool, now| pool.amounts(now).get(NAME).map(|it| (it.capacity, it.allocatable));
        assert_eq!(shown(&mut pool, now), Some((2, 1)));
        pool.stop(NAME, now);
        assert_eq!(shown(&mut pool, now + GRACE / 2), Some((2, 0)));
        assert_eq!(shown(&mut pool, now + GRACE), Some((0, 0)), "told once");
        assert_eq!(shown(&mut pool, now + GRACE), None, "and forgotten");
    }

    #[test]
    fn the_first_of_two_plugins_wins() {
        let response = |value: &str| ContainerAllocateResponse {
            envs: [("KEY".to_owned(), value.to_owned())].into(),
            annotations: [("note".to_owned(), value.to_owned())].into(),
            devices: vec![DeviceSpec {
                container_path: "/dev/x".into(),
                host_path: value.into(),
                permissions: "rw".into(),
            }],
            mounts: vec![Mount { container_path: "/lib/x".into(), host_path: value.into(), read_only: true }],
            cdi_devices: Vec::new(),
        };
        let mut inputs = DeviceInputs::default();
        inputs.add("a", &response("/one"));
        let first = inputs.clone();
        inputs.add("b", &response("/two"));
        assert_eq!(inputs, first);
        assert_eq!((first.env["KEY"].as_str(), first.devices[0].host_path.as_str()), ("/one", "/one"));
        assert!(first.mounts[0].readonly);
    }
}
