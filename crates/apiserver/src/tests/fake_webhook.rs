//! A service that the server asks over HTTPS, and the kubeconfig file that leads to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use component_base::serving::{Response, ServerHandle, handler_fn, text};
use http::StatusCode;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::Value;

use super::fake_kubelet::start_with;

/// What a service does with a question.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Answers with this code and text.
    With(u16, String),
    /// Answers the question itself with this status.
    Status(Value),
    /// Never answers.
    Never,
}

/// A question: the path, the credentials and the body.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) uri: String,
    pub(super) authorization: String,
    pub(super) body: Value,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    reply: Option<Reply>,
}

/// The service.
pub(super) struct FakeWebhook {
    directory: tempfile::TempDir,
    tasks: TaskGroup,
    _handle: ServerHandle,
    state: Arc<Mutex<State>>,
}

impl FakeWebhook {
    pub(super) fn start(reply: Reply) -> Self {
        component_base::tls::install_default();
        let tasks = TaskGroup::new("fake-webhook");
        let state = Arc::new(Mutex::new(State { reply: Some(reply), ..State::default() }));
        let shared = Arc::clone(&state);
        let handler = handler_fn(move |request| answer(Arc::clone(&shared), request));
        let handle = start_with(&tasks, Arc::new(handler));
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://{}/ask', insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: u, user: {{token: secret}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n",
            handle.address()
        );
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig).expect("a file");
        Self { directory, tasks, _handle: handle, state }
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(super) fn reply(&self, reply: Reply) {
        self.state.lock().reply = Some(reply);
    }

    /// What was asked since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().asked)
    }

    /// Nobody listens any more.
    pub(super) async fn stop(&self) {
        self.tasks.shutdown(Duration::from_secs(2)).await;
    }
}

impl Drop for FakeWebhook {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn answer(state: Arc<Mutex<State>>, request: component_base::serving::Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&bytes).expect("JSON");
    let authorization = parts.headers.get("authorization").map(|own| own.to_str().expect("a text").to_owned());
    let asked = Asked {
        uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        authorization: authorization.unwrap_or_default(),
        body: body.clone(),
    };
    let reply = {
        let mut state = state.lock();
        state.asked.push(asked);
        state.reply.clone()
    };
    match reply {
        Some(Reply::With(code, body)) => text(StatusCode::from_u16(code).expect("a code"), body),
        Some(Reply::Status(status)) => {
            let mut review = body;
            review["status"] = status;
            text(StatusCode::OK, review.to_string())
        }
        Some(Reply::Never) | None => std::future::pending().await,
    }
}
