//! Strict decoding: unknown and duplicate fields.

use api_machinery::value::Value;
use http::Method;
use serde_json::json;

use crate::custom_resources::{custom, definition, establish};
use crate::harness::{conform, patch};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const APPLY: &str = "fieldManager=field_validation_mgr&fieldValidation=Strict";

fn with_schema(group: &str) -> Value {
    let mut definition = definition("noxu", group, &["v1"]);
    let ports = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"], "items": {"type": "object",
            "required": ["containerPort", "protocol"], "properties": {
                "containerPort": {"type": "integer", "format": "int32"}, "hostIP": {"type": "string"},
                "hostPort": {"type": "integer"}, "name": {"type": "string"}, "protocol": {"type": "string"}}}});
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "cronSpec": {"type": "string", "pattern": "^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$"}, "ports": ports,
        "knownField1": {"type": "string"}}});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": spec}});
    definition
}

#[test]
fn unknown_fields_of_a_custom_resource_without_schema() {
    conform(async |cx| {
        let definition = definition("noxu", "noschema.example.com", &["v1"]);
        let path = establish(cx, &definition).await;
        let mut object = custom(&definition, "mytest");
        object["spec"] =
            json!({"foo": "foo1", "cronSpec": "* * * * */5", "ports": [{"name": "x", "containerPort": 80}]});
        cx.patch(&format!("{path}/mytest?{APPLY}"), patch::APPLY, &object).await.ok();
        object["metadata"]["name"] = "other".into();
        cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.ok();
    });
}

#[test]
fn valid_custom_resource_with_schema() {
    conform(async |cx| {
        let definition = with_schema("valid.example.com");
        let path = establish(cx, &definition).await;
        let mut object = custom(&definition, "mytest");
        object["spec"] = json!({"foo": "foo1", "cronSpec": "* * * * */5",
            "ports": [{"name": "x", "containerPort": 80, "protocol": "TCP"}]});
        cx.patch(&format!("{path}/mytest?{APPLY}"), patch::APPLY, &object).await.ok();
    });
}

#[test]
fn unknown_fields_of_a_custom_resource_fail_validation() {
    conform(async |cx| {
        let definition = with_schema("unknown.example.com");
        let path = establish(cx, &definition).await;
        let mut object = custom(&definition, "mytest");
        object["extra"] = "unknown".into();
        object["spec"] = json!({"cronSpec": "* * * * */5",
            "ports": [{"name": "x", "containerPort": 80, "protocol": "TCP", "unknownNested": 1}]});
        let refused = cx.patch(&format!("{path}/mytest?{APPLY}"), patch::APPLY, &object).await;
        assert!(refused.code >= 400);
        let text = refused.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(".extra: field not declared in schema"), "{text}");
        assert!(text.contains(".spec.ports[containerPort=80,protocol=\"TCP\"].unknownNested"), "{text}");
        let refused = cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.refused(400);
        assert!(refused.contains("unknown field \"extra\""), "{refused}");
        assert!(refused.contains("unknown field \"spec.ports[0].unknownNested\""), "{refused}");
    });
}

#[test]
fn duplicates_of_a_custom_resource() {
    conform(async |cx| {
        let definition = with_schema("duplicates.example.com");
        let path = establish(cx, &definition).await;
        let body = r#"{"apiVersion": "duplicates.example.com/v1", "kind": "Noxu", "metadata": {"name": "mytest"},
            "spec": {"knownField1": "val1", "unknown1": "a", "unknown1": "b", "knownField1": "val2"}}"#;
        let strict = format!("{path}?fieldValidation=Strict");
        let refused = cx.send_text(Method::POST, &strict, "application/json", body).await.refused(400);
        assert!(refused.contains("duplicate field \"spec.knownField1\""), "{refused}");
        assert!(refused.contains("duplicate field \"spec.unknown1\""), "{refused}");
        let apply = format!("{path}/mytest?{APPLY}");
        let refused = cx.send_text(Method::PATCH, &apply, patch::APPLY, body).await.refused(400);
        assert!(refused.contains("key \"knownField1\" already set in map"), "{refused}");
    });
}

#[test]
fn typed_object() {
    conform(async |cx| {
        let body = r#"{"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "strict", "labels": {"app": "nginx"}},
            "spec": {"unknown1": "val1", "unknownDupe": "valDupe", "unknownDupe": "valDupe2", "paused": true,
                "paused": false, "selector": {"matchLabels": {"app": "nginx"}},
                "template": {"metadata": {"labels": {"app": "nginx"}},
                    "spec": {"containers": [{"name": "nginx", "image": "nginx:latest", "unknownNested": "val1",
                        "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}}}"#;
        let path = format!("{DEPLOYMENTS}?fieldValidation=Strict");
        let refused = cx.send_text(Method::POST, &path, "application/json", body).await.refused(400);
        for part in [
            "strict decoding error",
            "unknown field \"spec.unknown1\"",
            "unknown field \"spec.unknownDupe\"",
            "duplicate field \"spec.paused\"",
            "unknown field \"spec.template.spec.containers[0].unknownNested\"",
            "duplicate field \"spec.template.spec.containers[0].imagePullPolicy\"",
        ] {
            assert!(refused.contains(part), "{part} is not in {refused}");
        }
        let apply = format!("{DEPLOYMENTS}/strict?{APPLY}");
        cx.send_text(Method::PATCH, &apply, patch::APPLY, body).await.refused(400);
    });
}

#[test]
fn unknown_metadata() {
    conform(async |cx| {
        let mut definition = with_schema("metadata.example.com");
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["embeddedObj"] = json!({
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {"type": "object"}}});
        let path = establish(cx, &definition).await;
        let mut object = custom(&definition, "mytest");
        object["metadata"]["unknownMeta"] = "foo".into();
        object["embeddedObj"] = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "my-cm", "namespace": "my-ns", "unknownEmbeddedMeta": "foo"}});
        let refused = cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.refused(400);
        assert!(refused.contains("unknown field \"metadata.unknownMeta\""), "{refused}");
        assert!(refused.contains("unknown field \"embeddedObj.metadata.unknownEmbeddedMeta\""), "{refused}");
        let refused = cx.patch(&format!("{path}/mytest?{APPLY}"), patch::APPLY, &object).await;
        assert!(refused.code >= 400);
        let text = refused.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains("unknownMeta"), "{text}");
    });
}

#[test]
fn typed_unknown_metadata() {
    conform(async |cx| {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "strict", "unknownMeta": "unknownVal", "labels": {"app": "nginx"}},
            "spec": {"selector": {"matchLabels": {"app": "nginx"}}, "template": {
                "metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}},
        });
        let refused = cx.create(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), &object).await.refused(400);
        assert!(refused.contains("unknown field \"metadata.unknownMeta\""), "{refused}");
        let refused = cx.patch(&format!("{DEPLOYMENTS}/strict?{APPLY}"), patch::APPLY, &object).await;
        assert!(refused.code >= 400);
        let text = refused.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(".metadata.unknownMeta: field not declared in schema"), "{text}");
    });
}
