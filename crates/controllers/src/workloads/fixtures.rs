//! Objects for tests of the workload controllers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::{LabelSelector, ListOptions, ObjectMeta, OwnerReference};
use api_machinery::object::Object;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::{Container, Pod, PodCondition, PodTemplateSpec};
use base::{CancellationToken, TaskGroup};
use bytes::Bytes;
use client::fake::FakeServer;
use client::{Client, Transport, TransportError};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::{Body, full};
use component_base::{Feature, Gates};
use controller::{ControllerSet, Descriptor, Selection};
use serde_json::json;

use crate::Settings;

/// A time that many seconds after the epoch.
pub(crate) fn at(seconds: i64) -> Time {
    Time::from_unix_seconds(seconds)
}

/// Metadata in namespace `ns`; the uid is `{name}-uid`.
pub(crate) fn meta(name: &str) -> ObjectMeta {
    let labels = [("app".to_owned(), "web".to_owned())].into();
    ObjectMeta { name: name.into(), namespace: "ns".into(), uid: format!("{name}-uid"), labels, ..Default::default() }
}

/// A selector of `app=web`.
pub(crate) fn selector() -> Option<LabelSelector> {
    let match_labels = [("app".to_owned(), "web".to_owned())].into();
    Some(LabelSelector { match_labels, ..LabelSelector::default() })
}

/// A template with one container of this image.
pub(crate) fn template(image: &str) -> PodTemplateSpec {
    let mut template = PodTemplateSpec::default();
    template.metadata.labels.insert("app".into(), "web".into());
    template.spec.containers.push(Container { name: "c".into(), image: image.into(), ..Container::default() });
    template
}

/// A pod on node `n` in this phase, controlled by `owner` if one is named.
pub(crate) fn pod(name: &str, phase: &str, owner: Option<OwnerReference>) -> Pod {
    let mut pod = Pod { metadata: meta(name), ..Pod::default() };
    pod.metadata.owner_references.extend(owner);
    pod.spec.node_name = "n".into();
    pod.status.phase = phase.into();
    pod
}

/// The pod, ready since then.
pub(crate) fn ready(mut pod: Pod, since: i64) -> Pod {
    let condition = PodCondition {
        type_: "Ready".into(),
        status: "True".into(),
        last_transition_time: at(since),
        ..PodCondition::default()
    };
    pod.status.conditions.push(condition);
    pod
}

/// The pod, being deleted.
pub(crate) fn dying(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(at(1));
    pod
}

/// The object as a server stores it.
pub(crate) fn stored(object: &dyn Object) -> Value {
    object.to_value()
}

/// The gates when nobody sets any, with these on.
pub(crate) fn with(features: &[Feature]) -> Gates {
    features.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, true))
}

/// Some controllers at work on a fake server.
pub(crate) struct Running {
    /// The server.
    pub server: FakeServer,
    /// A client of it.
    pub client: Client,
    metrics: Arc<Metrics>,
    _group: TaskGroup,
}

impl Running {
    /// Starts the controllers.
    pub(crate) fn start(known: &'static [Descriptor]) -> Self {
        Self::start_with(known, Settings::default())
    }

    /// Starts the controllers with other settings.
    pub(crate) fn start_with(known: &'static [Descriptor], settings: Settings) -> Self {
        Self::start_over(known, settings, FakeServer::transport)
    }

    /// Starts the controllers with features on.
    pub(crate) fn start_gated(known: &'static [Descriptor], features: &[Feature]) -> Self {
        Self::start_gated_with(known, features, Settings::default())
    }

    /// Starts the controllers with features on and other settings.
    pub(crate) fn start_gated_with(known: &'static [Descriptor], features: &[Feature], settings: Settings) -> Self {
        Self::start_all(known, with(features), settings, FakeServer::transport)
    }

    /// Starts the controllers on a server that they reach over another transport.
    pub(crate) fn start_over(
        known: &'static [Descriptor],
        settings: Settings,
        transport: impl FnOnce(&FakeServer) -> Arc<dyn Transport>,
    ) -> Self {
        Self::start_all(known, Gates::default(), settings, transport)
    }

