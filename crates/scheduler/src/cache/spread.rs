//! How many pods of each class the domains of a topology have, kept up to date node by node: whoever asks how pods are
//! spread then looks at the domains, not at every node.

use std::collections::HashMap;
use std::sync::Arc;

use super::snapshot::Topology;
use crate::node_info::{ClassCount, NodeInfo};
use crate::pod_class::PodClass;

/// The pods of a topology's domains. Pods that are being deleted do not count.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    /// The domains.
    topology: Arc<Topology>,
    /// Classes by namespace and id.
    namespaces: HashMap<String, HashMap<u32, ClassSpread>>,
}

#[derive(Debug, Clone)]
struct ClassSpread {
    class: Arc<PodClass>,
    total: i64,
    domains: HashMap<usize, i64>,
}

impl Spread {
    pub(super) fn new(topology: Arc<Topology>, nodes: &[Arc<NodeInfo>]) -> Self {
        let mut spread = Self { topology, namespaces: HashMap::new() };
        for (index, node) in nodes.iter().enumerate() {
            spread.change(index, &node.classes, 1);
        }
        spread
    }

    /// The node at a place, whose labels stay, has other pods now.
    pub(super) fn replace(&mut self, index: usize, old: &NodeInfo, new: &NodeInfo) {
        // Nearly all classes are where they were, with as many pods.
        let same = |one: Option<&ClassCount>, count: &ClassCount| {
            one.is_some_and(|one| Arc::ptr_eq(&one.class, &count.class) && one.live == count.live)
        };
        let but = |list: &'_ [ClassCount], other: &[ClassCount]| -> Vec<ClassCount> {
            let changed = list.iter().enumerate().filter(|(place, count)| !same(other.get(*place), count));
            changed.map(|(_, count)| count.clone()).collect()
        };
        self.change(index, &but(&old.classes, &new.classes), -1);
        self.change(index, &but(&new.classes, &old.classes), 1);
    }

    fn change(&mut self, index: usize, classes: &[ClassCount], sign: i64) {
        let Some(domain) = self.topology.domain(index) else { return };
        for count in classes.iter().filter(|count| count.live > 0) {
            let class = &count.class;
            if !self.namespaces.contains_key(&class.namespace) {
                self.namespaces.insert(class.namespace.clone(), HashMap::new());
            }
            let Some(known) = self.namespaces.get_mut(&class.namespace) else { continue };
            let fresh = || ClassSpread { class: Arc::clone(class), total: 0, domains: HashMap::new() };
            let spread = known.entry(class.id).or_insert_with(fresh);
            let more = sign * i64::from(count.live);
            spread.total += more;
            let slot = spread.domains.entry(domain).or_default();
            *slot += more;
            if *slot == 0 {
                spread.domains.remove(&domain);
            }
            if spread.total == 0 {
                known.remove(&class.id);
            }
        }
    }

    /// Calls `add` with each domain and the pods that it has of a class that is wanted.
    pub(crate) fn for_each(&self, namespace: &str, wants: impl Fn(&PodClass) -> bool, mut add: impl FnMut(usize, i64)) {
        for spread in self.namespaces.get(namespace).into_iter().flat_map(HashMap::values) {
            if wants(&spread.class) {
                spread.domains.iter().for_each(|(domain, count)| add(*domain, *count));
            }
        }
    }
}
