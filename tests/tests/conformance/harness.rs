//! What every test stands on: a control plane in one process on paused time, and requests in JSON as any client would
//! send them.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use api_machinery::value::Value;
use bytes::{Bytes, BytesMut};
use client::{Body, BoxError, Client, ClientError, RawResponse, Request};
use component_base::Gates;
use http::{HeaderName, Method};
use http_body_util::BodyExt as _;
use serde_json::json;
use testing::{Cluster, RealEtcd, ServerConfig, Shape, Store};

/// How long, in the cluster's time, anything may take to come about.
const PATIENCE: Duration = Duration::from_secs(400);
const POLL: Duration = Duration::from_millis(500);
/// How long a watch may be silent before an awaited event counts as missing.
const SILENCE: Duration = Duration::from_secs(60);

const JSON: &str = "application/json";

/// Runs one test against a cluster of its own, on each store.
pub(crate) fn conform(test: impl AsyncFn(&Cx)) {
    run(RealEtcd::shared, &Gates::default(), |_| {}, test);
}

/// Runs one test against a cluster all of whose components have these gates, and whose server serves everything.
pub(crate) fn conform_gated(gates: &Gates, test: impl AsyncFn(&Cx)) {
    run(RealEtcd::shared, gates, |config| config.disabled.clear(), test);
}

/// Runs one test that needs the store to be compacted.
pub(crate) fn conform_compacted(test: impl AsyncFn(&Cx)) {
    run(RealEtcd::alone, &Gates::default(), |_| {}, test);
}

/// Runs one test against a cluster whose server signs service account tokens.
pub(crate) fn conform_with_tokens(test: impl AsyncFn(&Cx)) {
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("sa.key");
    let private = pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).and_then(|key| key.to_pem());
    std::fs::write(&key, private.expect("a key")).expect("a file");
    let configure = |config: &mut ServerConfig| {
        let accounts = &mut config.service_accounts;
        accounts.issuers = vec!["https://kubernetes.default.svc".to_owned()];
        accounts.api_audiences.clone_from(&accounts.issuers);
        accounts.key_files = vec![key.clone()];
        accounts.signing_key_file = Some(key.clone());
    };
    run(RealEtcd::shared, &Gates::default(), configure, test);
}

/// Plays the test on the stores that `COXSWAIN_STORES` names; without it, on each.
fn run(
    etcd: impl FnOnce() -> Result<Option<Arc<RealEtcd>>, BoxError>,
    gates: &Gates,
    configure: impl Fn(&mut ServerConfig),
    test: impl AsyncFn(&Cx),
) {
    let named = std::env::var("COXSWAIN_STORES").unwrap_or_else(|_| "memory,embedded,etcd".to_owned());
    let named: Vec<&str> = named.split(',').collect();
    if named.contains(&"memory") {
        run_on(&Store::Memory, gates, &configure, &test);
    }
    if named.contains(&"embedded") {
        let directory = tempfile::tempdir().expect("a directory");
        run_on(&Store::Embedded(directory.path().to_owned()), gates, &configure, &test);
    }
    // Where there is no etcd, the test counts as skipped.
    if named.contains(&"etcd")
        && let Some(etcd) = etcd().expect("a runtime for etcd")
    {
        run_on(&Store::Etcd(etcd), gates, &configure, &test);
    }
}

#[expect(clippy::print_stdout, reason = "a failed test shows on which store")]
fn run_on(store: &Store, gates: &Gates, configure: &impl Fn(&mut ServerConfig), test: &impl AsyncFn(&Cx)) {
    println!("on {store}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let cluster = Cluster::gated(store, Shape::SINGLE, 1, gates, configure).await.expect("the cluster starts");
        let cx = Cx { cluster };
        test(&cx).await;
        cx.cluster.shutdown().await;
    });
}

/// The cluster under test.
pub(crate) struct Cx {
    cluster: Cluster,
}

/// An answer of the server, whatever its code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.code < 300, "{}: {}", self.code, self.body);
        self.body
    }

    /// The message of a refusal with this code.
    #[track_caller]
    pub(crate) fn refused(self, code: u16) -> String {
        assert_eq!(self.code, code, "{}", self.body);
        text(&self.body["message"]).to_owned()
    }
}

/// The kind of a patch, by its media type.
pub(crate) mod patch {
    pub(crate) const JSON: &str = "application/json-patch+json";
    pub(crate) const MERGE: &str = "application/merge-patch+json";
    pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
    pub(crate) const APPLY: &str = "application/apply-patch+yaml";
}

