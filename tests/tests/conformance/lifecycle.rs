//! What every resource of the API does: it is discoverable, and takes all verbs, with what watchers see of it.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, name_of, patch, text, version_of};

/// The verbs that discovery shows of an ordinary resource.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A resource and an object of it.
pub(crate) struct Lifecycle<'a> {
    /// Such as `networking.k8s.io`; empty for core.
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    /// Empty for a resource of the cluster.
    pub(crate) namespace: &'a str,
    /// The kind and the content; the name and labels are given by the test.
    pub(crate) object: Value,
    /// What is written to status by a merge patch, where there is such a subresource.
    pub(crate) status: Option<Value>,
}

impl Lifecycle<'_> {
    /// `/api/v1` or `/apis/GROUP/v1`.
    pub(crate) fn version_path(&self) -> String {
        if self.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}/v1", self.group) }
    }

    /// The collection in the namespace.
    pub(crate) fn collection(&self) -> String {
        match self.namespace {
            "" => self.everywhere(),
            namespace => format!("{}/namespaces/{namespace}/{}", self.version_path(), self.resource),
        }
    }

    /// The collection over all namespaces.
    fn everywhere(&self) -> String {
        format!("{}/{}", self.version_path(), self.resource)
    }

    fn named(&self, name: &str) -> Value {
        let mut object = self.object.clone();
        object["metadata"]["name"] = name.into();
        object["metadata"]["labels"]["special-label"] = "lifecycle".into();
        object
    }

    /// The whole life.
    pub(crate) async fn run(&self, cx: &Cx) {
        self.is_discoverable(cx).await;
        let collection = self.collection();
        let selected = format!("{collection}?labelSelector=special-label%3Dlifecycle");
        let start = cx.get(&selected).await.ok();
        assert_eq!(start["items"].as_array().map_or(0, Vec::len), 0, "nothing is there yet");
        let mut watch = cx.watch(&format!("{selected}&resourceVersion={}", version_of(&start))).await;

        let names = ["lifecycle-a", "lifecycle-b", "lifecycle-c"];
        for name in names {
            let made = cx.create(&collection, &self.named(name)).await.ok();
            assert_eq!(name_of(&made), name);
            assert!(!text(&made["metadata"]["uid"]).is_empty());
        }
        cx.create(&collection, &self.named(names[0])).await.refused(409);
        for name in names {
            watch.until("ADDED", |object| name_of(object) == name).await;
        }
        let path = format!("{collection}/{}", names[0]);
        assert_eq!(name_of(&cx.get(&path).await.ok()), names[0]);
        assert_eq!(cx.names(&selected).await, names);
        let everywhere = format!("{}?labelSelector=special-label%3Dlifecycle", self.everywhere());
        assert_eq!(cx.names(&everywhere).await, names);

        self.change(cx, &path).await;
        watch.until("MODIFIED", |object| annotation(object, "patched") == "true").await;
        watch.until("MODIFIED", |object| annotation(object, "updated") == "true").await;
        if let Some(status) = &self.status {
            self.change_status(cx, &path, status).await;
        }

        cx.delete(&path).await.ok();
        cx.gone(&path).await;
        watch.until("DELETED", |object| name_of(object) == names[0]).await;
        assert_eq!(cx.names(&selected).await, names[1..]);
        cx.delete(&selected).await.ok();
        for name in &names[1..] {
            cx.gone(&format!("{collection}/{name}")).await;
            watch.until("DELETED", |object| name_of(object) == *name).await;
        }
    }

    async fn is_discoverable(&self, cx: &Cx) {
        if !self.group.is_empty() {
            let groups = cx.get("/apis").await.ok();
            let group = find(&groups["groups"], "name", self.group).expect("the group is listed");
            find(&group["versions"], "version", "v1").expect("v1 is listed");
            let group = cx.get(&format!("/apis/{}", self.group)).await.ok();
            find(&group["versions"], "version", "v1").expect("v1 is in the group's own document");
        }
        let resources = cx.get(&self.version_path()).await.ok();
        let own = find(&resources["resources"], "name", self.resource).expect("the resource is listed");
        let verbs: Vec<&str> = own["verbs"].as_array().into_iter().flatten().map(text).collect();
        for verb in VERBS {
            assert!(verbs.contains(verb), "{verb} is not among {verbs:?}");
        }
        if self.status.is_some() {
            let status = format!("{}/status", self.resource);
            find(&resources["resources"], "name", &status).expect("the status subresource is listed");
        }
    }

    /// A patch and an update, each of which stays.
    async fn change(&self, cx: &Cx, path: &str) {
        let body = json!({"metadata": {"annotations": {"patched": "true"}}});
        let patched = cx.merge(path, &body).await.ok();
        assert_eq!(annotation(&patched, "patched"), "true");
        let mut object = cx.get(path).await.ok();
        object["metadata"]["annotations"]["updated"] = "true".into();
        let stale = object.clone();
        let updated = cx.replace(path, &object).await.ok();
        assert_eq!(annotation(&updated, "updated"), "true");
        assert_eq!(annotation(&updated, "patched"), "true");
        let mut stale = stale;
        stale["metadata"]["annotations"]["updated"] = "late".into();
        cx.replace(path, &stale).await.refused(409);
        let read = cx.get(path).await.ok();
        assert_eq!(annotation(&read, "updated"), "true");
    }

    /// Status is read, patched and updated by way of its subresource.
    async fn change_status(&self, cx: &Cx, path: &str, status: &Value) {
        let own = format!("{path}/status");
        assert_eq!(name_of(&cx.get(&own).await.ok()), name_of(&cx.get(path).await.ok()));
        let body = json!({"metadata": {"annotations": {"patchedstatus": "true"}}, "status": status});
        let patched = cx.merge(&own, &body).await.ok();
        assert!(contains(&patched["status"], status), "{} lacks {status}", patched["status"]);
        let mut object = cx.get(&own).await.ok();
        object["metadata"]["annotations"]["updatedstatus"] = "true".into();
        let updated = cx.replace(&own, &object).await.ok();
        assert!(contains(&updated["status"], status), "{}", updated["status"]);
        assert_eq!(annotation(&updated, "updatedstatus"), "true");
    }
}

/// The annotation of an object; empty where there is none.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    text(&object["metadata"]["annotations"][name])
}

/// The item of a list whose member has this value.
pub(crate) fn find<'a>(list: &'a Value, member: &str, value: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| text(&item[member]) == value)
}

/// Whether everything that is wanted is there, and equal.
pub(crate) fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| contains(found, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| contains(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}

/// A strategic patch of labels.
pub(crate) async fn label(cx: &Cx, path: &str, labels: Value) -> Value {
    cx.patch(path, patch::STRATEGIC, &json!({"metadata": {"labels": labels}})).await.ok()
}
