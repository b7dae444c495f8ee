//! A server, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use base::{Rng, TokioClock};
use bytes::Bytes;
use client::Peer;
use component_base::lifecycle::Lifecycle;
use component_base::serving::{Body, Response};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::Value;
use storage::Backend;

use crate::chain::{Authorized, Request};
use crate::config::{ServerConfig, StaticToken};
use crate::cx::ApiCx;
use crate::routes::{Endpoint, Routes};
use crate::server::Server;

/// A server with two users: `root` may do everything, `alice` nothing but what tests allow.
pub(super) struct Api {
    pub(super) server: Server,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The code and the message of a refusal.
    pub(super) fn refusal(&self) -> (u16, String) {
        let json = self.json();
        (self.code, json["message"].as_str().unwrap_or(&self.text).to_owned())
    }

    pub(super) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok()).collect()
    }
}

pub(super) fn token(name: &str, groups: &[&str]) -> StaticToken {
    StaticToken {
        token: name.to_owned(),
        user: name.to_owned(),
        uid: String::new(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
    }
}

fn config() -> ServerConfig {
    ServerConfig::in_memory(vec![
        token("root", &["system:masters"]),
        token("alice", &[]),
        token("system:node:n1", &["system:nodes"]),
    ])
}

impl Api {
    pub(super) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A server whose configuration was changed.
    pub(super) async fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::as_process(|lifecycle| lifecycle, change).await
    }

    /// A server of a process that was started in another way.
    pub(super) async fn as_process(
        process: impl FnOnce(Lifecycle) -> Lifecycle,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = config();
        change(&mut config);
        let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(7));
        Self::of(Server::build(config, process(lifecycle)).await.expect("the server starts")).await
    }

    /// One of several servers over a store.
    pub(super) async fn over(backend: &Arc<dyn Backend>, seed: u64, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = config();
        change(&mut config);
        let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(seed));
        Self::of(Server::build_over(config, lifecycle, Arc::clone(backend)).expect("the server starts")).await
    }

    async fn of(server: Server) -> Self {
        server.start();
        server.cx().registry().ready().await;
        let api = Self { server };
        // Hooks of a full server make it; a plain one has none.
        api.post("/api/v1/namespaces", r#"{"metadata":{"name":"default"}}"#).await;
        api.post("/api/v1/namespaces/default/serviceaccounts", r#"{"metadata":{"name":"default"}}"#).await;
        api
    }

    /// Waits until everything that follows the start is done.
    pub(super) async fn wait_until_ready(&self) {
        for _ in 0..300 {
            if self.get("/readyz").await.code == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never ready: {}", self.get("/readyz?verbose").await.text);
    }

    pub(super) async fn open(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> http::Response<Body> {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let mut request = http::Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", "Bearer root");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::copy_from_slice(body.as_ref())).expect("a request");
        self.server.api().call(request, &Peer::default()).await
    }

    pub(super) async fn send(&self, line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
        let (parts, body) = self.open(line, headers, body).await.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { code: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send(&format!("POST {path}"), &[], body).await
    }

    pub(super) async fn put(&self, path: &str, body: &str) -> Answer {
        self.send(&format!("PUT {path}"), &[], body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Answer {
        self.send(&format!("DELETE {path}"), &[], "").await
    }

    pub(super) async fn patch(&self, kind: &str, path: &str, body: &str) -> Answer {
        let kind = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            other => format!("application/{other}+json"),
        };
        self.send(&format!("PATCH {path}"), &[("content-type", &kind)], body).await
    }

    pub(super) async fn config_map(&self, name: &str) -> Value {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"b"}}}}"#);
        self.post("/api/v1/namespaces/default/configmaps", &body).await.json()
    }
}

/// Paths that only tests have: one that panics, and one that takes ten minutes.
pub(crate) fn install(routes: &mut Routes) {
    routes.exact("/test/panic", Arc::new(Panics));
    routes.exact("/test/slow", Arc::new(Slow));
}

struct Panics;

#[async_trait]
impl Endpoint for Panics {
    async fn serve(&self, _: &Arc<ApiCx>, _: Request<Authorized>) -> Result<Response, ApiError> {
        panic!("a handler's bug")
    }
}

struct Slow;

#[async_trait]
impl Endpoint for Slow {
    async fn serve(&self, _: &Arc<ApiCx>, _: Request<Authorized>) -> Result<Response, ApiError> {
        tokio::time::sleep(Duration::from_secs(600)).await;
        Err(ApiError::unknown_resource())
    }
}

/// The next frame of a stream as text; nothing at its end, or when none comes.
pub(super) async fn frame(body: &mut Body) -> Option<String> {
    let next = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.ok()??;
    let data = next.ok()?.into_data().ok()?;
    Some(String::from_utf8_lossy(&data).into_owned())
}
