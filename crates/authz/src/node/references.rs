//! What pods and volumes refer to, and what a node may therefore read.

use api_machinery::reflect::{Reflect, View, written_fields};
use api_types::core_v1::{PersistentVolume, Pod};

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
    walk(&pod.spec, &mut |member, value| {
        let name = |key: &str| text(value, key);
        match member {
            "secretKeyRef" | "secretRef" | "nodePublishSecretRef" => push(Kind::Secret, name("name")),
            "secret" => {
                push(Kind::Secret, name("secretName"));
                push(Kind::Secret, name("name"));
            }
            "azureFile" => push(Kind::Secret, name("secretName")),
            "imagePullSecrets" => push(Kind::Secret, name("name")),
            "configMapKeyRef" | "configMapRef" | "configMap" => push(Kind::ConfigMap, name("name")),
            "persistentVolumeClaim" => push(Kind::Claim, name("claimName")),
            _ => {}
        }
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

/// Shows every member that is a struct, and every struct in a list, with the member's name. Free maps of these types
/// only hold texts.
fn walk(value: &dyn Reflect, found: &mut dyn FnMut(&str, &dyn Reflect)) {
    let fields = value.struct_type().fields;
    for index in written_fields(value) {
        match value.field(index).view() {
            View::Struct(inner) if fields[index].inline => walk(inner, found),
            view => walk_member(fields[index].name, view, found),
        }
    }
}

fn walk_member(name: &str, view: View<'_>, found: &mut dyn FnMut(&str, &dyn Reflect)) {
    match view {
        View::Struct(inner) => {
            found(name, inner);
            walk(inner, found);
        }
        View::Optional(Some(inner)) => walk_member(name, inner.view(), found),
        View::List(items) => {
            for item in (0..items.len()).filter_map(|index| items.item(index)) {
                if let View::Struct(_) = item.view() {
                    walk_member(name, item.view(), found);
                }
            }
        }
        _ => {}
    }
}

/// A text member, also of the inline struct; empty where there is none.
fn text<'a>(value: &'a dyn Reflect, name: &str) -> &'a str {
    let table = value.struct_type();
    match table.index_of(name) {
        Some(index) => match value.field(index).view() {
            View::Str(text) => text,
            View::Optional(Some(inner)) => match inner.view() {
                View::Str(text) => text,
                _ => "",
            },
            _ => "",
        },
        None => match table.inline().map(|index| value.field(index).view()) {
            Some(View::Struct(inner)) => text(inner, name),
            _ => "",
        },
    }
}
