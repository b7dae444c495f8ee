//! Webhooks and policies that stand in files of the server: they count at once, before those of the API, and about these, too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base::{Rng, TokioClock};
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::Api;
use super::review_server::{Reply, ReviewServer, configure};
use crate::config::ServerConfig;
use crate::gates::MANIFESTS;
use crate::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAP: &str = r#"{"metadata":{"name":"m"},"data":{"k":"bad"}}"#;

/// A policy with its binding, about some resources, that lets pass what `expression` holds of.
fn policy(resources: &[&str], expression: &str) -> String {
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources}]);
    let head = |kind: &str, spec: Value| {
        let metadata = json!({"name": "p.static.k8s.io"});
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "validations": [{ "expression": expression }]});
    let binding = json!({"policyName": "p.static.k8s.io", "validationActions": ["Deny"]});
    let (kind, of) = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding");
    format!("{}\n---\n{}\n", head(kind, spec), head(of, binding))
}

/// A server with files for one plugin.
async fn with(plugin: &'static str, directory: &Path) -> Api {
    let gates = Gates::default().with(MANIFESTS, true);
    let manifests = BTreeMap::from([(plugin, directory.to_owned())]);
    Api::as_process(|lifecycle| lifecycle.with_gates(gates), |config| config.admission.manifests = manifests).await
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

#[tokio::test]
async fn policies_of_files_protect_those_of_the_api() {
    let text = policy(&["configmaps", "validatingadmissionpolicies"], "object == null || object.metadata.name != 'm'");
    let files = directory(&[("p.yaml", &text)]);
    let api = with("ValidatingAdmissionPolicy", files.path()).await;
    let refused = "denied request: failed expression";
    let by = "ValidatingAdmissionPolicy 'p.static.k8s.io' with binding 'p.static.k8s.io'";
    let (code, message) = api.post(MAPS, MAP).await.refusal();
    assert!(code == 422 && message.contains(refused) && message.contains(by), "{code} {message}");
    let own = json!({"metadata": {"name": "m"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
        "validations": [{"expression": "true"}],
    }});
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    let (code, message) = api.post(&policies, &own.to_string()).await.refusal();
    assert!(code == 422 && message.contains(by), "{code} {message}");
    assert_eq!(api.post(MAPS, &MAP.replace("\"m\"", "\"n\"")).await.code, 201);
    assert_eq!(api.get(&format!("{policies}/p.static.k8s.io")).await.code, 404, "the API knows nothing of it");
    let reserved = own.to_string().replace("\"m\"", "\"other.static.k8s.io\"");
    let (code, message) = api.post(&policies, &reserved).await.refusal();
    assert!(code == 422 && message.contains("reserved for static manifest-based configurations"), "{message}");
}

#[tokio::test]
async fn changed_files_count_as_a_whole_or_not_at_all() {
    let files = directory(&[("p.yaml", &policy(&["configmaps"], "false"))]);
    let api = with("ValidatingAdmissionPolicy", files.path()).await;
    let create = async || api.post(&format!("{MAPS}?dryRun=All"), MAP).await.code;
    let becomes = async |expected: u16| {
        for _ in 0..500 {
            if create().await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is never {expected}");
    };
    assert_eq!(create().await, 422);
    let counted = async |status: &str| {
        let text = api.get("/metrics").await.text;
        let name = "apiserver_manifest_admission_config_controller_automatic_reloads_total{";
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        lines.any(|line| line.contains("plugin=\"ValidatingAdmissionPolicy\"") && line.contains(status))
    };
    // The watch begins when its task runs.
    tokio::time::sleep(Duration::from_millis(50)).await;
    std::fs::write(files.path().join("q.yaml"), "kind: [\n").expect("a file");
    for _ in 0..500 {
        if counted("failure").await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(counted("failure").await && !counted("success").await);
    assert_eq!(create().await, 422, "the former stay");
    std::fs::write(files.path().join("q.yaml"), "# nothing\n").expect("a file");
    std::fs::write(files.path().join("p.yaml"), policy(&["configmaps"], "true")).expect("a file");
    becomes(201).await;
    std::fs::write(files.path().join("p.yaml"), policy(&["configmaps"], "false")).expect("a file");
    becomes(422).await;
    std::fs::remove_file(files.path().join("p.yaml")).expect("it goes");
    becomes(201).await;
    let text = api.get("/metrics").await.text;
    let hashes = text.matches("apiserver_manifest_admission_config_controller_last_config_info{").count();
    assert_eq!(hashes, 1, "one is in force");
}

#[tokio::test]
async fn webhooks_of_files_come_first_and_are_asked_about_configurations() {
    let (first, second) = (ReviewServer::start(Reply::allows()), ReviewServer::start(Reply::allows()));
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["configmaps", "mutatingwebhookconfigurations"]}]);
    let webhook = first.webhook("w", &json!({ "rules": rules }));
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "z.static.k8s.io"}, "webhooks": [webhook]});
    let files = directory(&[("w.json", &configuration.to_string())]);
    let api = with("MutatingAdmissionWebhook", files.path()).await;
    let patched = |value: &str| Reply::patches(&json!([{"op": "add", "path": "/data/by", "value": value}]));
    configure(&api, "mutating", "a", &[second.webhook("w", &json!({ "rules": rules }))]).await;
    // The server has config maps of its own, which nobody counts here.
    let about = |server: &ReviewServer, name: &str| {
        server.asked().into_iter().filter(|asked| asked.request["name"] == name).count()
    };
    assert_eq!(about(&first, "a"), 1);

    first.reply(patched("file"));
    second.reply(patched("api"));
    let made = api.post(MAPS, MAP).await.json();
    assert_eq!(made["data"]["by"], "api", "the one of the file was asked before");
    assert_eq!((about(&first, "m"), about(&second, "m")), (1, 1));
    first.reply(Reply::allows());
    configure(&api, "mutating", "b", &[second.webhook("v", &json!({ "rules": rules }))]).await;
    assert_eq!((about(&first, "b"), about(&second, "b")), (1, 0), "that of the API is not asked about its kind");
}

#[tokio::test]
async fn a_file_with_a_mistake_keeps_the_server_from_starting() {
    let files = directory(&[("p.yaml", &policy(&["configmaps"], "1 +"))]);
    for (gate, expected) in [(true, "p.static.k8s.io"), (false, "feature gate to be enabled")] {
        let mut config = ServerConfig::in_memory(Vec::new());
        config.admission.manifests = BTreeMap::from([("ValidatingAdmissionPolicy", files.path().to_owned())]);
        let gates = Gates::default().with(MANIFESTS, gate);
        let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(7)).with_gates(gates);
        let Err(error) = Server::build(config, lifecycle).await else { panic!("it starts") };
        let error = error.to_string();
        assert!(error.contains(expected) && error.contains(&files.path().display().to_string()), "{error}");
    }
}
