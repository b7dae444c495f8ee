//! The node's status, computed from what was observed. Pure.

use std::collections::BTreeMap;

use api_machinery::quantity::{Format, Quantity};
use api_machinery::time::Time;
use api_types::core_v1::{
    ContainerImage, Node, NodeAddress, NodeFeatures, NodeRuntimeHandler, NodeRuntimeHandlerFeatures, NodeSystemInfo,
    ResourceList,
};
use component_helpers::node_labels::OF_KUBELETS;
use node_api::cri::v1::StatusResponse;

use super::conditions::{self, Health};
use super::{NodeSettings, addresses::PROVIDED_IP, facts};
use crate::devices::Amount;

/// The annotation that tells the attach controller to do its work for this node.
const CONTROLLER_ATTACHES: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// The taint of a node that its cloud's controller has not seen.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// What was seen of the machine and the runtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// `None` where they are not known, and what was told before holds.
    pub(super) addresses: Option<Vec<NodeAddress>>,
    pub(super) capacity: ResourceList,
    /// What plugins offer, by resource.
    pub(super) devices: BTreeMap<String, Amount>,
    pub(super) info: NodeSystemInfo,
    pub(super) images: Vec<ContainerImage>,
    pub(super) runtime: Option<StatusResponse>,
    /// `None` where that is not known yet, and what was told before holds.
    pub(super) volumes_in_use: Option<Vec<String>>,
    pub(super) health: Health,
}

/// The node's object as it is made at registration.
pub(super) fn initial(settings: &NodeSettings, observed: &Observed, now: Time) -> Node {
    let mut node = Node::default();
    node.metadata.name.clone_from(&settings.name);
    node.metadata.labels = first_labels(settings);
    node.metadata.annotations = annotations(settings);
    node.spec.provider_id.clone_from(&settings.provider_id);
    node.spec.taints.clone_from(&settings.taints);
    if settings.external_cloud {
        node.spec.taints.push(api_types::core_v1::Taint {
            key: UNINITIALIZED.to_owned(),
            value: "true".to_owned(),
            effect: "NoSchedule".to_owned(),
            time_added: None,
        });
    }
    compute(&mut node, settings, observed, now);
    node
}

/// The labels of a new node: what every node has, and what the flag says.
fn first_labels(settings: &NodeSettings) -> BTreeMap<String, String> {
    let (os, arch) = (std::env::consts::OS, facts::architecture());
    let usual = [
        ("kubernetes.io/hostname", settings.hostname.as_str()),
        ("kubernetes.io/os", os),
        ("kubernetes.io/arch", arch),
        ("beta.kubernetes.io/os", os),
        ("beta.kubernetes.io/arch", arch),
    ];
    let usual = usual.map(|(key, value)| (key.to_owned(), value.to_owned()));
    usual.into_iter().chain(settings.labels.clone()).collect()
}

/// The annotations that the kubelet keeps.
pub(super) fn annotations(settings: &NodeSettings) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    if settings.controller_attaches {
        annotations.insert(CONTROLLER_ATTACHES.to_owned(), "true".to_owned());
    }
    if settings.external_cloud && !settings.node_ips.is_empty() {
        let ips: Vec<String> = settings.node_ips.iter().map(ToString::to_string).collect();
        annotations.insert(PROVIDED_IP.to_owned(), ips.join(","));
    }
    annotations
}

