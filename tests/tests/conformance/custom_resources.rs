//! Kinds that come at run time: definitions and the objects of them.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of, text, version_of};
use crate::lifecycle::{contains, find, label};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of a kind of a cluster-wide resource, by the singular; fields outside the schema are kept.
pub(crate) fn definition(singular: &str, group: &str, versions: &[&str]) -> Value {
    let plural = singular.strip_suffix('y').map_or_else(|| format!("{singular}s"), |stem| format!("{stem}ies"));
    let mut kind = singular.to_owned();
    kind[..1].make_ascii_uppercase();
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, name)| {
            json!({
                "name": name, "served": true, "storage": index == 0,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "versions": versions,
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
        },
    })
}

/// Creates a definition and waits until its objects can be listed; the path of the resource.
pub(crate) async fn establish(cx: &Cx, definition: &Value) -> String {
    let made = cx.create(DEFINITIONS, definition).await.ok();
    let name = name_of(&made).to_owned();
    cx.until(&format!("{DEFINITIONS}/{name}"), |object| condition(object, "Established") == "True").await;
    let spec = &definition["spec"];
    let version = text(&spec["versions"][0]["name"]);
    let path = format!("/apis/{}/{version}/{}", text(&spec["group"]), text(&spec["names"]["plural"]));
    cx.until(&path, |list| list["items"].is_array()).await;
    path
}

/// The status of a condition; empty where there is none.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    find(&object["status"]["conditions"], "type", kind).map_or("", |condition| text(&condition["status"]))
}

/// An object of a definition.
pub(crate) fn custom(definition: &Value, name: &str) -> Value {
    let spec = &definition["spec"];
    let version = format!("{}/{}", text(&spec["group"]), text(&spec["versions"][0]["name"]));
    json!({"apiVersion": version, "kind": spec["names"]["kind"], "metadata": {"name": name}})
}

#[test]
fn custom_resource_definition_watch() {
    conform(async |cx| {
        let definition = definition("noxu", "mygroup.example.com", &["v1"]);
        let path = establish(cx, &definition).await;
        let start = version_of(&cx.get(&path).await.ok()).to_owned();
        let mut all = cx.watch(&format!("{path}?resourceVersion={start}")).await;
        let mut one = cx.watch(&format!("{path}?resourceVersion={start}&fieldSelector=metadata.name%3Da")).await;
        for name in ["a", "b"] {
            cx.create(&path, &custom(&definition, name)).await.ok();
            cx.merge(&format!("{path}/{name}"), &json!({"spec": {"changed": true}})).await.ok();
            cx.delete(&format!("{path}/{name}")).await.ok();
        }
        for name in ["a", "b"] {
            for kind in ["ADDED", "MODIFIED", "DELETED"] {
                let (found, object) = all.next().await;
                assert_eq!((found.as_str(), name_of(&object)), (kind, name));
                if name == "a" {
                    let (found, object) = one.next().await;
                    assert_eq!((found.as_str(), name_of(&object)), (kind, "a"));
                }
            }
        }
        one.silent().await;
    });
}

#[test]
fn custom_resource_definition_create() {
    conform(async |cx| {
        let definition = definition("foo", "mygroup.example.com", &["v1"]);
        let path = establish(cx, &definition).await;
        let own = format!("{DEFINITIONS}/{}", name_of(&definition));
        cx.delete(&own).await.ok();
        cx.gone(&own).await;
        cx.eventually("the end of the resource", async || (!cx.exists(&path).await).then_some(())).await;
    });
}

