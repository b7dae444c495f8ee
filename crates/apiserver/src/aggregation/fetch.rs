//! What this server itself asks of others: small questions, bounded in time and in the size of the answer.

use std::time::Duration;

use api_machinery::json::DecodeError;
use api_types::authentication_v1::UserInfo;
use bytes::{Bytes, BytesMut};
use component_base::serving::{Body, empty};
use http::header::{ACCEPT, HOST, HeaderName, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::state::Aggregation;
use super::table::Remote;
use super::{destination, identity};
use crate::cx::ApiCx;
use crate::node_proxy::connection::Backend;
use crate::node_proxy::forward::send;

/// A question.
pub(crate) struct Question<'a> {
    pub(crate) path: &'a str,
    pub(crate) accept: &'a str,
    /// The tag of the answer that is known already.
    pub(crate) known: Option<&'a str>,
    /// Who asks.
    pub(crate) user: UserInfo,
    pub(crate) limit: Duration,
    pub(crate) limit_bytes: usize,
}

impl Question<'_> {
    /// The error where an answer is none of the good ones.
    pub(crate) fn answered_by(&self, code: StatusCode) -> FetchError {
        FetchError::Answered { path: self.path.to_owned(), code }
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// A header that is text.
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The server cannot be found.
    #[error(transparent)]
    Destination(#[from] destination::NoDestination),
    /// The connection failed.
    #[error("Get {url:?}: {source}")]
    Connection {
        /// What was asked.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// The body broke off, or has no end.
    #[error("reading the answer of {url:?}: {why}")]
    Body {
        /// What was asked.
        url: String,
        /// Why.
        why: String,
    },
    /// Time is up.
    #[error("request timed out")]
    TimedOut,
    /// It is answered by something else than was asked for.
    #[error("{path} is answered by {}", code.as_u16())]
    Answered {
        /// What was asked.
        path: String,
        /// The code of the answer.
        code: StatusCode,
    },
    /// The answer cannot be read.
    #[error("{0}")]
    Unreadable(#[from] DecodeError),
    /// The server ends while an answer is read.
    #[error("{0}")]
    Ended(#[from] tokio::task::JoinError),
    /// The question cannot be written down.
    #[error("{0}")]
    Question(#[from] http::Error),
}

/// Asks. No redirect is followed: whoever asks sees an answer that is none of the good ones.
pub(super) async fn get(
    aggregation: &Aggregation,
    cx: &ApiCx,
    remote: &Remote,
    question: &Question<'_>,
) -> Result<Answer, FetchError> {
    let answer = async { ask(aggregation, cx, &destination::of(cx, remote).await?, question).await };
    timeout(question.limit, answer).await.unwrap_or(Err(FetchError::TimedOut))
}

/// The same of a server that was found already.
pub(crate) async fn get_from(
    aggregation: &Aggregation,
    cx: &ApiCx,
    backend: &Backend,
    question: &Question<'_>,
) -> Result<Answer, FetchError> {
    timeout(question.limit, ask(aggregation, cx, backend, question)).await.unwrap_or(Err(FetchError::TimedOut))
}

/// What is asked, for messages.
pub(super) fn url(backend: &Backend, path: &str) -> String {
    format!("https://{}{path}", backend.authority)
}

async fn ask(
    aggregation: &Aggregation,
    cx: &ApiCx,
    backend: &Backend,
    question: &Question<'_>,
) -> Result<Answer, FetchError> {
    let url = || url(backend, question.path);
    let mut request = Request::get(question.path).header(HOST, &backend.authority).header(ACCEPT, question.accept);
    if let Some(known) = question.known.and_then(|known| HeaderValue::from_str(known).ok()) {
        request = request.header(IF_NONE_MATCH, known);
    }
    let mut request = request.body(empty())?;
    identity::tell(request.headers_mut(), &question.user, aggregation.uids)
        .map_err(|error| FetchError::Connection { url: url(), source: std::io::Error::other(error) })?;
    let failed = |source| {
        aggregation.metrics.note_failure(&source);
        FetchError::Connection { url: url(), source }
    };
    let io = backend.dial().await.map_err(failed)?;
    let (parts, body) = send(io, request, cx.tasks()).await.map_err(failed)?.into_parts();
    let body = read(body, question.limit_bytes).await.map_err(|why| FetchError::Body { url: url(), why })?;
    Ok(Answer { status: parts.status, headers: parts.headers, body })
}

/// The whole body, unless it is longer than it may be.
async fn read(mut body: Body, limit_bytes: usize) -> Result<Bytes, String> {
    let mut out = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
        if out.len() + data.len() > limit_bytes {
            return Err(format!("it is longer than {limit_bytes} bytes"));
        }
        out.extend_from_slice(&data);
    }
    Ok(out.freeze())
}