    /// Starts the controllers with all of that.
    pub(crate) fn start_all(
        known: &'static [Descriptor],
        gates: Gates,
        settings: Settings,
        transport: impl FnOnce(&FakeServer) -> Arc<dyn Transport>,
    ) -> Self {
        let server = FakeServer::new();
        let client = server.client_over(transport(&server));
        let mut env = crate::environment(&client, settings);
        env.gates = gates;
        let metrics = Metrics::new(MetricsOptions::default());
        env.metrics = Some(Arc::clone(&metrics));
        let set = ControllerSet::new(known, &Selection::all(), &env.gates);
        let group = TaskGroup::new("test");
        group.spawn_cancellable("controllers", async move {
            set.run(&env, CancellationToken::new()).await.unwrap();
        });
        Self { server, client, metrics, _group: group }
    }

    /// Asserts that a metric is shown like this.
    pub(crate) fn assert_shows(&self, line: &str) {
        let text = self.metrics.text();
        assert!(text.lines().any(|shown| shown == line), "{line}\nin\n{text}");
    }

    /// Whether a metric is shown that begins like this.
    pub(crate) fn shows(&self, start: &str) -> bool {
        self.metrics.text().lines().any(|shown| shown.starts_with(start))
    }

    /// Puts an object into the server.
    pub(crate) fn put(&self, resource: &str, object: &dyn Object) {
        self.server.put(resource, stored(object));
    }

    /// How many objects of a resource there are.
    pub(crate) fn count(&self, resource: &str) -> usize {
        self.server.objects(resource).len()
    }

    /// How many requests of a method there were whose path has this in it.
    pub(crate) fn requests(&self, method: &str, part: &str) -> usize {
        let asked = |request: &&String| request.starts_with(method) && request.contains(part);
        self.server.requests().iter().filter(asked).count()
    }

    /// Makes every pod ready, as kubelets would.
    pub(crate) async fn make_pods_ready(&self) {
        let pods = self.client.namespaced::<Pod>("ns");
        for mut live in pods.list(&ListOptions::default()).await.unwrap().items {
            if live.status.phase.is_empty() {
                live.status = ready(pod("x", "Running", None), 1).status;
                pods.update_status(&live).await.unwrap();
            }
        }
    }

    /// Asserts that nothing more is asked of the server.
    pub(crate) async fn assert_steady(&self) {
        run_until_idle().await;
        let before = self.server.requests();
        run_until_idle().await;
        assert_eq!(self.server.requests()[before.len()..], [] as [String; 0], "a steady state asks nothing");
    }
}

/// Lets everything happen that follows from what was done.
pub(crate) async fn run_until_idle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

/// Long enough for what does not wait for discovery to be done before it.
const DISCOVERY_TAKES: Duration = Duration::from_secs(1);

/// Answers discovery, with a few resources, and hands everything else on.
pub(crate) struct WithDiscovery(pub Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for WithDiscovery {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if matches!(request.uri().path(), "/api" | "/apis") {
            tokio::time::sleep(DISCOVERY_TAKES).await;
        }
        let (group, resources) = match request.uri().path() {
            "/api" => {
                let pods = resource("pods", "Pod", "Namespaced", &[WITHOUT_WRITES, WRITES].concat());
                let maps = resource("configmaps", "ConfigMap", "Namespaced", WITHOUT_WRITES);
                ("", [pods, maps, resource("nodes", "Node", "Cluster", WITHOUT_WRITES)].join(","))
            }
            "/apis" => ("apps", resource("replicasets", "ReplicaSet", "Namespaced", WITHOUT_WRITES)),
            _ => return self.0.send(request).await,
        };
        let list = format!(
            r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{{"metadata":
            {{"name":"{group}"}},"versions":[{{"version":"v1","freshness":"Current","resources":[{resources}]}}]}}]}}"#
        );
        let mut response = http::Response::new(full(list));
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

