//! An extender for tests: a real server that answers as it is told, and notes what it is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::TaskGroup;
use component_base::serving::{
    Handler, Limits, PeerCertificates, PortSharing, Request, Response, Security, Server, ServerHandle, bind, text,
};
use http::{StatusCode, header};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::Value;

/// One question.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) content_type: String,
    /// How many certificates came with it.
    pub(crate) certificates: usize,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Script {
    answers: Mutex<BTreeMap<String, (StatusCode, String)>>,
    asked: Mutex<Vec<Asked>>,
}

#[async_trait::async_trait]
impl Handler for Script {
    async fn handle(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path().to_owned();
        self.asked.lock().push(Asked {
            path: path.clone(),
            content_type: head.headers[header::CONTENT_TYPE].to_str().unwrap().to_owned(),
            certificates: head.extensions.get::<PeerCertificates>().map_or(0, |chain| chain.0.len()),
            body: serde_json::from_slice(&body).unwrap(),
        });
        let answer = self.answers.lock().get(&path).cloned();
        match answer {
            Some((status, body)) => text(status, body),
            None => std::future::pending().await,
        }
    }
}

/// The server. What it has no answer to is never answered.
pub(crate) struct TestServer {
    script: Arc<Script>,
    handle: ServerHandle,
    _tasks: TaskGroup,
}

impl TestServer {
    pub(crate) fn start(security: Security) -> Self {
        let (script, tasks) = (Arc::new(Script::default()), TaskGroup::new("test"));
        let listener = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Exclusive).unwrap();
        let server = Server::new(Arc::<Script>::clone(&script), security).with_limits(Limits::default());
        Self { script, handle: server.spawn(&tasks, listener).unwrap(), _tasks: tasks }
    }

    pub(crate) fn plain() -> Self {
        Self::start(Security::Plain)
    }

    /// Where it is reached, with the scheme.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}", self.handle.address().port())
    }

    /// From now on, a path is answered with this.
    pub(crate) fn answers(&self, path: &str, body: &Value) {
        self.says(path, StatusCode::OK, &body.to_string());
    }

    /// The same with any status and text.
    pub(crate) fn says(&self, path: &str, status: StatusCode, body: &str) {
        self.script.answers.lock().insert(path.to_owned(), (status, body.to_owned()));
    }

    /// The questions since the last time.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.script.asked.lock())
    }

    /// The paths of the questions since the last time.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}
