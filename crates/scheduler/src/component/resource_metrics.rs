//! `/metrics/resources`: what pods ask for and may use, pod by pod, as the scheduler counts it.

use std::fmt::Write as _;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Pod, ResourceList};
use component_helpers::{pod_requests, pod_state};

const REQUEST: &str = "kube_pod_resource_request";
const LIMIT: &str = "kube_pod_resource_limit";
const MILLI: f64 = 1000.0;

/// The page in Prometheus' text form. Pods that have ended and amounts of zero are left out.
pub(super) fn page(pods: &[Arc<Pod>]) -> String {
    let mut live: Vec<&Pod> = pods.iter().map(AsRef::as_ref).filter(|pod| !has_ended(pod)).collect();
    live.sort_by_key(|pod| (&pod.metadata.namespace, &pod.metadata.name));
    let mut out = String::new();
    family(
        &mut out,
        LIMIT,
        "Resources limit for workloads on the cluster, broken down by pod.",
        &live,
        pod_requests::limits,
    );
    family(
        &mut out,
        REQUEST,
        "Resources requested by workloads on the cluster, broken down by pod.",
        &live,
        pod_requests::requests,
    );
    out
}

/// A pod without a node has not even begun.
fn has_ended(pod: &Pod) -> bool {
    !pod.spec.node_name.is_empty() && pod_state::is_terminal(pod)
}

fn family(out: &mut String, name: &str, help: &str, pods: &[&Pod], amounts: impl Fn(&Pod) -> ResourceList) {
    let mut lines = String::new();
    for pod in pods {
        for (resource, amount) in amounts(pod).iter().filter(|(_, amount)| !amount.is_zero()) {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{name}{} {}", labels(pod, resource), value(resource, amount));
        }
    }
    if !lines.is_empty() {
        let _ = write!(out, "# HELP {name} [STABLE] {help}\n# TYPE {name} gauge\n{lines}");
    }
}

fn labels(pod: &Pod, resource: &str) -> String {
    let priority = pod.spec.priority.map(|priority| priority.to_string()).unwrap_or_default();
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let (node, scheduler, unit) = (&pod.spec.node_name, &pod.spec.scheduler_name, unit(resource));
    format!(
        "{{namespace={namespace:?},node={node:?},pod={name:?},priority={priority:?},resource={resource:?},\
         scheduler={scheduler:?},unit={unit:?}}}"
    )
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        _ if resource.starts_with("hugepages-") => "bytes",
        // Names with another domain than Kubernetes' own are counted in whole things.
        _ if resource.starts_with("attachable-volumes-") => "integer",
        _ if resource.contains('/') && !resource.contains("kubernetes.io/") => "integer",
        _ => "",
    }
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below what a float holds exactly")]
fn value(resource: &str, amount: &Quantity) -> f64 {
    if resource == "cpu" { amount.milli_value() as f64 / MILLI } else { amount.value() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_objects::pod;

    #[test]
    fn pods_show_what_they_ask_for() {
        let running = pod("b").request("cpu", "250m").request("memory", "1Gi").request("example.com/gpu", "2").on("n");
        let mut ended = pod("a").request("cpu", "1").on("n");
        ended.0.status.phase = "Succeeded".into();
        let waiting = pod("c").request("cpu", "0").priority(7);
        let text = page(&[ended.build(), running.build(), waiting.build()]);
        let line = |resource: &str, unit: &str, value: &str| {
            format!(
                "kube_pod_resource_request{{namespace=\"default\",node=\"n\",pod=\"b\",priority=\"0\",resource=\"{resource}\",\
                 scheduler=\"default-scheduler\",unit=\"{unit}\"}} {value}\n"
            )
        };
        for line in [
            line("cpu", "cores", "0.25"),
            line("memory", "bytes", "1073741824"),
            line("example.com/gpu", "integer", "2"),
        ] {
            assert!(
                text.contains(&line.replace("priority=\"0\"", "priority=\"\"")) || text.contains(&line),
                "{line}\nin\n{text}"
            );
        }
        assert!(!text.contains("pod=\"a\"") && !text.contains("pod=\"c\""), "{text}");
        assert!(!text.contains(LIMIT), "a family without values is left out");
    }
}
