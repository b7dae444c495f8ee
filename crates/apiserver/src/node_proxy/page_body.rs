//! The bodies of pages that a proxy passes on: unpacked, their links led through the proxy, and packed again.
//!
//! A few bytes may unpack to a thousand times as many, and whoever serves the page chooses them. So a page is unpacked
//! piece by piece, the next one when the client has taken the last, and others run between two pieces.

use std::io::{self, Write};
use std::sync::Arc;

use api_machinery::status::ApiError;
use bytes::{Buf as _, Bytes};
use component_base::serving::{Body, BoxError, Response};
use flate2::Compression;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzDecoder, GzEncoder};
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyDataStream, BodyExt as _, StreamBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::html_links::HtmlLinks;

/// How many packed pages may be on their way at once. Each holds the tables of both directions, about 400 KiB.
const PACKED_PAGES: usize = 128;
/// How much of a page that is not packed is looked at in one go.
const PLAIN_PIECE_BYTES: usize = 32 * 1024;

type Rewrite = Box<dyn Fn(&str) -> Option<String> + Send>;

/// The pages that are on their way.
pub(super) struct Pages {
    packed: Arc<Semaphore>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { packed: Arc::new(Semaphore::new(PACKED_PAGES)) }
    }
}

impl Pages {
    /// Rewrites the links of an answer that is a page; any other answer stays as it is.
    ///
    /// # Errors
    /// 429 while as many packed pages as may be are on their way.
    pub(super) fn with_links(
        &self,
        response: Response,
        rewrite: impl Fn(&str) -> Option<String> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let (mut parts, body) = response.into_parts();
        let text = |name| parts.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let is_page = text(CONTENT_TYPE).is_some_and(|kind| kind.split(';').next().unwrap_or("").trim() == "text/html");
        let packing = is_page.then(|| Packing::of(text(CONTENT_ENCODING).unwrap_or_default())).flatten();
        let Some(packing) = packing else { return Ok(Response::from_parts(parts, body)) };
        let permit = match packing {
            Packing::Plain => None,
            Packing::Packed { .. } => Some(Arc::clone(&self.packed).try_acquire_owned().map_err(|_| too_many())?),
        };
        parts.headers.remove(CONTENT_LENGTH);
        let page = Page { packing, links: HtmlLinks::new(Box::new(rewrite)), _permit: permit };
        Ok(Response::from_parts(parts, rewritten(body, page)))
    }
}

fn too_many() -> ApiError {
    ApiError::too_many_requests("too many compressed pages are being proxied, please try again later", 1)
}

