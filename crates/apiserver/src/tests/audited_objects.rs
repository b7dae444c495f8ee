//! The objects of requests and answers in the audit log.

use api_machinery::object::Object as _;
use api_machinery::protobuf;
use api_types::core_v1::ConfigMap;
use serde_json::{Value, json};

use super::audited::Audited;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const ALL: &str = "[{level: RequestResponse}]";
const BARE: &str = "[{level: RequestResponse, omitManagedFields: true}]";

impl Audited {
    /// The last event of this very path; the server asks itself below many.
    async fn last(&self, uri: &str) -> Value {
        self.events(uri).await.into_iter().rfind(|event| event["requestURI"] == uri).expect("an event")
    }
}

#[tokio::test]
async fn levels_tell_as_much_as_they_say() {
    for (level, tells_request, tells_answer) in
        [("Metadata", false, false), ("Request", true, false), ("RequestResponse", true, true)]
    {
        let audited = Audited::new(&format!("[{{level: {level}}}]")).await;
        let secret = r#"{"metadata": {"name": "s"}, "stringData": {"a": "hunter2"}}"#;
        assert_eq!(audited.api.post("/api/v1/namespaces/default/secrets", secret).await.code, 201);
        let event = audited.last("/api/v1/namespaces/default/secrets").await;
        assert_eq!(event["level"], level);
        assert_eq!(event.get("requestObject").is_some(), tells_request, "{event}");
        assert_eq!(event.get("responseObject").is_some(), tells_answer, "{event}");
        let tells = event.to_string();
        assert_eq!(tells.contains("hunter2") || tells.contains("aHVudGVyMg"), tells_request, "{tells}");
    }
}

