//! What clients see of a definition that goes: what it tells of its end, and that it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::{TaskGroup, TokioClock};
use bytes::Bytes;
use serde_json::Value;
use storage::{Backend, Key, Memory, MemoryOptions, ReadValue, TransformError, Transformed, Transformer};

use super::custom::{APPLE, APPLES, DEFINITION, DEFINITIONS, until, with_apples};
use super::harness::Api;

/// Whether a definition has this condition.
fn has(type_: &str, status: &str, reason: &str, message: &str, definition: &Value) -> bool {
    let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|own| {
        let is_told = own["message"].as_str().is_some_and(|own| own.starts_with(message));
        own["type"] == type_ && own["status"] == status && own["reason"] == reason && is_told
    })
}

/// Whether a definition tells this of its end.
fn told(reason: &'static str, message: &'static str) -> impl Fn(u16, &Value) -> bool {
    move |_, json| has("Terminating", "True", reason, message, json)
}

#[tokio::test(start_paused = true)]
async fn a_definition_tells_that_its_objects_cannot_be_read() {
    let api = with_apples().await;
    let key = storage::Key::from("/registry/example.com/apples/default/bad");
    let backend = api.server.cx().backend();
    backend.txn(&key, storage::Expect::Absent, storage::Write::put("garbage")).await.expect("a write");
    let path = format!("{DEFINITIONS}/apples.example.com");
    assert_eq!(api.delete(&path).await.code, 200);
    until(&api, &path, told("InstanceDeletionFailed", "could not list instances: ")).await;
    backend.txn(&key, storage::Expect::Any, storage::Write::Delete).await.expect("a write");
    until(&api, &path, |code, _| code == 404).await;
}

/// A store that does not take what is written of an object that goes.
struct Refusing(Arc<AtomicBool>);

#[async_trait]
impl Transformer for Refusing {
    async fn on_read(&self, _key: &Key, stored: &Bytes) -> Result<ReadValue, TransformError> {
        Ok(ReadValue { value: stored.clone(), stale: false })
    }

    async fn on_write(&self, key: &Key, value: &Bytes) -> Result<Bytes, TransformError> {
        let is_refused = String::from_utf8_lossy(key.as_bytes()).ends_with("/refused")
            && String::from_utf8_lossy(value).contains("deletionTimestamp");
        if is_refused && self.0.load(Ordering::Relaxed) {
            return Err(TransformError("the store is out of order".to_owned()));
        }
        Ok(value.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_tells_that_its_objects_cannot_be_deleted() {
    let (tasks, is_refusing) = (TaskGroup::new("store"), Arc::new(AtomicBool::new(true)));
    let memory = Memory::new(MemoryOptions::default(), TokioClock::shared(), &tasks);
    let store: Arc<dyn Backend> = Transformed::new(memory, Arc::new(Refusing(Arc::clone(&is_refusing))));
    let api = Api::over(&store, 7, |_| {}).await;
    until(&api, "/readyz", |code, _| code == 200).await;
    assert_eq!(api.post(DEFINITIONS, DEFINITION).await.code, 201);
    until(&api, APPLES, |code, _| code == 200).await;
    let refused = APPLE.replace(r#""name":"a""#, r#""name":"refused","finalizers":["example.com/stay"]"#);
    for apple in [&refused, APPLE] {
        assert_eq!(api.post(APPLES, apple).await.code, 201);
    }
    let path = format!("{DEFINITIONS}/apples.example.com");
    assert_eq!(api.delete(&path).await.code, 200);
    let stuck = told("InstanceDeletionFailed", "could not issue all deletes: ");
    let definition = until(&api, &path, stuck).await;
    assert!(definition.to_string().contains("the store is out of order"), "{definition}");
    assert_eq!(api.get(&format!("{APPLES}/a")).await.code, 404, "one that fails keeps no other");
    is_refusing.store(false, Ordering::Relaxed);
    until(&api, &format!("{APPLES}/refused"), |_, json| json["metadata"]["deletionTimestamp"].is_string()).await;
    let free = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(api.patch("merge-patch", &format!("{APPLES}/refused"), free).await.code, 200);
    until(&api, &path, |code, _| code == 404).await;
    tasks.cancel();
}

/// Definitions that have no objects of their own go at once, and tell why.
#[tokio::test(start_paused = true)]
async fn a_definition_tells_that_it_has_no_objects_of_its_own() {
    let api = with_apples().await;
    let held = DEFINITION.replace(r#""metadata": {"#, r#""metadata": {"finalizers": ["example.com/stay"], "#);
    let approved =
        r#""annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},"#;
    let never = held.replace("apples", "pears");
    let built_in = held
        .replace(r#""finalizers""#, &format!(r#"{approved} "finalizers""#))
        .replace("apples", "apiservices")
        .replace("Apple", "APIService")
        .replace("example.com\"", "apiregistration.k8s.io\"");
    let mut told = Vec::new();
    for (name, definition) in [("pears.example.com", &never), ("apiservices.apiregistration.k8s.io", &built_in)] {
        let created = api.post(DEFINITIONS, definition).await;
        assert_eq!(created.code, 201, "{}", created.text);
        let path = format!("{DEFINITIONS}/{name}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(api.delete(&path).await.code, 200);
        let is_let_go = |_, json: &Value| json["metadata"]["finalizers"] == serde_json::json!(["example.com/stay"]);
        let left = until(&api, &path, is_let_go).await;
        let conditions = left["status"]["conditions"].as_array().into_iter().flatten();
        let endings = conditions.filter(|own| own["type"] == "Terminating");
        told.extend(endings.map(|own| format!("{name} {} {}: {}", own["status"], own["reason"], own["message"])));
        let free = r#"{"metadata":{"finalizers":null}}"#;
        assert_eq!(api.patch("merge-patch", &path, free).await.code, 200);
        until(&api, &path, |code, _| code == 404).await;
    }
    let expected = [
        r#"pears.example.com "False" "NeverEstablished": "resource was never established""#,
        "apiservices.apiregistration.k8s.io \"False\" \"OverlappingBuiltInResource\": \
         \"instances overlap with built-in resources in storage\"",
    ];
    assert_eq!(told, expected);
    assert_eq!(api.get(APPLES).await.code, 200, "the other is as it was");
}

#[tokio::test(start_paused = true)]
async fn a_definition_tells_that_its_objects_do_not_go() {
    let api = with_apples().await;
    let held = APPLE.replace(r#""name":"a""#, r#""name":"held","finalizers":["example.com/stay"]"#);
    assert_eq!(api.post(APPLES, &held).await.code, 201);
    let path = format!("{DEFINITIONS}/apples.example.com");
    assert_eq!(api.delete(&path).await.code, 200);
    let going = told("InstanceDeletionInProgress", "CustomResource deletion is in progress");
    let stuck =
        told("InstanceDeletionCheck", "could not confirm zero CustomResources remaining: context deadline exceeded");
    until(&api, &path, &going).await;
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert!(going(200, &api.get(&path).await.json()), "for a minute they may go");
        until(&api, &path, &stuck).await;
        until(&api, &path, &going).await;
    }
    // Pauses become long, and what goes meanwhile is seen at once.
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    for _ in 0..10 {
        if !stuck(200, &api.get(&path).await.json()) {
            tokio::time::sleep(Duration::from_secs(9)).await;
        }
    }
    let free = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(api.patch("merge-patch", &format!("{APPLES}/held"), free).await.code, 200);
    until(&api, &path, |code, _| code == 404).await;
}
