//! Asking other servers what they serve: for one document where they have it, or for the older one of the version.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::json;
use api_machinery::meta::APIResourceList;
use api_types::apidiscovery_v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use async_trait::async_trait;
use client::WorkQueue;
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};
use serde_json::Value;

use super::documents::{current, stale};
use super::fetch::{self, Answer, FetchError, Question};
use super::identity;
use super::legacy_resources;
use super::poll::Subject;
use super::state::Aggregation;
use super::table::Remote;
use crate::cx::ApiCx;

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
/// How long a server may take for a document.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest document: some thousand kinds.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// The hook `apiservice-discovery-controller`.
pub(super) struct Discovery;

#[async_trait]
impl Subject for Discovery {
    fn name(&self) -> &'static str {
        "apiservice-discovery-controller"
    }

    fn queue<'a>(&self, aggregation: &'a Aggregation) -> &'a WorkQueue<String> {
        &aggregation.queues.discovery
    }

    fn is_awaited(&self) -> bool {
        true
    }

    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), FetchError> {
        let documents = &aggregation.documents.0;
        let outcome = match in_one_document(aggregation, cx, remote, documents.tag(&remote.name)).await {
            Ok(Said::Nothing) => of_version(aggregation, cx, remote).await.map(|version| (None, version)),
            Ok(Said::TheSame) => return Ok(()),
            Ok(Said::All(tag, resources)) => Ok((tag, current(remote, resources))),
            Err(error) => Err(error),
        };
        match outcome {
            Ok((tag, version)) => {
                documents.put(&remote.name, tag, Arc::new(version));
                Ok(())
            }
            Err(error) => {
                documents.put(&remote.name, None, Arc::new(stale(remote)));
                Err(error)
            }
        }
    }

    fn forget(&self, aggregation: &Aggregation, name: &str) {
        aggregation.documents.0.forget(name);
    }
}

/// What a server says when it is asked for one document.
enum Said {
    TheSame,
    All(Option<String>, Vec<APIResourceDiscovery>),
    /// It has no such document.
    Nothing,
}

async fn in_one_document(
    aggregation: &Aggregation,
    cx: &ApiCx,
    remote: &Remote,
    tag: Option<String>,
) -> Result<Said, FetchError> {
    let question = Question {
        path: "/apis",
        accept: ACCEPT,
        known: tag.as_deref(),
        user: identity::aggregator(&[authn::MASTERS]),
        limit: LIMIT,
        limit_bytes: LIMIT_BYTES,
    };
    let answer = fetch::get(aggregation, cx, remote, &question).await?;
    match answer.status {
        StatusCode::NOT_MODIFIED if tag.is_some() => Ok(Said::TheSame),
        StatusCode::SERVICE_UNAVAILABLE => Err(question.answered_by(answer.status)),
        StatusCode::OK if is_whole(&answer) => {
            // One that cannot be read is as good as none.
            Ok(resources_of(remote, &answer)
                .map_or(Said::Nothing, |resources| Said::All(answer.header(ETAG).map(str::to_owned), resources)))
        }
        _ => Ok(Said::Nothing),
    }
}

/// Whether an answer is the one document, and not what older servers send instead.
fn is_whole(answer: &Answer) -> bool {
    let kind = answer.header(CONTENT_TYPE).unwrap_or_default();
    let parts: Vec<&str> = kind.split(';').map(str::trim).collect();
    let has = |part: &str| parts.contains(&part);
    has("application/json")
        && has("g=apidiscovery.k8s.io")
        && has("as=APIGroupDiscoveryList")
        && (has("v=v2") || has("v=v2beta1"))
}

/// The resources of the version; none where the document does not have it.
fn resources_of(remote: &Remote, answer: &Answer) -> Option<Vec<APIResourceDiscovery>> {
    let document = json::parse_value(std::str::from_utf8(&answer.body).ok()?).ok()?;
    let groups = document.get("items")?.as_array()?;
    let named = |group: &&Value| group.pointer("/metadata/name").and_then(Value::as_str) == Some(remote.group.as_str());
    let Some(group) = groups.iter().find(named) else { return Some(Vec::new()) };
    let mut read = APIGroupDiscovery::default();
    json::decode(json::encode_value(group).as_bytes(), &mut read).ok()?;
    let version = read.versions.into_iter().find(|own| own.version == remote.version);
    Some(version.map(|own| own.resources).unwrap_or_default())
}

/// The older document, of one version.
async fn of_version(aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<APIVersionDiscovery, FetchError> {
    let path = remote.path();
    let question = Question {
        path: &path,
        accept: "application/json",
        known: None,
        user: identity::aggregator(&[]),
        limit: LIMIT,
        limit_bytes: LIMIT_BYTES,
    };
    let answer = fetch::get(aggregation, cx, remote, &question).await?;
    match answer.status {
        StatusCode::OK => {
            let mut list = APIResourceList::default();
            json::decode(&answer.body, &mut list)?;
            Ok(current(remote, legacy_resources::converted(&list)))
        }
        StatusCode::NOT_FOUND => Ok(current(remote, Vec::new())),
        other => Err(question.answered_by(other)),
    }
}