impl Cx {
    /// The administrator's client.
    pub(crate) fn client(&self) -> &Client {
        self.cluster.admin()
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        match self.client().send(request).await {
            Ok(RawResponse { status, body, .. }) => {
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                Answer { code: status.as_u16(), body }
            }
            Err(ClientError::Api(error)) => refusal(&error),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    async fn write(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Answer {
        let request = Request::new(method, path).accept(JSON);
        let request = match body {
            Some(body) => request.body(media, body.to_string()),
            None => request,
        };
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path)).await
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::POST, path, JSON, Some(body)).await
    }

    pub(crate) async fn replace(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::PUT, path, JSON, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        self.write(Method::PATCH, path, kind, Some(body)).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, patch::MERGE, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.write(Method::DELETE, path, JSON, None).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.write(Method::DELETE, path, JSON, Some(options)).await
    }

    /// A body in a text of any form, such as one with duplicate members.
    pub(crate) async fn send_text(&self, method: Method, path: &str, media: &str, body: &str) -> Answer {
        self.send(Request::new(method, path).accept(JSON).body(media, body.to_owned())).await
    }

    /// Sends a request as somebody else.
    pub(crate) async fn send_as(&self, user: &str, request: Request) -> Answer {
        self.send(request.header(HeaderName::from_static("impersonate-user"), user)).await
    }

    /// A new namespace, once pods can run in it.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        let body = json!({"metadata": {"name": name, "labels": {"e2e": "yes"}}});
        self.create("/api/v1/namespaces", &body).await.ok();
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        self.eventually("the default service account", async || self.exists(&account).await.then_some(())).await;
        name.to_owned()
    }

    pub(crate) async fn exists(&self, path: &str) -> bool {
        let answer = self.get(path).await;
        assert!(answer.code == 200 || answer.code == 404, "{path}: {} {}", answer.code, answer.body);
        answer.code == 200
    }

    /// The items of a list.
    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        let mut list = self.get(path).await.ok();
        match list["items"].take() {
            Value::Array(items) => items,
            // A list without items says so by null or by nothing.
            _ => Vec::new(),
        }
    }

    /// The names of the items of a list.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        self.items(path).await.iter().map(|item| name_of(item).to_owned()).collect()
    }

    /// Waits until the probe finds something.
    pub(crate) async fn eventually<T>(&self, what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "{what} did not come about");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until there is no such object.
    pub(crate) async fn gone(&self, path: &str) {
        self.eventually(&format!("the end of {path}"), async || (!self.exists(path).await).then_some(())).await;
    }

    /// Waits until the object satisfies the condition.
    pub(crate) async fn until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if answer.code == 200 && condition(&answer.body) {
                return answer.body;
            }
            assert!(tokio::time::Instant::now() < deadline, "{path} stays {}", answer.body);
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whether the condition goes on holding for a while.
    pub(crate) async fn stays(&self, what: &str, during: Duration, condition: impl AsyncFn() -> bool) {
        let end = tokio::time::Instant::now() + during;
        while tokio::time::Instant::now() < end {
            assert!(condition().await, "{what} did not last");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Watches a collection; the path carries the selectors and the version to start after.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let separator = if path.contains('?') { '&' } else { '?' };
        let request = Request::get(format!("{path}{separator}watch=true"));
        match self.client().stream(request).await {
            Ok(response) => Watch { body: response.into_body(), read: BytesMut::new() },
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

fn refusal(error: &ApiError) -> Answer {
    let body = json!({"code": error.code, "reason": error.reason, "message": error.message,
        "metadata": {"continue": error.continue_token}});
    Answer { code: error.code, body }
}

/// A running watch.
pub(crate) struct Watch {
    body: Body,
    read: BytesMut,
}

impl Watch {
    /// The next event: its type and object. Fails the test when none comes.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        match tokio::time::timeout(SILENCE, self.event()).await {
            Ok(Some(event)) => event,
            Ok(None) => panic!("the watch ended"),
            Err(_) => panic!("no event came"),
        }
    }

    /// Nothing comes for a while.
    pub(crate) async fn silent(&mut self) {
        if let Ok(event) = tokio::time::timeout(Duration::from_secs(10), self.event()).await {
            panic!("an event came: {event:?}");
        }
    }

    /// Reads on until an event of this type is about an object that satisfies the condition.
    pub(crate) async fn until(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (found, object) = self.next().await;
            if found == kind && condition(&object) {
                return object;
            }
        }
    }

    async fn event(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Bytes = self.read.split_to(end + 1).freeze();
                let mut event: Value = serde_json::from_slice(&line).expect("an event is JSON");
                let kind = text(&event["type"]).to_owned();
                return Some((kind, event["object"].take()));
            }
            let frame = self.body.frame().await?.expect("the watch goes on");
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}

/// A text of an object; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn name_of(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// The version of an object or of a list.
pub(crate) fn version_of(object: &Value) -> &str {
    text(&object["metadata"]["resourceVersion"])
}
