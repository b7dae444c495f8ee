//! Another API server behind this one: a whole one of our own, with a kind that came at run time, known by its front proxy's
//! headers alone.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::front::{Front, SERVICES};
use super::harness::{Api, frame};
use crate::config::FrontProxyConfig;

const NAME: &str = "v1.sample.example.io";
const FLUNDERS: &str = "/apis/sample.example.io/v1/namespaces/default/flunders";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WHOLE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const DEFINITION: &str = r#"{
    "metadata": {"name": "flunders.sample.example.io"},
    "spec": {"group": "sample.example.io", "scope": "Namespaced",
        "names": {"plural": "flunders", "kind": "Flunder", "shortNames": ["fl"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"colour": {"type": "string"}}},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}"#;

/// The server in front, and the one behind with its handle.
async fn both() -> (Front, Api, component_base::serving::ServerHandle) {
    let front = Front::start().await;
    let behind = Api::with(|config| {
        config.serving = Some(front.trust.serving());
        config.authentication.front_proxy = Some(FrontProxyConfig {
            client_ca_file: front.trust.file("ca.crt"),
            allowed_names: vec!["front-proxy-client".to_owned()],
            headers: authn::ProxyHeaders::default(),
        });
    })
    .await;
    let handle = behind.server.listen().unwrap().expect("it listens");
    behind.wait_until_ready().await;
    let made = behind.post(DEFINITIONS, DEFINITION).await;
    assert_eq!(made.code, 201, "{}", made.text);
    for _ in 0..100 {
        if behind.get(FLUNDERS).await.code == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    front.trust_and_register(NAME, handle.address()).await;
    front.until_condition(NAME, "Passed").await;
    (front, behind, handle)
}

#[tokio::test]
async fn objects_live_behind_and_are_reached_in_front() {
    let (front, behind, _handle) = both().await;
    let api = front.api();
    let mut watch = api.open(&format!("GET {FLUNDERS}?watch=1&resourceVersion=0"), &[], "").await.into_body();
    let body =
        r#"{"apiVersion":"sample.example.io/v1","kind":"Flunder","metadata":{"name":"f"},"spec":{"colour":"red"}}"#;
    let made = api.post(FLUNDERS, body).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(behind.get(&format!("{FLUNDERS}/f")).await.json()["spec"]["colour"], "red");
    let event = frame(&mut watch).await.expect("an event");
    assert!(event.contains(r#""type":"ADDED""#) && event.contains(r#""name":"f""#), "{event}");

    let patched = api.patch("merge-patch", &format!("{FLUNDERS}/f"), r#"{"spec":{"colour":"blue"}}"#).await;
    assert_eq!((patched.code, &patched.json()["spec"]["colour"]), (200, &json!("blue")), "{}", patched.text);
    let table = api.send(&format!("GET {FLUNDERS}"), &[("accept", TABLE)], "").await.json();
    assert_eq!(table["rows"][0]["cells"], json!(["f", "blue"]));
    assert_eq!(api.delete(&format!("{FLUNDERS}/f")).await.code, 200);
    assert_eq!(behind.get(&format!("{FLUNDERS}/f")).await.code, 404);
    drop(watch);
    front.sockets.stop().await;
}

#[tokio::test]
async fn both_servers_say_who_may() {
    let (front, behind, _handle) = both().await;
    let api = front.api();
    let as_alice = [("authorization", "Bearer alice")];
    let refused = api.send(&format!("GET {FLUNDERS}"), &as_alice, "").await;
    assert_eq!(refused.code, 403, "the front refuses: {}", refused.text);
    let role = r#"{"metadata":{"name":"flunders"},"rules":[{"apiGroups":["sample.example.io"],"resources":["*"],"verbs":["*"]}]}"#;
    let binding = r#"{"metadata":{"name":"flunders"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"flunders"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    let allow = async |server: &Api| {
        for (kind, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let made = server.post(&format!("/apis/rbac.authorization.k8s.io/v1/{kind}"), body).await;
            assert_eq!(made.code, 201, "{}", made.text);
        }
    };
    // Who may is read from a copy, which follows within a moment.
    let until_allowed = async |server: &Api| {
        let question = r#"{"spec":{"user":"alice","resourceAttributes":{"group":"sample.example.io","resource":"flunders",
            "verb":"list","namespace":"default"}}}"#;
        for _ in 0..200 {
            let said = server.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", question).await.json();
            if said["status"]["allowed"] == true {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("never allowed");
    };
    allow(api).await;
    until_allowed(api).await;
    let refused = api.send(&format!("GET {FLUNDERS}"), &as_alice, "").await;
    assert_eq!(refused.code, 403, "the server behind refuses whom the front has let pass: {}", refused.text);
    assert!(refused.text.contains("User \\\"alice\\\" cannot list"), "{}", refused.text);
    allow(&behind).await;
    until_allowed(&behind).await;
    assert_eq!(api.send(&format!("GET {FLUNDERS}"), &as_alice, "").await.code, 200, "now both allow it");
    front.sockets.stop().await;
}

#[tokio::test]
async fn discovery_and_descriptions_are_those_of_both() {
    let (front, _behind, _handle) = both().await;
    let api = front.api();
    let groups = api.get("/apis").await.json();
    let names: Vec<&str> = groups["groups"].as_array().unwrap().iter().filter_map(|own| own["name"].as_str()).collect();
    assert_eq!(names.first(), Some(&"apiregistration.k8s.io"));
    assert_eq!(names.last(), Some(&"sample.example.io"), "by its priority");
    assert_eq!(
        api.get("/apis/sample.example.io").await.json()["preferredVersion"]["groupVersion"],
        "sample.example.io/v1"
    );
    let resources = api.get("/apis/sample.example.io/v1").await.json();
    assert_eq!(resources["resources"][0]["shortNames"][0], "fl");

    let of = |document: &Value| {
        let items = document["items"].as_array().unwrap();
        items.iter().find(|item| item["metadata"]["name"] == "sample.example.io").cloned()
    };
    let whole = front
        .until("/apis", WHOLE, |document| of(document).is_some_and(|own| own["versions"][0]["freshness"] == "Current"))
        .await;
    let version = &of(&whole).unwrap()["versions"][0];
    assert_eq!(version["resources"][0]["resource"], "flunders");
    assert_eq!(version["resources"][0]["subresources"][0]["subresource"], "status");

    let key = "apis/sample.example.io/v1";
    let index = front.until("/openapi/v3", "application/json", |index| index["paths"][key].is_object()).await;
    let url = index["paths"][key]["serverRelativeURL"].as_str().unwrap();
    let described = api.get(url).await;
    assert_eq!(described.headers["cache-control"], "public, immutable", "{:?}", described.headers);
    assert!(described.json()["components"]["schemas"]["io.example.sample.v1.Flunder"].is_object());
    let path = "/apis/sample.example.io/v1/namespaces/{namespace}/flunders";
    let whole = front.until("/openapi/v2", "application/json", |whole| whole["paths"][path].is_object()).await;
    assert!(whole["definitions"]["io.example.sample.v1.Flunder"]["properties"]["spec"].is_object());
    assert!(
        whole["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2"].is_null(),
        "the same is the same"
    );
    assert!(api.get("/").await.json()["paths"].as_array().unwrap().contains(&json!("/apis/sample.example.io/v1")));

    assert_eq!(api.delete(&format!("{SERVICES}/{NAME}")).await.code, 200);
    front.until("/apis", WHOLE, |document| of(document).is_none()).await;
    front.until("/openapi/v2", "application/json", |whole| whole["paths"][path].is_null()).await;
    assert_eq!(api.get(FLUNDERS).await.code, 404);
    front.sockets.stop().await;
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let (front, _behind, handle) = both().await;
    let other = super::front::Trust::new();
    let api = front.api();
    assert_eq!(api.delete(&format!("{SERVICES}/{NAME}")).await.code, 200);
    front.register(NAME, handle.address(), &format!(r#""caBundle":"{}""#, other.bundle())).await;
    let message = front.until_condition(NAME, "FailedDiscoveryCheck").await;
    assert!(message.contains("failing or missing response from https://"), "{message}");
    let refused = api.get(FLUNDERS).await;
    assert_eq!((refused.code, refused.text.as_str()), (503, "service unavailable\n"));
    let metrics = api.get("/metrics").await.text;
    assert!(metrics.contains(&format!("aggregator_unavailable_apiservice{{name=\"{NAME}\"}} 1")), "{metrics}");
    front.sockets.stop().await;
}

/// What is told of a change while nobody looks is told of later: the versions of this server itself.
#[tokio::test(start_paused = true)]
async fn versions_of_this_server_are_registered_and_kept() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    let apps = api.get(&format!("{SERVICES}/v1.apps")).await.json();
    assert_eq!(apps["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "onstart");
    assert_eq!(
        apps["spec"],
        json!({"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15})
    );
    assert_eq!(apps["status"]["conditions"][0]["reason"], "Local");
    let custom = format!("{SERVICES}/v1.sample.example.io");
    let until = async |code: u16| {
        for _ in 0..100 {
            if api.get(&custom).await.code == code {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("never {code}");
    };
    assert_eq!(api.post(DEFINITIONS, DEFINITION).await.code, 201);
    until(200).await;
    assert_eq!(api.get(&custom).await.json()["spec"]["versionPriority"], 100);
    assert_eq!(api.delete(&custom).await.code, 200);
    until(404).await;
    until(200).await;
    assert_eq!(api.delete(&format!("{DEFINITIONS}/flunders.sample.example.io")).await.code, 200);
    until(404).await;
    drop(api.open("GET /healthz", &[], "").await.into_body().collect().await);
}
