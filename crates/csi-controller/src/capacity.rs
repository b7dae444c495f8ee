//! Tells the scheduler how much room there is: one CSIStorageCapacity for each class of the driver and each segment of the
//! cluster. See <https://kep.k8s.io/1472>.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, LabelSelector, OwnerReference};
use api_machinery::object::Kind as _;
use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::{Node, PersistentVolume};
use api_types::storage_v1::{CSINode, CSIStorageCapacity, StorageClass};
use client::{Change, Informer, ObjectKey, Scope};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::csi::v1::GetCapacityRequest;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use sha2::{Digest as _, Sha256};

use crate::driver::{Driver, Segment, to_topology};
use crate::names::{CAPACITY_DRIVER, CAPACITY_MANAGER, RESERVED};
use crate::settings::{Place, Settings};
use crate::topology::{segment_of_node, segments};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-capacity",
    aliases: &[],
    gates: &[],
    identity: "csi-provisioner",
    event_component: "",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    if settings.capacity_namespace.is_empty() || !driver.can(Can::GetCapacity) {
        return Err(BuildError::Skipped("capacities are not wanted, or the driver does not know them".into()));
    }
    let queue = build.queue_with("capacity", settings.retry.clone());
    let classes = build.watch::<StorageClass>().enqueue_self(&queue).informer();
    let manager = manager(&settings.place);
    let scope = Scope {
        namespace: settings.capacity_namespace.clone(),
        label_selector: format!("{CAPACITY_DRIVER}={},{CAPACITY_MANAGER}={manager}", driver.name),
        ..Scope::default()
    };
    let written = build.watch_scoped::<CSIStorageCapacity>(&scope).informer();
    // What is made and what goes changes the room of all classes; and where there is some changes with the nodes.
    let [of_volumes, of_csi_nodes, of_nodes] = [classes.clone(), classes.clone(), classes.clone()];
    let name = driver.name.clone();
    let _ = build
        .watch::<PersistentVolume>()
        .enqueue_keys(&queue, move |change| if is_of(change, &name) { of_volumes.keys() } else { Vec::new() });
    let csi_nodes = build.watch::<CSINode>().enqueue_keys(&queue, move |_| of_csi_nodes.keys()).informer();
    let nodes = build.watch::<Node>().enqueue_keys(&queue, move |change| {
        let now = change.object();
        let is_news = change.old().is_none_or(|old| old.metadata.labels != now.metadata.labels);
        if is_news || change.is_deleted() { of_nodes.keys() } else { Vec::new() }
    });
    let nodes = nodes.informer();
    build.run(&queue, 1, Arc::new(Capacities { driver, settings, manager, classes, written, nodes, csi_nodes }));
    Ok(())
}

/// Whether a volume of the driver came, grew or went.
fn is_of(change: &Change<PersistentVolume>, driver: &str) -> bool {
    let now = change.object();
    let is_ours = now.spec.persistent_volume_source.csi.as_ref().is_some_and(|csi| csi.driver == driver);
    let is_new = change.old().is_none_or(|old| old.spec.capacity != now.spec.capacity);
    is_ours && (is_new || change.is_deleted())
}

/// Who keeps an object, as its label says it.
fn manager(place: &Place) -> String {
    match place {
        Place::Cluster => "external-provisioner".to_owned(),
        Place::Node(node) => {
            let whole = format!("external-provisioner-{node}");
            // A label's value has a bound that a node's name may pass.
            if whole.len() <= 63 { whole } else { format!("external-provisioner-{}", digest(node)) }
        }
    }
}

fn digest(text: &str) -> String {
    base::hex(&Sha256::digest(text.as_bytes())[..10])
}

struct Capacities {
    driver: Driver,
    settings: Settings,
    manager: String,
    classes: Informer<StorageClass>,
    written: Informer<CSIStorageCapacity>,
    nodes: Informer<Node>,
    csi_nodes: Informer<CSINode>,
}