#[test]
fn custom_resource_definition_status_sub_resource() {
    conform(async |cx| {
        let definition = definition("foo", "mygroup.example.com", &["v1"]);
        establish(cx, &definition).await;
        let own = format!("{DEFINITIONS}/{}", name_of(&definition));
        let status = format!("{own}/status");
        let mut read = cx.get(&status).await.ok();
        assert_eq!(condition(&read, "Established"), "True");
        let updated = json!({"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from a test"});
        read["status"]["conditions"].as_array_mut().expect("conditions").push(updated);
        cx.replace(&status, &read).await.ok();
        assert_eq!(condition(&cx.get(&own).await.ok(), "StatusUpdate"), "True");
        let patch = json!([{"op": "add", "path": "/status/conditions", "value": [
            {"type": "StatusPatched", "status": "True", "reason": "E2E", "message": "Set by a patch"}]}]);
        cx.patch(&status, crate::harness::patch::JSON, &patch).await.ok();
        assert_eq!(condition(&cx.get(&own).await.ok(), "StatusPatched"), "True");
    });
}

#[test]
fn custom_resource_definition_list() {
    conform(async |cx| {
        let mut names = Vec::new();
        for singular in ["first", "second", "third"] {
            let definition = definition(singular, "list.example.com", &["v1"]);
            establish(cx, &definition).await;
            let name = name_of(&definition).to_owned();
            if singular != "third" {
                label(cx, &format!("{DEFINITIONS}/{name}"), json!({"e2e-list-test-uuid": "one"})).await;
            }
            names.push(name);
        }
        let selected = format!("{DEFINITIONS}?labelSelector=e2e-list-test-uuid%3Done");
        assert_eq!(cx.names(&selected).await, names[..2]);
        cx.delete(&selected).await.ok();
        cx.eventually("the deletion", async || cx.names(&selected).await.is_empty().then_some(())).await;
        assert!(cx.exists(&format!("{DEFINITIONS}/{}", names[2])).await);
    });
}

#[test]
fn custom_resource_definition_defaulting() {
    conform(async |cx| {
        let mut definition = definition("foo", "defaulting.example.com", &["v1"]);
        let schema = |properties: Value| json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
        let (a, b) = (json!({"type": "string", "default": "A"}), json!({"type": "string", "default": "B"}));
        definition["spec"]["versions"][0]["schema"] = schema(json!({"a": a, "b": {"type": "string"}}));
        let path = establish(cx, &definition).await;
        let made = cx.create(&path, &custom(&definition, "one")).await.ok();
        assert!(contains(&made, &json!({"a": "A"})) && made["b"].is_null(), "{made}");
        let own = format!("{DEFINITIONS}/{}", name_of(&definition));
        // A default that came after the object was stored shows when it is read.
        let versions = |properties: Value| json!([{"op": "replace", "path": "/spec/versions/0/schema", "value": schema(properties)}]);
        cx.patch(&own, crate::harness::patch::JSON, &versions(json!({"a": a, "b": b}))).await.ok();
        cx.until(&format!("{path}/one"), |object| object["b"] == "B" && object["a"] == "A").await;
        // One that is taken away no longer shows where it was never stored, and stays where it was.
        let both = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        cx.patch(&own, crate::harness::patch::JSON, &versions(both)).await.ok();
        cx.until(&format!("{path}/one"), |object| object["b"].is_null() && object["a"] == "A").await;
    });
}

#[test]
fn custom_resource_definition_discovery() {
    conform(async |cx| {
        let groups = cx.get("/apis").await.ok();
        let group = find(&groups["groups"], "name", "apiextensions.k8s.io").expect("the group");
        find(&group["versions"], "groupVersion", "apiextensions.k8s.io/v1").expect("the version");
        let group = cx.get("/apis/apiextensions.k8s.io").await.ok();
        find(&group["versions"], "version", "v1").expect("the version");
        let resources = cx.get("/apis/apiextensions.k8s.io/v1").await.ok();
        find(&resources["resources"], "name", "customresourcedefinitions").expect("the resource");
        let definition = definition("foo", "discovery.example.com", &["v1"]);
        establish(cx, &definition).await;
        cx.until("/apis", |groups| find(&groups["groups"], "name", "discovery.example.com").is_some()).await;
        let resources = cx.get("/apis/discovery.example.com/v1").await.ok();
        find(&resources["resources"], "name", "foos").expect("the resource");
    });
}
