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
    for document in api_machinery::yaml::documents(&cluster_dns(settings)) {
        match api_machinery::yaml::parse(document) {
            Ok(parsed) if parsed.value.is_object() => apply_one(client, parsed.value).await?,
            Ok(_) => {}
            Err(error) => return Err(ClusterError::Settings(format!("manifests/addons/cluster-dns.yaml: {error}"))),
        }
    }
    Ok(())
}

fn cluster_dns(settings: &Settings) -> String {
    let text = CLUSTER_DNS.replace("CLUSTER_DNS_ADDRESS", &settings.dns_address.to_string());
    text.replace("CLUSTER_DOMAIN", &settings.dns_domain)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use api_types::apps_v1::Deployment;

    use super::*;

    #[test]
    fn the_dns_server_runs_twice_on_two_nodes_if_there_are_two() {
        let text = cluster_dns(&Settings::new(Path::new("/var/lib/coxswain")));
        let documents = api_machinery::yaml::documents(&text);
        let parsed = documents.into_iter().filter_map(|document| api_machinery::yaml::parse(document).ok());
        let deployment = parsed.map(|parsed| parsed.value).find(|value| value["kind"] == "Deployment").unwrap();
        let json = api_machinery::json::encode_value(&deployment);
        let (deployment, decoded) = api_machinery::object::from_json::<Deployment>(json.as_bytes()).unwrap();
        assert_eq!(decoded.problems, Vec::<String>::new());
        assert_eq!(deployment.spec.replicas, Some(2));
        let template = &deployment.spec.template;
        let apart = template.spec.affinity.as_ref().and_then(|all| all.pod_anti_affinity.as_ref()).unwrap();
        assert!(apart.required_during_scheduling_ignored_during_execution.is_empty(), "one node is enough");
        let [preferred] = apart.preferred_during_scheduling_ignored_during_execution.as_slice() else {
            panic!("{apart:?}")
        };
        let term = &preferred.pod_affinity_term;
        assert_eq!(term.topology_key, "kubernetes.io/hostname");
        let [own] = term.label_selector.as_ref().unwrap().match_expressions.as_slice() else { panic!("{term:?}") };
        assert!(own.operator == "In" && own.values.contains(&template.metadata.labels[&own.key]));
    }
}
