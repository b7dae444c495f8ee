//! The client: credentials, rate limit, deadline and retries around a transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::{Kind, Object, Unstructured};
use api_machinery::status::{ApiError, PlainResponse};
use base::trace::{self, Kind as SpanKind};
use base::{SharedClock, SharedRng, TaskGroup};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;

use crate::api::Api;
use crate::codec;
use crate::config::{ClientConfig, ConfigError, DEFAULT_BURST, DEFAULT_QPS};
use crate::credentials::Identity;
use crate::cx::ClientCx;
use crate::error::ClientError;
use crate::rate_limit::TokenBucket;
use crate::request::{RawResponse, Request};
use crate::resource::{Codec, ResourceInfo};
use crate::retry::{Attempt, Retries};
use crate::transport::{Body, HttpsTransport, Transport, TransportError};
use crate::warnings;

/// The longest that a request without a limit of its own may take, watches aside: the server gives up after 60 s.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// The longest that a watch may take to start; after that the stream has deadlines of its own.
const WATCH_START_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest part of a body that is no Status which errors show, as upstream.
const MAX_ERROR_TEXT: usize = 2048;
/// Waits for the rate limit above this are logged.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Talks to one API server. Clones share the connection, the rate limit and the credentials.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<dyn Transport>,
    config: ClientConfig,
    prefix: String,
    /// Host and port, for metrics.
    host: String,
    user_agent: Option<HeaderValue>,
    identity: Identity,
    limiter: Option<TokenBucket>,
    /// Whether the server has said that it does not take CBOR.
    refuses_cbor: AtomicBool,
    cx: ClientCx,
}

