//! A layer of faults between a client and its server, drawn from a seeded source: for simulations and tests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::SharedRng;
use bytes::Bytes;
use component_base::serving;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;

use super::{Body, BoxError, Transport, TransportError};

/// How often each fault happens, from 0.0 (never) to 1.0 (always).
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// The request is lost before the server sees it.
    pub drop_request: f64,
    /// The server carries the request out, and the response is lost.
    pub drop_response: f64,
    /// The request is carried out twice; the second response counts. Watches are left alone.
    pub duplicate: f64,
    /// The request waits up to `delay_limit` first.
    pub delay: f64,
    /// The longest delay.
    pub delay_limit: Duration,
    /// The server answers with one of `statuses` without doing anything.
    pub error: f64,
    /// The statuses to answer with.
    pub statuses: Vec<StatusCode>,
    /// A chunk of a watch is replaced by the end of the connection.
    pub cut_watch: f64,
}

/// A transport with faults in front of it. The faults can be changed while it is in use.
pub struct FaultLayer {
    inner: Arc<dyn Transport>,
    faults: Arc<Mutex<Faults>>,
    rng: SharedRng,
}

impl FaultLayer {
    /// Puts `faults` in front of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Transport>, faults: Faults, rng: SharedRng) -> Self {
        Self { inner, faults: Arc::new(Mutex::new(faults)), rng }
    }

    /// Replaces the faults.
    pub fn set(&self, faults: Faults) {
        *self.faults.lock() = faults;
    }

    fn happens(&self, chance: f64) -> bool {
        chance > 0.0 && self.rng.unit() < chance
    }
}

fn lost() -> TransportError {
    TransportError::Broken("connection reset by peer (injected)".into())
}

fn is_watch(request: &http::Request<Bytes>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

#[async_trait::async_trait]
impl Transport for FaultLayer {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let faults = self.faults.lock().clone();
        if self.happens(faults.delay) {
            tokio::time::sleep(faults.delay_limit.mul_f64(self.rng.unit())).await;
        }
        if self.happens(faults.drop_request) {
            return Err(lost());
        }
        if self.happens(faults.error)
            && let Some(status) = pick(&faults.statuses, &self.rng)
        {
            return Ok(refusal(status));
        }
        let watch = is_watch(&request);
        if !watch && self.happens(faults.duplicate) {
            drop(self.inner.send(request.clone()).await);
        }
        let response = self.inner.send(request).await?;
        if self.happens(faults.drop_response) {
            return Err(lost());
        }
        if !watch {
            return Ok(response);
        }
        let (faults, rng) = (Arc::clone(&self.faults), Arc::clone(&self.rng));
        Ok(response.map(|inner| CutBody { inner, faults, rng }.boxed_unsync()))
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

fn pick(statuses: &[StatusCode], rng: &base::Rng) -> Option<StatusCode> {
    let index = rng.below(u64::try_from(statuses.len()).unwrap_or(u64::MAX));
    statuses.get(usize::try_from(index).unwrap_or(0)).copied()
}

fn refusal(status: StatusCode) -> http::Response<Body> {
    let mut response = serving::text(status, "injected fault");
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A watch that may end at any chunk.
struct CutBody {
    inner: Body,
    faults: Arc<Mutex<Faults>>,
    rng: SharedRng,
}

impl http_body::Body for CutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let chance = self.faults.lock().cut_watch;
        if frame.is_some() && chance > 0.0 && self.rng.unit() < chance {
            return Poll::Ready(Some(Err("unexpected EOF (injected)".into())));
        }
        Poll::Ready(frame)
    }
}
