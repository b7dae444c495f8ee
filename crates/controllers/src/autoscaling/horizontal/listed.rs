//! What all pods of a namespace use. Everybody who shares it finds the own pods without a walk over those of others.

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::labels::Selector;
use api_types::core_v1::Pod;
use api_types::metrics_v1beta1::PodMetrics;

use super::anchors::{Anchor, Anchors};

pub(super) struct Listed {
    metrics: Vec<PodMetrics>,
    anchors: Anchors,
    /// Places in the list.
    by_anchor: HashMap<Anchor, Vec<usize>>,
    /// By the name of the pod: some servers of metrics tell no labels.
    unlabelled: HashMap<String, usize>,
}

impl Listed {
    pub(super) fn new(metrics: Vec<PodMetrics>) -> Self {
        let mut listed =
            Self { metrics, anchors: Anchors::default(), by_anchor: HashMap::new(), unlabelled: HashMap::new() };
        for (place, metrics) in listed.metrics.iter().enumerate() {
            if metrics.metadata.labels.is_empty() {
                listed.unlabelled.insert(metrics.metadata.name.clone(), place);
            }
            for anchor in listed.anchors.of(&metrics.metadata) {
                listed.by_anchor.entry(anchor).or_default().push(place);
            }
        }
        listed
    }

    /// What the pods of a selector use. `pods` are those of them that are known.
    pub(super) fn selected(&self, namespace: &str, selector: &Selector, pods: &[Arc<Pod>]) -> Vec<&PodMetrics> {
        let places = |anchor: &Anchor| self.by_anchor.get(anchor).map_or(&[][..], Vec::as_slice);
        let anchor = self.anchors.rarest(namespace, selector, |anchor| places(anchor).len());
        let labelled = places(&anchor).iter().filter_map(|place| self.metrics.get(*place)).filter(|metrics| {
            let labels = &metrics.metadata.labels;
            !labels.is_empty() && selector.matches(labels)
        });
        let unlabelled = pods.iter().filter_map(|pod| self.metrics.get(*self.unlabelled.get(&pod.metadata.name)?));
        labelled.chain(unlabelled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(name: &str, labels: &[(&str, &str)]) -> PodMetrics {
        let mut metrics = PodMetrics::default();
        (metrics.metadata.namespace, metrics.metadata.name) = ("ns".into(), name.into());
        metrics.metadata.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        metrics
    }

    fn pod(name: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        Arc::new(pod)
    }

    #[test]
    fn everybody_finds_the_own_pods() {
        let listed = Listed::new(vec![
            metrics("a", &[("app", "web"), ("env", "prod")]),
            metrics("b", &[("app", "web")]),
            metrics("c", &[]),
            metrics("d", &[("env", "prod")]),
            metrics("e", &[]),
        ]);
        for (selector, pods, expected) in [
            ("app=web", vec![], vec!["a", "b"]),
            ("app=web,env=prod", vec![], vec!["a"]),
            ("env", vec![], vec!["a", "d"]),
            ("!env", vec![], vec!["b"]),
            ("app=none", vec![], vec![]),
            ("app=web", vec!["b", "c", "x"], vec!["a", "b", "c"]),
            ("!app", vec!["e"], vec!["d", "e"]),
        ] {
            let pods: Vec<_> = pods.into_iter().map(pod).collect();
            let found = listed.selected("ns", &Selector::parse(selector).unwrap(), &pods);
            let names: Vec<_> = found.iter().map(|metrics| metrics.metadata.name.as_str()).collect();
            assert_eq!(names, expected, "{selector}");
        }
    }
}