impl Client {
    /// A client over HTTPS.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn new(config: ClientConfig, cx: ClientCx) -> Result<Self, ConfigError> {
        let transport = HttpsTransport::of(&config, &cx)?;
        Self::with_transport(transport, config, cx)
    }

    /// A client over another transport: the loopback client and tests. Of the configuration, all but what concerns
    /// the connection applies.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn with_transport(
        transport: Arc<dyn Transport>,
        config: ClientConfig,
        cx: ClientCx,
    ) -> Result<Self, ConfigError> {
        let prefix = config.endpoint()?.prefix;
        let identity = Identity::new(config.credentials.clone(), &config.impersonate)
            .map_err(|error| ConfigError::Invalid(vec![error.to_string()]))?
            .asking(cx.authenticator(&config));
        // As upstream: zero stands for the default, a negative rate for none.
        let qps = if config.qps == 0.0 { DEFAULT_QPS } else { config.qps };
        let burst = if config.burst == 0 { DEFAULT_BURST } else { config.burst };
        let limiter = (qps > 0.0).then(|| TokenBucket::new(qps, burst, cx.clock.monotonic()));
        let user_agent = HeaderValue::from_str(&config.user_agent).ok();
        let server = transport.server();
        let host = server.split_once("://").map_or(server, |(_, host)| host).to_owned();
        let refuses_cbor = AtomicBool::new(false);
        let inner = Inner { transport, config, prefix, host, user_agent, identity, limiter, refuses_cbor, cx };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A client over the same connection with a changed configuration and a rate limit of its own.
    ///
    /// # Errors
    /// When the changed configuration cannot be used.
    pub fn derive(&self, change: impl FnOnce(ClientConfig) -> ClientConfig) -> Result<Self, ConfigError> {
        let config = change(self.inner.config.clone());
        Self::with_transport(Arc::clone(&self.inner.transport), config, self.inner.cx.clone())
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.inner.config
    }

    /// What the client got from its process.
    #[must_use]
    pub fn cx(&self) -> &ClientCx {
        &self.inner.cx
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.inner.cx.clock
    }

    /// The source of jitter.
    #[must_use]
    pub fn rng(&self) -> &SharedRng {
        &self.inner.cx.rng
    }

    /// Where the client's tasks live.
    #[must_use]
    pub fn tasks(&self) -> &TaskGroup {
        &self.inner.cx.tasks
    }

    /// All objects of a kind, or those without a namespace.
    #[must_use]
    pub fn all<T: Kind + Object>(&self) -> Api<T> {
        Api::new(self, Codec::typed::<T>(), "")
    }

    /// The objects of a kind in one namespace.
    #[must_use]
    pub fn namespaced<T: Kind + Object>(&self, namespace: &str) -> Api<T> {
        Api::new(self, Codec::typed::<T>(), namespace)
    }

    /// The objects of any resource as free-form values; an empty namespace means all, or that there is none.
    #[must_use]
    pub fn dynamic(&self, info: &ResourceInfo, namespace: &str) -> Api<Unstructured> {
        Api::new(self, Codec::unstructured(info), namespace)
    }

    /// The metadata of the objects of any resource; an empty namespace means all, or that there is none.
    #[must_use]
    pub fn metadata(&self, info: &ResourceInfo, namespace: &str) -> Api<PartialObjectMetadata> {
        Api::new(self, Codec::metadata(info), namespace)
    }

    /// Whether free-form objects are asked for as CBOR.
    pub(crate) fn takes_cbor(&self) -> bool {
        self.inner.cx.features.takes_cbor
    }

    /// Whether free-form objects, and what is applied, are sent as CBOR.
    pub(crate) fn sends_cbor(&self) -> bool {
        self.inner.cx.features.sends_cbor && !self.inner.refuses_cbor.load(Ordering::Relaxed)
    }

    /// Sends a request and reads the answer to its end.
    ///
    /// # Errors
    /// When no answer came, or the answer is a failure (status 400 and up).
    pub async fn send(&self, request: Request) -> Result<RawResponse, ClientError> {
        let limit = request.timeout.or(self.inner.config.timeout).unwrap_or(DEFAULT_TIMEOUT);
        let exchange = async {
            let response = self.attempts(&request).await?;
            let (parts, body) = response.into_parts();
            let body = collect(body, self.inner.config.max_answer_bytes).await?;
            Ok(RawResponse { status: parts.status, headers: parts.headers, body })
        };
        match tokio::time::timeout(limit, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.timed_out(&request)),
        }
    }

    /// Sends a request and hands out the answer's body as it comes: watches, logs.
    ///
    /// # Errors
    /// When no answer came, or the answer is a failure (status 400 and up).
    pub async fn stream(&self, request: Request) -> Result<http::Response<Body>, ClientError> {
        let limit = request.timeout.unwrap_or(WATCH_START_TIMEOUT);
        match tokio::time::timeout(limit, self.attempts(&request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.timed_out(&request)),
        }
    }

    #[cfg(test)]
    pub(crate) fn transport_host(&self) -> &str {
        &self.inner.host
    }

    fn timed_out(&self, request: &Request) -> ClientError {
        ClientError::Timeout { method: request.method.to_string(), url: self.url(request) }
    }

    fn url(&self, request: &Request) -> String {
        format!("{}{}", self.inner.transport.server(), request.target(&self.inner.prefix))
    }

    /// Tries until there is an answer that is worth handing out.
    async fn attempts(&self, request: &Request) -> Result<http::Response<Body>, ClientError> {
        let started = self.inner.cx.clock.monotonic();
        let outcome = self.try_attempts(request).await;
        if let Some(metrics) = self.inner.cx.metrics().filter(|_| !request.watch) {
            let took = self.inner.cx.clock.monotonic().saturating_duration_since(started);
            metrics.done(&request.method, &self.inner.host, took);
        }
        outcome
    }

    async fn try_attempts(&self, request: &Request) -> Result<http::Response<Body>, ClientError> {
        let mut retries = Retries::new(&request.method, request.watch);
        loop {
            if !(request.watch && retries.is_first()) {
                self.wait_for_turn(request).await;
            }
            let mut built = self.build(request)?;
            let mut call = trace::child_of_kind(call_name(&request.method), SpanKind::Client);
            trace::inject(&call, built.headers_mut());
            let outcome = self.send_identified(built).await;
            match &outcome {
                Ok(response) => call.set("http.status_code", i64::from(response.status().as_u16())),
                Err(error) if call.is_recorded() => call.fail(error.to_string()),
                Err(_) => {}
            }
            drop(call);
            let status = outcome.as_ref().ok().map(http::Response::status);
            if let Some(metrics) = self.inner.cx.metrics() {
                let answer = outcome.as_ref().ok().map(|response| (response.status(), response.headers()));
                metrics.tried(&request.method, &self.inner.host, request.body.len(), answer);
            }
            if let Ok(response) = &outcome {
                warnings::log(response.headers());
                if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && request.is_cbor() {
                    // This request fails; later ones are sent as JSON.
                    self.inner.refuses_cbor.store(true, Ordering::Relaxed);
                }
            }
            let delay = match retries.decide(&outcome) {
                Attempt::Finished => return self.finish(request, outcome).await,
                Attempt::Again(delay) => delay,
            };
            if let Some(metrics) = self.inner.cx.metrics() {
                metrics.retried(&request.method, &self.inner.host, status);
            }
            tracing::debug!(method = %request.method, path = %request.path, ?delay, "Retrying request");
            tokio::time::sleep(delay).await;
        }
    }

    /// Sends a request with what a plugin says of the client. Credentials that are refused are replaced for the next request.
    async fn send_identified(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let identity = &self.inner.identity;
        let shown = identity.ask_plugin(request.headers_mut(), self.tasks()).await?;
        let response = self.inner.transport.send(request).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            identity.refused(shown.as_ref(), self.tasks()).await;
        }
        Ok(response)
    }

    async fn wait_for_turn(&self, request: &Request) {
        let Some(limiter) = &self.inner.limiter else { return };
        let delay = limiter.reserve(self.inner.cx.clock.monotonic());
        if let Some(metrics) = self.inner.cx.metrics() {
            metrics.waited(&request.method, &self.inner.host, delay);
        }
        if delay.is_zero() {
            return;
        }
        if delay > LONG_WAIT {
            tracing::info!(?delay, verb = %request.method, path = %request.path, "Waited before sending request");
        }
        // A caller that gives up while it waits leaves its turn to others.
        let mut turn = Turn(Some(limiter));
        tokio::time::sleep(delay).await;
        turn.0 = None;
    }

    fn build(&self, request: &Request) -> Result<http::Request<Bytes>, ClientError> {
        let target = match (self.inner.config.timeout, request.watch) {
            (Some(timeout), false) => {
                let timeout = format!("{}s", timeout.as_secs_f64());
                request.clone().query("timeout", timeout).target(&self.inner.prefix)
            }
            _ => request.target(&self.inner.prefix),
        };
        // The text becomes the URI without being copied.
        let uri = http::Uri::from_maybe_shared(Bytes::from(target))
            .map_err(|error: http::uri::InvalidUri| ClientError::Invalid(error.to_string()))?;
        let mut out = http::Request::new(request.body.clone());
        *out.method_mut() = request.method.clone();
        *out.uri_mut() = uri;
        *out.headers_mut() = request.headers.clone();
        if let Some(agent) = &self.inner.user_agent {
            out.headers_mut().entry(header::USER_AGENT).or_insert_with(|| agent.clone());
        }
        let identified = self.inner.identity.apply(out.headers_mut(), self.inner.cx.clock.monotonic());
        identified.map_err(|error| ClientError::Invalid(error.to_string()))?;
        Ok(out)
    }

    /// Turns the last outcome into the client's answer.
    async fn finish(
        &self,
        request: &Request,
        outcome: Result<http::Response<Body>, TransportError>,
    ) -> Result<http::Response<Body>, ClientError> {
        let response = outcome.map_err(|source| ClientError::Transport {
            method: request.method.to_string(),
            url: self.url(request),
            source,
        })?;
        if response.status().as_u16() < 400 {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = collect(body, self.inner.config.max_answer_bytes).await.unwrap_or_default();
        Err(ClientError::Api(failure(request, parts.status, &parts.headers, &body)))
    }
}

