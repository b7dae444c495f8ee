//! A pod with everything about it that would otherwise be computed again for every node.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::labels::{Selector, SelectorError};
use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::{Affinity, Container, Pod, PodAffinityTerm, ResourceList, Volume, WeightedPodAffinityTerm};
use component_helpers::pod_state::is_sidecar;
use component_helpers::{pod_requests, selectors};

use crate::pod_class::{ClassTable, PodClass};
use crate::resources::{DEFAULT_MEMORY, DEFAULT_MILLI_CPU, NonZero, Resources};

/// Pods by the node that they are nominated to.
pub type NominatedPods = HashMap<String, Vec<Arc<PodInfo>>>;

/// A pod and what was computed from it.
#[derive(Debug)]
pub struct PodInfo {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its priority; 0 where none is set.
    pub priority: i32,
    /// What it asks for, by its spec.
    pub request: Resources,
    /// What it takes up on its node, its status considered.
    pub node_request: Resources,
    /// What it counts for when nodes are scored.
    pub score_request: NonZero,
    /// What it takes up on its node when nodes are scored.
    pub node_non_zero: NonZero,
    /// Host ports of its containers and sidecars.
    pub ports: Vec<HostPort>,
    /// Its namespace, labels and affinity, shared with pods that have the same.
    pub class: Arc<PodClass>,
    /// How many volumes it has that other pods may have, too, or that count against what a node can attach.
    pub shared_volumes: usize,
}

/// A port of the node that a pod takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The address; `0.0.0.0` for all.
    pub ip: Arc<str>,
    /// TCP, UDP or SCTP.
    pub protocol: Arc<str>,
    /// The number.
    pub port: i32,
}

impl HostPort {
    /// Whether two pods on one node cannot have both.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        const ALL: &str = "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || &*self.ip == ALL || &*other.ip == ALL)
    }
}

/// A pod affinity term, parsed.
#[derive(Debug, Clone)]
pub struct AffinityTerm {
    /// Namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Namespaces by label.
    pub namespace_selector: Selector,
    /// The pods that count.
    pub selector: Selector,
    /// The label of nodes that makes a domain.
    pub topology_key: String,
}

/// The pod affinity of a pod, parsed.
#[derive(Debug, Clone, Default)]
pub struct AffinityTerms {
    /// Whether the pod has a pod affinity or anti-affinity at all, even an empty one.
    pub any: bool,
    /// Must hold.
    pub required: Vec<AffinityTerm>,
    /// Must not hold.
    pub required_anti: Vec<AffinityTerm>,
    /// Better with; by weight.
    pub preferred: Vec<(i64, AffinityTerm)>,
    /// Better without; by weight.
    pub preferred_anti: Vec<(i64, AffinityTerm)>,
    /// Why the terms cannot be used; empty when they can.
    pub error: String,
}

impl PodInfo {
    /// Computes what is needed of a pod.
    #[must_use]
    pub fn new(pod: Arc<Pod>, classes: &ClassTable) -> Arc<Self> {
        let request = pod_requests::requests(&pod);
        let claimed = pod_requests::claimed(&pod.status.node_allocatable_resource_claim_statuses);
        let is_more = has_resize_status(&pod) || !claimed.is_empty();
        let node = if is_more { node_requests(&pod, &claimed) } else { request.clone() };
        let mut score = with_defaults(&pod, |container| container.resources.requests.clone());
        pod_requests::add(&mut score, &pod.spec.overhead);
        let node_non_zero = node_non_zero(&pod, &node, &claimed);
        let class = classes.class_of(&pod);
        Arc::new(Self {
            priority: pod.spec.priority.unwrap_or(0),
            request: Resources { pods: 0, ..Resources::of(&request) },
            node_request: Resources { pods: 0, ..Resources::of(&node) },
            score_request: NonZero::of(&score),
            node_non_zero,
            ports: host_ports(&pod),
            class,
            shared_volumes: pod.spec.volumes.iter().filter(|volume| !is_private(volume)).count(),
            pod,
        })
    }

    /// `namespace/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.pod.metadata.namespace, self.pod.metadata.name)
    }

    /// Its uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.pod.metadata.uid
    }

    /// Whether it has volumes that are not its own alone.
    #[must_use]
    pub fn has_volumes(&self) -> bool {
        self.shared_volumes > 0
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }
}

/// Whether a volume is the pod's own, made by its kubelet of nothing but what the API server or the node has.
fn is_private(volume: &Volume) -> bool {
    let source = &volume.volume_source;
    source.config_map.is_some()
        || source.secret.is_some()
        || source.projected.is_some()
        || source.downward_api.is_some()
        || source.empty_dir.is_some()
        || source.host_path.is_some()
        || source.image.is_some()
}

/// What a container asks for with defaults for CPU and memory; an explicit zero stays.
fn with_defaults(pod: &Pod, amounts: impl Fn(&Container) -> ResourceList) -> ResourceList {
    pod_requests::aggregate(&pod.spec, |container| {
        let mut list = amounts(container);
        fill_defaults(&mut list);
        list
    })
}

fn fill_defaults(list: &mut ResourceList) {
    list.entry("cpu".into()).or_insert_with(|| Quantity::from_milli(DEFAULT_MILLI_CPU, Format::DecimalSi));
    list.entry("memory".into()).or_insert_with(|| Quantity::from_value(DEFAULT_MEMORY, Format::BinarySi));
}

