//! What is counted of resizes in place (KEP-1287).

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, Pod};
use component_helpers::pod_requests::amount;

use super::KubeletMetrics;

impl KubeletMetrics {
    /// Counts what a pod's containers ask for that they did not ask for before; tells whether there was anything.
    pub fn resize_requested(&self, before: &Pod, now: &Pod) -> bool {
        let mut any = false;
        let wanted: BTreeMap<&str, &Container> = containers(now).map(|own| (own.name.as_str(), own)).collect();
        for old in containers(before) {
            let Some(new) = wanted.get(old.name.as_str()) else { continue };
            let requirements = [
                ("requests", &old.resources.requests, &new.resources.requests),
                ("limits", &old.resources.limits, &new.resources.limits),
            ];
            for (requirement, old, new) in requirements {
                for resource in ["cpu", "memory"] {
                    if let Some(operation) = operation(&amount(old, resource), &amount(new, resource)) {
                        self.requested_resizes.with(&[operation, requirement, resource]).inc();
                        any = true;
                    }
                }
            }
        }
        any
    }

    /// A resize was put into effect, or was not.
    pub fn resize_actuated(&self, took: Duration, done: bool) {
        let done = if done { "true" } else { "false" };
        self.resize_duration.with(&[done]).observe(took.as_secs_f64() * 1000.0);
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.init_containers.iter().chain(&pod.spec.containers)
}

/// What has become of an amount, none being as good as zero.
fn operation(old: &Quantity, new: &Quantity) -> Option<&'static str> {
    let zero = Quantity::default();
    match (old == &zero, new == &zero) {
        (true, true) => None,
        (true, false) => Some("add"),
        (false, true) => Some("remove"),
        (false, false) if new > old => Some("increase"),
        (false, false) if new < old => Some("decrease"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::{Metrics, MetricsOptions};

    use super::*;

    fn pod(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> Pod {
        let list = |list: &[(&str, &str)]| {
            list.iter().map(|(name, value)| ((*name).to_owned(), Quantity::parse(value).unwrap())).collect()
        };
        let mut container = Container { name: "main".into(), ..Container::default() };
        (container.resources.requests, container.resources.limits) = (list(requests), list(limits));
        let mut pod = Pod::default();
        pod.spec.containers.push(container);
        pod
    }

    #[test]
    fn each_change_of_each_container_counts() {
        let metrics = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&metrics, &metrics);
        let before = pod(&[("cpu", "1"), ("memory", "1Gi")], &[("memory", "2Gi")]);
        assert!(!own.resize_requested(&before, &pod(&[("cpu", "1000m"), ("memory", "1Gi")], &[("memory", "2Gi")])));
        assert!(
            own.resize_requested(&before, &pod(&[("cpu", "2"), ("memory", "0")], &[("memory", "1Gi"), ("cpu", "3")]))
        );
        own.resize_actuated(Duration::from_millis(42), true);
        let text = metrics.text();
        let line = |operation: &str, requirement: &str, resource: &str| {
            format!(
                "kubelet_container_requested_resizes_total{{operation=\"{operation}\",requirement=\"{requirement}\",\
                 resource=\"{resource}\"}} 1\n"
            )
        };
        for (operation, requirement, resource) in [
            ("increase", "requests", "cpu"),
            ("remove", "requests", "memory"),
            ("decrease", "limits", "memory"),
            ("add", "limits", "cpu"),
        ] {
            assert!(text.contains(&line(operation, requirement, resource)), "{operation}\n{text}");
        }
        assert_eq!(text.matches("kubelet_container_requested_resizes_total{").count(), 4);
        assert!(
            text.contains("kubelet_pod_resize_duration_milliseconds_bucket{success=\"true\",le=\"50\"} 1\n"),
            "{text}"
        );
    }
}
