//! Claims of devices, as far as more than their rules decides: namespaces, rights, and what other versions show.

use serde_json::{Value, json};

use super::harness::{Answer, Api};
use super::hostile_paths::allow;

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const ALICE: (&str, &str) = ("authorization", "Bearer alice");

/// A server as it is when nobody switches anything.
async fn start() -> Api {
    let defaults = crate::gates::KNOWN.defaults(component_base::version::BINARY);
    Api::as_process(|lifecycle| lifecycle.with_gates(defaults), |_| {}).await
}

fn claim(request: &Value) -> String {
    json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}).to_string()
}

fn simple() -> String {
    claim(&json!({"name": "r", "exactly": {"deviceClassName": "d"}}))
}

/// What is told of alice, who may write the status of claims and what `more` says, when she allocates a device, and tells
/// its state.
pub(super) async fn allocated_by_alice(api: &Api, more: Option<Value>) -> Answer {
    let status = json!({"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["update"]});
    allow(api, "", status).await;
    if let Some(rule) = more {
        let role = json!({"metadata": {"name": "given"}, "rules": [rule, {"apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims/status"], "verbs": ["update"]}]});
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/given";
        assert_eq!(api.put(path, &role.to_string()).await.code, 200);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let mut object = api.post(CLAIMS, &simple()).await.json();
    let device = json!({"driver": "d", "pool": "p", "device": "x"});
    let mut result = device.clone();
    result["request"] = "r".into();
    object["status"] = json!({"allocation": {"devices": {"results": [result]}}, "devices": [device]});
    api.send(&format!("PUT {CLAIMS}/c/status"), &[ALICE], object.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn who_tells_of_devices_needs_rights_to_it() {
    let right = |resource: &str, verb: &str| json!({"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": [verb]});
    let both = json!({"apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims/binding", "resourceclaims/driver"], "verbs": ["update", "arbitrary-node:update"]});
    for (more, expected) in [
        (None, &["status.allocation", "status.devices"] as &[&str]),
        (Some(right("resourceclaims/binding", "update")), &["status.devices"]),
        (Some(right("resourceclaims/driver", "arbitrary-node:update")), &["status.allocation"]),
        (Some(right("resourceclaims/driver", "associated-node:update")), &["status.allocation", "status.devices"]),
        (Some(both), &[]),
    ] {
        let api = start().await;
        let answer = allocated_by_alice(&api, more.clone()).await;
        let causes = answer.json()["details"]["causes"].as_array().cloned().unwrap_or_default();
        let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
        assert_eq!(fields, expected, "{more:?}: {}", answer.text);
        assert_eq!(answer.code, if expected.is_empty() { 200 } else { 422 });
    }
}

#[tokio::test(start_paused = true)]
async fn administrators_have_namespaces_of_their_own() {
    let api = start().await;
    let wanted = claim(&json!({"name": "r", "exactly": {"deviceClassName": "d", "adminAccess": true}}));
    let (code, text) = api.post(CLAIMS, &wanted).await.refusal();
    assert_eq!(code, 422);
    assert!(text.contains("admin access to devices requires"), "{text}");
    let label = r#"{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}"#;
    assert_eq!(api.patch("merge-patch", "/api/v1/namespaces/default", label).await.code, 200);
    assert_eq!(api.post(CLAIMS, &wanted).await.code, 201);
}

/// A claim of the first form is kept in the form of today, and each version shows it in its own.
#[tokio::test(start_paused = true)]
async fn versions_show_claims_in_their_own_form() {
    let api = start().await;
    let first = CLAIMS.replace("/v1/", "/v1beta1/");
    let asked = claim(&json!({"name": "r", "deviceClassName": "d"}));
    let made = api.post(&first, &asked).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let request = |answer: &Answer| answer.json()["spec"]["devices"]["requests"][0].clone();
    let exact = json!({"deviceClassName": "d", "allocationMode": "ExactCount", "count": 1});
    for version in ["v1", "v1beta2"] {
        let shown = api.get(&format!("{}/c", CLAIMS.replace("/v1/", &format!("/{version}/")))).await;
        assert_eq!(request(&shown), json!({"name": "r", "exactly": exact}), "{version}");
    }
    let mut flat = exact;
    flat["name"] = "r".into();
    assert_eq!(request(&api.get(&format!("{first}/c")).await), flat);
    // Errors name the fields of the form that is kept.
    let bad = claim(&json!({"name": "q", "deviceClassName": "-"})).replace("\"c\"", "\"b\"");
    let (_, text) = api.post(&first, &bad).await.refusal();
    assert!(text.contains("spec.devices.requests[0].exactly.deviceClassName"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn parts_of_the_control_plane_say_how_they_are() {
    let api = start().await;
    let answer = api.get("/api/v1/componentstatuses").await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let list = answer.json();
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|own| own["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["controller-manager", "scheduler"], "a store within the process has no row");
    assert_eq!(list["items"][0]["conditions"][0]["type"], "Healthy");
    assert_eq!(answer.warnings(), ["299 - \"v1 ComponentStatus is deprecated in v1.19+\""]);
    let one = api.get("/api/v1/componentstatuses?fieldSelector=metadata.name%3Dscheduler").await.json();
    assert_eq!(one["items"].as_array().map(Vec::len), Some(1));
    let missing = api.get("/api/v1/componentstatuses/x").await.refusal();
    assert_eq!(missing, (404, "componentstatus \"x\" not found".to_owned()));
}