fn node_non_zero(pod: &Pod, node: &ResourceList, claimed: &ResourceList) -> NonZero {
    if pod.spec.resources.as_ref().is_some_and(|resources| !resources.requests.is_empty()) {
        let mut list = node.clone();
        fill_defaults(&mut list);
        return NonZero::of(&list);
    }
    let mut list = with_defaults(pod, |container| pod_requests::container_requests(pod, container));
    pod_requests::add(&mut list, claimed);
    pod_requests::add(&mut list, &pod.spec.overhead);
    NonZero::of(&list)
}

fn has_resize_status(pod: &Pod) -> bool {
    let statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    statuses.into_iter().any(|status| status.resources.is_some()) || pod.status.resources.is_some()
}

/// What a pod takes up on its node, its status considered.
pub(crate) fn taken(pod: &Pod) -> ResourceList {
    node_requests(pod, &pod_requests::claimed(&pod.status.node_allocatable_resource_claim_statuses))
}

/// What the pod takes up on its node: while a resize is under way, the largest of what is wanted, promised and in force; and
/// what claims give it beside that.
fn node_requests(pod: &Pod, claimed: &ResourceList) -> ResourceList {
    let mut total = pod_requests::aggregate(&pod.spec, |container| pod_requests::container_requests(pod, container));
    pod_requests::add(&mut total, claimed);
    if let Some(resources) = &pod.spec.resources {
        let mut level = resources.requests.clone();
        if let Some(actual) = &pod.status.resources {
            pod_requests::raise(&mut level, &actual.requests);
            pod_requests::raise(&mut level, &pod.status.allocated_resources);
        }
        for (name, amount) in level.into_iter().filter(|(name, _)| pod_requests::is_pod_level(name)) {
            total.insert(name, amount);
        }
    }
    pod_requests::add(&mut total, &pod.spec.overhead);
    total
}

/// Host ports of regular containers and sidecars.
pub(crate) fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let sidecars = pod.spec.init_containers.iter().filter(|container| is_sidecar(container));
    let containers = pod.spec.containers.iter().chain(sidecars);
    let or = |text: &str, default: &str| -> Arc<str> { if text.is_empty() { default } else { text }.into() };
    containers
        .flat_map(|container| &container.ports)
        .filter(|port| port.host_port > 0)
        .map(|port| HostPort {
            ip: or(&port.host_ip, "0.0.0.0"),
            protocol: or(&port.protocol, "TCP"),
            port: port.host_port,
        })
        .collect()
}

impl AffinityTerms {
    /// Parses the pod affinity of a pod in a namespace.
    #[must_use]
    pub fn parse(affinity: Option<&Affinity>, namespace: &str) -> Self {
        let mut terms = Self::default();
        let Some(affinity) = affinity else { return terms };
        let mut error = String::new();
        let mut one = |term: &PodAffinityTerm| match AffinityTerm::parse(term, namespace) {
            Ok(term) => Some(term),
            Err(problem) => {
                error = problem.to_string();
                None
            }
        };
        let weighted = |terms: &[WeightedPodAffinityTerm],
                        one: &mut dyn FnMut(&PodAffinityTerm) -> Option<AffinityTerm>| {
            let usable = terms.iter().filter(|term| term.weight != 0);
            usable.filter_map(|term| Some((i64::from(term.weight), one(&term.pod_affinity_term)?))).collect()
        };
        if let Some(affinity) = &affinity.pod_affinity {
            terms.any = true;
            terms.required =
                affinity.required_during_scheduling_ignored_during_execution.iter().filter_map(&mut one).collect();
            terms.preferred = weighted(&affinity.preferred_during_scheduling_ignored_during_execution, &mut one);
        }
        if let Some(affinity) = &affinity.pod_anti_affinity {
            terms.any = true;
            terms.required_anti =
                affinity.required_during_scheduling_ignored_during_execution.iter().filter_map(&mut one).collect();
            terms.preferred_anti = weighted(&affinity.preferred_during_scheduling_ignored_during_execution, &mut one);
        }
        terms.error = error;
        terms
    }

    /// Whether there are preferred terms.
    #[must_use]
    pub fn has_preferred(&self) -> bool {
        !self.preferred.is_empty() || !self.preferred_anti.is_empty()
    }
}

impl AffinityTerm {
    /// Parses a term of a pod in `owner_namespace`, which counts where the term names no namespaces.
    ///
    /// # Errors
    /// With the selector's problem.
    pub fn parse(term: &PodAffinityTerm, owner_namespace: &str) -> Result<Self, SelectorError> {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(owner_namespace.to_owned());
        }
        Ok(Self {
            namespaces,
            namespace_selector: selectors::selector_of(term.namespace_selector.as_ref())?,
            selector: selectors::selector_of(term.label_selector.as_ref())?,
            topology_key: term.topology_key.clone(),
        })
    }

    /// Whether a pod of a namespace with these labels is meant. `namespace_labels` are those of its namespace.
    #[must_use]
    pub fn matches(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        namespace_labels: &BTreeMap<String, String>,
    ) -> bool {
        (self.namespaces.contains(namespace) || self.namespace_selector.matches(namespace_labels))
            && self.selector.matches(labels)
    }
}
