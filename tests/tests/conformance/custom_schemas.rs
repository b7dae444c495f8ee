//! The published OpenAPI of custom kinds. What kubectl makes of it is tested where there is a kubectl.

use api_machinery::value::Value;
use serde_json::json;

use crate::custom_resources::{DEFINITIONS, custom, definition, establish};
use crate::harness::{Cx, conform, name_of, patch};

async fn published(cx: &Cx, name: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let document = cx.until("/openapi/v2", |document| condition(&document["definitions"][name])).await;
    document["definitions"][name].clone()
}

fn is_there(schema: &Value) -> bool {
    schema.is_object()
}

#[test]
fn openapi_publish_stop_serving_version() {
    conform(async |cx| {
        let definition = definition("foo", "multi.example.com", &["v6alpha1", "v5"]);
        establish(cx, &definition).await;
        let kept = published(cx, "com.example.multi.v6alpha1.Foo", is_there).await;
        published(cx, "com.example.multi.v5.Foo", is_there).await;
        let body = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
        cx.patch(&format!("{DEFINITIONS}/{}", name_of(&definition)), patch::JSON, &body).await.ok();
        published(cx, "com.example.multi.v5.Foo", Value::is_null).await;
        assert_eq!(published(cx, "com.example.multi.v6alpha1.Foo", is_there).await, kept);
    });
}

#[test]
fn openapi_publish_version_rename() {
    conform(async |cx| {
        let definition = definition("foo", "rename.example.com", &["v2", "v3"]);
        establish(cx, &definition).await;
        published(cx, "com.example.rename.v3.Foo", is_there).await;
        let body = json!([{"op": "replace", "path": "/spec/versions/1/name", "value": "v4"}]);
        cx.patch(&format!("{DEFINITIONS}/{}", name_of(&definition)), patch::JSON, &body).await.ok();
        published(cx, "com.example.rename.v4.Foo", is_there).await;
        published(cx, "com.example.rename.v3.Foo", Value::is_null).await;
        published(cx, "com.example.rename.v2.Foo", is_there).await;
    });
}

#[test]
fn openapi_publish_with_preserve_unknown_fields_at_root() {
    conform(async |cx| {
        let definition = definition("foo", "unknown-at-root.example.com", &["v1"]);
        let path = establish(cx, &definition).await;
        let schema = published(cx, "com.example.unknown-at-root.v1.Foo", is_there).await;
        assert!(schema["properties"].is_null(), "clients would refuse all other fields: {schema}");
        assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Foo");
        let mut object = custom(&definition, "a");
        object["anything"] = json!({"goes": [1, 2]});
        let made = cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.ok();
        assert_eq!(made["anything"], object["anything"]);
    });
}

#[test]
fn openapi_publish_with_preserve_unknown_fields_in_embedded_object() {
    conform(async |cx| {
        let mut definition = definition("foo", "unknown-in-nested.example.com", &["v1"]);
        let nested = json!({"type": "object", "description": "Specification of Foo",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
            "type": "object", "properties": {"spec": nested}});
        let path = establish(cx, &definition).await;
        let schema = published(cx, "com.example.unknown-in-nested.v1.Foo", is_there).await;
        assert_eq!(schema["properties"]["spec"]["description"], "Specification of Foo", "{schema}");
        let mut object = custom(&definition, "a");
        object["spec"] = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "b": 1});
        let made = cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.ok();
        assert_eq!(made["spec"], object["spec"]);
    });
}

#[test]
fn openapi_publish_with_validation_schema() {
    conform(async |cx| {
        let mut definition = definition("foo", "foo.example.com", &["v1"]);
        let bars = json!({"type": "array", "description": "List of Bars and their specs.", "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "description": "Name of Bar."}, "age": {"type": "string"}}}});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
            "type": "object", "description": "Foo CRD for Testing",
            "properties": {"spec": {"type": "object", "properties": {"bars": bars}}}});
        let path = establish(cx, &definition).await;
        let schema = published(cx, "com.example.foo.v1.Foo", is_there).await;
        assert_eq!(schema["description"], "Foo CRD for Testing");
        let bars = &schema["properties"]["spec"]["properties"]["bars"];
        assert_eq!(bars["items"]["required"], json!(["name"]), "{bars}");
        assert_eq!(
            schema["properties"]["metadata"]["$ref"],
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
        let strict = format!("{path}?fieldValidation=Strict");
        let with = |spec: Value| {
            let mut object = custom(&definition, "a");
            object["spec"] = spec;
            object
        };
        let refused = cx.create(&strict, &with(json!({"bars": [{"name": "x", "feeling": "u"}]}))).await.refused(400);
        assert!(refused.contains("unknown field \"spec.bars[0].feeling\""), "{refused}");
        let refused = cx.create(&strict, &with(json!({"bars": [{"age": "10"}]}))).await.refused(422);
        assert!(refused.contains("spec.bars[0].name: Required value"), "{refused}");
        cx.create(&strict, &with(json!({"bars": [{"name": "x", "age": "10"}]}))).await.ok();
    });
}

#[test]
fn openapi_publish_with_preserve_unknown_fields_in_object() {
    conform(async |cx| {
        let mut definition = definition("foo", "empty.example.com", &["v1"]);
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
            "type": "object", "description": "preserve-unknown-properties at root",
            "x-kubernetes-preserve-unknown-fields": true, "properties": {"spec": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}});
        let path = establish(cx, &definition).await;
        let schema = published(cx, "com.example.empty.v1.Foo", is_there).await;
        assert!(schema["properties"].is_null(), "{schema}");
        let path_v3 = "/openapi/v3/apis/empty.example.com/v1";
        let document = cx.until(path_v3, |document| document["components"]["schemas"].is_object()).await;
        let schema = &document["components"]["schemas"]["com.example.empty.v1.Foo"];
        assert_eq!(schema["description"], "preserve-unknown-properties at root");
        let mut object = custom(&definition, "a");
        object["spec"] = json!({"dummy": {"deep": [{}]}});
        object["more"] = "1".into();
        let made = cx.create(&format!("{path}?fieldValidation=Strict"), &object).await.ok();
        assert_eq!((&made["spec"], &made["more"]), (&object["spec"], &object["more"]));
    });
}

#[test]
fn openapi_publish_varying_groups() {
    conform(async |cx| {
        establish(cx, &definition("foo", "one.example.com", &["v1"])).await;
        establish(cx, &definition("foo", "two.example.com", &["v1"])).await;
        published(cx, "com.example.one.v1.Foo", is_there).await;
        published(cx, "com.example.two.v1.Foo", is_there).await;
    });
}

#[test]
fn openapi_publish_varying_kinds() {
    conform(async |cx| {
        establish(cx, &definition("foo", "kinds.example.com", &["v1"])).await;
        establish(cx, &definition("bar", "kinds.example.com", &["v1"])).await;
        published(cx, "com.example.kinds.v1.Foo", is_there).await;
        published(cx, "com.example.kinds.v1.Bar", is_there).await;
    });
}

#[test]
fn openapi_publish_varying_versions() {
    conform(async |cx| {
        establish(cx, &definition("foo", "versions.example.com", &["v2"])).await;
        establish(cx, &definition("bar", "versions.example.com", &["v3"])).await;
        published(cx, "com.example.versions.v2.Foo", is_there).await;
        published(cx, "com.example.versions.v3.Bar", is_there).await;
    });
}
