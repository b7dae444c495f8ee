//! A node with its pods and what they add up to, kept up to date pod by pod.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use api_types::core_v1::Node;

use crate::pod_class::PodClass;
use crate::pod_info::{HostPort, PodInfo};
use crate::resources::{NonZero, Resources};

/// A node and its sums.
#[derive(Debug, Clone, Default)]
pub struct NodeInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The node; none while only pods that name it are known.
    pub node: Option<Arc<Node>>,
    /// Pods on it, those that are being bound included.
    pub pods: Vec<Arc<PodInfo>>,
    /// The pods by class.
    pub classes: Vec<ClassCount>,
    /// What pods may take.
    pub allocatable: Resources,
    /// What pods take.
    pub requested: Resources,
    /// What pods take when nodes are scored.
    pub non_zero: NonZero,
    /// Host ports in use, once for each pod.
    pub ports: Vec<HostPort>,
    /// Images on the node by name.
    pub images: Arc<HashMap<String, ImageSummary>>,
    /// How many pods have a pod affinity or anti-affinity.
    pub affinity_pods: usize,
    /// How many pods have required anti-affinity terms.
    pub required_anti_pods: usize,
    /// How many volumes its pods have that are not their own alone.
    pub shared_volumes: usize,
    /// Grows with every change of the node or its pods.
    pub generation: u64,
}

/// How many pods of a class a node has.
#[derive(Debug, Clone)]
pub struct ClassCount {
    /// The class.
    pub class: Arc<PodClass>,
    /// Pods that are not being deleted.
    pub live: u32,
    /// Pods that are.
    pub terminating: u32,
}

impl ClassCount {
    /// All its pods.
    #[must_use]
    pub fn total(&self) -> i64 {
        i64::from(self.live) + i64::from(self.terminating)
    }
}

/// An image on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSummary {
    /// Its size in bytes.
    pub size: i64,
    /// How many nodes had it when this node changed last.
    pub nodes: usize,
}

impl NodeInfo {
    /// A node that nothing is known of but its name.
    #[must_use]
    pub fn named(name: Arc<str>) -> Self {
        Self { name, ..Self::default() }
    }

    /// A node without pods.
    #[must_use]
    pub fn of(node: Arc<Node>) -> Self {
        let mut info = Self::named(node.metadata.name.as_str().into());
        info.set_node(node);
        info
    }

    /// Takes over a newer version of the node.
    pub fn set_node(&mut self, node: Arc<Node>) {
        self.allocatable = Resources::of(&node.status.allocatable);
        self.node = Some(node);
    }

    /// Forgets the node but keeps its pods.
    pub fn remove_node(&mut self) {
        self.node = None;
        self.allocatable = Resources::default();
        self.images = Arc::default();
    }

    /// Puts a pod on the node.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.requested.add(&pod.node_request);
        self.non_zero.add(pod.node_non_zero, 1);
        self.ports.extend(pod.ports.iter().cloned());
        self.affinity_pods += usize::from(pod.class.terms.any);
        self.required_anti_pods += usize::from(!pod.class.terms.required_anti.is_empty());
        self.shared_volumes += pod.shared_volumes;
        self.count_class(&pod, 1);
        self.pods.push(pod);
    }

    /// Takes a pod off the node, by its uid; says whether it was there.
    pub fn remove_pod(&mut self, uid: &str) -> bool {
        let Some(place) = self.pods.iter().position(|pod| pod.uid() == uid) else { return false };
        let pod = self.pods.swap_remove(place);
        self.requested.sub(&pod.node_request);
        self.non_zero.add(pod.node_non_zero, -1);
        for port in &pod.ports {
            if let Some(place) = self.ports.iter().position(|used| used == port) {
                self.ports.swap_remove(place);
            }
        }
        self.affinity_pods -= usize::from(pod.class.terms.any);
        self.required_anti_pods -= usize::from(!pod.class.terms.required_anti.is_empty());
        self.shared_volumes -= pod.shared_volumes;
        self.count_class(&pod, u32::MAX);
        true
    }

    /// Adds `step` (1, or -1 as its two's complement) to the pod's class.
    fn count_class(&mut self, pod: &PodInfo, step: u32) {
        let place = self.classes.iter().position(|count| Arc::ptr_eq(&count.class, &pod.class)).unwrap_or_else(|| {
            self.classes.push(ClassCount { class: Arc::clone(&pod.class), live: 0, terminating: 0 });
            self.classes.len() - 1
        });
        let Some(count) = self.classes.get_mut(place) else { return };
        let slot = if pod.is_terminating() { &mut count.terminating } else { &mut count.live };
        *slot = slot.wrapping_add(step);
        if count.live == 0 && count.terminating == 0 {
            self.classes.swap_remove(place);
        }
    }

    /// A label of the node.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.node.as_ref()?.metadata.labels.get(key).map(String::as_str)
    }
}

/// A node as a plugin sees it: its sums, and its place in the snapshot for tables by node.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    /// The node's sums.
    pub info: &'a NodeInfo,
    /// The node itself.
    pub node: &'a Node,
    /// Its place in the snapshot.
    pub index: usize,
}

impl<'a> NodeView<'a> {
    /// A view of a node at a place; none while the node itself is unknown.
    #[must_use]
    pub fn new(info: &'a NodeInfo, index: usize) -> Option<Self> {
        Some(Self { node: info.node.as_deref()?, info, index })
    }
}

impl Deref for NodeView<'_> {
    type Target = NodeInfo;
    fn deref(&self) -> &NodeInfo {
        self.info
    }
}