fn rewritten(body: Body, page: Page) -> Body {
    let passage = Passage { source: body.into_data_stream(), input: Bytes::new(), page };
    let pieces = stream::unfold(Some(passage), |passage| async {
        let mut passage = passage?;
        // A client that takes everything at once must not keep others waiting.
        tokio::task::yield_now().await;
        Some(match passage.next().await {
            Ok(Some(piece)) => (Ok(Frame::data(Bytes::from(piece))), Some(passage)),
            Ok(None) => (passage.page.finish().map_err(Into::into).map(|last| Frame::data(Bytes::from(last))), None),
            Err(error) => (Err(error), None),
        })
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// A page between its server and the client.
struct Passage {
    source: BodyDataStream<Body>,
    /// What came and was not looked at yet.
    input: Bytes,
    page: Page,
}

impl Passage {
    /// The next piece, which may be empty; nothing at the end of what the server sent.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, BoxError> {
        if self.input.is_empty() {
            let Some(bytes) = self.source.next().await else { return Ok(None) };
            self.input = bytes?;
        }
        Ok(Some(self.page.push(&mut self.input)?))
    }
}

/// How the bytes of a page are packed.
enum Packing {
    Plain,
    Packed { unpack: Box<dyn Coder>, pack: Box<dyn Coder> },
}

/// One direction of a packing. Each write gives at most as much as flate2's own buffer holds (32 KiB) and tells how much
/// it has read for that.
trait Coder: Write + Send {
    /// What was made so far.
    fn take(&mut self) -> Vec<u8>;
    /// Makes what belongs to the end.
    fn end(&mut self) -> io::Result<()>;
}

macro_rules! coders {
    ($($coder:ident),*) => {$(
        impl Coder for $coder<Vec<u8>> {
            fn take(&mut self) -> Vec<u8> {
                std::mem::take(self.get_mut())
            }

            fn end(&mut self) -> io::Result<()> {
                self.try_finish()
            }
        }
    )*};
}

coders!(GzDecoder, GzEncoder, DeflateDecoder, DeflateEncoder);

impl Packing {
    /// Nothing for one that is not known.
    fn of(encoding: &str) -> Option<Self> {
        let level = Compression::fast();
        let (unpack, pack): (Box<dyn Coder>, Box<dyn Coder>) = match encoding {
            "" | "identity" => return Some(Self::Plain),
            "gzip" => (Box::new(GzDecoder::new(Vec::new())), Box::new(GzEncoder::new(Vec::new(), level))),
            "deflate" => (Box::new(DeflateDecoder::new(Vec::new())), Box::new(DeflateEncoder::new(Vec::new(), level))),
            _ => return None,
        };
        Some(Self::Packed { unpack, pack })
    }

    /// Unpacks the next piece of the input, which is shorter by it then.
    fn unpack(&mut self, input: &mut Bytes) -> io::Result<Vec<u8>> {
        let Self::Packed { unpack, .. } = self else {
            return Ok(input.split_to(input.len().min(PLAIN_PIECE_BYTES)).into());
        };
        let read = unpack.write(input)?;
        input.advance(read);
        if input.is_empty() {
            // Whatever can be told from what is here; the client may be waiting for it.
            unpack.flush()?;
        }
        let piece = unpack.take();
        // flate2 reads nothing only behind the end, or to make room.
        if read == 0 && piece.is_empty() && !input.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes behind the end of a compressed page"));
        }
        Ok(piece)
    }

    /// Packs what is done. With `all`, nothing of it is kept back.
    fn pack(&mut self, bytes: Vec<u8>, all: bool) -> io::Result<Vec<u8>> {
        let Self::Packed { pack, .. } = self else { return Ok(bytes) };
        pack.write_all(&bytes)?;
        if all {
            pack.flush()?;
        }
        Ok(pack.take())
    }
}

/// A page on its way.
struct Page {
    packing: Packing,
    links: HtmlLinks<Rewrite>,
    /// Counts the page.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Page {
    fn push(&mut self, input: &mut Bytes) -> io::Result<Vec<u8>> {
        let plain = self.packing.unpack(input)?;
        let done = self.links.push(&plain);
        self.packing.pack(done, input.is_empty())
    }

    /// What was kept back, and what ends the packed bytes.
    fn finish(mut self) -> io::Result<Vec<u8>> {
        let Packing::Packed { unpack, pack } = &mut self.packing else { return Ok(self.links.finish()) };
        unpack.end()?;
        let last = self.links.push(&unpack.take());
        pack.write_all(&last)?;
        pack.write_all(&self.links.finish())?;
        pack.end()?;
        Ok(pack.take())
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
        let passed = Pages::default().with_links(response, |link| Some(format!("/p{link}"))).unwrap();
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

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(plain).unwrap();
        packed.finish().unwrap()
    }

    fn page(packed: Vec<u8>) -> Response {
        let response = http::Response::builder().header(CONTENT_TYPE, "text/html").header(CONTENT_ENCODING, "gzip");
        response.body(full(packed)).unwrap()
    }

    #[tokio::test]
    async fn what_unpacks_to_a_lot_passes_in_small_pieces() {
        let plain = b"<a".repeat(4 << 20);
        let packed = gzip(&plain);
        assert!(packed.len() < 25_000, "{}", packed.len());
        let mut page = Page {
            packing: Packing::of("gzip").unwrap(),
            links: HtmlLinks::new(Box::new(|_: &str| None)),
            _permit: None,
        };
        let (mut input, mut pieces, mut total) = (Bytes::from(packed), 0, 0);
        while !input.is_empty() {
            let piece = page.packing.unpack(&mut input).unwrap();
            assert!(piece.len() <= 128 * 1024, "{} bytes at once", piece.len());
            pieces += 1;
            total += piece.len();
        }
        assert_eq!(total, plain.len());
        assert!(pieces >= 128, "others run {pieces} times only");
    }

    #[tokio::test]
    async fn packed_pages_are_counted() {
        let pages = Pages::default();
        let hold: Vec<Response> =
            (0..PACKED_PAGES).map(|_| pages.with_links(page(gzip(PAGE)), |_| None).unwrap()).collect();
        let refused = pages.with_links(page(gzip(PAGE)), |_| None).err().unwrap();
        assert!(refused.is_too_many_requests());
        drop(hold);
        pages.with_links(page(gzip(PAGE)), |_| None).unwrap().into_body().collect().await.unwrap();
        assert_eq!(pages.packed.available_permits(), PACKED_PAGES, "a page that passed counts no longer");
    }

    #[tokio::test]
    async fn broken_packing_ends_the_page() {
        let cut = gzip(&PAGE.repeat(100));
        let broken = [cut[..cut.len() / 2].to_vec(), b"not gzip at all".to_vec(), [gzip(PAGE), vec![0; 100]].concat()];
        for packed in broken {
            let passed = Pages::default().with_links(page(packed), |_| None).unwrap();
            assert!(passed.into_body().collect().await.is_err());
        }
    }
}
