//! What nodes reach of the objects that name them, by the Node authorizer and the admission of nodes together.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use component_base::Gates;
use component_base::shared_gates::POD_CERTIFICATE_REQUEST;
use serde_json::{Value, json};

use super::harness::Api;

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests";
const PODS: &str = "/api/v1/namespaces/default/pods";
const OF_NODE: &str = "?fieldSelector=spec.nodeName%3Dn1";

async fn as_node(api: &Api, line: &str, body: &Value) -> (u16, Value) {
    let headers = [("authorization", "Bearer system:node:n1"), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = api.send(line, &headers, body).await;
    (answer.code, answer.json())
}

/// The code of an answer that only comes once the server has seen what was written.
async fn at_last(api: &Api, line: &str, wanted: u16) -> u16 {
    for _ in 0..100 {
        if as_node(api, line, &Value::Null).await.0 == wanted {
            return wanted;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    as_node(api, line, &Value::Null).await.0
}

async fn made(api: &Api, path: &str, object: &Value) -> Value {
    let answer = api.post(path, &object.to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.json()
}

async fn start() -> Api {
    let gates = Gates::default().with(POD_CERTIFICATE_REQUEST, true);
    let restricted = |config: &mut crate::config::ServerConfig| {
        config.admission.selection.enabled.push("NodeRestriction".to_owned())
    };
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), restricted).await;
    for node in ["n1", "n2"] {
        made(&api, "/api/v1/nodes", &json!({"metadata": {"name": node}})).await;
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
        made(&api, PODS, &json!({"metadata": {"name": format!("of-{node}")}, "spec": spec})).await;
    }
    api
}

#[tokio::test(start_paused = true)]
async fn slices_are_their_nodes() {
    let api = start().await;
    for node in ["n1", "n2"] {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": "d.example", "pool": pool, "nodeName": node, "devices": [{"name": "a"}]});
        made(&api, SLICES, &json!({"metadata": {"name": format!("of-{node}")}, "spec": spec})).await;
    }
    assert_eq!(at_last(&api, &format!("GET {SLICES}/of-n1"), 200).await, 200);
    assert_eq!(as_node(&api, &format!("GET {SLICES}/of-n2"), &Value::Null).await.0, 403);
    assert_eq!(as_node(&api, &format!("GET {SLICES}"), &Value::Null).await.0, 403);
    let (code, own) = as_node(&api, &format!("GET {SLICES}{OF_NODE}"), &Value::Null).await;
    assert_eq!((code, own["items"].as_array().map(Vec::len)), (200, Some(1)));
    assert_eq!(as_node(&api, &format!("DELETE {SLICES}/of-n2"), &Value::Null).await.0, 403);
    assert_eq!(as_node(&api, &format!("DELETE {SLICES}/of-n1"), &Value::Null).await.0, 200);
}

/// A request for the certificate of the pod of a node.
async fn request(api: &Api, node: &str) -> Value {
    let uid = async |path: &str| api.get(path).await.json()["metadata"]["uid"].clone();
    let key = pki::PrivateKey::generate(pki::KeyAlgorithm::Ed25519).expect("a key");
    let stub = pki::CertificateRequest::create(&key, &pki::Name::new("", &[]), &pki::AltNames::default());
    let spec = json!({
        "signerName": "example.com/signer",
        "podName": format!("of-{node}"), "podUID": uid(&format!("{PODS}/of-{node}")).await,
        "serviceAccountName": "default",
        "serviceAccountUID": uid("/api/v1/namespaces/default/serviceaccounts/default").await,
        "nodeName": node, "nodeUID": uid(&format!("/api/v1/nodes/{node}")).await,
        "stubPKCS10Request": STANDARD.encode(stub.expect("a request").der()),
    });
    json!({"metadata": {"generateName": "req-"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn nodes_ask_for_the_certificates_of_their_pods() {
    let api = start().await;
    assert_eq!(at_last(&api, "GET /api/v1/namespaces/default/serviceaccounts/default", 200).await, 200);
    let (code, own) = as_node(&api, &format!("POST {REQUESTS}"), &request(&api, "n1").await).await;
    assert_eq!(code, 201, "{own}");
    let other = request(&api, "n2").await;
    assert_eq!(as_node(&api, &format!("POST {REQUESTS}"), &other).await.0, 403, "of a pod of another node");
    let other = made(&api, REQUESTS, &other).await;
    let named = |object: &Value| format!("GET {REQUESTS}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
    assert_eq!(at_last(&api, &named(&own), 200).await, 200);
    assert_eq!(as_node(&api, &named(&other), &Value::Null).await.0, 403);
    let (code, list) = as_node(&api, &format!("GET {REQUESTS}{OF_NODE}"), &Value::Null).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
}
