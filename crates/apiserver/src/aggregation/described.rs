//! Asking other servers how they describe what they serve.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use client::WorkQueue;
use http::StatusCode;
use http::header::ETAG;
use serde_json::Value;

use super::fetch::{self, FetchError, Question};
use super::identity;
use super::poll::Subject;
use super::specs::converted::{self, Common};
use super::specs::part::{self, LIMIT_BYTES, Part};
use super::specs::{Location, VERSION_3, key};
use super::state::Aggregation;
use super::table::Remote;
use crate::cx::ApiCx;
use crate::openapi::document::Document;

const VERSION_2: &str = "/openapi/v2";
/// How long a server may take to describe itself, as upstream.
const LIMIT: Duration = Duration::from_secs(60);

/// The hook `apiservice-openapi-controller`: parts of the document of version 2.
pub(super) struct OpenApi2;

#[async_trait]
impl Subject for OpenApi2 {
    fn name(&self) -> &'static str {
        "apiservice-openapi-controller"
    }

    fn queue<'a>(&self, aggregation: &'a Aggregation) -> &'a WorkQueue<String> {
        &aggregation.queues.openapi_2
    }

    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), FetchError> {
        let parts = &aggregation.specs.parts;
        let (tag, part) = match ask(aggregation, cx, remote, VERSION_2, parts.tag(&remote.name)).await? {
            Said::TheSame => return Ok(()),
            Said::Nothing => (None, None),
            Said::Document(tag, body) => {
                let prefix = remote.path();
                (tag, in_background(move || Part::of(part::read(&body)?, &prefix)).await?.map(Arc::new))
            }
        };
        if let Some(change) = parts.put(&remote.name, tag, part) {
            aggregation.metrics.note_description(&remote.name, change);
        }
        Ok(())
    }

    fn forget(&self, aggregation: &Aggregation, name: &str) {
        if let Some(change) = aggregation.specs.parts.forget(name) {
            aggregation.metrics.note_description(name, change);
        }
    }
}

/// The hook `apiservice-openapiv3-controller`: where documents of version 3 are.
pub(super) struct OpenApi3;

#[async_trait]
impl Subject for OpenApi3 {
    fn name(&self) -> &'static str {
        "apiservice-openapiv3-controller"
    }

    fn queue<'a>(&self, aggregation: &'a Aggregation) -> &'a WorkQueue<String> {
        &aggregation.queues.openapi_3
    }

    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), FetchError> {
        let locations = &aggregation.specs.locations;
        let known = locations.tag(&remote.name);
        let (tag, location) = match ask(aggregation, cx, remote, VERSION_3, known.clone()).await? {
            Said::TheSame => return Ok(()),
            Said::Document(tag, index) => (tag, url_in(&index, remote).map_or(Location::Nowhere, Location::There)),
            Said::Nothing => match ask(aggregation, cx, remote, VERSION_2, known).await? {
                Said::TheSame => return Ok(()),
                Said::Document(tag, body) => (tag, made_of_version_2(cx, remote, body).await?),
                Said::Nothing => (None, Location::Nowhere),
            },
        };
        locations.put(&remote.name, tag, location);
        Ok(())
    }

    fn forget(&self, aggregation: &Aggregation, name: &str) {
        aggregation.specs.locations.forget(name);
    }
}

/// The document of version 3 of a server that has only the older one.
async fn made_of_version_2(cx: &ApiCx, remote: &Remote, body: Bytes) -> Result<Location, FetchError> {
    let (prefix, now) = (remote.path(), cx.clock().wall());
    let made = in_background(move || made_of(&body, &prefix, now)).await?;
    Ok(made.map_or(Location::Nowhere, Location::Here))
}

fn made_of(body: &[u8], prefix: &str, now: SystemTime) -> Option<Document> {
    let old = part::read(body)?;
    let common = Common::of(&old);
    Some(Document::new(&converted::document(&Part::of(old, prefix)?, &common), now))
}

/// A long description takes a while to read; other requests must not wait for it.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, FetchError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

/// What a server says when it is asked for a document.
enum Said {
    /// It is the one that is known.
    TheSame,
    /// There is none.
    Nothing,
    /// With its tag.
    Document(Option<String>, Bytes),
}

async fn ask(
    aggregation: &Aggregation,
    cx: &ApiCx,
    remote: &Remote,
    path: &str,
    known: Option<String>,
) -> Result<Said, FetchError> {
    let question = Question {
        path,
        accept: "application/json",
        known: known.as_deref(),
        user: identity::aggregator(&[authn::MASTERS]),
        limit: LIMIT,
        limit_bytes: LIMIT_BYTES,
    };
    let answer = fetch::get(aggregation, cx, remote, &question).await?;
    match answer.status {
        StatusCode::NOT_MODIFIED if known.is_some() => Ok(Said::TheSame),
        StatusCode::OK => Ok(Said::Document(answer.header(ETAG).map(str::to_owned), answer.body)),
        StatusCode::NOT_FOUND => Ok(Said::Nothing),
        other => Err(question.answered_by(other)),
    }
}

/// Where an index says that the document of the version is.
fn url_in(index: &[u8], remote: &Remote) -> Option<String> {
    let index: Value = serde_json::from_slice(index).ok()?;
    let key = key(remote);
    let url = index.get("paths")?.get(&key)?.get("serverRelativeURL")?.as_str()?;
    // Nothing else is passed on to the server.
    let location = format!("{VERSION_3}/{key}");
    let rest = url.strip_prefix(&location)?;
    (rest.is_empty() || rest.starts_with('?')).then(|| url.to_owned())
}
