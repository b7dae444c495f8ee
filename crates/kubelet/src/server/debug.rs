//! Handlers for people: running a command, the machine's logs, the log's verbosity, checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use component_base::serving::{self, Request, Response, text};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;

use super::Api;
use super::query::Query;
use super::route::json_answer;

/// The directory of the machine's logs.
const LOGS: &str = "/var/log";
/// The most of a log that is served at once; of longer ones parts can be asked for.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// The largest body of a verbosity.
const MAX_BODY: usize = 64;
/// What upstream waits at least for a checkpoint.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(120);

/// `/run/{namespace}/{pod}[/{uid}]/{container}?cmd=`
pub(super) async fn run(api: Arc<Api>, path: &[&str], query: &Query) -> Response {
    let (namespace, name, container) = match path {
        [namespace, name, container] | [namespace, name, _, container] => (namespace, name, container),
        _ => return super::route::not_found(),
    };
    let Some(pod) = api.engine.pod(namespace, name) else {
        return text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    let command = query.get("cmd").unwrap_or_default().split(' ').map(ToOwned::to_owned).collect();
    let id = match api.engine.container_id(&pod, container).await {
        Ok(id) => id,
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    match api.runtime.exec_sync(&id, command, Duration::ZERO).await {
        Ok(answer) => json_answer([answer.stdout, answer.stderr].concat()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// `/checkpoint/{namespace}/{pod}/{container}`
pub(super) async fn checkpoint(api: Arc<Api>, path: &[&str], query: &Query) -> Response {
    let [namespace, name, container] = path else { return super::route::not_found() };
    let Some(pod) = api.engine.pod(namespace, name) else {
        return text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    let Ok(id) = api.engine.container_id(&pod, container).await else {
        return text(StatusCode::NOT_FOUND, format!("container {container} does not exist"));
    };
    let timeout = match query.get("timeout").map(str::parse::<i64>) {
        None => 0,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => return text(StatusCode::NOT_FOUND, "cannot parse value of timeout parameter"),
    };
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("checkpointing of {namespace}/{name}/{container} failed ({error})");
        text(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    let Ok(timeout) = u64::try_from(timeout) else { return failed(&"timeout is negative") };
    let time = Time::from(api.clock.wall());
    let file = format!("checkpoint-{name}_{namespace}-{container}-{time}.tar");
    let location = api.stats.root_dir().join("checkpoints").join(file).display().to_string();
    let timeout = Duration::from_secs(timeout).max(CHECKPOINT_TIMEOUT);
    match api.runtime.checkpoint_container(&id, &location, timeout).await {
        Ok(()) => json_answer(serde_json::json!({"items": [location]}).to_string()),
        Err(error) => failed(&error),
    }
}

/// `/logs/{path}`: files as they are, directories as lists of links. Nothing outside the directory is served.
pub(super) async fn machine_logs(api: Arc<Api>, path: &[&str], headers: &HeaderMap) -> Response {
    if api.config.enable_system_log_handler == Some(false) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "logs endpoint is disabled.");
    }
    let relative = path.join("/");
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()).map(ToOwned::to_owned);
    let read = tokio::task::spawn_blocking(move || listing_or_file(Path::new(&relative), range.as_deref()));
    match read.await {
        Ok(Ok(response)) => response,
        _ => super::route::not_found(),
    }
}

fn listing_or_file(relative: &Path, range: Option<&str>) -> std::io::Result<Response> {
    let held = sys::fs::open_beneath(Path::new(LOGS), relative)?;
    let meta = std::fs::metadata(held.path())?;
    if meta.is_dir() {
        return Ok(html(listing(&held.path())?));
    }
    if !meta.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    file(std::fs::File::open(held.path())?, meta.len(), range)
}

/// A file or the part of it that is asked for.
fn file(mut file: std::fs::File, length: u64, range: Option<&str>) -> std::io::Result<Response> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let part = match range.map(|range| part_of(range, length)) {
        None | Some(Part::Whole) => 0..length,
        Some(Part::Some(part)) => part,
        Some(Part::Beyond) => {
            let mut response = text(StatusCode::RANGE_NOT_SATISFIABLE, "invalid range: failed to overlap\n");
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return Ok(response);
        }
    };
    if part.end - part.start > MAX_LOG_BYTES {
        let why =
            format!("{length} bytes are too many to be sent at once: ask for ranges of at most {MAX_LOG_BYTES}\n");
        return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(part.start))?;
    file.take(part.end - part.start).read_to_end(&mut bytes)?;
    let mut response = text(if part == (0..length) { StatusCode::OK } else { StatusCode::PARTIAL_CONTENT }, bytes);
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    if part != (0..length) {
        set(&mut response, header::CONTENT_RANGE, &format!("bytes {}-{}/{length}", part.start, part.end - 1));
    }
    Ok(response)
}

fn set(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// What a `Range` header means for a file of some length.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Nothing that is understood: a server may then send everything.
    Whole,
    Some(std::ops::Range<u64>),
    Beyond,
}

/// One range of bytes: from here to there, from here on, or so many at the end.
fn part_of(range: &str, length: u64) -> Part {
    let Some((from, to)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Part::Whole;
    };
    let part = match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => from..to.saturating_add(1).min(length),
        (Ok(from), Err(_)) if to.trim().is_empty() => from..length,
        (Err(_), Ok(last)) if from.trim().is_empty() => length.saturating_sub(last)..length,
        _ => return Part::Whole,
    };
    if part.start < part.end { Part::Some(part) } else { Part::Beyond }
}

fn listing(directory: &Path) -> std::io::Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let slash = if entry.path().is_dir() { "/" } else { "" };
        names.push(escaped(&format!("{}{slash}", entry.file_name().to_string_lossy())));
    }
    names.sort();
    let links: Vec<String> = names.iter().map(|name| format!("<a href=\"{name}\">{name}</a>\n")).collect();
    Ok(format!(
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n{}</pre>\n",
        links.concat()
    ))
}

fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

fn html(content: String) -> Response {
    let mut response = Response::new(serving::full(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// `/debug/pprof`: profiles are made with the machine's own tools; what is asked for here is refused.
pub(super) fn profiles(api: &Api) -> Response {
    if api.config.enable_profiling_handler == Some(false) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "profiling endpoint is disabled.");
    }
    text(StatusCode::NOT_IMPLEMENTED, "profiles are not available")
}

/// `PUT /debug/flags/v`
pub(super) async fn verbosity(api: Arc<Api>, request: Request) -> Response {
    if api.config.enable_debug_flags_handler == Some(false) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "flags endpoint is disabled.");
    }
    if request.method() != Method::PUT {
        let message = format!("unrecognized http method {:?}", request.method().as_str());
        return text(StatusCode::BAD_REQUEST, message);
    }
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        bytes.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
        if bytes.len() > MAX_BODY {
            break;
        }
    }
    let level = String::from_utf8(bytes).ok();
    let level = level.and_then(|level| level.trim().parse::<i32>().ok());
    match (level, &api.set_verbosity) {
        (Some(level), Some(set)) => {
            set(level);
            text(StatusCode::OK, format!("successfully set klog.logging.verbosity to {level}"))
        }
        (Some(_), None) => text(StatusCode::BAD_REQUEST, "the log belongs to another process"),
        (None, _) => text(StatusCode::BAD_REQUEST, "failed set klog.logging.verbosity: not a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        let cases = [
            ("bytes=2-4", Part::Some(2..5)),
            ("bytes=2-", Part::Some(2..10)),
            ("bytes=-3", Part::Some(7..10)),
            ("bytes=-30", Part::Some(0..10)),
            ("bytes=8-100", Part::Some(8..10)),
            ("bytes=10-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=4-2", Part::Whole),
            ("bytes=1-2,4-5", Part::Whole),
            ("lines=1-2", Part::Whole),
            ("bytes=18446744073709551615-18446744073709551615", Part::Beyond),
        ];
        for (range, expected) in cases {
            assert_eq!(part_of(range, 10), expected, "{range}");
        }
    }

    #[tokio::test]
    async fn long_files_are_served_in_parts_only() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), "0123456789").unwrap();
        let ask = |length: u64, range: Option<&str>| {
            let answer = file(std::fs::File::open(path.path()).unwrap(), length, range).unwrap();
            let shown = answer.headers().get(header::CONTENT_RANGE).map(|value| value.to_str().unwrap().to_owned());
            (answer.status().as_u16(), shown, answer.into_body().collect())
        };
        for (length, range, code, shown, content) in [
            (10, None, 200, None, "0123456789"),
            (10, Some("bytes=2-4"), 206, Some("bytes 2-4/10"), "234"),
            (10, Some("bytes=10-"), 416, Some("bytes */10"), "invalid range: failed to overlap\n"),
            (MAX_LOG_BYTES + 1, Some("bytes=8-9"), 206, Some("bytes 8-9/67108865"), "89"),
        ] {
            let (found, header, body) = ask(length, range);
            assert_eq!((found, header.as_deref()), (code, shown), "{range:?}");
            assert_eq!(body.await.unwrap().to_bytes(), content);
        }
        assert_eq!(ask(MAX_LOG_BYTES + 1, None).0, 413);
    }
}
