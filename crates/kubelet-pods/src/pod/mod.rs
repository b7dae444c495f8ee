//! Pods as the kubelet knows them: where they come from, whether they may run here, what is said of them.

pub(crate) mod adopt;
pub(crate) mod api_source;
pub(crate) mod containers;
pub(crate) mod file_source;
pub(crate) mod http_source;
pub(crate) mod mailbox;
pub(crate) mod manifest;
pub(crate) mod merge;
pub(crate) mod mirror;
pub(crate) mod news;
pub(crate) mod publish;
pub(crate) mod restart;
pub(crate) mod status;
pub(crate) mod store;
mod uid;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use api_types::core_v1::Pod;
use component_base::Feature;
use kinds_pod::disabled::drop_fields_of;

pub(crate) const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
pub(crate) const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
pub(crate) const CONFIG_SEEN: &str = "kubernetes.io/config.seen";
pub(crate) const CONFIG_HASH: &str = "kubernetes.io/config.hash";

/// Where pods come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    Api,
    File,
    Http,
}

impl Source {
    /// As the annotation writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::File => "file",
            Self::Http => "http",
        }
    }
}

/// What a source tells the sync loop.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// All pods of a source.
    All(SourceSet),
    /// What changed at the API server since it was last told of.
    Changes(Vec<PodEvent>),
}

impl Delivery {
    /// Drops what pods say of these features.
    pub(crate) fn ignore(&mut self, features: &[Feature]) {
        if features.is_empty() {
            return;
        }
        let pods: Box<dyn Iterator<Item = &mut Arc<Pod>>> = match self {
            Self::All(set) => Box::new(set.pods.iter_mut()),
            Self::Changes(events) => Box::new(events.iter_mut().filter_map(|event| match event {
                PodEvent::Is(pod) => Some(pod),
                PodEvent::Gone(_) => None,
            })),
        };
        for pod in pods {
            let mut spec = pod.spec.clone();
            if drop_fields_of(&mut spec, features) {
                Arc::make_mut(pod).spec = spec;
            }
        }
    }
}

/// What happened to one pod of the API server.
#[derive(Debug)]
pub(crate) enum PodEvent {
    /// The pod is there, and is so now.
    Is(Arc<Pod>),
    /// The pod of this uid is gone.
    Gone(String),
}

/// All pods of a source, at one moment.
#[derive(Debug)]
pub(crate) struct SourceSet {
    pub source: Source,
    pub pods: Vec<Arc<Pod>>,
    /// Whether there may be pods that could not be read. A source that has never told all of them is not ready.
    pub whole: bool,
    /// Since when each manifest is as it is, by uid; only of files.
    pub written: BTreeMap<String, SystemTime>,
}

/// Deliveries that may wait for the sync loop. One holds no more than the node's pods, and most hold one.
pub(crate) const DELIVERY_QUEUE: usize = 50;

/// Whether the pod comes from a manifest on this node.
pub(crate) fn is_static(pod: &Pod) -> bool {
    pod.metadata.annotations.get(CONFIG_SOURCE).is_some_and(|source| source != Source::Api.name())
}

/// Whether the pod stands in the API for one that comes from a manifest.
pub(crate) fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.contains_key(CONFIG_MIRROR)
}

/// Priority from which on a pod is critical to the system.
const CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// How much a pod matters beside others, as it says itself.
pub(crate) fn priority(pod: &Pod) -> i32 {
    pod.spec.priority.unwrap_or_default()
}

/// The same for who gets something first: what is critical to the system need not say so.
pub(crate) fn importance(pod: &Pod) -> i32 {
    if is_critical(pod) { priority(pod).max(CRITICAL_PRIORITY) } else { priority(pod) }
}

/// Whether the node must make room for the pod.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    is_static(pod) || is_mirror(pod) || pod.spec.priority.is_some_and(|priority| priority >= CRITICAL_PRIORITY)
}

#[cfg(test)]
mod tests {
    use component_base::shared_gates::{ENV_FILES, HOSTNAME_OVERRIDE};

    use super::*;

    #[test]
    fn what_is_ignored_is_dropped_wherever_a_pod_comes_from() {
        let mut pod = Pod::default();
        pod.spec.hostname_override = Some("h".to_owned());
        let pod = Arc::new(pod);
        let set =
            SourceSet { source: Source::File, pods: vec![Arc::clone(&pod)], whole: true, written: BTreeMap::new() };
        let changes = || Delivery::Changes(vec![PodEvent::Gone("u".to_owned()), PodEvent::Is(Arc::clone(&pod))]);
        let names = |delivery: &Delivery| -> Vec<Option<String>> {
            match delivery {
                Delivery::All(set) => set.pods.iter().map(|pod| pod.spec.hostname_override.clone()).collect(),
                Delivery::Changes(events) => events
                    .iter()
                    .filter_map(|event| match event {
                        PodEvent::Is(pod) => Some(pod.spec.hostname_override.clone()),
                        PodEvent::Gone(_) => None,
                    })
                    .collect(),
            }
        };
        for mut delivery in [Delivery::All(set), changes()] {
            delivery.ignore(&[ENV_FILES]);
            assert_eq!(names(&delivery), [Some("h".to_owned())]);
            delivery.ignore(&[ENV_FILES, HOSTNAME_OVERRIDE]);
            assert_eq!(names(&delivery), [None]);
        }
        assert_eq!(names(&changes()), [Some("h".to_owned())], "others see the pod as it is");
    }
}