const WITHOUT_WRITES: &[&str] = &["create", "get", "list", "watch", "delete"];
const WRITES: &[&str] = &["patch", "update"];

fn resource(resource: &str, kind: &str, scope: &str, verbs: &[&str]) -> String {
    let verbs = format!("{verbs:?}");
    format!(r#"{{"resource":"{resource}","scope":"{scope}","responseKind":{{"kind":"{kind}"}},"verbs":{verbs}}}"#)
}

/// Takes the first pod away as soon as it is made, and has the server forget that: no watch ever tells of it.
pub(crate) struct Swallow {
    server: FakeServer,
    inner: Arc<dyn Transport>,
    is_done: AtomicBool,
}

impl Swallow {
    pub(crate) fn over(server: &FakeServer) -> Arc<dyn Transport> {
        Arc::new(Self { server: server.clone(), inner: server.transport(), is_done: AtomicBool::new(false) })
    }
}

#[async_trait::async_trait]
impl Transport for Swallow {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let makes_pod = request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
        let answer = self.inner.send(request).await;
        if makes_pod && !self.is_done.swap(true, Ordering::SeqCst) {
            for pod in self.server.objects("v1/pods") {
                self.server.remove("v1/pods", "ns", pod["metadata"]["name"].as_str().unwrap_or_default());
            }
            self.server.compact();
            self.server.cut_watches();
        }
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

/// Says of each pod that is made that it is of a version which no watch gets to.
pub(crate) struct Ahead {
    server: FakeServer,
    inner: Arc<dyn Transport>,
}

impl Ahead {
    pub(crate) fn over(server: &FakeServer) -> Arc<dyn Transport> {
        Arc::new(Self { server: server.clone(), inner: server.transport() })
    }
}

#[async_trait::async_trait]
impl Transport for Ahead {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let makes_pod = request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
        let answer = self.inner.send(request).await?;
        let made = self.server.objects("v1/pods").pop().filter(|_| makes_pod);
        let Some(mut pod) = made else { return Ok(answer) };
        pod["metadata"]["resourceVersion"] = "1000000000".into();
        Ok(answer.map(|_| full(pod.to_string())))
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

/// Refuses the first pod as a server does whose namespace is going.
pub(crate) struct Terminating {
    inner: Arc<dyn Transport>,
    is_done: AtomicBool,
}

impl Terminating {
    pub(crate) fn over(server: &FakeServer) -> Arc<dyn Transport> {
        Arc::new(Self { inner: server.transport(), is_done: AtomicBool::new(false) })
    }
}

#[async_trait::async_trait]
impl Transport for Terminating {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let makes_pod = request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
        if !makes_pod || self.is_done.swap(true, Ordering::SeqCst) {
            return self.inner.send(request).await;
        }
        let cause = json!({"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"});
        Ok(forbidden("it is terminating", &json!({"causes": [cause]})))
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

fn forbidden(message: &str, details: &Value) -> http::Response<Body> {
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": message, "details": details});
    let mut response = http::Response::new(full(refusal.to_string()));
    *response.status_mut() = http::StatusCode::FORBIDDEN;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

/// Refuses pods as a server does while the only quota is used up.
pub(crate) struct OverQuota {
    server: FakeServer,
    inner: Arc<dyn Transport>,
}

impl OverQuota {
    pub(crate) fn over(server: &FakeServer) -> Arc<dyn Transport> {
        Arc::new(Self { server: server.clone(), inner: server.transport() })
    }
}

#[async_trait::async_trait]
impl Transport for OverQuota {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let makes_pod = request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
        let status = self.server.objects("v1/resourcequotas").first().map(|quota| quota["status"].clone());
        if makes_pod && status.is_some_and(|status| status["used"] == status["hard"]) {
            return Ok(forbidden("pods \"a\" is forbidden: exceeded quota: q, requested: pods=1", &json!({})));
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}
