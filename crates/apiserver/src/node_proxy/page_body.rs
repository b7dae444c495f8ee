//! The bodies of pages that a proxy passes on: unpacked, their links led through the proxy, and packed again.

use std::io::{self, Write as _};

use bytes::Bytes;
use component_base::serving::{Body, BoxError, Response};
use flate2::Compression;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzDecoder, GzEncoder};
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::html_links::HtmlLinks;

type Rewrite = Box<dyn Fn(&str) -> Option<String> + Send>;

/// Rewrites the links of an answer that is a page; any other answer stays as it is.
pub(super) fn with_links(response: Response, rewrite: impl Fn(&str) -> Option<String> + Send + 'static) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = |name| parts.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let is_page = text(CONTENT_TYPE).is_some_and(|kind| kind.split(';').next().unwrap_or("").trim() == "text/html");
    let packing = is_page.then(|| Packing::of(text(CONTENT_ENCODING).unwrap_or_default())).flatten();
    let Some(packing) = packing else { return Response::from_parts(parts, body) };
    parts.headers.remove(CONTENT_LENGTH);
    let page = Page { packing, links: HtmlLinks::new(Box::new(rewrite)) };
    Response::from_parts(parts, rewritten(body, page))
}

fn rewritten(body: Body, page: Page) -> Body {
    let pieces = stream::unfold(Some((body.into_data_stream(), page)), |state| async {
        let (mut data, mut page) = state?;
        let (piece, state): (Result<Vec<u8>, BoxError>, _) = match data.next().await {
            Some(Ok(bytes)) => (page.push(&bytes).map_err(Into::into), Some((data, page))),
            Some(Err(error)) => (Err(error), None),
            None => (page.finish().map_err(Into::into), None),
        };
        Some((piece.map(|bytes| Frame::data(Bytes::from(bytes))), state))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// How the bytes of a page are packed.
enum Packing {
    Plain,
    Gzip(GzDecoder<Vec<u8>>, GzEncoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>, DeflateEncoder<Vec<u8>>),
}

impl Packing {
    /// Nothing for one that is not known.
    fn of(encoding: &str) -> Option<Self> {
        let level = Compression::fast();
        match encoding {
            "" | "identity" => Some(Self::Plain),
            "gzip" => Some(Self::Gzip(GzDecoder::new(Vec::new()), GzEncoder::new(Vec::new(), level))),
            "deflate" => Some(Self::Deflate(DeflateDecoder::new(Vec::new()), DeflateEncoder::new(Vec::new(), level))),
            _ => None,
        }
    }

    fn unpack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let inner = match self {
            Self::Plain => return Ok(bytes.to_vec()),
            Self::Gzip(decoder, _) => {
                decoder.write_all(bytes)?;
                decoder.get_mut()
            }
            Self::Deflate(decoder, _) => {
                decoder.write_all(bytes)?;
                decoder.get_mut()
            }
        };
        Ok(std::mem::take(inner))
    }

    /// Packs what there is so far; the client may be waiting for it.
    fn pack(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let inner = match self {
            Self::Plain => return Ok(bytes),
            Self::Gzip(_, encoder) => {
                encoder.write_all(&bytes)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Deflate(_, encoder) => {
                encoder.write_all(&bytes)?;
                encoder.flush()?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(inner))
    }

    /// What was kept back while unpacking, and what ends the packed bytes once `last` is packed.
    fn finish(&mut self, last: impl FnOnce(&[u8]) -> Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(last(&[])),
            Self::Gzip(decoder, encoder) => {
                decoder.try_finish()?;
                encoder.write_all(&last(decoder.get_ref()))?;
                encoder.try_finish()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Deflate(decoder, encoder) => {
                decoder.try_finish()?;
                encoder.write_all(&last(decoder.get_ref()))?;
                encoder.try_finish()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }
}

/// A page on its way.
struct Page {
    packing: Packing,
    links: HtmlLinks<Rewrite>,
}

impl Page {
    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let plain = self.packing.unpack(bytes)?;
        let done = self.links.push(&plain);
        self.packing.pack(done)
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        let links = &mut self.links;
        self.packing.finish(|kept| [links.push(kept), links.finish()].concat())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use component_base::serving::full;

    use super::*;

    const PAGE: &[u8] = b"<a href=\"/x\">";
    const EXPECTED: &[u8] = b"<a href=\"/p/x\">";

    async fn through(kind: &str, encoding: &str, body: Vec<u8>) -> (bool, Bytes) {
        let response = http::Response::builder().header(CONTENT_TYPE, kind).header(CONTENT_LENGTH, body.len());
        let response = response.header(CONTENT_ENCODING, encoding).body(full(body)).unwrap();
        let passed = with_links(response, |link| Some(format!("/p{link}")));
        let has_length = passed.headers().contains_key(CONTENT_LENGTH);
        (has_length, passed.into_body().collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn pages_are_rewritten_in_any_packing_that_is_known() {
        assert_eq!(through("text/html; charset=utf-8", "", PAGE.to_vec()).await, (false, EXPECTED.into()));
        assert_eq!(through("text/plain", "", PAGE.to_vec()).await, (true, PAGE.into()));
        assert_eq!(through("text/html", "br", PAGE.to_vec()).await, (true, PAGE.into()));
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(PAGE).unwrap();
        let (_, body) = through("text/html", "gzip", packed.finish().unwrap()).await;
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_ref()).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, EXPECTED);
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        packed.write_all(PAGE).unwrap();
        let (_, body) = through("text/html", "deflate", packed.finish().unwrap()).await;
        let mut plain = Vec::new();
        flate2::read::DeflateDecoder::new(body.as_ref()).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, EXPECTED);
    }
}