/// Brings the object's status up to date; returns the reasons of the events to send.
pub(super) fn compute(node: &mut Node, settings: &NodeSettings, observed: &Observed, now: Time) -> Vec<&'static str> {
    let status = &mut node.status;
    if let Some(addresses) = &observed.addresses {
        status.addresses.clone_from(addresses);
    }
    let mut allocatable = settings.reservations.allocatable(&observed.capacity);
    let mut capacity = observed.capacity.clone();
    for (name, amount) in &observed.devices {
        capacity.insert(name.clone(), count(amount.capacity));
        allocatable.insert(name.clone(), count(amount.allocatable));
    }
    keep_foreign(&mut status.capacity, &capacity);
    keep_foreign(&mut status.allocatable, &allocatable);
    status.node_info = observed.info.clone();
    status.daemon_endpoints.kubelet_endpoint.port = settings.port;
    status.images.clone_from(&observed.images);
    let features = observed.runtime.as_ref().and_then(|runtime| runtime.features.as_ref());
    status.declared_features = settings.declared_features.with(features);
    if let Some(volumes) = &observed.volumes_in_use {
        status.volumes_in_use.clone_from(volumes);
    }
    if let Some(runtime) = &observed.runtime {
        status.runtime_handlers = handlers(runtime);
        status.features = runtime
            .features
            .as_ref()
            .map(|features| NodeFeatures { supplemental_groups_policy: Some(features.supplemental_groups_policy) });
    }
    let mut health = observed.health.clone();
    // What is there may be nothing, but for what no machine is without.
    let missing = ["cpu", "memory", "pods", "ephemeral-storage"].into_iter().filter(|name| {
        observed.capacity.get(*name).is_none_or(|amount| ["cpu", "memory"].contains(name) && amount.is_zero())
    });
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        health.errors.push(format!("missing node capacity for resources: {}", missing.join(", ")));
    }
    conditions::update(&mut status.conditions, &health, now)
}

