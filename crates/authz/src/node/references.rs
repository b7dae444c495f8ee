//! What pods and volumes refer to, and what a node may therefore read.

use api_types::core_v1::{PersistentVolume, Pod};
use component_helpers::pod_references::{Reference, each_reference, text, walk};

use super::graph::{Kind, Vertex};

/// The annotation of pods that only show what a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the node of a pod may read because of it. Pods that a node wrote itself give it nothing.
pub(super) fn of_pod(pod: &Pod) -> Vec<Vertex> {
    if pod.metadata.annotations.contains_key(MIRROR) {
        return Vec::new();
    }
    let namespace = pod.metadata.namespace.as_str();
    let mut found = Vec::new();
    let mut push = |kind: Kind, name: &str| {
        if !name.is_empty() {
            found.push(Vertex::new(kind, namespace, name));
        }
    };
    push(Kind::ServiceAccount, &pod.spec.service_account_name);
    for volume in &pod.spec.volumes {
        if volume.volume_source.ephemeral.is_some() {
            push(Kind::Claim, &format!("{}-{}", pod.metadata.name, volume.name));
        }
    }
    for claim in &pod.spec.resource_claims {
        push(Kind::ResourceClaim, claim.resource_claim_name.as_deref().unwrap_or_default());
    }
    for claim in &pod.status.resource_claim_statuses {
        push(Kind::ResourceClaim, claim.resource_claim_name.as_deref().unwrap_or_default());
    }
    if let Some(extended) = &pod.status.extended_resource_claim_status {
        push(Kind::ResourceClaim, &extended.resource_claim_name);
    }
    each_reference(&pod.spec, &mut |reference| match reference {
        Reference::Secret(name) => push(Kind::Secret, name),
        Reference::ConfigMap(name) => push(Kind::ConfigMap, name),
        Reference::Claim(name) => push(Kind::Claim, name),
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// The secrets that a node needs for a volume.
pub(super) fn secrets_of_volume(volume: &PersistentVolume) -> Vec<Vertex> {
    let claim = volume.spec.claim_ref.as_ref();
    let claim_namespace = claim.map(|claim| claim.namespace.as_str()).unwrap_or_default();
    let mut found = Vec::new();
    walk(&volume.spec, &mut |member, value| {
        let text = |key: &str| text(value, key);
        let (name, namespace) = match member {
            "secretRef" | "nodePublishSecretRef" | "nodeStageSecretRef" | "nodeExpandSecretRef" => {
                (text("name"), text("namespace"))
            }
            "azureFile" => (text("secretName"), text("secretNamespace")),
            _ => return,
        };
        let namespace = if namespace.is_empty() { claim_namespace } else { namespace };
        if !name.is_empty() {
            found.push(Vertex::new(Kind::Secret, namespace, name));
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}
