//! What nodes may do.

use component_base::Gates;

use super::{PODS, pod};
use crate::config::ServerConfig;
use crate::tests::harness::Api;

/// A server that holds nodes to what is theirs, and signs tokens.
async fn with_nodes(gates: Gates) -> Api {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("sa.key");
    let key = pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).expect("a key");
    key.store(&file).expect("a file");
    let change = |config: &mut ServerConfig| {
        config.admission.selection.enabled.push("NodeRestriction".to_owned());
        config.service_accounts.issuers = vec!["https://kubernetes.default.svc".to_owned()];
        config.service_accounts.api_audiences = config.service_accounts.issuers.clone();
        config.service_accounts.signing_key_file = Some(file);
    };
    Api::as_process(|lifecycle| lifecycle.with_gates(gates), change).await
}

/// Who asks as node `n1`.
const NODE: [(&str, &str); 1] = [("authorization", "Bearer system:node:n1")];

/// How a node is answered that asks for a certificate of another.
pub(super) async fn other_node(gates: Gates) -> String {
    let api = with_nodes(gates).await;
    let key = pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).expect("a key");
    let name = pki::Name::new("system:node:other", &["system:nodes".into()]);
    let request = pki::CertificateRequest::create(&key, &name, &pki::AltNames::default()).expect("a request");
    let request = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, request.to_pem());
    let body = format!(
        r#"{{"metadata":{{"name":"r"}},"spec":{{"request":"{request}","usages":["digital signature","client auth"],
        "signerName":"kubernetes.io/kube-apiserver-client-kubelet"}}}}"#
    );
    api.send("POST /apis/certificates.k8s.io/v1/certificatesigningrequests", &NODE, body).await.code.to_string()
}

/// How a node is answered that asks for a token for somebody whom its pod does not know.
pub(super) async fn audiences(gates: Gates) -> String {
    let api = with_nodes(gates).await;
    api.wait_until_ready().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, r#"{"metadata":{"name":"a"}}"#).await;
    let pod = pod("", r#""nodeName":"n1","serviceAccountName":"a","#, "");
    let made = api.post(PODS, &pod).await;
    assert_eq!(made.code, 201, "{}", made.text);
    api.get(PODS).await;
    let uid = made.json()["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let body = format!(
        r#"{{"spec":{{"audiences":["somebody"],"boundObjectRef":{{"kind":"Pod","apiVersion":"v1","name":"p","uid":"{uid}"}}}}}}"#
    );
    let answer = api.send(&format!("POST {accounts}/a/token"), &NODE, body).await;
    answer.code.to_string()
}

/// How somebody is answered who wants a token of another account of the same name.
pub(super) async fn token_of_another(gates: Gates) -> String {
    let api = with_nodes(gates).await;
    api.wait_until_ready().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, r#"{"metadata":{"name":"a"}}"#).await;
    api.post(&format!("{accounts}/a/token"), r#"{"metadata":{"uid":"other"}}"#).await.code.to_string()
}
