//! What was asked and answered, in the order of the answers: two runs of one seed can be compared by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Body, Transport, TransportError};
use http::Method;
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::acknowledged::Acknowledged;

/// A run that makes more requests than this is compared by the first ones and their number.
const MAX_KEPT: usize = 200_000;

/// One request and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Which component asked.
    pub who: Arc<str>,
    /// When it asked, since the start of the cluster.
    pub asked: Duration,
    /// When the answer's head was there.
    pub answered: Duration,
    /// The HTTP method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The size of the request's body in bytes.
    pub size: usize,
    /// The answer's status; nothing where the request or the answer was lost.
    pub status: Option<u16>,
}

impl fmt::Display for Exchange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, asked, answered, method, path, size, status } = self;
        write!(out, "{:.6} {:.6} {who} {method} {path} {size} ", asked.as_secs_f64(), answered.as_secs_f64())?;
        match status {
            Some(status) => write!(out, "{status}"),
            None => out.write_str("lost"),
        }
    }
}

/// The requests of a cluster. Clones share them.
#[derive(Clone)]
pub struct Trace {
    start: Instant,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    total: usize,
    acknowledged: Acknowledged,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), kept: Arc::default() }
    }

    /// The requests so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.kept.lock().exchanges.clone()
    }

    /// How many requests there were so far, also those that are not kept.
    #[must_use]
    pub fn total(&self) -> usize {
        self.kept.lock().total
    }

    /// In what answers contradicted what was acknowledged before.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.kept.lock().acknowledged.violations().to_vec()
    }

    /// The newest version that a write was acknowledged with, by the object's uid, and the path it was written at.
    #[must_use]
    pub fn acknowledged(&self) -> BTreeMap<String, (String, u64)> {
        self.kept.lock().acknowledged.newest()
    }

    /// The versions that writes of an object were acknowledged with, by its uid: none that an API server has made by itself.
    #[must_use]
    pub fn versions_written(&self, uid: &str) -> BTreeSet<u64> {
        self.kept.lock().acknowledged.versions(uid)
    }

    /// The earliest list in which each object was not that had been written before, by uid: its path and version. Each must
    /// have been gone by then.
    #[must_use]
    pub fn absent(&self) -> BTreeMap<String, (String, u64)> {
        self.kept.lock().acknowledged.absent().clone()
    }

    /// Puts a recorder in front of a transport.
    pub(crate) fn recording(&self, who: &str, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(Recorder { inner, who: who.into(), trace: self.clone() })
    }

    fn add(&self, exchange: Exchange) {
        let mut kept = self.kept.lock();
        kept.total += 1;
        if kept.exchanges.len() < MAX_KEPT {
            kept.exchanges.push(exchange);
        }
    }
}

/// Notes each request of one component.
struct Recorder {
    inner: Arc<dyn Transport>,
    who: Arc<str>,
    trace: Trace,
}

#[async_trait::async_trait]
impl Transport for Recorder {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let asked = self.trace.start.elapsed();
        let after = self.trace.kept.lock().acknowledged.count();
        let method = request.method().clone();
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let size = request.body().len();
        let answer = match self.inner.send(request).await {
            Ok(response) if tells_of_an_object(&method, &path, &response) => {
                let (head, body) = response.into_parts();
                let body = body.collect().await.map_err(TransportError::Broken)?.to_bytes();
                let acknowledged = &mut self.trace.kept.lock().acknowledged;
                match method {
                    Method::GET => acknowledged.read(after, &path, &body),
                    _ => acknowledged.written(&path, &body),
                }
                Ok(http::Response::from_parts(head, Full::new(body).map_err(|never| match never {}).boxed_unsync()))
            }
            other => other,
        };
        let status = answer.as_ref().ok().map(|response| response.status().as_u16());
        let answered = self.trace.start.elapsed();
        let (who, method) = (Arc::clone(&self.who), method.to_string());
        self.trace.add(Exchange { who, asked, answered, method, path, size, status });
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

/// Whether an answer is an object that was written, or the newest one there is. Deletions answer with what was.
fn tells_of_an_object(method: &Method, path: &str, response: &http::Response<Body>) -> bool {
    let is_asked = match *method {
        Method::GET => !path.contains("resourceVersion=") && !path.contains("watch="),
        Method::POST | Method::PUT | Method::PATCH => !path.contains("dryRun="),
        _ => false,
    };
    is_asked && response.status().is_success()
}
