//! What all workloads have: the scale and status subresources, lists and deletion of collections.

use serde_json::{Value, json};

use super::live::Place;
use super::object::{name_of, text};

/// A Deployment, ReplicaSet, StatefulSet or DaemonSet of pods with its own name as their label.
pub(crate) fn workload(name: &str, containers: &[Value], spec: Value) -> Value {
    let labels = json!({"app": name});
    let base = json!({"selector": {"matchLabels": labels}, "template": super::object::template(&labels, containers)});
    json!({"metadata": {"name": name, "labels": labels}, "spec": super::object::with(base, spec)})
}

/// The pods of a workload that are not about to end.
pub(crate) async fn pods_of(place: &Place, name: &str) -> Vec<Value> {
    let mut pods = place.items(&place.path(&format!("pods?labelSelector=app%3D{name}"))).await;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods
}

/// Waits until the pods of a workload satisfy a condition.
pub(crate) async fn pods_until(place: &Place, name: &str, condition: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    place
        .eventually(async || {
            let pods = pods_of(place, name).await;
            let shown = |pod: &Value| format!("{} {}", name_of(pod), text(&pod["status"]["phase"]));
            if condition(&pods) { Ok(pods) } else { Err(format!("{:?}", pods.iter().map(shown).collect::<Vec<_>>())) }
        })
        .await
}

pub(crate) fn image_of(pod: &Value) -> &str {
    text(&pod["spec"]["containers"][0]["image"])
}

/// The change of a workload's image, as a strategic merge patch.
pub(crate) fn image(container: &str, image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": container, "image": image}]}}}})
}

/// The scale can be read, replaced and patched, and the spec follows.
pub(crate) async fn scale(place: &Place, path: &str) {
    let at = format!("{path}/scale");
    let mut scale = place.get(&at).await.ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)), "{scale}");
    scale["metadata"]["resourceVersion"] = json!("");
    scale["spec"]["replicas"] = json!(2);
    assert_eq!(place.replace(&at, &scale).await.ok()["spec"]["replicas"], 2);
    assert_eq!(place.get(path).await.ok()["spec"]["replicas"], 2);
    assert_eq!(place.merge(&at, &json!({"spec": {"replicas": 3}})).await.ok()["spec"]["replicas"], 3);
    assert_eq!(place.get(path).await.ok()["spec"]["replicas"], 3);
    place.merge(&at, &json!({"spec": {"replicas": 0}})).await.ok();
}

/// The status can be read, patched and replaced, and watchers see it.
pub(crate) async fn status(place: &Place, resource: &str, name: &str) {
    let at = place.path(&format!("{resource}/{name}/status"));
    let list = place.get(&place.path(resource)).await.ok();
    let version = text(&list["metadata"]["resourceVersion"]);
    let mut watch = place.watch(&place.path(&format!("{resource}?resourceVersion={version}"))).await;
    assert_eq!(name_of(&place.get(&at).await.ok()), name);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "E2E", "message": "Set by a test"});
    let has = |object: &Value, kind: &str| name_of(object) == name && super::object::is_true(object, kind);
    place
        .eventually(async || {
            let mut object = place.get(&at).await.ok();
            let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            all.push(condition("StatusUpdate"));
            object["status"]["conditions"] = json!(all);
            match place.replace(&at, &object).await {
                answer if answer.code == 409 => Err(answer.text),
                answer => Ok(answer.ok()),
            }
        })
        .await;
    watch.until("MODIFIED", |object| has(object, "StatusUpdate")).await;
    let patch = json!({"status": {"conditions": [condition("StatusPatched")]}});
    place.merge(&at, &patch).await.ok();
    watch.until("MODIFIED", |object| has(object, "StatusPatched")).await;
}

/// The objects of a label are listed and deleted together.
pub(crate) async fn collection(place: &Place, resource: &str, objects: &[Value]) {
    let path = place.path(&format!("{resource}?labelSelector=collection%3Done"));
    for object in objects {
        let labelled = super::object::with(object.clone(), json!({"metadata": {"labels": {"collection": "one"}}}));
        place.create(resource, &labelled).await.ok();
    }
    assert_eq!(place.items(&path).await.len(), objects.len());
    place.delete_with(&path, &json!({"propagationPolicy": "Background"})).await.ok();
    place
        .eventually(async || match place.items(&path).await.len() {
            0 => Ok(()),
            left => Err(format!("{left} {resource} are left")),
        })
        .await;
}
