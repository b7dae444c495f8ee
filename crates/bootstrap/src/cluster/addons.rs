//! The objects that every cluster gets once its API server answers: bindings of kubeadm's groups, and the addons.

use api_machinery::gvk::GroupVersion;
use api_machinery::meta::PatchOptions;
use api_machinery::value::{Value, ValueMap};
use client::{Client, Patch, ResourceInfo};
use serde_json::json;

use super::settings::{ClusterError, Settings};

/// The cluster DNS, with placeholders for the address and domain.
const CLUSTER_DNS: &str = include_str!("../../../../manifests/addons/cluster-dns.yaml");
const MANAGER: &str = "coxswain";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Bindings to cluster roles: the binding's name, the role, the subject's kind and name.
const BINDINGS: &[(&str, &str, &str, &str)] = &[
    ("kubeadm:cluster-admins", "cluster-admin", "Group", "kubeadm:cluster-admins"),
    ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client"),
    (
        "kubeadm:kubelet-bootstrap",
        "system:node-bootstrapper",
        "Group",
        "system:bootstrappers:kubeadm:default-node-token",
    ),
    (
        "kubeadm:node-autoapprove-bootstrap",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "Group",
        "system:bootstrappers:kubeadm:default-node-token",
    ),
    (
        "kubeadm:node-autoapprove-certificate-rotation",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "Group",
        "system:nodes",
    ),
];

/// Applies everything; running it again changes nothing.
pub(super) async fn apply(client: &Client, settings: &Settings) -> Result<(), ClusterError> {
    for (name, role, kind, subject) in BINDINGS {
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": kind, "name": subject}],
        });
        apply_one(client, binding).await?;
    }
    let text = CLUSTER_DNS
        .replace("CLUSTER_DNS_ADDRESS", &settings.dns_address.to_string())
        .replace("CLUSTER_DOMAIN", &settings.dns_domain);
    for document in api_machinery::yaml::documents(&text) {
        match api_machinery::yaml::parse(document) {
            Ok(parsed) if parsed.value.is_object() => apply_one(client, parsed.value).await?,
            Ok(_) => {}
            Err(error) => return Err(ClusterError::Settings(format!("manifests/addons/cluster-dns.yaml: {error}"))),
        }
    }
    Ok(())
}

async fn apply_one(client: &Client, object: Value) -> Result<(), ClusterError> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text(object.get("apiVersion")), text(object.get("kind")));
    let empty = ValueMap::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let (name, namespace) = (text(metadata.get("name")), text(metadata.get("namespace")));
    let group_version = GroupVersion::parse(&api_version).unwrap_or_default();
    let resource = ResourceInfo {
        resource: group_version.with_resource(plural(&kind)),
        kind: kind.clone(),
        namespaced: !namespace.is_empty(),
    };
    let options = PatchOptions { field_manager: MANAGER.into(), force: Some(true), ..PatchOptions::default() };
    let applied = client.dynamic(&resource, &namespace).patch_with(&name, &Patch::Apply(object), &options).await;
    applied.map(drop).map_err(|source| ClusterError::Api { action: format!("applying {kind} {name}"), source })
}

/// The plural of the kinds that addons are made of.
fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}
