//! A layer of faults between a client and its server, drawn from a seeded source: for simulations and tests.

use std::sync::Arc;
use std::time::Duration;

use base::{SharedRng, TaskGroup};
use bytes::Bytes;
use component_base::serving;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

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
    /// A response waits up to `delay_limit` after the server has carried the request out.
    pub late_response: f64,
    /// A chunk of a watch is replaced by the end of the connection.
    pub cut_watch: f64,
    /// A chunk of a watch waits up to `delay_limit`, and all behind it.
    pub late_watch: f64,
    /// A chunk of a watch is delivered twice.
    pub repeat_watch: f64,
    /// A request is on its way by itself: where its client ends meanwhile, it arrives all the same, up to `delay_limit`
    /// later. Watches are left alone; only with [`FaultLayer::outlived_in`].
    pub outlive: f64,
    /// Nothing passes in either direction until this is taken back, as when the client is stopped by a signal. What goes on
    /// without its client arrives then.
    pub stalled: bool,
}

/// A transport with faults in front of it. The faults can be changed while it is in use.
pub struct FaultLayer {
    inner: Arc<dyn Transport>,
    shared: Arc<Shared>,
    rng: SharedRng,
    survivors: Option<TaskGroup>,
}

/// The faults of the moment, and who waits for the end of a stall.
#[derive(Default)]
struct Shared {
    faults: Mutex<Faults>,
    /// Wakes in the order of waiting, so that what is let go replays.
    resumed: Notify,
}

impl FaultLayer {
    /// Puts `faults` in front of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Transport>, faults: Faults, rng: SharedRng) -> Self {
        let shared = Arc::new(Shared { faults: Mutex::new(faults), resumed: Notify::new() });
        Self { inner, shared, rng, survivors: None }
    }

    /// Lets requests go on in these tasks when those of their client end.
    #[must_use]
    pub fn outlived_in(self, tasks: TaskGroup) -> Self {
        Self { survivors: Some(tasks), ..self }
    }

    /// Replaces the faults.
    pub fn set(&self, faults: Faults) {
        *self.shared.faults.lock() = faults;
        self.shared.resumed.notify_waiters();
    }

    fn draw(&self) -> Draw {
        Draw { shared: Arc::clone(&self.shared), rng: Arc::clone(&self.rng) }
    }

    /// Has the request carried out, whatever becomes of the client where it is on its way by itself.
    async fn carry(&self, request: http::Request<Bytes>, draw: &Draw) -> Result<http::Response<Body>, TransportError> {
        let Some(tasks) = self.survivors.as_ref().filter(|_| draw.happens(|faults| faults.outlive)) else {
            return self.inner.send(request).await;
        };
        let (answer, answered) = oneshot::channel();
        let (inner, draw) = (Arc::clone(&self.inner), draw.clone());
        tasks.spawn_cancellable("request under way", async move {
            draw.wait_up_to_limit().await;
            draw.until_resumed().await;
            // Where nobody waits for the answer any more, it is lost.
            drop(answer.send(inner.send(request).await));
        });
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// What draws from the faults of the moment.
#[derive(Clone)]
struct Draw {
    shared: Arc<Shared>,
    rng: SharedRng,
}

impl Draw {
    fn happens(&self, chance: impl Fn(&Faults) -> f64) -> bool {
        let chance = chance(&self.shared.faults.lock());
        chance > 0.0 && self.rng.unit() < chance
    }

    /// Waits up to the limit where the fault happens, and then until nothing is stalled.
    async fn linger(&self, chance: impl Fn(&Faults) -> f64) {
        if self.happens(chance) {
            self.wait_up_to_limit().await;
        }
        self.until_resumed().await;
    }

    async fn until_resumed(&self) {
        loop {
            let resumed = self.shared.resumed.notified();
            if !self.shared.faults.lock().stalled {
                return;
            }
            resumed.await;
        }
    }

    async fn wait_up_to_limit(&self) {
        let limit = self.shared.faults.lock().delay_limit;
        tokio::time::sleep(limit.mul_f64(self.rng.unit())).await;
    }

    fn status(&self) -> Option<StatusCode> {
        let faults = self.shared.faults.lock();
        let index = self.rng.below(u64::try_from(faults.statuses.len()).unwrap_or(u64::MAX));
        faults.statuses.get(usize::try_from(index).unwrap_or(0)).copied()
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
        let draw = self.draw();
        draw.linger(|faults| faults.delay).await;
        if draw.happens(|faults| faults.drop_request) {
            return Err(lost());
        }
        if draw.happens(|faults| faults.error)
            && let Some(status) = draw.status()
        {
            return Ok(refusal(status));
        }
        let watch = is_watch(&request);
        if !watch && draw.happens(|faults| faults.duplicate) {
            drop(self.inner.send(request.clone()).await);
        }
        let response = if watch { self.inner.send(request).await? } else { self.carry(request, &draw).await? };
        draw.linger(|faults| faults.late_response).await;
        if draw.happens(|faults| faults.drop_response) {
            return Err(lost());
        }
        Ok(if watch { response.map(|inner| unreliable(inner, draw)) } else { response })
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

fn refusal(status: StatusCode) -> http::Response<Body> {
    let mut response = serving::text(status, "injected fault");
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A watch under way.
struct Deliveries {
    inner: Body,
    draw: Draw,
    /// A chunk that is to come once more.
    again: Option<Bytes>,
    has_ended: bool,
}

/// A watch that may end at any chunk, and whose chunks may come late or twice.
fn unreliable(inner: Body, draw: Draw) -> Body {
    let state = Deliveries { inner, draw, again: None, has_ended: false };
    let frames = stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((frame, state))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Deliveries {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.has_ended {
            return None;
        }
        if let Some(chunk) = self.again.take() {
            return Some(Ok(Frame::data(chunk)));
        }
        let frame = self.inner.frame().await?;
        self.draw.linger(|faults| faults.late_watch).await;
        if self.draw.happens(|faults| faults.cut_watch) {
            self.has_ended = true;
            return Some(Err("unexpected EOF (injected)".into()));
        }
        if let Ok(Some(chunk)) = frame.as_ref().map(Frame::data_ref)
            && self.draw.happens(|faults| faults.repeat_watch)
        {
            self.again = Some(chunk.clone());
        }
        Some(frame)
    }
}