fn count(devices: usize) -> Quantity {
    Quantity::from_value(i64::try_from(devices).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// Our resources replace what was there; those of others (extended resources set by hand) stay.
fn keep_foreign(list: &mut ResourceList, own: &ResourceList) {
    list.retain(|name, _| own.contains_key(name) || is_foreign(name));
    for (name, amount) in own {
        // An equal amount keeps the form in which it was written.
        if list.get(name) != Some(amount) {
            list.insert(name.clone(), amount.clone());
        }
    }
}

fn is_foreign(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

fn handlers(runtime: &StatusResponse) -> Vec<NodeRuntimeHandler> {
    let mut handlers: Vec<NodeRuntimeHandler> = runtime
        .runtime_handlers
        .iter()
        .map(|handler| NodeRuntimeHandler {
            name: handler.name.clone(),
            features: handler.features.as_ref().map(|features| NodeRuntimeHandlerFeatures {
                recursive_read_only_mounts: Some(features.recursive_read_only_mounts),
                user_namespaces: Some(features.user_namespaces),
            }),
        })
        .collect();
    handlers.sort_by(|one, other| one.name.cmp(&other.name));
    handlers
}

/// Brings an object that was there before up to date: labels of the machine, annotations, and resources that a former
/// kubelet had from plugins, and labels of places and machines as this kubelet has them. Whether something changed.
pub(super) fn adopt(node: &mut Node, settings: &NodeSettings) -> bool {
    let before = node.clone();
    let labels = first_labels(settings).into_iter().filter(|(key, _)| OF_KUBELETS.contains(&key.as_str()));
    node.metadata.labels.extend(labels);
    let wanted = annotations(settings);
    for key in [CONTROLLER_ATTACHES, PROVIDED_IP] {
        match wanted.get(key) {
            Some(value) => drop(node.metadata.annotations.insert(key.to_owned(), value.clone())),
            None => drop(node.metadata.annotations.remove(key)),
        }
    }
    // On a fresh disk nobody knows of devices that a former kubelet gave away.
    if !crate::devices::were_known(&settings.root_dir.join("device-plugins")) {
        for list in [&mut node.status.capacity, &mut node.status.allocatable] {
            list.iter_mut().filter(|(name, _)| is_foreign(name)).for_each(|(_, amount)| *amount = Quantity::default());
        }
    }
    before != *node
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
    }

    fn settings() -> NodeSettings {
        NodeSettings {
            name: "n1".into(),
            hostname: "n1".into(),
            labels: [("disk".to_owned(), "ssd".to_owned())].into(),
            controller_attaches: true,
            port: 10250,
            root_dir: "/nowhere".into(),
            ..NodeSettings::default()
        }
    }

    fn observed() -> Observed {
        let capacity = list(&[("cpu", "2"), ("memory", "1Gi"), ("pods", "110"), ("ephemeral-storage", "10Gi")]);
        Observed { capacity, ..Observed::default() }
    }

    #[test]
    fn a_new_node_says_what_it_is() {
        let node = initial(&settings(), &observed(), Time::from_unix_seconds(5));
        assert_eq!(node.metadata.labels["kubernetes.io/hostname"], "n1");
        assert_eq!(node.metadata.labels["disk"], "ssd");
        assert_eq!(node.metadata.annotations[CONTROLLER_ATTACHES], "true");
        assert_eq!(node.status.allocatable["cpu"].value(), 2);
        assert_eq!(node.status.daemon_endpoints.kubelet_endpoint.port, 10250);
        let cloud = NodeSettings { external_cloud: true, ..settings() };
        assert_eq!(initial(&cloud, &observed(), Time::default()).spec.taints[0].key, UNINITIALIZED);
    }

    #[test]
    fn missing_facts_make_the_node_not_ready() {
        let mut node = Node::default();
        for (capacity, expected) in [
            (
                list(&[("cpu", "0"), ("pods", "1")]),
                "missing node capacity for resources: cpu, memory, ephemeral-storage",
            ),
            // That is what `maxPods` says.
            (
                list(&[("cpu", "2"), ("memory", "1Gi"), ("pods", "0"), ("ephemeral-storage", "0")]),
                "kubelet is posting ready status",
            ),
        ] {
            compute(&mut node, &settings(), &Observed { capacity, ..observed() }, Time::default());
            assert_eq!(node.status.conditions.last().unwrap().message, expected);
        }
    }

    #[test]
    fn addresses_that_are_not_known_change_nothing() {
        let mut node = Node::default();
        let at = |ip: &str| NodeAddress { type_: "InternalIP".into(), address: ip.into() };
        for (found, expected) in
            [(None, vec![]), (Some(vec![at("10.0.0.5")]), vec![at("10.0.0.5")]), (None, vec![at("10.0.0.5")])]
        {
            compute(&mut node, &settings(), &Observed { addresses: found, ..observed() }, Time::default());
            assert_eq!(node.status.addresses, expected);
            assert_eq!(node.status.conditions.last().unwrap().reason, "KubeletReady");
        }
    }

    #[test]
    fn an_old_object_is_brought_up_to_date() {
        let mut node = Node::default();
        node.metadata.labels.insert("mine".into(), "kept".into());
        node.status.capacity = list(&[("example.com/gpu", "4"), ("cpu", "1")]);
        assert!(adopt(&mut node, &settings()));
        assert!(node.status.capacity["example.com/gpu"].is_zero());
        assert_eq!(node.metadata.labels["mine"], "kept");
        assert!(!node.metadata.labels.contains_key("disk"), "labels of flags are for new nodes");
        assert!(!adopt(&mut node, &settings()), "once is enough");
        let labels = [("kubernetes.io/hostname", "other"), ("topology.kubernetes.io/zone", "b")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert!(adopt(&mut node, &NodeSettings { labels: labels.clone().into(), ..settings() }));
        for (key, value) in labels {
            assert_eq!(node.metadata.labels[&key], value, "but for those of places and machines");
        }
        compute(&mut node, &settings(), &observed(), Time::default());
        assert!(node.status.capacity.contains_key("example.com/gpu"), "others' resources stay");
    }

    #[test]
    fn devices_are_counted_beside_what_the_machine_has() {
        let mut node = Node::default();
        node.status.capacity = list(&[("example.com/by-hand", "3"), ("example.com/gpu", "9")]);
        let devices = [("example.com/gpu".to_owned(), Amount { capacity: 4, allocatable: 3 })].into();
        compute(&mut node, &settings(), &Observed { devices, ..observed() }, Time::default());
        let (capacity, allocatable) = (&node.status.capacity, &node.status.allocatable);
        assert_eq!((capacity["example.com/gpu"].value(), allocatable["example.com/gpu"].value()), (4, 3));
        assert_eq!((capacity["example.com/by-hand"].value(), capacity["cpu"].value()), (3, 2));
    }

    #[test]
    fn volumes_in_use_are_told_once_they_are_known() {
        let mut node = Node::default();
        node.status.volumes_in_use = vec!["kubernetes.io/csi/d^old".into()];
        for (known, expected) in [(None, "kubernetes.io/csi/d^old"), (Some(vec!["x".to_owned()]), "x")] {
            let observed = Observed { volumes_in_use: known, ..observed() };
            compute(&mut node, &settings(), &observed, Time::default());
            assert_eq!(node.status.volumes_in_use, [expected]);
        }
    }
}
