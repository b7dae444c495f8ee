//! What a quota has refused is tried again as soon as the quota has room. The retries of a queue are up to a quarter of an
//! hour apart by then, and nothing else tells of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{ResourceList, ResourceQuota};
use async_trait::async_trait;
use client::{Change, ObjectKey};
use controller::{Build, Controller, Cx, Next, Queue, ReconcileError};
use parking_lot::Mutex;

/// What the server says of a request for which a quota has no room.
const REFUSAL: &str = "exceeded quota:";

/// The keys that quotas may refuse something just now, and those that they have.
type Refused = Mutex<BTreeSet<ObjectKey>>;

struct TryingAgain<C> {
    inner: C,
    refused: Arc<Refused>,
}

/// The controller of a queue, whose keys come again when a quota of their namespace has more room than before.
pub(crate) fn trying_again(build: &mut Build<'_>, queue: &Queue, inner: impl Controller) -> Arc<dyn Controller> {
    let refused = Arc::new(Refused::default());
    let (waiting, queue) = (Arc::clone(&refused), queue.clone());
    let notice = move |change: &Change<ResourceQuota>| {
        if makes_room(change) {
            let namespace = change.key().namespace;
            let again: Vec<ObjectKey> = waiting.lock().extract_if(.., |key| key.namespace == namespace).collect();
            again.into_iter().for_each(|key| queue.add(key));
        }
    };
    drop(build.watch().observe(notice).informer());
    Arc::new(TryingAgain { inner, refused })
}

#[async_trait]
impl<C: Controller> Controller for TryingAgain<C> {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        // Before it is refused: there may be room again by the time that it is known here.
        self.refused.lock().insert(key.clone());
        let outcome = self.inner.reconcile(cx, key).await;
        if !outcome.as_ref().is_err_and(|error| error.to_string().contains(REFUSAL)) {
            self.refused.lock().remove(key);
        }
        outcome
    }
}

/// Whether less of a quota is used than before, or more of it allowed.
fn makes_room(change: &Change<ResourceQuota>) -> bool {
    let (old, new) = match change {
        Change::Added { .. } => return false,
        Change::Deleted { .. } => return true,
        Change::Updated { old, new } => (&old.status, &new.status),
    };
    old.hard.keys().any(|name| !new.hard.contains_key(name))
        || has_more(&old.hard, &new.hard)
        || has_more(&new.used, &old.used)
}

/// Whether there is more of anything than there was before.
fn has_more(before: &ResourceList, now: &ResourceList) -> bool {
    now.iter().any(|(name, amount)| *amount > *before.get(name).unwrap_or(&Quantity::default()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_machinery::object::from_value;
    use api_types::apps_v1::ReplicaSet;
    use bytes::Bytes;
    use client::fake::FakeServer;
    use client::{Transport, TransportError};
    use component_base::serving::{Body, full};
    use serde_json::{Value, json};

    use super::super::fixtures::{Running, meta, run_until_idle, selector, stored, template};
    use super::super::replica_set;
    use super::*;
    use crate::Settings;

    fn quota(hard: u32, used: u32) -> Value {
        let amounts = |pods: u32| json!({"pods": pods.to_string()});
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
            "spec": {"hard": amounts(hard)}, "status": {"hard": amounts(hard), "used": amounts(used)}})
    }

    #[test]
    fn a_quota_has_room_when_less_is_used_or_more_allowed() {
        let quota = |hard, used| Arc::new(from_value::<ResourceQuota>(&quota(hard, used)).unwrap());
        for (before, after, expected) in [
            ((3, 3), (3, 2), true),
            ((3, 2), (3, 3), false),
            ((3, 3), (4, 3), true),
            ((4, 3), (3, 3), false),
            ((3, 3), (3, 3), false),
        ] {
            let change = Change::Updated { old: quota(before.0, before.1), new: quota(after.0, after.1) };
            assert_eq!(makes_room(&change), expected, "{before:?} {after:?}");
        }
        let mut unlimited = ResourceQuota::clone(&quota(3, 3));
        unlimited.status.hard.clear();
        assert!(makes_room(&Change::Updated { old: quota(3, 3), new: Arc::new(unlimited) }));
        assert!(makes_room(&Change::Deleted { object: quota(3, 3), stale: false }));
        assert!(!makes_room(&Change::Added { object: quota(3, 2), initial: false }));
    }

    /// Refuses pods while the quota is used up.
    struct Full(FakeServer);

    #[async_trait]
    impl Transport for Full {
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
            let makes_pod = request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
            let status = &self.0.objects("v1/resourcequotas")[0]["status"];
            if !makes_pod || status["used"] != status["hard"] {
                return self.0.transport().send(request).await;
            }
            let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                "message": "pods \"web-x\" is forbidden: exceeded quota: q, requested: pods=1", "code": 403});
            let mut response = http::Response::new(full(refusal.to_string()));
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            Ok(response)
        }

        fn server(&self) -> &str {
            "https://fake"
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_made_as_soon_as_there_is_room() {
        let running = Running::start_over(&[replica_set::DESCRIPTOR], Settings::default(), |server| {
            server.put("v1/resourcequotas", quota(3, 3));
            Arc::new(Full(server.clone()))
        });
        let mut set = ReplicaSet { metadata: meta("web"), ..ReplicaSet::default() };
        (set.spec.replicas, set.spec.selector, set.spec.template) = (Some(1), selector(), template("v1"));
        running.server.put("apps/v1/replicasets", stored(&set));
        tokio::time::sleep(Duration::from_secs(700)).await;
        assert_eq!(running.count("v1/pods"), 0);
        let refused = running.requests("POST", "/pods");
        running.server.put("v1/resourcequotas", quota(3, 2));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((running.count("v1/pods"), running.requests("POST", "/pods")), (1, refused + 1));
        let adds = || {
            let text = running.metrics.text();
            let line = text.lines().find(|line| line.starts_with("workqueue_adds_total{name=\"replicaset\"}"));
            line.expect("a metric").to_owned()
        };
        run_until_idle().await;
        let before = adds();
        running.server.put("v1/resourcequotas", quota(4, 2));
        run_until_idle().await;
        assert_eq!(adds(), before, "what was made does not come again");
    }
}
