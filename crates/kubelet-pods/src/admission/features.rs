//! Features that the node must declare for a pod (gate `NodeDeclaredFeatures`).

use api_types::core_v1::Pod;

use super::{Attempt, Reason, Refusal};
use crate::pod::containers::members;

type Needed = fn(&Pod) -> bool;

/// Features of nodes, and which pods need them.
const FEATURES: [(&str, Needed); 2] = [
    ("RestartAllContainersOnContainerExits", |pod| {
        let mut rules = members(pod).flat_map(|member| member.container.restart_policy_rules.clone());
        rules.any(|rule| rule.action == "RestartAllContainers")
    }),
    ("UserNamespacesHostNetworkSupport", |pod| pod.spec.host_network && pod.spec.host_users == Some(false)),
];

pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let Some(declared) = attempt.situation.declared_features else { return Ok(()) };
    let needed = FEATURES.into_iter().filter(|(_, needs)| needs(attempt.pod)).map(|(name, _)| name);
    let missing: Vec<&str> = needed.filter(|name| !declared.iter().any(|own| own == name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("Pod requires node features that are not available: {}", missing.join(", "));
    Err(Refusal::new(Reason::PodFeatureUnsupported, text))
}
