//! The road itself, from what came over the wire to what goes back.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use base::trace;
use component_base::serving::{self, Response, TakenBy, full, hold, text};
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, StatusCode};

use super::audited::Audited;
use super::refusal::Refusal;
use super::stages::{Authenticated, Received, Request};
use super::{
    audit_id, authenticate, authorize, cors, deadline, go_away, impersonate, observe, running, seats, storage_versions,
    traced,
};
use crate::cx::ApiCx;
use crate::limits::Admitted;
use crate::negotiate::{Forms, Preferences};
use crate::request::{Query, RequestInfo, percent};
use crate::routes::Routes;
use crate::{gates, handlers, respond};

const PANIC_TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// The road that every request takes: what it passes, and where it ends.
pub(crate) struct Road {
    cx: Arc<ApiCx>,
    routes: Routes,
}

impl Road {
    /// Of a server, to these places.
    pub(crate) fn new(cx: Arc<ApiCx>, routes: Routes) -> Self {
        Self { cx, routes }
    }

    /// Answers a request.
    pub(crate) async fn serve(&self, request: serving::Request) -> Response {
        let cx = &self.cx;
        let (mut parts, body) = request.into_parts();
        if !percent::is_sound(parts.uri.path()) {
            return malformed();
        }
        let audit_id = audit_id::adopt_or_make(&mut parts.headers, cx.rng());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let origin = cors::allowed_origin(&cx.config.requests.cors_allowed_origins, &parts.headers);
        let mut response = match RequestInfo::new(&parts.method, parts.uri.path(), &query) {
            Ok(info) => {
                let info = Arc::new(info);
                go_away::at_random(cx.config.requests.goaway_chance, cx.rng(), &parts);
                let observed = observe::Observation::begin(cx, &parts, &info, &query);
                let switched = cx.lifecycle.gates();
                let forms = if switched.enabled(gates::CBOR) { Forms::WithCbor } else { Forms::Usual };
                let preferences = Preferences::new(&parts.headers, &query);
                let preferences = preferences.compressing(switched.enabled(gates::COMPRESS)).among(forms);
                let request = Request::received(parts, body, info, query, preferences, observed.read_bytes());
                let response = match cors::preflight(origin.as_ref(), request.method()) {
                    Some(response) => response,
                    None => self.audited_answer(request).await,
                };
                observed.watch_over(response)
            }
            Err(error) => respond::plain_error(&parts.uri, &format!("failed to create RequestInfo: {error}")),
        };
        let headers = response.headers_mut();
        headers.entry(audit_id::HEADER).or_insert(audit_id);
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        if let Some(origin) = origin {
            cors::allow(headers, origin);
        }
        let directives = &cx.config.requests.strict_transport_security;
        if let (false, Ok(value)) = (directives.is_empty(), HeaderValue::from_str(&directives.join("; "))) {
            headers.insert(STRICT_TRANSPORT_SECURITY, value);
        }
        response
    }

    /// The answer, which is told of for as long as it lasts, and of which something is told even where making it went
    /// wrong.
    async fn audited_answer(&self, mut request: Request<Received>) -> Response {
        let (auditor, clock) = (self.cx.audit.as_ref(), self.cx.clock());
        let audited = Audited::begin(auditor, clock.monotonic(), request.parts(), request.info());
        request.note_in(audited.clone());
        let is_long_running = request.info().is_long_running();
        match AssertUnwindSafe(self.answer(request)).catch_unwind().await {
            Ok(response) => audited.answered(clock.monotonic(), is_long_running, response).await,
            Err(_) => {
                audited.context().panicked().await;
                text(StatusCode::INTERNAL_SERVER_ERROR, PANIC_TEXT)
            }
        }
    }

    /// From here on a refusal has a form that the client understands.
    async fn answer(&self, request: Request<Received>) -> Response {
        let (preferences, warnings) = (Arc::clone(request.preferences()), request.warnings().clone());
        let mut response = formed(&preferences, self.bounded(request).await);
        warnings.write(response.headers_mut());
        response
    }

    /// Requests that are not to last are counted, so that shutdown can wait for them, and have a deadline.
    async fn bounded(&self, request: Request<Received>) -> Result<Response, Refusal> {
        let cx = &self.cx;
        let running = running::enter(cx, &request)?;
        let request = deadline::set(cx.config.requests.timeout, cx.clock(), request).await?;
        let (info, deadline) = (Arc::clone(request.info()), request.deadline());
        // On the heap: all of the work is in this future, and whoever hands it on would copy it, several kilobytes each time.
        let work = Box::pin(self.identified(request));
        let mut response = deadline::within(cx, deadline, info, work).await?;
        if let Some(deadline) = deadline {
            response.extensions_mut().insert(TakenBy::new(deadline));
        }
        // Shutdown waits for what is still being sent, too.
        Ok(if running.is_counted() { hold(response, running) } else { response })
    }

    /// Who, and then all that follows from that, within the trace that it belongs to.
    async fn identified(&self, request: Request<Received>) -> Result<Response, Refusal> {
        let cx = &self.cx;
        let begun = cx.tracer.as_ref().map(|_| cx.clock().wall());
        let request = authenticate::authenticate(cx, request).await?;
        match traced::begin(cx, &request, begun) {
            None => self.admitted(request).await,
            Some((scope, span)) => traced::end(span, scope.run(self.admitted_apart(request)).await),
        }
    }

    /// [`Self::admitted`] on the heap: what is traced must not make the road of every request larger.
    fn admitted_apart(
        &self,
        request: Request<Authenticated>,
    ) -> Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + '_>> {
        Box::pin(self.admitted(request))
    }

    /// On whose behalf, whether there is room, whether they may, and then the work itself. Its seat is free again once the
    /// answer is made: a client that is slow to read it must not keep others out.
    async fn admitted(&self, request: Request<Authenticated>) -> Result<Response, Refusal> {
        let cx = &self.cx;
        let constrained = cx.lifecycle.gates().enabled(gates::CONSTRAINED_IMPERSONATION);
        let span = trace::child(if constrained { "constrainedimpersonation" } else { "impersonation" });
        let request = impersonate::impersonate(cx, request).await?;
        drop(span);
        let span = trace::child("priorityandfairness");
        let Admitted { classified, seat } = seats::take(&*cx.seats, &request).await;
        drop(span);
        let preferences = Arc::clone(request.preferences());
        let mut response = match seat {
            Err(full) => seats::refusal(cx, request.info(), full),
            Ok(mut seat) => {
                let response = formed(&preferences, self.allowed(request).await);
                match seat.take_stream_guard() {
                    Some(guard) => hold(response, guard),
                    None => response,
                }
            }
        };
        if let Some(classified) = classified {
            classified.write(response.headers_mut());
        }
        Ok(response)
    }

    /// Whether they may, and then the work itself.
    async fn allowed(&self, request: Request<Authenticated>) -> Result<Response, Refusal> {
        let span = trace::child("authorization");
        let request = authorize::authorize(&self.cx, request).await?;
        drop(span);
        storage_versions::check(&self.cx, &request)?;
        Ok(handlers::dispatch(&self.cx, &self.routes, request).await?)
    }
}

/// What Go's HTTP server says of a path that it cannot read, before anything else is done.
fn malformed() -> Response {
    let mut response = Response::new(full("400 Bad Request"));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The answer, or the refusal in the form that the client understands.
fn formed(preferences: &Preferences, outcome: Result<Response, Refusal>) -> Response {
    match outcome {
        Ok(response) => response,
        Err(Refusal::Plain(response)) => *response,
        Err(Refusal::Error(error)) => respond::error(preferences, &error),
    }
}
