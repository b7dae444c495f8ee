//! Builders of nodes and pods for tests.

use std::sync::Arc;

use api_machinery::meta::LabelSelector;
use api_machinery::quantity::Quantity;
use api_machinery::reflect::Reflect;
use api_machinery::time::Time;
use api_types::core_v1::{
    Affinity, Container, ContainerPort, Node, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity, PodSchedulingGroup,
    Taint, Toleration, TopologySpreadConstraint, Volume, WeightedPodAffinityTerm,
};

use crate::cache::Snapshot;
use crate::node_info::NodeInfo;
use crate::pod_class::ClassTable;
use crate::pod_info::PodInfo;

pub(crate) struct NodeBuilder(pub(crate) Node);

pub(crate) fn node(name: &str) -> NodeBuilder {
    let mut node = Node::default();
    node.metadata.name = name.into();
    node.metadata.labels.insert("kubernetes.io/hostname".into(), name.into());
    NodeBuilder(node).capacity("cpu", "4").capacity("memory", "8Gi").capacity("pods", "110")
}

impl NodeBuilder {
    pub(crate) fn capacity(mut self, resource: &str, amount: &str) -> Self {
        self.0.status.allocatable.insert(resource.into(), Quantity::parse(amount).unwrap());
        self
    }
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.labels.insert(key.into(), value.into());
        self
    }
    pub(crate) fn taint(mut self, key: &str, effect: &str) -> Self {
        self.0.spec.taints.push(Taint { key: key.into(), effect: effect.into(), ..Taint::default() });
        self
    }
    pub(crate) fn cordoned(mut self) -> Self {
        self.0.spec.unschedulable = true;
        self
    }
    pub(crate) fn build(self) -> Arc<Node> {
        Arc::new(self.0)
    }
    pub(crate) fn info(self) -> Arc<NodeInfo> {
        Arc::new(NodeInfo::of(self.build()))
    }
}

pub(crate) struct PodBuilder(pub(crate) Pod);

pub(crate) fn pod(name: &str) -> PodBuilder {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.metadata.namespace = "default".into();
    pod.metadata.uid = format!("uid-{name}");
    pod.spec.scheduler_name = "default-scheduler".into();
    pod.spec.containers.push(Container { name: "main".into(), image: "image".into(), ..Container::default() });
    PodBuilder(pod)
}

fn term(app: &str, key: &str) -> PodAffinityTerm {
    let selector = LabelSelector { match_labels: [("app".into(), app.into())].into(), ..LabelSelector::default() };
    PodAffinityTerm { label_selector: Some(selector), topology_key: key.into(), ..PodAffinityTerm::default() }
}

impl PodBuilder {
    pub(crate) fn request(mut self, resource: &str, amount: &str) -> Self {
        let container = &mut self.0.spec.containers[0];
        container.resources.requests.insert(resource.into(), Quantity::parse(amount).unwrap());
        self
    }
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.labels.insert(key.into(), value.into());
        self
    }
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.0.spec.node_name = node.into();
        self
    }
    pub(crate) fn priority(mut self, priority: i32) -> Self {
        self.0.spec.priority = Some(priority);
        self
    }
    pub(crate) fn selector(mut self, key: &str, value: &str) -> Self {
        self.0.spec.node_selector.insert(key.into(), value.into());
        self
    }
    pub(crate) fn tolerates(mut self, key: &str) -> Self {
        let toleration = Toleration { key: key.into(), operator: "Exists".into(), ..Toleration::default() };
        self.0.spec.tolerations.push(toleration);
        self
    }
    pub(crate) fn host_port(mut self, port: i32) -> Self {
        let port = ContainerPort { host_port: port, container_port: port, ..ContainerPort::default() };
        self.0.spec.containers[0].ports.push(port);
        self
    }
    pub(crate) fn spread(mut self, app: &str, key: &str, max_skew: i32, action: &str) -> Self {
        let selector = LabelSelector { match_labels: [("app".into(), app.into())].into(), ..LabelSelector::default() };
        self.0.spec.topology_spread_constraints.push(TopologySpreadConstraint {
            max_skew,
            topology_key: key.into(),
            when_unsatisfiable: action.into(),
            label_selector: Some(selector),
            ..TopologySpreadConstraint::default()
        });
        self
    }
    fn affinity(&mut self) -> &mut Affinity {
        self.0.spec.affinity.get_or_insert_with(Affinity::default)
    }
    pub(crate) fn near(mut self, app: &str, key: &str) -> Self {
        let near = self.affinity().pod_affinity.get_or_insert_with(PodAffinity::default);
        near.required_during_scheduling_ignored_during_execution.push(term(app, key));
        self
    }
    pub(crate) fn far(mut self, app: &str, key: &str) -> Self {
        let far = self.affinity().pod_anti_affinity.get_or_insert_with(PodAntiAffinity::default);
        far.required_during_scheduling_ignored_during_execution.push(term(app, key));
        self
    }
    pub(crate) fn rather_near(mut self, app: &str, key: &str, weight: i32) -> Self {
        let near = self.affinity().pod_affinity.get_or_insert_with(PodAffinity::default);
        near.preferred_during_scheduling_ignored_during_execution
            .push(WeightedPodAffinityTerm { weight, pod_affinity_term: term(app, key) });
        self
    }
    pub(crate) fn started(mut self, seconds: i64) -> Self {
        self.0.status.start_time = Some(Time::from_unix_seconds(seconds));
        self
    }
    pub(crate) fn gate(mut self, name: &str) -> Self {
        self.0.spec.scheduling_gates.push(api_types::core_v1::PodSchedulingGate { name: name.into() });
        self
    }
    pub(crate) fn grouped(mut self, group: &str) -> Self {
        self.0.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some(group.into()) });
        self
    }
    /// A volume as in a manifest.
    pub(crate) fn volume(mut self, source: serde_json::Value) -> Self {
        let mut volume: Volume = object(source);
        volume.name = format!("v{}", self.0.spec.volumes.len());
        self.0.spec.volumes.push(volume);
        self
    }
    pub(crate) fn claim(self, name: &str) -> Self {
        self.volume(serde_json::json!({ "persistentVolumeClaim": { "claimName": name } }))
    }
    pub(crate) fn build(self) -> Arc<Pod> {
        Arc::new(self.0)
    }
    pub(crate) fn info(self, classes: &ClassTable) -> Arc<PodInfo> {
        PodInfo::new(self.build(), classes)
    }
}

/// Something as in a manifest.
pub(crate) fn object<T: Reflect + Default>(manifest: serde_json::Value) -> T {
    let mut object = T::default();
    let decoded = api_machinery::json::decode(manifest.to_string().as_bytes(), &mut object).unwrap();
    assert_eq!(decoded.problems, Vec::<String>::new(), "{manifest}");
    object
}

/// A snapshot of nodes with pods on them.
pub(crate) fn snapshot(nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>, classes: &ClassTable) -> Snapshot {
    let mut infos: Vec<NodeInfo> = nodes.into_iter().map(|node| NodeInfo::of(node.build())).collect();
    for pod in pods {
        let info = pod.info(classes);
        let node = infos.iter_mut().find(|node| *node.name == *info.pod.spec.node_name).unwrap();
        node.add_pod(info);
    }
    Snapshot::of(infos.into_iter().map(Arc::new).collect())
}
