//! Files of logs, and directories of them, as a server of files shows them. Which file that is, and that it lies where it
//! may, is the caller's business.

use std::path::Path;

use http::{HeaderValue, StatusCode, header};

use super::escaped;
use crate::serving::{Response, full, text};

/// The most of a log that is served at once; of longer ones parts can be asked for.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// A file, or the part of it that a `Range` header asks for; a directory as a list of links.
///
/// # Errors
/// When it is neither, or cannot be read.
pub fn answer(path: &Path, range: Option<&str>) -> std::io::Result<Response> {
    let meta = std::fs::metadata(path)?;
    if meta.is_dir() {
        return Ok(html(listing(path)?));
    }
    if !meta.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    file(std::fs::File::open(path)?, meta.len(), range)
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

fn html(content: String) -> Response {
    let mut response = Response::new(full(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

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
