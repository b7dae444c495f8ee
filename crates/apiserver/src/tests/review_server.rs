//! A webhook of admission or conversion: a real HTTPS server that answers reviews as a test says.

use std::sync::Arc;

use base::{Rng, SystemClock, TaskGroup};
use base64::Engine as _;
use component_base::serving::{Body, Response, ServerHandle, handler_fn, text};
use http::StatusCode;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::harness::Api;
use super::https::serving;
use crate::server::self_signed;

const PATH: &str = "/apis/admissionregistration.k8s.io/v1";

/// What the webhook does with a question.
#[derive(Clone)]
pub(super) enum Reply {
    /// Answers with this response; the uid is filled in.
    Response(Value),
    /// Answers with what is made of the whole review.
    Made(Arc<dyn Fn(&Value) -> Value + Send + Sync>),
    /// Answers this way or that, by the whole review.
    By(Arc<dyn Fn(&Value) -> Reply + Send + Sync>),
    /// Answers with this code and text, and a place to go to.
    With(u16, String, &'static str),
    /// Never answers.
    Never,
    /// Answers without an end.
    Endless,
}

impl Reply {
    /// Lets every request pass.
    pub(super) fn allows() -> Self {
        Self::Response(json!({"allowed": true}))
    }

    /// Changes the object by a JSON patch.
    pub(super) fn patches(operations: &Value) -> Self {
        let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
        Self::Response(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
    }
}

/// The webhook.
pub(super) struct ReviewServer {
    tasks: TaskGroup,
    handle: ServerHandle,
    ca_bundle: String,
    state: Arc<Mutex<State>>,
}

struct State {
    reply: Reply,
    asked: Vec<Asked>,
}

/// A question, as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) uri: String,
    pub(super) authorization: String,
    pub(super) traceparent: String,
    pub(super) request: Value,
}

impl ReviewServer {
    pub(super) fn start(reply: Reply) -> Self {
        component_base::tls::install_default();
        let tasks = TaskGroup::new("review-server");
        let state = Arc::new(Mutex::new(State { reply, asked: Vec::new() }));
        let shared = Arc::clone(&state);
        let handler = handler_fn(move |request| answer(Arc::clone(&shared), request));
        let serving = serving();
        let generate = self_signed::generator(&SystemClock::shared(), &Rng::seeded(3));
        let certificates = serving.certificates(&["127.0.0.1".to_owned()], &generate).expect("certificates");
        let pem = |der: &[u8]| {
            let text = base64::engine::general_purpose::STANDARD.encode(der);
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let chain: String = certificates.default_chain().iter().map(|own| pem(own)).collect();
        let ca_bundle = base64::engine::general_purpose::STANDARD.encode(chain);
        let handle = serving.serve(&tasks, certificates, &[], Arc::new(handler)).expect("a server");
        Self { tasks, handle, ca_bundle, state }
    }

    pub(super) fn reply(&self, reply: Reply) {
        self.state.lock().reply = reply;
    }

    /// What was asked since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().asked)
    }

    /// Where it is.
    pub(super) fn url(&self) -> String {
        format!("https://{}/review", self.handle.address())
    }

    /// How it is reached, as configurations say it.
    pub(super) fn client_config(&self) -> Value {
        json!({"url": self.url(), "caBundle": self.ca_bundle})
    }

    /// A webhook of this name that is asked about config maps, with some members changed.
    pub(super) fn webhook(&self, name: &str, changed: &Value) -> Value {
        let mut webhook = json!({
            "name": format!("{name}.example.com"),
            "clientConfig": self.client_config(),
            "rules": [{
                "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        });
        let members = changed.as_object().expect("members").clone();
        webhook.as_object_mut().expect("members").extend(members);
        webhook
    }
}

/// Creates a configuration, `mutating` or `validating`, and waits until the server knows it.
pub(super) async fn configure(api: &Api, kind: &str, name: &str, webhooks: &[Value]) {
    let path = format!("{PATH}/{kind}webhookconfigurations");
    let body = json!({"metadata": {"name": name}, "webhooks": webhooks});
    let made = api.post(&path, &body.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    // A read waits until the cache is as new as the store.
    api.get(&path).await;
}

impl Drop for ReviewServer {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn answer(state: Arc<Mutex<State>>, request: component_base::serving::Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&bytes).expect("JSON");
    let authorization = parts.headers.get("authorization").map(|own| own.to_str().expect("a text").to_owned());
    let traceparent = parts.headers.get("traceparent").map(|own| own.to_str().expect("a text").to_owned());
    let asked = Asked {
        uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        authorization: authorization.unwrap_or_default(),
        traceparent: traceparent.unwrap_or_default(),
        request: review["request"].clone(),
    };
    let mut reply = {
        let mut state = state.lock();
        state.asked.push(asked);
        state.reply.clone()
    };
    while let Reply::By(choose) = reply {
        reply = choose(&review);
    }
    let respond = |mut response: Value| {
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        let kind = (&review["apiVersion"], &review["kind"]);
        json!({"apiVersion": kind.0, "kind": kind.1, "response": response})
    };
    match reply {
        Reply::Response(response) => text(StatusCode::OK, respond(response).to_string()),
        Reply::Made(make) => text(StatusCode::OK, respond(make(&review)).to_string()),
        Reply::With(code, body, location) => {
            let mut response = text(StatusCode::from_u16(code).expect("a code"), body);
            response.headers_mut().insert("location", location.parse().expect("a header"));
            response
        }
        Reply::Never | Reply::By(_) => std::future::pending().await,
        Reply::Endless => Response::new(endless()),
    }
}

/// Spaces, as fast as they are read.
pub(super) fn endless() -> Body {
    let chunk = bytes::Bytes::from(vec![b' '; 1 << 16]);
    let frames = futures_util::stream::repeat_with(move || Ok(http_body::Frame::data(chunk.clone())));
    StreamBody::new(frames).boxed_unsync()
}
