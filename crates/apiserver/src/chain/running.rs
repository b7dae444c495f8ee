//! The requests that shutdown waits for, and the refusal of new ones once it has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use api_machinery::status::ApiError;
use component_base::serving::text;
use http::header::{CONNECTION, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use tokio::sync::Notify;

use super::{Received, Refusal, Request};
use crate::cx::ApiCx;
use crate::respond;

/// Counts requests that are not to last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicUsize,
    closed: AtomicBool,
    ended: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Runs(Option<Arc<Shared>>);

impl Running {
    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// Waits until nobody is left.
    pub(crate) async fn drained(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }

    fn enter(&self) -> Option<Runs> {
        // Counted before the look, so that nobody slips in between the close and the count of the drain.
        self.0.count.fetch_add(1, Ordering::SeqCst);
        let runs = Runs(Some(Arc::clone(&self.0)));
        (!self.0.closed.load(Ordering::SeqCst)).then_some(runs)
    }
}

impl Runs {
    /// Whether shutdown waits for it.
    pub(super) fn is_counted(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.count.fetch_sub(1, Ordering::SeqCst);
            shared.ended.notify_waiters();
        }
    }
}

/// Whether a request is answered whatever the stage: probes, metrics, and other API servers.
fn is_exempt(request: &Request<Received>) -> bool {
    let path = &request.info().path;
    let probes = ["/readyz", "/livez", "/healthz", "/metrics"];
    probes.iter().any(|probe| path.starts_with(probe)) || request.user_agent().starts_with("kube-apiserver/")
}

/// Lets a request in.
pub(super) fn enter(cx: &ApiCx, request: &Request<Received>) -> Result<Runs, Refusal> {
    let events = cx.lifecycle.events();
    let exempt = is_exempt(request);
    if cx.config.shutdown.send_retry_after && events.after_shutdown_delay.has_happened() && !exempt {
        let text_ = "The apiserver is shutting down, please try again later.";
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, text_);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(5));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Err(response.into());
    }
    let is_watch = request.info().verb == "watch";
    if request.info().is_long_running() || exempt {
        let ending = is_watch && cx.streams.is_cancelled();
        return if ending { Err(shutting_down(request)) } else { Ok(Runs(None)) };
    }
    cx.running.enter().ok_or_else(|| shutting_down(request))
}

fn shutting_down(request: &Request<Received>) -> Refusal {
    let mut response = respond::error(request.wish(), &ApiError::service_unavailable("apiserver is shutting down"));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_drain_waits_and_refuses() {
        let running = Running::default();
        let one = running.enter().unwrap();
        running.close();
        assert!(running.enter().is_none());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), running.drained()).await.is_err());
        drop(one);
        running.drained().await;
    }
}
