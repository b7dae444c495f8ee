//! `/containerLogs`.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use bytes::Bytes;
use component_base::serving::{BoxError, Query, Response, text};
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::mpsc;

use super::Api;
use super::log_read::{self, LogError, LogOptions};
use crate::engine::LookupError;

/// Both streams of a log together.
const ALL_STREAMS: &str = "All";
/// Pieces of a log on their way to a client.
pub(super) const PIECES: usize = 8;

/// Answers `/containerLogs/{namespace}/{pod}/{container}`.
pub(super) async fn answer(api: &Arc<Api>, path: &[&str], query: Option<Query>) -> Response {
    let bad = |message: &str| text(StatusCode::BAD_REQUEST, format!("{{\"message\": {message:?}}}"));
    let (namespace, pod_name, container) = match path {
        [] | [""] => return bad("Missing podNamespace."),
        [_] => return bad("Missing podID."),
        [_, _] => return bad("Missing container name."),
        [namespace, pod, container, ..] => (*namespace, *pod, *container),
    };
    let Some(query) = query else { return bad("Unable to decode query.") };
    let now = Time::from(api.clock.wall());
    let options = match options_of(&query, api.splits_log_streams, now) {
        Ok(options) => options,
        Err(Mistake::Query) => return bad("Unable to decode query."),
        Err(Mistake::Options) => {
            return text(StatusCode::UNPROCESSABLE_ENTITY, "{\"message\": \"Invalid request.\"}");
        }
    };
    if let Some(stream) = query.get("stream").filter(|stream| *stream != ALL_STREAMS && !api.splits_log_streams) {
        let message = format!(
            "unable to return the given log stream: {stream:?}. Please enable PodLogsQuerySplitStreams feature gate in kubelet"
        );
        return text(StatusCode::BAD_REQUEST, message);
    }
    let Some(pod) = api.engine.pod(namespace, pod_name) else {
        return text(StatusCode::NOT_FOUND, format!("pod {pod_name:?} does not exist"));
    };
    if !has_container(&pod, container) {
        let message = format!("container {container:?} not found in pod {pod_name:?}");
        return text(StatusCode::NOT_FOUND, message);
    }
    match api.engine.log_source(&pod, container, query.is_on("previous")) {
        Ok(source) => {
            let (sink, mut pieces) = mpsc::channel(PIECES);
            let read = log_read::read(api.engine.clone(), source.path, source.container_id, options, sink);
            api.tasks.spawn_cancellable("container-log", read);
            match pieces.recv().await {
                Some(Err(error)) => text(StatusCode::BAD_REQUEST, error.to_string()),
                first => streamed(first, pieces),
            }
        }
        Err(LookupError::NotFound(error) | LookupError::NotAvailable(error)) => text(StatusCode::BAD_REQUEST, error),
    }
}

pub(super) fn has_container(pod: &api_types::core_v1::Pod, name: &str) -> bool {
    let spec = &pod.spec;
    spec.containers.iter().chain(&spec.init_containers).any(|container| container.name == name)
        || spec.ephemeral_containers.iter().any(|container| container.ephemeral_container_common.name == name)
}

/// What is wrong with the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    Query,
    Options,
}

fn options_of(query: &Query, splits_streams: bool, now: Time) -> Result<LogOptions, Mistake> {
    let number = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => text.parse::<i64>().map(Some).map_err(|_| Mistake::Query),
    };
    let mut tail = number("tailLines")?;
    match query.get("tail") {
        None => {}
        Some("all") => tail = None,
        Some(text) => tail = Some(text.parse().map_err(|_| Mistake::Query)?),
    }
    let (limit, seconds) = (number("limitBytes")?, number("sinceSeconds")?);
    let since_time = match query.get("sinceTime") {
        None => None,
        Some(text) => Some(Time::parse(text).map_err(|_| Mistake::Query)?),
    };
    let too_small = |value: Option<i64>, least: i64| value.is_some_and(|value| value < least);
    let twice = seconds.is_some() && since_time.is_some();
    if too_small(tail, 0) || too_small(limit, 1) || too_small(seconds, 1) || twice {
        return Err(Mistake::Options);
    }
    // Where streams are not split the caller refuses one, in other words.
    let stream = if splits_streams { stream_of(query)? } else { None };
    if stream.is_some() && tail.is_some() {
        return Err(Mistake::Options);
    }
    let from_seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(|seconds| {
        let now = std::time::SystemTime::from(now);
        Time::from(now.checked_sub(Duration::from_secs(seconds)).unwrap_or(std::time::UNIX_EPOCH))
    });
    Ok(LogOptions {
        follow: query.is_on("follow"),
        timestamps: query.is_on("timestamps"),
        since: from_seconds.or(since_time),
        tail: tail.and_then(|tail| u64::try_from(tail).ok()),
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        stream,
    })
}

/// The stream that is asked for alone (KEP-3288).
fn stream_of(query: &Query) -> Result<Option<&'static str>, Mistake> {
    match query.get("stream") {
        None | Some("" | ALL_STREAMS) => Ok(None),
        Some("Stdout") => Ok(Some("stdout")),
        Some("Stderr") => Ok(Some("stderr")),
        Some(_) => Err(Mistake::Options),
    }
}

/// What is read next, or why there is no more.
pub(super) type Piece = Result<Bytes, LogError>;

/// A body that grows as the log is read.
pub(super) fn streamed(first: Option<Piece>, pieces: mpsc::Receiver<Piece>) -> Response {
    let others = stream::unfold(pieces, |mut pieces| async move { pieces.recv().await.map(|piece| (piece, pieces)) });
    let is_something = |piece: &Piece| std::future::ready(!piece.as_ref().is_ok_and(Bytes::is_empty));
    let frames = stream::iter(first).chain(others).filter(is_something);
    let frames = frames.map(|piece| piece.map(Frame::data).map_err(BoxError::from));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_options() {
        let now = Time::from_unix_seconds(1000);
        let of = |text: &str| options_of(&Query::parse(text).unwrap(), true, now);
        let since = |seconds| Some(Time::from_unix_seconds(seconds));
        let cases = [
            ("", Ok(LogOptions::default())),
            ("follow=true&timestamps=1", Ok(LogOptions { follow: true, timestamps: true, ..LogOptions::default() })),
            ("tailLines=5&limitBytes=10", Ok(LogOptions { tail: Some(5), limit: Some(10), ..LogOptions::default() })),
            ("tailLines=5&tail=all", Ok(LogOptions::default())),
            ("tail=7", Ok(LogOptions { tail: Some(7), ..LogOptions::default() })),
            ("sinceSeconds=10", Ok(LogOptions { since: since(990), ..LogOptions::default() })),
            ("sinceTime=1970-01-01T00:01:00Z", Ok(LogOptions { since: since(60), ..LogOptions::default() })),
            ("stream=All&tailLines=5", Ok(LogOptions { tail: Some(5), ..LogOptions::default() })),
            ("stream=Stderr", Ok(LogOptions { stream: Some("stderr"), ..LogOptions::default() })),
            ("stream=Stdout&tailLines=5", Err(Mistake::Options)),
            ("stream=out", Err(Mistake::Options)),
            ("tailLines=x", Err(Mistake::Query)),
            ("tailLines=-1", Err(Mistake::Options)),
            ("limitBytes=0", Err(Mistake::Options)),
            ("sinceSeconds=1&sinceTime=1970-01-01T00:01:00Z", Err(Mistake::Options)),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
