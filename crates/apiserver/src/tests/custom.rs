//! Kinds that come at run time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Api, frame};

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const APPLES: &str = "/apis/example.com/v1/namespaces/default/apples";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
pub(super) const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "apples.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "apples", "kind": "Apple", "shortNames": ["ap"]},
        "versions": [
            {"name": "v1", "served": true, "storage": true,
             "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
             "additionalPrinterColumns": [{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}],
             "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                 "spec": {"type": "object", "required": ["size"], "properties": {
                     "size": {"type": "integer", "minimum": 0}, "colour": {"type": "string", "default": "red"}}},
                 "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}},
            {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
             "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
        ]
    }
}"#;

pub(super) async fn until(api: &Api, path: &str, fits: impl Fn(u16, &Value) -> bool) -> Value {
    for _ in 0..200 {
        let answer = api.get(path).await;
        if fits(answer.code, &answer.json()) {
            return answer.json();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} never got there: {:?}", api.get(path).await);
}

pub(super) async fn with_apples() -> Api {
    with_definition(DEFINITION).await
}

async fn with_definition(definition: &str) -> Api {
    let api = Api::start().await;
    until(&api, "/readyz", |code, _| code == 200).await;
    let created = api.post(DEFINITIONS, definition).await;
    assert_eq!(created.code, 201, "{}", created.text);
    until(&api, APPLES, |code, _| code == 200).await;
    api
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_in_their_scope_only() {
    let api = with_apples().await;
    let out_of_scope = api.get("/apis/example.com/v1/apples/a").await;
    assert_eq!((out_of_scope.code, out_of_scope.text.as_str()), (404, "404 page not found\n"));
    assert_eq!(api.get("/apis/example.com/v1/apples").await.code, 200, "all namespaces can be listed");
    for method in ["POST", "PUT", "DELETE"] {
        let answer = api.send(&format!("{method} /apis/example.com/v1/apples"), &[], APPLE).await;
        assert_eq!((answer.code, answer.text.as_str()), (404, "404 page not found\n"), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_custom_kind_does_not_know_are_refused_by_verb() {
    let api = with_apples().await;
    let without = |verb: &str| format!("{verb} is not supported on resources of kind \"apples.example.com\"");
    for (method, rest, code, expected) in [
        ("PUT", "", 400, "name must be provided".to_owned()),
        ("PATCH", "", 400, "name must be provided".to_owned()),
        ("OPTIONS", "", 405, without("")),
        ("POST", "/a/status", 405, without("create")),
        ("DELETE", "/a/scale", 405, without("delete")),
        ("GET", "/a/core", 404, "apples.example.com \"a\" not found".to_owned()),
    ] {
        let answer = api.send(&format!("{method} {APPLES}{rest}"), &[], APPLE).await;
        assert_eq!(answer.refusal(), (code, expected), "{method} {rest}");
    }
    assert_eq!(api.send(&format!("HEAD {APPLES}"), &[], "").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn patches_leave_an_object_of_its_kind() {
    let api = with_apples().await;
    assert_eq!(api.post(APPLES, APPLE).await.code, 201);
    let path = format!("{APPLES}/a");
    let unfit = "is unstructured and is not suitable for converting to \"example.com/v1\"";
    for (patch, expected) in [
        (
            r#"{"kind":"Pear"}"#,
            "Pear.example.com \"a\" is invalid: kind: Invalid value: \"Pear\": must be Apple".to_owned(),
        ),
        (r#"{"kind":null}"#, "Object 'Kind' is missing in '{".to_owned()),
        (
            r#"{"apiVersion":"example.com/v9"}"#,
            "request to convert CR from an invalid group/version: example.com/v9".to_owned(),
        ),
        (r#"{"apiVersion":"other.com/v1"}"#, format!(": other.com/v1, Kind=Apple {unfit}")),
        (r#"{"apiVersion":null}"#, format!(": /, Kind=Apple {unfit}")),
    ] {
        let (code, message) = api.patch("merge-patch", &path, patch).await.refusal();
        assert!(code == 422 && message.contains(&expected), "{patch}: {code} {message}");
    }
    for (path, patch) in [
        (path.clone(), r#"{"apiVersion":"example.com/v1beta1"}"#),
        (format!("{path}/status"), r#"{"kind":"Pear","status":{"size":1}}"#),
    ] {
        let patched = api.patch("merge-patch", &path, patch).await;
        let (code, object) = (patched.code, patched.json());
        assert_eq!(
            (code, &object["apiVersion"], &object["kind"]),
            (200, &"example.com/v1".into(), &"Apple".into()),
            "{patch}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_say_how_many_it_wants_has_no_scale() {
    let api = with_definition(&DEFINITION.replace(r#""required": ["size"], "#, "")).await;
    assert_eq!(api.post(APPLES, &APPLE.replace(r#""size":2"#, "")).await.code, 201);
    let path = format!("{APPLES}/a/scale");
    let missing = "Internal error occurred: the spec replicas field \".spec.size\" does not exist";
    assert_eq!(api.get(&path).await.refusal(), (500, missing.to_owned()));
    let empty = "the spec replicas field \".spec.size\" cannot be empty";
    assert_eq!(api.patch("merge-patch", &path, "{}").await.refusal(), (400, empty.to_owned()));
    let scaled = api.patch("merge-patch", &path, r#"{"spec":{"replicas":3}}"#).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &3.into()), "{}", scaled.text);
    assert_eq!(api.get(&path).await.json()["spec"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn requests_for_custom_objects_are_counted_and_for_unknown_ones_not() {
    let api = with_apples().await;
    for path in ["/apis/example.com/v1/apples", "/apis/example.com/v1/pears", "/apis/example.com/v9/apples"] {
        api.get(path).await;
    }
    let metrics = api.get("/metrics").await.text;
    let line = r#"apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="apples",scope="cluster",subresource="",verb="LIST",version="v1"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
    assert!(!metrics.contains("pears") && !metrics.contains(r#"version="v9""#), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn deprecated_versions_say_so() {
    let api = with_apples().await;
    assert_eq!(api.get(APPLES).await.warnings(), Vec::<&str>::new());
    let old = api.get(&APPLES.replace("v1", "v1beta1")).await;
    let text = "299 - \"example.com/v1beta1 Apple is deprecated; use example.com/v1 Apple\"";
    assert_eq!((old.code, old.warnings()), (200, vec![text]));
}

/// A document's tag is that of what it is made of.
#[tokio::test(start_paused = true)]
async fn documents_of_custom_kinds_are_found_by_their_tags() {
    let api = with_apples().await;
    let url = |index: &Value| {
        let found = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str();
        found.unwrap_or_default().to_owned()
    };
    let red = url(&api.get("/openapi/v3").await.json());
    assert!(api.get(&red).await.text.contains(r#""default":"red""#));

    redefined(&api, r#""default":"red""#, r#""default":"green""#).await;
    let green = url(&until(&api, "/openapi/v3", |_, index| url(index) != red).await);
    assert!(api.get(&green).await.text.contains(r#""default":"green""#));
    assert_eq!(api.get(&red).await.code, 301, "it is not that any more");

    redefined(&api, r#""default":"green""#, r#""default":"red""#).await;
    let again = url(&until(&api, "/openapi/v3", |_, index| url(index) != green).await);
    assert_eq!(again, red, "and whoever kept it has it still");
}

/// Clients go on at once when they see that a definition is established.
#[tokio::test(start_paused = true)]
async fn a_definition_is_in_service_before_it_is_established() {
    let api = Api::start().await;
    until(&api, "/readyz", |code, _| code == 200).await;
    let mut watch = api.open(&format!("GET {DEFINITIONS}?watch=1"), &[], "").await.into_body();
    assert_eq!(api.post(DEFINITIONS, DEFINITION).await.code, 201);
    let (mut steps, mut events) = (Vec::new(), String::new());
    while steps.last().is_none_or(|(_, established)| established != "InitialNamesAccepted") {
        if events.is_empty() {
            events = frame(&mut watch).await.expect("an event");
        }
        let (event, others) = events.split_once('\n').expect("an event ends its line");
        let event: Value = serde_json::from_str(event).unwrap();
        events = others.to_owned();
        let conditions = event["object"]["status"]["conditions"].as_array().into_iter().flatten();
        let reason = |type_: &str| {
            let own = conditions.clone().find(|own| own["type"] == type_);
            own.and_then(|own| own["reason"].as_str()).unwrap_or_default().to_owned()
        };
        steps.push((reason("NamesAccepted"), reason("Established")));
    }
    assert_eq!(api.get(APPLES).await.code, 200);
    let expected = [("", ""), ("NoConflicts", "Installing"), ("NoConflicts", "InitialNamesAccepted")];
    assert_eq!(steps, expected.map(|(names, established)| (names.to_owned(), established.to_owned())));
}

/// Nobody may say that it is established, and it is in service all the same.
#[tokio::test(start_paused = true)]
async fn a_definition_is_served_that_is_not_established_yet() {
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmission";
    let api = Api::start().await;
    until(&api, "/readyz", |code, _| code == 200).await;
    let rule = "!object.?status.conditions.orValue([]).exists(c, c.type == 'Established' && c.status == 'True')";
    let resources = ["customresourcedefinitions/status"];
    let rules = json!([{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": resources}]);
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": rule}]}});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    for (resource, body) in [("policies", policy), ("policybindings", binding)] {
        let made = api.post(&format!("{GROUP}{resource}"), &body.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
        // A read waits until the cache has what was written.
        api.get(&format!("{GROUP}{resource}")).await;
    }
    assert_eq!(api.post(DEFINITIONS, DEFINITION).await.code, 201);
    until(&api, APPLES, |code, _| code == 200).await;
    let definition = api.get(&format!("{DEFINITIONS}/apples.example.com")).await.json();
    assert_eq!(definition["status"]["conditions"][1]["reason"], "Installing", "{definition}");
}

#[tokio::test(start_paused = true)]
async fn custom_objects_live_by_their_schema() {
    let api = with_apples().await;
    let created = api.post(APPLES, r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a"},"spec":{"size":2,"worm":true},"status":{"size":9}}"#).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let apple = created.json();
    assert_eq!(apple["spec"], serde_json::json!({"size": 2, "colour": "red"}), "pruned and filled");
    assert_eq!(apple["status"], Value::Null);
    assert_eq!(apple["metadata"]["generation"], 1);
    assert!(created.warnings().iter().any(|text| text.contains("unknown field \\\"spec.worm\\\"")), "{created:?}");

    let bad = api
        .post(APPLES, r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"b"},"spec":{"size":-1}}"#)
        .await;
    assert_eq!(bad.code, 422, "{}", bad.text);
    assert!(bad.text.contains("should be greater than or equal to 0"), "{}", bad.text);

    let scaled = api.patch("merge-patch", &format!("{APPLES}/a/scale"), r#"{"spec":{"replicas":7}}"#).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &Value::from(7)), "{}", scaled.text);
    let status =
        api.patch("merge-patch", &format!("{APPLES}/a/status"), r#"{"spec":{"size":1},"status":{"size":3}}"#).await;
    let apple = status.json();
    assert_eq!(
        (&apple["spec"]["size"], &apple["status"]["size"]),
        (&Value::from(7), &Value::from(3)),
        "{}",
        status.text
    );
    assert_eq!(apple["metadata"]["generation"], 2);

    let other = api.get("/apis/example.com/v1beta1/namespaces/default/apples/a").await;
    assert_eq!((other.code, &other.json()["apiVersion"]), (200, &Value::from("example.com/v1beta1")), "{}", other.text);
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let table = api.send(&format!("GET {APPLES}"), &[("accept", accept)], "").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Colour");
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["a", "red"]));
}

#[tokio::test(start_paused = true)]
async fn applied_custom_objects_are_owned_by_field() {
    let api = with_apples().await;
    let body = r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a"},"spec":{"size":2}}"#;
    let applied = api.patch("apply", &format!("{APPLES}/a?fieldManager=m"), body).await;
    assert_eq!(applied.code, 201, "{}", applied.text);
    assert_eq!(applied.json()["metadata"]["managedFields"][0]["manager"], "m");
}

#[tokio::test(start_paused = true)]
async fn definitions_show_in_discovery_and_openapi_and_go_with_their_objects() {
    let api = with_apples().await;
    let groups = api.get("/apis").await.json();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().filter_map(|group| group["name"].as_str()).collect();
    assert_eq!(names.last(), Some(&"example.com"));
    let resources = api.get("/apis/example.com/v1").await.json();
    assert_eq!(resources["resources"][0]["shortNames"][0], "ap");
    assert_eq!(resources["resources"][1]["name"], "apples/scale");
    let openapi = api.get("/openapi/v3/apis/example.com/v1").await.json();
    assert!(openapi["components"]["schemas"]["com.example.v1.Apple"].is_object());

    api.post(APPLES, r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a"},"spec":{"size":2}}"#)
        .await;
    let path = format!("{DEFINITIONS}/apples.example.com");
    assert_eq!(api.delete(&path).await.code, 200);
    until(&api, &path, |code, _| code == 404).await;
    until(&api, APPLES, |code, _| code == 404).await;
    assert_eq!(api.get("/apis/example.com").await.code, 404);
    assert_eq!(api.post(DEFINITIONS, DEFINITION).await.code, 201);
    let list = until(&api, APPLES, |code, _| code == 200).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(0), "the objects went with their definition");
}

#[tokio::test(start_paused = true)]
async fn rules_of_schemas_are_enforced() {
    let api = Api::start().await;
    until(&api, "/readyz", |code, _| code == 200).await;
    let with =
        |rules: &str| DEFINITION.replace(r#""minimum": 0"#, &format!(r#""x-kubernetes-validations": [{rules}]"#));
    let refused = api.post(DEFINITIONS, &with(r#"{"rule": "self.nothing"}"#)).await;
    assert_eq!(refused.code, 422);
    assert!(refused.text.contains("type 'int' does not support field selection"), "{}", refused.text);

    let rules = r#"{"rule": "self >= oldSelf", "message": "shrinks"}, {"rule": "self != 13", "message": "unlucky"}"#;
    assert_eq!(api.post(DEFINITIONS, &with(rules)).await.code, 201);
    until(&api, APPLES, |code, _| code == 200).await;
    let with_size = |size: i64| APPLE.replace(r#""size":2"#, &format!(r#""size":{size}"#));
    let created = api.post(APPLES, &with_size(13)).await;
    assert!(created.code == 422 && created.text.contains("spec.size: Invalid value: 13: unlucky"), "{}", created.text);
    assert_eq!(api.post(APPLES, &with_size(2)).await.code, 201);
    let current = api.get(&format!("{APPLES}/a")).await.text;
    let smaller = api.put(&format!("{APPLES}/a"), &current.replace(r#""size":2"#, r#""size":1"#)).await;
    assert!(smaller.code == 422 && smaller.text.contains("spec.size: Invalid value: 1: shrinks"), "{}", smaller.text);

    // An object that came into the store before the rule may stay as it is, and its writers are told.
    redefined(&api, "self != 13", "self != 2").await;
    for count in 0..200 {
        let label = format!(r#"{{"metadata":{{"labels":{{"count":"{count}"}}}}}}"#);
        let labelled = api.patch("merge-patch", &format!("{APPLES}/a"), &label).await;
        assert_eq!(labelled.code, 200, "{}", labelled.text);
        let warnings: Vec<_> = labelled.headers.get_all("warning").iter().filter_map(|own| own.to_str().ok()).collect();
        if warnings.iter().any(|own| own.contains("spec.size: Invalid value: 2: unlucky")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody was told");
}

pub(super) const APPLE: &str =
    r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a"},"spec":{"size":2}}"#;

/// The definition as it is, with another text in one place.
async fn redefined(api: &Api, from: &str, to: &str) {
    let path = format!("{DEFINITIONS}/apples.example.com");
    let current = api.get(&path).await.text;
    assert!(current.contains(from), "{from} in {current}");
    let put = api.put(&path, &current.replacen(from, to, 1)).await;
    assert_eq!(put.code, 200, "{}", put.text);
}

/// Asks again and again until the answer fits; in between it must be the former one.
async fn changes_over(api: &Api, path: &str, accept: &str, fits: impl Fn(&Value) -> bool) {
    for _ in 0..2_000 {
        let discovery = api.get("/apis/example.com/v1").await;
        assert_eq!(discovery.code, 200, "{}", discovery.text);
        let answer = api.send(&format!("GET {path}"), &[("accept", accept)], "").await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        if fits(&answer.json()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{path} never changed");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_changes_stays_in_service() {
    let api = with_apples().await;
    assert_eq!(api.post(APPLES, APPLE).await.code, 201);
    let mut watch = api.open(&format!("GET {APPLES}?watch=1&resourceVersion=0"), &[], "").await.into_body();
    assert!(frame(&mut watch).await.unwrap().contains("ADDED"));

    // What is stored is read as before: watches go on.
    redefined(&api, r#""name":"Colour""#, r#""name":"Color""#).await;
    changes_over(&api, APPLES, TABLE, |table| table["columnDefinitions"][1]["name"] == "Color").await;
    let painted = r#"{"spec":{"colour":"blue"}}"#;
    assert_eq!(api.patch("merge-patch", &format!("{APPLES}/a"), painted).await.code, 200);
    assert!(frame(&mut watch).await.unwrap().contains("blue"), "the watch sees what comes after the change");

    // Another schema is another reading; there is no moment without one.
    redefined(&api, r#""default":"red""#, r#""default":"green""#).await;
    let fresh = APPLE.replace(r#""name":"a""#, r#""generateName":"b""#);
    for _ in 0..2_000 {
        let made = api.post(APPLES, &fresh).await;
        assert_eq!(made.code, 201, "{}", made.text);
        assert_eq!(api.get(&format!("{APPLES}/a")).await.code, 200);
        assert_eq!(api.get(APPLES).await.code, 200);
        if made.json()["spec"]["colour"] == "green" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the new schema never came");
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_former_stored_version_are_read_as_the_current_one() {
    let api = with_apples().await;
    assert_eq!(api.post(APPLES, APPLE).await.code, 201);
    let path = format!("{DEFINITIONS}/apples.example.com");
    let mut definition = api.get(&path).await.json();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"][1]["storage"] = true.into();
    let put = api.put(&path, &definition.to_string()).await;
    assert_eq!(put.code, 200, "{}", put.text);
    until(&api, &path, |_, json| json["status"]["storedVersions"].as_array().is_some_and(|all| all.len() == 2)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    for version in ["v1", "v1beta1"] {
        let list = api.get(&APPLES.replace("v1", version)).await.json();
        assert_eq!(list["items"][0]["apiVersion"], format!("example.com/{version}"), "{list}");
        let one = api.get(&format!("{}/a", APPLES.replace("v1", version))).await.json();
        assert_eq!(one["apiVersion"], format!("example.com/{version}"), "{one}");
    }
    let before = api.get(&format!("{APPLES}/a")).await.json();
    let same = api.put(&format!("{APPLES}/a"), &before.to_string()).await;
    assert_eq!(same.code, 200, "{}", same.text);
    assert_ne!(same.json()["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "it is rewritten");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_holds_no_other_up() {
    let api = with_apples().await;
    for number in 0..1_100 {
        let apple = APPLE.replace(r#""name":"a""#, &format!(r#""name":"a{number}""#));
        assert_eq!(api.post(APPLES, &apple).await.code, 201);
    }
    let held = APPLE.replace(r#""name":"a""#, r#""name":"held","finalizers":["example.com/stay"]"#);
    assert_eq!(api.post(APPLES, &held).await.code, 201);
    let path = format!("{DEFINITIONS}/apples.example.com");
    assert_eq!(api.delete(&path).await.code, 200);
    until(&api, APPLES, |_, json| json["items"].as_array().is_some_and(|items| items.len() == 1)).await;
    let other = DEFINITION.replace("apple", "pear").replace("Apple", "Pear").replace(r#""ap""#, r#""pe""#);
    assert_eq!(api.post(DEFINITIONS, &other).await.code, 201);
    until(&api, &APPLES.replace("apple", "pear"), |code, _| code == 200).await;
    assert_eq!(api.get(&path).await.code, 200, "it waits for its last object");
    // A change on the way is no obstacle.
    redefined(&api, r#""default":"red""#, r#""default":"green""#).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let free = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(api.patch("merge-patch", &format!("{APPLES}/held"), free).await.code, 200);
    until(&api, &path, |code, _| code == 404).await;
    until(&api, APPLES, |code, _| code == 404).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_definition_replaced_is_freed() {
    let api = with_apples().await;
    let registry = api.server.cx().registry();
    let former = Arc::downgrade(&registry.resource("example.com", "v1", "apples").unwrap());
    redefined(&api, r#""name":"Colour""#, r#""name":"Color""#).await;
    until(&api, &format!("{DEFINITIONS}/apples.example.com"), |_, definition| {
        definition["metadata"]["generation"] == 2
    })
    .await;
    // Whoever found the former one may use it as long as a request lasts.
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(former.upgrade().is_none(), "its rules, schema and names are kept by nobody");
    let table = api.send(&format!("GET {APPLES}"), &[("accept", TABLE)], "").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Color");
}

/// All schemas of a large set of definitions, unpacked, would be most of what a server takes.
#[tokio::test(start_paused = true)]
async fn a_definition_is_kept_by_its_cache_alone() {
    let api = with_apples().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let definitions = api.server.cx().registry().resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let definition = definitions.unwrap().one_at_hand("", "apples.example.com").unwrap().shared_object();
    assert_eq!(std::sync::Arc::strong_count(&definition), 2, "the cache and this test");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_becomes_free_goes_to_who_waits_for_it() {
    let api = with_apples().await;
    let other = DEFINITION.replace("apple", "pear").replace("Apple", "Pear");
    assert_eq!(api.post(DEFINITIONS, &other).await.code, 201);
    let path = format!("{DEFINITIONS}/pears.example.com");
    let conditions = |definition: &Value| definition["status"]["conditions"].to_string();
    until(&api, &path, |_, definition| conditions(definition).contains("ShortNamesConflict")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(api.delete(&format!("{DEFINITIONS}/apples.example.com")).await.code, 200);
    until(&api, &APPLES.replace("apple", "pear"), |code, _| code == 200).await;
    until(&api, &path, |_, definition| conditions(definition).contains("InitialNamesAccepted")).await;
}