#[async_trait::async_trait]
impl Controller for Capacities {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let class = self.classes.get(key).filter(|class| class.provisioner == self.driver.name);
        let mut wanted = BTreeMap::new();
        if let Some(class) = &class {
            for segment in self.segments() {
                let object = self.object(class, &segment).await?;
                wanted.insert(object.metadata.name.clone(), object);
            }
        }
        let written = self.written.list();
        let of_class = written.iter().filter(|object| object.storage_class_name == key.name);
        for object in of_class {
            match wanted.remove(&object.metadata.name) {
                None => self.remove(cx, object).await?,
                Some(now) if is_same(&now, object) => {}
                Some(mut now) => {
                    now.metadata = object.metadata.clone();
                    let api = cx.client.namespaced::<CSIStorageCapacity>(&now.metadata.namespace);
                    api.update(&now).await?;
                }
            }
        }
        for object in wanted.values() {
            let api = cx.client.namespaced::<CSIStorageCapacity>(&object.metadata.namespace);
            match api.create(object).await {
                // It is on its way to the cache.
                Err(error) if error.is_already_exists() => {}
                created => drop(created?),
            }
        }
        let wait: Option<Duration> = class.map(|_| self.settings.capacity_interval);
        Ok(Next::Done.within(wait))
    }
}

fn owner(node: &Node) -> OwnerReference {
    OwnerReference {
        api_version: Node::TYPE.api_version(),
        kind: Node::TYPE.kind.to_owned(),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..OwnerReference::default()
    }
}

fn is_same(one: &CSIStorageCapacity, other: &CSIStorageCapacity) -> bool {
    (&one.capacity, &one.maximum_volume_size) == (&other.capacity, &other.maximum_volume_size)
}

impl Capacities {
    /// The segments that this process tells of.
    fn segments(&self) -> BTreeSet<Segment> {
        if !self.driver.has_topology {
            return BTreeSet::from([Segment::new()]);
        }
        let csi_of = |node: &Node| self.csi_nodes.find("", &node.metadata.name);
        if let Some(name) = self.settings.place.node() {
            let node = self.nodes.find("", name);
            let segment =
                node.and_then(|node| segment_of_node(&self.driver.name, &node, csi_of(&node).as_deref()).ok());
            return segment.into_iter().collect();
        }
        let nodes = self.nodes.list();
        let csi: Vec<_> = nodes.iter().map(|node| csi_of(node)).collect();
        segments(&self.driver.name, nodes.iter().map(|node| &**node).zip(csi.iter().map(Option::as_deref)))
    }

    async fn object(&self, class: &StorageClass, segment: &Segment) -> Result<CSIStorageCapacity, ReconcileError> {
        let parameters = class.parameters.iter().filter(|(key, _)| !key.starts_with(RESERVED));
        let request = GetCapacityRequest {
            volume_capabilities: Vec::new(),
            parameters: parameters.map(|(key, value)| (key.clone(), value.clone())).collect(),
            accessible_topology: self.driver.has_topology.then(|| to_topology(segment)),
        };
        let answer = self.driver.calls.capacity(request).await;
        let answer = answer.map_err(|error| ReconcileError::failed(format!("asking for the room: {error}")))?;
        let bytes = |bytes: i64| Quantity::from_value(bytes.max(0), Format::BinarySi);
        let class = &class.metadata.name;
        let mut object = CSIStorageCapacity::default();
        let identity = segment.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
        object.metadata.name = format!("csisc-{}", digest(&format!("{}/{class}/{identity}", self.driver.name)));
        object.metadata.namespace.clone_from(&self.settings.capacity_namespace);
        object.metadata.labels.insert(CAPACITY_DRIVER.to_owned(), self.driver.name.clone());
        object.metadata.labels.insert(CAPACITY_MANAGER.to_owned(), self.manager.clone());
        // With its node goes what was told of it.
        let node = self.settings.place.node().and_then(|name| self.nodes.find("", name));
        object.metadata.owner_references.extend(node.map(|node| owner(&node)));
        class.clone_into(&mut object.storage_class_name);
        object.node_topology = Some(LabelSelector { match_labels: segment.clone(), ..LabelSelector::default() });
        object.capacity = Some(bytes(answer.available_capacity));
        object.maximum_volume_size = answer.maximum_volume_size.map(|size| bytes(size.value));
        Ok(object)
    }

    async fn remove(&self, cx: &Cx, object: &CSIStorageCapacity) -> Result<(), ReconcileError> {
        let api = cx.client.namespaced::<CSIStorageCapacity>(&object.metadata.namespace);
        api.delete_this(&object.metadata, DeleteOptions::default()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_room_for_every_node() {
        assert_eq!(manager(&Place::Cluster), "external-provisioner");
        assert_eq!(manager(&Place::Node("n".into())), "external-provisioner-n");
        let long = manager(&Place::Node("n".repeat(200)));
        assert!(long.len() <= 63 && long != manager(&Place::Node("m".repeat(200))), "{long}");
    }
}