/// What a request is called in traces, as the libraries of OpenTelemetry for HTTP name it.
const fn call_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "HTTP GET",
        Method::POST => "HTTP POST",
        Method::PUT => "HTTP PUT",
        Method::PATCH => "HTTP PATCH",
        Method::DELETE => "HTTP DELETE",
        _ => "HTTP",
    }
}

/// A reserved turn that is given back unless it was used.
struct Turn<'a>(Option<&'a TokenBucket>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(limiter) = self.0 {
            limiter.give_back();
        }
    }
}

/// Reads a body to its end, unless it is larger than it may be.
pub(crate) async fn collect(mut body: Body, limit_bytes: usize) -> Result<Bytes, ClientError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| ClientError::Body(error.to_string()))?.into_data() else { continue };
        if first.len() + all.len() + data.len() > limit_bytes {
            return Err(ClientError::Body("response is too large".to_owned()));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The error of a failed response: its Status, or one made from code and text.
fn failure(request: &Request, status: StatusCode, headers: &HeaderMap, body: &Bytes) -> ApiError {
    if let Some(mut error) = codec::decode_status(crate::request::media_type(headers), body) {
        if error.code == 0 || error.code < 400 {
            error.code = status.as_u16();
        }
        return error;
    }
    let media_type = crate::request::media_type(headers);
    let text = if media_type.is_empty() || media_type.starts_with("text/") {
        let cut = body.get(..MAX_ERROR_TEXT).unwrap_or(body);
        String::from_utf8_lossy(cut).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    let retry_after_seconds = crate::retry::retry_after(headers).and_then(|seconds| i32::try_from(seconds).ok());
    ApiError::from(PlainResponse {
        code: status.as_u16(),
        method: request.method.as_str(),
        resource: &request.about,
        name: "",
        body: &text,
        retry_after_seconds: retry_after_seconds.unwrap_or(0),
        unexpected: true,
    })
}
