//! What was asked and answered, in the order of the answers: two runs of one seed can be compared by it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Body, Transport, TransportError};
use parking_lot::Mutex;
use tokio::time::Instant;

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
        let method = request.method().to_string();
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let size = request.body().len();
        let answer = self.inner.send(request).await;
        let status = answer.as_ref().ok().map(|response| response.status().as_u16());
        let answered = self.trace.start.elapsed();
        self.trace.add(Exchange { who: Arc::clone(&self.who), asked, answered, method, path, size, status });
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}