#[tokio::test]
async fn writes_are_told_as_they_came_and_as_they_went() {
    let audited = Audited::new(BARE).await;
    let api = &audited.api;
    let map = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}"#;
    assert_eq!(api.post(MAPS, map).await.code, 201);
    let event = audited.last(MAPS).await;
    let sent = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
    assert_eq!(event["requestObject"], sent, "before the namespace is filled in");
    assert_eq!(event["responseObject"]["data"], json!({"k": "v"}));
    let meta = &event["responseObject"]["metadata"];
    assert!(meta["uid"].is_string() && meta["namespace"] == "default", "{meta}");
    assert!(meta.get("managedFields").is_none(), "{meta}");
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));

    let path = format!("{MAPS}/a");
    assert_eq!(api.patch("merge-patch", &path, "{\"data\":\n {\"k\": \"w\"}}").await.code, 200);
    let event = audited.last(&path).await;
    assert_eq!(
        (&event["requestObject"], &event["responseObject"]["data"]["k"]),
        (&json!({"data": {"k": "w"}}), &json!("w"))
    );

    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: x}\n";
    assert_eq!(api.patch("apply", &format!("{path}?fieldManager=me"), yaml).await.code, 200);
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"l": "x"}});
    assert_eq!(audited.last(&format!("{path}?fieldManager=me")).await["requestObject"], applied);

    let line = format!("DELETE {path}");
    assert_eq!(api.send(&line, &[], r#"{"propagationPolicy": "Background"}"#).await.code, 200);
    let event = audited.last(&path).await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    assert_eq!((&event["verb"], &event["requestObject"]), (&json!("delete"), &options));
    let status = &event["responseStatus"];
    assert_eq!(
        (&status["status"], &status["code"], &status["details"]["name"]),
        (&json!("Success"), &json!(200), &json!("a"))
    );
    assert_eq!(event["responseObject"]["kind"], "Status");

    assert_eq!(api.patch("json-patch", &path, "no JSON").await.code, 400);
    let event = audited.last(&path).await;
    assert!(event.get("requestObject").is_none(), "a line stays a line: {event}");
    assert_eq!(
        (&event["responseObject"]["reason"], &event["responseStatus"]["reason"]),
        (&json!("BadRequest"), &json!("BadRequest"))
    );
}

#[tokio::test]
async fn every_form_is_told_as_json() {
    let audited = Audited::new(ALL).await;
    let api = &audited.api;
    let mut map = ConfigMap::default();
    map.meta_mut().name = "p".to_owned();
    map.data.insert("k".to_owned(), "v".to_owned());
    let body = protobuf::seal("v1", "ConfigMap", |out| out.members(&map));
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    assert_eq!(api.send(&format!("POST {MAPS}"), &headers, body).await.code, 201);
    let event = audited.last(MAPS).await;
    assert_eq!(event["requestObject"]["metadata"]["name"], "p");
    assert!(event["responseObject"]["metadata"]["managedFields"].is_array(), "{event}");

    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let metadata_list = format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    for (path, accept, kind) in [
        (format!("{MAPS}/p"), PROTOBUF, "ConfigMap"),
        (format!("{MAPS}/p"), "application/yaml", "ConfigMap"),
        (format!("{MAPS}/p"), TABLE, "Table"),
        (format!("{MAPS}/p"), metadata.as_str(), "PartialObjectMetadata"),
        (MAPS.to_owned(), "application/json", "ConfigMapList"),
        (MAPS.to_owned(), PROTOBUF, "ConfigMapList"),
        (MAPS.to_owned(), TABLE, "Table"),
        (MAPS.to_owned(), metadata_list.as_str(), "PartialObjectMetadataList"),
        (format!("{MAPS}/none"), PROTOBUF, "Status"),
        ("/apis".to_owned(), PROTOBUF, "APIGroupList"),
    ] {
        api.send(&format!("GET {path}"), &[("accept", accept)], "").await;
        let event = audited.last(&path).await;
        let object = &event["responseObject"];
        assert_eq!(object["kind"], kind, "{path} {accept}: {event}");
        assert!(event.get("requestObject").is_none());
        if kind.ends_with("List") && kind != "APIGroupList" {
            assert!(object["items"].as_array().is_some_and(|items| !items.is_empty()), "{event}");
        }
    }
    assert_eq!(api.get("/version").await.code, 200);
    assert!(audited.last("/version").await.get("responseObject").is_none(), "it is no object of the API");
}

#[tokio::test]
async fn parts_of_objects_and_actions_are_told() {
    let audited = Audited::new(BARE).await;
    let api = &audited.api;
    let pod = r#"{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(api.post(pods, pod).await.code, 201);
    let defaulted = &audited.last(pods).await["requestObject"]["spec"];
    assert_eq!(defaulted["restartPolicy"], "Always", "defaults are part of it");
    assert!(defaulted.get("serviceAccountName").is_none(), "what admission adds is not: {defaulted}");

    let binding = r#"{"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}"#;
    assert_eq!(api.post(&format!("{pods}/p/binding"), binding).await.code, 201);
    let event = audited.last(&format!("{pods}/p/binding")).await;
    assert_eq!(
        (&event["requestObject"]["kind"], &event["responseObject"]["kind"]),
        (&json!("Binding"), &json!("Status"))
    );

    let status = r#"{"metadata": {"name": "p"}, "status": {"phase": "Running"}}"#;
    assert_eq!(api.put(&format!("{pods}/p/status"), status).await.code, 200);
    let event = audited.last(&format!("{pods}/p/status")).await;
    assert_eq!(event["requestObject"]["status"]["phase"], "Running");
    assert_eq!(event["objectRef"]["subresource"], "status");

    let review = r#"{"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}"#;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(api.post(reviews, review).await.code, 201);
    let event = audited.last(reviews).await;
    assert_eq!(event["requestObject"]["kind"], "SelfSubjectAccessReview");
    assert_eq!(event["responseObject"]["status"]["allowed"], true);
}

#[tokio::test]
async fn streams_are_told_without_what_they_carry() {
    let audited = Audited::new(ALL).await;
    audited.api.config_map("a").await;
    let line = format!("GET {MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0");
    assert_eq!(audited.api.send(&line, &[], "").await.code, 200);
    let events = audited.events(&format!("{MAPS}?watch=1")).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events.iter().all(|event| event.get("responseObject").is_none()), "{events:?}");
}
