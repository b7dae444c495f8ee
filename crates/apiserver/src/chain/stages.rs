//! A request and how far it has come. Only the chain moves a request from one stage to the next, so a handler that takes
//! a `Request<Authorized>` cannot be reached by one that nobody has authorized.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use bytes::Bytes;
use component_base::serving::{Body, PeerCertificates, RemoteAddr};
use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;

use super::audited::Audited;
use crate::negotiate::{Preferences, body_type};
use crate::request::{Query, RequestInfo, Strictness, decode_kind, read_limited};
use crate::warnings::Warnings;

/// Nothing is known but the request itself.
#[derive(Debug)]
pub(crate) struct Received(());

/// It is known who sent it.
#[derive(Debug)]
pub(crate) struct Authenticated {
    user: Arc<UserInfo>,
}

/// The sender may do what it asks for.
#[derive(Debug)]
pub(crate) struct Authorized {
    user: Arc<UserInfo>,
}

/// A request.
pub(crate) struct Request<S> {
    parts: Parts,
    /// Behind a lock only so that references to a request may cross threads; it is never contended.
    body: Mutex<Body>,
    info: Arc<RequestInfo>,
    query: Query,
    preferences: Arc<Preferences>,
    warnings: Warnings,
    deadline: Option<Instant>,
    audited: Audited,
    read_bytes: ReadBytes,
    stage: S,
}

/// How long the body was, once it has been read.
pub(super) type ReadBytes = Arc<OnceLock<usize>>;

impl Request<Received> {
    pub(super) fn received(
        parts: Parts,
        body: Body,
        info: Arc<RequestInfo>,
        query: Query,
        preferences: Preferences,
        read_bytes: ReadBytes,
    ) -> Self {
        let preferences = Arc::new(preferences);
        let body = Mutex::new(body);
        let (warnings, audited) = (Warnings::default(), Audited::default());
        let (deadline, stage) = (None, Received(()));
        Self { parts, body, info, query, preferences, warnings, deadline, audited, read_bytes, stage }
    }

    /// Says where something is noted of it, and of its answer.
    pub(super) fn note_in(&mut self, audited: Audited) {
        Arc::make_mut(&mut self.preferences).note_in(audited.context().clone());
        self.audited = audited;
    }

    pub(super) fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn authenticated(self, user: Arc<UserInfo>) -> Request<Authenticated> {
        self.at(Authenticated { user })
    }
}

impl Request<Authenticated> {
    /// Whom the sender says it is, until it is impersonating somebody.
    pub(super) fn sender(&self) -> &Arc<UserInfo> {
        &self.stage.user
    }

    pub(super) fn impersonating(mut self, user: Arc<UserInfo>) -> Self {
        self.stage.user = user;
        self
    }

    pub(super) fn authorized(self) -> Request<Authorized> {
        let user = self.stage.user.clone();
        self.at(Authorized { user })
    }
}

impl Request<Authorized> {
    /// On whose behalf the request runs.
    #[must_use]
    pub(crate) fn user(&self) -> &Arc<UserInfo> {
        &self.stage.user
    }

    /// Takes the body out.
    ///
    /// # Errors
    /// 413 when it is too large, 400 when it breaks off.
    pub(crate) async fn read_body(&mut self) -> Result<Bytes, ApiError> {
        let body = std::mem::replace(self.body.get_mut(), component_base::serving::empty());
        let body = read_limited(body).await?;
        // It is read once.
        let _ = self.read_bytes.set(body.len());
        Ok(body)
    }

    /// Reads the body as some kind, such as a review. No defaults are set.
    ///
    /// # Errors
    /// 400, 413, 415.
    pub(crate) async fn decode<T: Kind + Object>(&mut self) -> Result<T, ApiError> {
        let media = body_type(&self.parts.headers, self.preferences.forms(), false)?;
        let strictness = Strictness::of(&self.query.text("fieldValidation"));
        let body = self.read_body().await?;
        let object: T = decode_kind(media, &body, strictness, &self.warnings)?;
        self.audited.context().received(object.meta(), || (&object as &dyn Object).to_json());
        Ok(object)
    }

    /// The request as it came, for proxies and upgrades (`hyper::upgrade::on` finds its handle in the extensions).
    #[must_use]
    pub(crate) fn into_parts(self) -> (Parts, Body) {
        (self.parts, self.body.into_inner())
    }
}

impl<S> Request<S> {
    fn at<N>(self, stage: N) -> Request<N> {
        let Self { parts, body, info, query, preferences, warnings, deadline, audited, read_bytes, stage: _ } = self;
        Request { parts, body, info, query, preferences, warnings, deadline, audited, read_bytes, stage }
    }

    /// What it asks for.
    #[must_use]
    pub(crate) fn info(&self) -> &Arc<RequestInfo> {
        &self.info
    }

    /// The method.
    #[must_use]
    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// The URI as sent.
    #[must_use]
    pub(crate) fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// The headers.
    #[must_use]
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(super) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.parts.headers
    }

    /// The parameters.
    #[must_use]
    pub(crate) fn query(&self) -> &Query {
        &self.query
    }

    /// The form of answer that the client would like.
    #[must_use]
    pub(crate) fn preferences(&self) -> &Arc<Preferences> {
        &self.preferences
    }

    /// Texts for the client, beside the answer.
    #[must_use]
    pub(crate) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// What is noted of it for the audit log. Who takes the connection over keeps a clone for as long as that lasts.
    #[must_use]
    pub(crate) fn audited(&self) -> &Audited {
        &self.audited
    }

    /// When the client's time is up; nothing for requests that may last.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What the client calls itself.
    #[must_use]
    pub(crate) fn user_agent(&self) -> &str {
        self.parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Where the request comes from.
    #[must_use]
    pub(crate) fn remote_address(&self) -> Option<SocketAddr> {
        self.parts.extensions.get::<RemoteAddr>().map(|remote| remote.0)
    }

    /// The certificate chain that the client showed; nobody has checked it.
    #[must_use]
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.parts.extensions.get::<PeerCertificates>().map_or(&[], |peer| &peer.0)
    }
}
