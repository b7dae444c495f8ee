//! The objects that every cluster gets once its API server answers: bindings of kubeadm's groups, and the addons.

use std::time::Duration;

use api_machinery::gvk::GroupVersion;
use api_machinery::meta::PatchOptions;
use api_machinery::value::{Value, ValueMap};
use client::{Client, Patch, ResourceInfo};
use serde_json::json;
use tokio::time::Instant;

use super::serving::Issuing;
use super::settings::{ClusterError, Layout, Settings, file_error};

/// What is applied: the file's name and its text, with placeholders for what differs between clusters.
type Addon = (&'static str, &'static str);

macro_rules! addons {
    ($($file:literal),*) => {
        &[$(($file, include_str!(concat!("../../../../manifests/addons/", $file)))),*]
    };
}

/// The addons of every cluster, in the order in which they are applied.
const ADDONS: &[Addon] = addons!["cluster-dns.yaml", "metrics-server.yaml", "volume-snapshots.yaml", "csi-local.yaml"];
/// How long a kind that a definition has just brought may take to be served.
const SERVED_LIMIT: Duration = Duration::from_secs(30);
const SERVED_INTERVAL: Duration = Duration::from_millis(200);
/// Stands for the cluster's authority.
const AUTHORITY: &str = "CLUSTER_AUTHORITY";
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
pub(super) async fn apply(client: &Client, issuing: Issuing<'_>) -> Result<(), ClusterError> {
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
    issuing.addons(client).await?;
    for addon in ADDONS {
        for object in objects(addon, issuing.settings)? {
            apply_one(client, object).await?;
        }
    }
    Ok(())
}

/// The objects of an addon, for this cluster.
fn objects(&(file, text): &Addon, settings: &Settings) -> Result<Vec<Value>, ClusterError> {
    let mut text = filled(text, settings);
    if text.contains(AUTHORITY) {
        text = text.replace(AUTHORITY, &authority(settings)?);
    }
    let parse = |document| match api_machinery::yaml::parse(document) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => Err(ClusterError::Settings(format!("manifests/addons/{file}: {error}"))),
    };
    let parsed: Vec<Value> = api_machinery::yaml::documents(&text).map(parse).collect::<Result<_, ClusterError>>()?;
    Ok(parsed.into_iter().filter(Value::is_object).collect())
}

/// The text of an addon with everything in place that differs between clusters. `NODES_DIR` holds the directories of all
/// nodes of this machine, and `NODE_DIR` is that of the node that a pod runs on, of which it is told as `NODE_NAME`.
fn filled(text: &str, settings: &Settings) -> String {
    let layout = Layout::new(&settings.root);
    [
        ("CLUSTER_DNS_ADDRESS", settings.dns_address.to_string()),
        ("CLUSTER_DOMAIN", settings.dns_domain.clone()),
        ("NODES_DIR", layout.nodes().display().to_string()),
        ("NODE_DIR", layout.node("$(NODE_NAME)").display().to_string()),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, &value))
}

/// The cluster's authority, as bundles of authorities are written in objects.
fn authority(settings: &Settings) -> Result<String, ClusterError> {
    let path = Layout::new(&settings.root).pki().join("ca.crt");
    let pem = std::fs::read(&path).map_err(file_error("reading", &path))?;
    Ok(api_machinery::json::base64_text(&pem))
}

pub(super) async fn apply_one(client: &Client, object: Value) -> Result<(), ClusterError> {
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
    let (api, patch, begun) = (client.dynamic(&resource, &namespace), Patch::Apply(object), Instant::now());
    loop {
        match api.patch_with(&name, &patch, &options).await {
            Ok(_) => return Ok(()),
            // Applying creates what is not there: it is the kind that is not served yet.
            Err(error) if error.is_not_found() && begun.elapsed() < SERVED_LIMIT => {
                tokio::time::sleep(SERVED_INTERVAL).await;
            }
            Err(source) => return Err(ClusterError::Api { action: format!("applying {kind} {name}"), source }),
        }
    }
}

/// The plural of the kinds that addons are made of.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use api_types::apps_v1::Deployment;

    use super::*;

    fn of_dns(kind: &str) -> Value {
        let settings = Settings::new(Path::new("/var/lib/coxswain"));
        let dns = ADDONS.iter().find(|(file, _)| *file == "cluster-dns.yaml").unwrap();
        objects(dns, &settings).unwrap().into_iter().find(|value| value["kind"] == kind).unwrap()
    }

    #[test]
    fn the_dns_server_is_watched_as_upstreams_is() {
        let annotations = &of_dns("Service")["metadata"]["annotations"];
        assert_eq!(
            (&annotations["prometheus.io/port"], &annotations["prometheus.io/scrape"]),
            (&"9153".into(), &"true".into())
        );
        let container = &of_dns("Deployment")["spec"]["template"]["spec"]["containers"][0];
        let liveness = &container["livenessProbe"];
        assert_eq!((&liveness["timeoutSeconds"], &liveness["failureThreshold"]), (&5.into(), &5.into()));
        let ports = container["ports"].as_array().unwrap();
        let ports: Vec<_> = ports.iter().map(|port| port["containerPort"].as_i64().unwrap()).collect();
        assert_eq!(ports, [53, 53, 9153, 8080, 8181]);
        for probe in ["livenessProbe", "readinessProbe"] {
            let port = &container[probe]["httpGet"]["port"];
            assert!(container["ports"].as_array().unwrap().iter().any(|own| own["name"] == *port), "{probe}");
        }
    }

    #[test]
    fn the_dns_server_runs_twice_on_two_nodes_if_there_are_two() {
        let deployment = of_dns("Deployment");
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

    #[test]
    fn every_addon_is_filled_in() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::new(&root.path().join("cluster"));
        let pki = Layout::new(&settings.root).pki();
        std::fs::create_dir_all(&pki).unwrap();
        std::fs::write(pki.join("ca.crt"), "an authority").unwrap();
        for addon in ADDONS {
            let all = objects(addon, &settings).unwrap();
            assert!(!all.is_empty(), "{} holds nothing", addon.0);
            for object in all {
                let text = api_machinery::json::encode_value(&object);
                for placeholder in ["CLUSTER_DNS_ADDRESS", "CLUSTER_DOMAIN", "NODES_DIR", "NODE_DIR", AUTHORITY] {
                    assert!(!text.contains(placeholder), "{}: {placeholder} is left in {text}", addon.0);
                }
            }
        }
        assert_eq!(
            filled("NODES_DIR NODE_DIR", &Settings::new(Path::new("/var/lib/coxswain"))),
            "/var/lib/coxswain/nodes /var/lib/coxswain/nodes/$(NODE_NAME)"
        );
        assert_eq!((plural("StorageClass"), plural("CSIDriver")), ("storageclasses".into(), "csidrivers".into()));
    }
}
