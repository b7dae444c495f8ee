//! Requests in JSON as any client would send them, and waiting for what must come about by itself.

use std::path::Path;
use std::time::Duration;

use base::{Rng, SystemClock, TaskGroup};
use bytes::{Bytes, BytesMut};
use client::{Body, Client, ClientConfig, ClientCx, ClientError, RawResponse, Request};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tokio::time::Instant;

use super::object::{is_true, name_of, phase};
use super::socket;
use crate::cluster::{Cluster, KUBECTL};

/// How long anything may take to come about on a machine that has a lot else to do.
const PATIENCE: Duration = Duration::from_secs(150);
const POLL: Duration = Duration::from_millis(500);

const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A namespace of the cluster.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    pub(crate) kubectl: Kubectl,
}

/// An answer of the server, whatever its code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.code < 300, "{}: {}", self.code, self.text);
        self.body
    }
}

impl Place {
    /// Makes the namespace anew, once pods can run in it.
    pub(crate) async fn make(cluster: &Cluster, namespace: &str) -> Self {
        let place = Self {
            client: client(&cluster.root.join("etc/kubernetes/admin.conf")),
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            kubectl: cluster.kubectl(KUBECTL[0], namespace),
        };
        place.another(namespace).await;
        place
    }

    /// Makes another namespace anew.
    pub(crate) async fn another(&self, namespace: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}");
        if self.get(&path).await.code == 200 {
            self.delete(&path).await;
            self.gone(&path).await;
        }
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await.ok();
        let place = Self {
            namespace: namespace.to_owned(),
            kubectl: self.cluster.kubectl(KUBECTL[0], namespace),
            ..self.clone()
        };
        place.until(&place.path("serviceaccounts/default"), |_| true).await;
        place.until(&place.path("configmaps/kube-root-ca.crt"), |_| true).await;
        place
    }

    pub(crate) async fn remove(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.delete(&path).await;
        self.gone(&path).await;
    }

    /// The path of a resource of the namespace: its plural, and what may come behind it.
    pub(crate) fn path(&self, resource: &str) -> String {
        let plural = resource.split(['/', '?']).next().unwrap_or_default();
        let group = match plural {
            "deployments" | "replicasets" | "daemonsets" | "statefulsets" | "controllerrevisions" => "apis/apps/v1",
            "jobs" | "cronjobs" => "apis/batch/v1",
            "endpointslices" => "apis/discovery.k8s.io/v1",
            "poddisruptionbudgets" => "apis/policy/v1",
            _ => "api/v1",
        };
        format!("/{group}/namespaces/{}/{resource}", self.namespace)
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        match self.client.send(request).await {
            Ok(RawResponse { status, body, .. }) => {
                let text = String::from_utf8_lossy(&body).into_owned();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                Answer { code: status.as_u16(), text, body }
            }
            Err(ClientError::Api(error)) => {
                let body = json!({"code": error.code, "reason": error.reason, "message": error.message});
                Answer { code: error.code, text: error.message.clone(), body }
            }
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

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::POST, path, JSON, Some(body)).await
    }

    /// Makes an object of the namespace.
    pub(crate) async fn create(&self, resource: &str, body: &Value) -> Answer {
        self.post(&self.path(resource), body).await
    }

    pub(crate) async fn replace(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::PUT, path, JSON, Some(body)).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::PATCH, path, MERGE, Some(body)).await
    }

    pub(crate) async fn strategic(&self, path: &str, body: &Value) -> Answer {
        self.write(Method::PATCH, path, STRATEGIC, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.write(Method::DELETE, path, JSON, None).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.write(Method::DELETE, path, JSON, Some(options)).await
    }

    /// The items of a list.
    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        match self.get(path).await.ok()["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// What a container printed.
    pub(crate) async fn log(&self, pod: &str, container: &str) -> String {
        let answer = self.get(&self.path(&format!("pods/{pod}/log?container={container}"))).await;
        assert_eq!(answer.code, 200, "{pod}/{container}: {}", answer.text);
        answer.text
    }

    /// Waits until a container has printed what is wanted.
    pub(crate) async fn log_until(&self, pod: &str, container: &str, wanted: impl Fn(&str) -> bool) -> String {
        let path = self.path(&format!("pods/{pod}/log?container={container}"));
        self.eventually(async || {
            let answer = self.get(&path).await;
            if answer.code == 200 && wanted(&answer.text) { Ok(answer.text) } else { Err(answer.text) }
        })
        .await
    }

    /// Waits until the object satisfies the condition.
    pub(crate) async fn until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.eventually(async || {
            let answer = self.get(path).await;
            if answer.code == 200 && condition(&answer.body) {
                return Ok(answer.body);
            }
            Err(format!("{path} stays {}", answer.text))
        })
        .await
    }

    /// Tries again until it succeeds; the error says what is there instead.
    pub(crate) async fn eventually<T>(&self, probe: impl AsyncFn() -> Result<T, String>) -> T {
        let start = Instant::now();
        loop {
            match probe().await {
                Ok(found) => return found,
                Err(have) => assert!(start.elapsed() < PATIENCE, "it did not come about: {have}"),
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until there is no such object.
    pub(crate) async fn gone(&self, path: &str) {
        self.eventually(async || match self.get(path).await {
            Answer { code: 404, .. } => Ok(()),
            answer => Err(format!("{path} is {}", answer.text)),
        })
        .await;
    }

    /// Waits until an object that was deleted has gone, even if another has taken its name already.
    pub(crate) async fn gone_or_new(&self, path: &str) {
        self.eventually(async || match self.get(path).await {
            answer if answer.code == 404 || answer.body["metadata"]["deletionTimestamp"].is_null() => Ok(()),
            answer => Err(format!("{path} is {}", answer.text)),
        })
        .await;
    }

    /// Whether the condition goes on holding for a while.
    pub(crate) async fn stays(&self, path: &str, seconds: u64, condition: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let found = self.get(path).await.ok();
            assert!(condition(&found), "{path} became {found}");
            if Instant::now() >= end {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Makes a pod and waits until it is ready.
    pub(crate) async fn ready(&self, pod: &Value) -> Value {
        let made = self.create("pods", pod).await.ok();
        let path = self.path(&format!("pods/{}", name_of(&made)));
        self.until(&path, |pod| is_true(pod, "Ready")).await
    }

    /// Waits until a pod has run to its end.
    pub(crate) async fn ended(&self, path: &str) -> Value {
        self.until(path, |pod| ["Succeeded", "Failed"].contains(&phase(pod))).await
    }

    /// Makes a pod, waits for its end, and gives the pod and what its container printed.
    pub(crate) async fn result(&self, pod: &Value, container: &str) -> (Value, String) {
        let made = self.create("pods", pod).await.ok();
        let name = name_of(&made);
        let ended = self.ended(&self.path(&format!("pods/{name}"))).await;
        let log = self.log(name, container).await;
        (ended, log.trim().to_owned())
    }

    /// Runs a script in a container, which must succeed, and gives what it prints.
    pub(crate) async fn exec(&self, pod: &str, container: &str, script: &str) -> String {
        let outcome = self.try_exec(pod, container, script).await;
        outcome.unwrap_or_else(|error| panic!("{script:?} in {container} of {pod}: {error}"))
    }

    /// As [`Self::exec`], whatever its outcome; the error says what went wrong.
    pub(crate) async fn try_exec(&self, pod: &str, container: &str, script: &str) -> Result<String, String> {
        let script = escaped(script);
        let query = format!("container={container}&command=sh&command=-c&command={script}&stdout=true&stderr=true");
        let path = self.path(&format!("pods/{pod}/exec?{query}"));
        let messages = socket::talk(self.client.config(), &path, "v4.channel.k8s.io").await?;
        let [out, err, end] = [1, 2, 3].map(|number| socket::channel(&messages, number).trim().to_owned());
        if end.contains("\"status\":\"Success\"") { Ok(out) } else { Err(format!("{out} {err} {end}")) }
    }

    /// Makes a pod that several checks of a namespace use, unless it is there, and waits until it is ready.
    pub(crate) async fn shared(&self, pod: &Value) -> Value {
        let answer = self.create("pods", pod).await;
        assert!(answer.code < 300 || answer.code == 409, "{}", answer.text);
        let path = self.path(&format!("pods/{}", name_of(pod)));
        self.until(&path, |pod| is_true(pod, "Ready")).await
    }

    /// Watches a collection; the path carries the selectors and the version to start after.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let separator = if path.contains('?') { '&' } else { '?' };
        match self.client.stream(Request::get(format!("{path}{separator}watch=true"))).await {
            Ok(response) => Watch { body: response.into_body(), read: BytesMut::new() },
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// A text as part of a query.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// A client without limits.
fn client(kubeconfig: &Path) -> Client {
    let config = ClientConfig::from_kubeconfig_file(kubeconfig).expect("the cluster's kubeconfig can be read");
    let cx = ClientCx::new(SystemClock::shared(), Rng::from_os(), TaskGroup::new("conformance"));
    Client::new(config.with_component("conformance").with_rate(-1.0, 1), cx).expect("it is valid")
}

/// A running watch.
pub(crate) struct Watch {
    body: Body,
    read: BytesMut,
}

impl Watch {
    /// Reads on until an event of this type is about an object that satisfies the condition.
    pub(crate) async fn until(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let (found, object) = self.next().await;
                if found == kind && condition(&object) {
                    return object;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("no {kind} came"))
    }

    /// The next event: its type and object.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Bytes = self.read.split_to(end + 1).freeze();
                let mut event: Value = serde_json::from_slice(&line).expect("an event is JSON");
                let kind = event["type"].as_str().unwrap_or_default().to_owned();
                return (kind, event["object"].take());
            }
            let frame = self.body.frame().await.expect("the watch goes on").expect("the watch goes on");
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}
