//! How many requests run at a time: one bound for reads, one for all others (`--max-requests-inflight` and its sibling).
//! Those that last are not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use authz::in_group;
use component_base::serving::text;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::observe::Labels;
use super::{Authenticated, Refusal, Request};
use crate::cx::ApiCx;

const REFUSAL: &str = "Too many requests, please try again later.";

/// The two counters.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    reads: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
}

/// A request's place, until it is dropped.
pub(crate) struct Seat {
    counter: Option<Arc<AtomicUsize>>,
    gauge: prometheus::Gauge,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(counter) = self.counter.take() {
            counter.fetch_sub(1, Ordering::Relaxed);
            self.gauge.dec();
        }
    }
}

/// Takes a seat, if there is one. The superusers always get one, so that they can repair an overloaded server.
pub(super) fn enter(cx: &ApiCx, request: &Request<Authenticated>) -> Result<Seat, Refusal> {
    let limits = &cx.config.requests;
    let (kind, counter, limit) = if request.info().is_read_only() {
        ("readOnly", &cx.in_flight.reads, limits.max_in_flight)
    } else {
        ("mutating", &cx.in_flight.writes, limits.max_mutating_in_flight)
    };
    let gauge = cx.metrics.in_flight.with(&[kind]);
    if request.info().is_long_running() {
        return Ok(Seat { counter: None, gauge });
    }
    let before = counter.fetch_add(1, Ordering::Relaxed);
    gauge.inc();
    let seat = Seat { counter: Some(Arc::clone(counter)), gauge };
    if limit == 0 || before < limit || in_group(request.sender(), authn::MASTERS) {
        return Ok(seat);
    }
    Labels::of_request(request.info()).count_termination(cx, "429");
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, REFUSAL);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
    Err(response.into())
}
