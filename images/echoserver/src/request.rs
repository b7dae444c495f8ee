//! Reads one HTTP/1 request, within bounds; no keep-alive and no chunked bodies.

use std::io::{self, Read};

/// The request line and headers may take this many bytes.
const HEAD_MAX: usize = 64 * 1024;
/// A longer body is cut off here.
const BODY_MAX: usize = 1024 * 1024;

/// One request as it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// `1.0` or `1.1`.
    pub version: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads a request; `None` if the peer closed first or did not speak HTTP.
    pub fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if bytes.len() > HEAD_MAX || read_some(stream, &mut bytes)? == 0 {
                return Ok(None);
            }
        };
        let rest = bytes.split_off(head_end);
        let Some(mut request) = Self::parse_head(&String::from_utf8_lossy(&bytes)) else { return Ok(None) };
        request.body = rest.get(4..).unwrap_or_default().to_vec();
        let announced = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let wanted = usize::min(announced, BODY_MAX);
        while request.body.len() < wanted && read_some(stream, &mut request.body)? > 0 {}
        request.body.truncate(wanted);
        Ok(Some(request))
    }

    fn parse_head(head: &str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?.strip_prefix("HTTP/")?);
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self { method: method.into(), target: target.into(), version: version.into(), headers, body: Vec::new() })
    }

    /// The first header of this (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The query as sent, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// A number in the query.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.query()?.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1.parse().ok()
    }
}

fn read_some(stream: &mut impl Read, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 8192];
    let count = stream.read(&mut chunk)?;
    into.extend(chunk.iter().take(count));
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Request> {
        Request::read(&mut text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn a_request_is_taken_apart() {
        let request =
            read("POST /a/b?s=3&t HTTP/1.1\r\nHost: x:1\r\nContent-Length: 2\r\n\r\nhello").unwrap_or_default();
        assert_eq!((request.path(), request.query(), request.number("s")), ("/a/b", Some("s=3&t"), Some(3)));
        assert_eq!((request.header("host"), request.body.as_slice()), (Some("x:1"), &b"he"[..]));
    }

    #[test]
    fn what_is_not_http_gets_no_answer() {
        for text in ["", "GET / HTTP/1.1\r\n", "hello\r\n\r\n", "GET /\r\n\r\n"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
