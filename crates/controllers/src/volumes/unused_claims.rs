//! `PersistentVolumeClaimUnusedSinceTime` (KEP-5541): a claim's condition `Unused` tells since when no pod names it, so that people
//! find volumes that they pay for and nobody needs.

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod};
use component_base::Feature;
use component_helpers::{conditions, pod_state};

pub(super) const UNUSED_SINCE: Feature = Feature::named("PersistentVolumeClaimUnusedSinceTime");

const UNUSED: &str = "Unused";

/// The claim as it should tell of itself, where it does not; `pods` are those that name it, whether or not they have a node.
pub(super) fn told(claim: &PersistentVolumeClaim, pods: &[Arc<Pod>], now: Time) -> Option<PersistentVolumeClaim> {
    let is_used = pods.iter().any(|pod| !pod_state::is_terminal(pod));
    let (status, reason, message) = if is_used {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    } else {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    };
    let condition = PersistentVolumeClaimCondition {
        type_: UNUSED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..PersistentVolumeClaimCondition::default()
    };
    let mut next = claim.clone();
    conditions::set(&mut next.status.conditions, condition, now).then_some(next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::storage_protection::CLAIMS;
    use super::*;
    use crate::workloads::fixtures::Running;

    fn pod(phase: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        phase.clone_into(&mut pod.status.phase);
        Arc::new(pod)
    }

    #[test]
    fn a_claim_is_unused_while_no_pod_that_goes_on_names_it() {
        let at = Time::from_unix_seconds;
        let mut claim = PersistentVolumeClaim::default();
        for (pods, now, expected) in [
            (vec![], 1, Some("True NoPodsUsingPVC 1")),
            (vec![pod("Succeeded"), pod("Failed")], 2, None),
            (vec![pod("Failed"), pod("Pending")], 3, Some("False PodUsingPVC 3")),
            (vec![pod("Running")], 4, None),
            (vec![], 5, Some("True NoPodsUsingPVC 5")),
        ] {
            let next = told(&claim, &pods, at(now));
            let text = next.as_ref().map(|next| {
                let [one] = next.status.conditions.as_slice() else { return "several".to_owned() };
                let since = one.last_transition_time.seconds_since(Time::from_unix_seconds(0));
                format!("{} {} {since}", one.status, one.reason)
            });
            assert_eq!(text.as_deref(), expected, "{now}");
            claim = next.unwrap_or(claim);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn claims_are_told_of_where_the_gate_is_on() {
        for on in [false, true] {
            let run = Running::start_gated(&[CLAIMS], if on { &[UNUSED_SINCE] } else { &[] });
            let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {
                "name": "c", "namespace": "ns", "uid": "u", "finalizers": ["kubernetes.io/pvc-protection"]}});
            run.server.put("v1/persistentvolumeclaims", claim);
            let status = async || {
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                let claim = run.server.objects("v1/persistentvolumeclaims").into_iter().next().unwrap_or_default();
                claim["status"]["conditions"][0]["status"].as_str().unwrap_or_default().to_owned()
            };
            assert_eq!(status().await, if on { "True" } else { "" });
            let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
            let pod = |phase: &str| {
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", "uid": "p"},
                    "spec": {"volumes": volumes}, "status": {"phase": phase}})
            };
            run.server.put("v1/pods", pod("Pending"));
            assert_eq!(status().await, if on { "False" } else { "" });
            run.server.put("v1/pods", pod("Succeeded"));
            assert_eq!(status().await, if on { "True" } else { "" });
        }
    }
}
