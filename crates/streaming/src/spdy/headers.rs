//! Stream headers and their compression: one zlib stream per direction for the whole life of a connection.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::SpdyError;
use super::dictionary::dictionary;
use super::frame::take_u32;

/// The most bytes that one header block may inflate to.
const MAX_INFLATED_BYTES: usize = 64 * 1024;
/// The most headers of one stream.
const MAX_HEADERS: usize = 128;
/// Output is produced in pieces of this size.
const PIECE_BYTES: usize = 4 * 1024;

/// The headers of a stream; names are kept in lower case, as SPDY demands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Headers from pairs of name and value.
    #[must_use]
    pub fn new(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())).collect())
    }

    /// The first value of a header, whatever the case of its name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))?;
        value.split('\0').next()
    }

    fn to_block(&self) -> Vec<u8> {
        let mut block = number(self.0.len()).to_vec();
        for (name, value) in &self.0 {
            for text in [name, value] {
                block.extend(number(text.len()));
                block.extend(text.as_bytes());
            }
        }
        block
    }

    fn from_block(block: &[u8]) -> Result<Self, SpdyError> {
        let (count, mut rest) = take_u32(block)?;
        if count as usize > MAX_HEADERS {
            return Err(SpdyError::TooLarge("number of headers"));
        }
        let mut pairs = Vec::new();
        for _ in 0..count {
            let (name, after) = take_text(rest)?;
            let (value, after) = take_text(after)?;
            rest = after;
            pairs.push((name.to_ascii_lowercase(), value));
        }
        Ok(Self(pairs))
    }
}

fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
}

fn take_text(bytes: &[u8]) -> Result<(String, &[u8]), SpdyError> {
    let (length, rest) = take_u32(bytes)?;
    let (text, rest) = rest.split_at_checked(length as usize).ok_or(SpdyError::Truncated)?;
    Ok((String::from_utf8_lossy(text).into_owned(), rest))
}

/// The sending side's compression state.
pub(super) struct Deflater(Compress);

impl Deflater {
    pub(super) fn new() -> Result<Self, SpdyError> {
        let mut zlib = Compress::new(Compression::fast(), true);
        zlib.set_dictionary(&dictionary()).map_err(|_| SpdyError::Compression)?;
        Ok(Self(zlib))
    }

    /// Compresses one header block, ending on a byte boundary so that the peer can read it at once.
    pub(super) fn block(&mut self, headers: &Headers) -> Result<Vec<u8>, SpdyError> {
        let input = headers.to_block();
        let mut output = Vec::new();
        let mut consumed = 0;
        loop {
            let mut piece = [0; PIECE_BYTES];
            let (before_in, before_out) = (self.0.total_in(), self.0.total_out());
            let rest = input.get(consumed..).unwrap_or_default();
            self.0.compress(rest, &mut piece, FlushCompress::Sync).map_err(|_| SpdyError::Compression)?;
            consumed += delta(before_in, self.0.total_in());
            let produced = delta(before_out, self.0.total_out());
            output.extend(piece.iter().take(produced));
            // A piece that was not filled means that zlib has flushed everything.
            if produced < PIECE_BYTES {
                return Ok(output);
            }
        }
    }
}

/// The receiving side's compression state.
pub(super) struct Inflater(Decompress);

impl Inflater {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Inflates one header block, refusing to produce more than [`MAX_INFLATED_BYTES`].
    pub(super) fn headers(&mut self, block: &[u8]) -> Result<Headers, SpdyError> {
        let mut output = Vec::new();
        let mut consumed = 0;
        loop {
            let mut piece = [0; PIECE_BYTES];
            let (before_in, before_out) = (self.0.total_in(), self.0.total_out());
            let rest = block.get(consumed..).unwrap_or_default();
            match self.0.decompress(rest, &mut piece, FlushDecompress::Sync) {
                Ok(Status::StreamEnd) => return Err(SpdyError::Compression),
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0.set_dictionary(&dictionary()).map_err(|_| SpdyError::Compression)?;
                    consumed += delta(before_in, self.0.total_in());
                    continue;
                }
                Err(_) => return Err(SpdyError::Compression),
            }
            consumed += delta(before_in, self.0.total_in());
            let produced = delta(before_out, self.0.total_out());
            output.extend(piece.iter().take(produced));
            if output.len() > MAX_INFLATED_BYTES {
                return Err(SpdyError::TooLarge("header block"));
            }
            if produced < PIECE_BYTES {
                return Headers::from_block(&output);
            }
        }
    }
}

fn delta(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_shared_compression_state() {
        let (mut deflater, mut inflater) = (Deflater::new().unwrap(), Inflater::new());
        for request in 0..50 {
            let headers = Headers::new(&[("streamType", "data"), ("port", "80"), ("requestID", &request.to_string())]);
            let block = deflater.block(&headers).unwrap();
            let read = inflater.headers(&block).unwrap();
            assert_eq!(read, headers);
            assert_eq!(read.first("StreamType"), Some("data"));
        }
    }

    #[test]
    fn an_empty_set_of_headers_is_a_block_too() {
        let block = Deflater::new().unwrap().block(&Headers::default()).unwrap();
        assert_eq!(Inflater::new().headers(&block).unwrap(), Headers::default());
    }

    #[test]
    fn an_inflate_bomb_is_refused() {
        let bomb = Headers::new(&[("a", &"x".repeat(MAX_INFLATED_BYTES * 4))]);
        let block = Deflater::new().unwrap().block(&bomb).unwrap();
        assert!(block.len() < 8 * 1024, "it compresses well: {}", block.len());
        assert!(matches!(Inflater::new().headers(&block), Err(SpdyError::TooLarge(_))));
    }

    #[test]
    fn lying_counts_and_lengths_are_refused() {
        assert!(matches!(Headers::from_block(&[0xff; 4]), Err(SpdyError::TooLarge(_))));
        assert!(matches!(Headers::from_block(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]), Err(SpdyError::Truncated)));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_inflater_panic(block: Vec<u8>) {
            let _ = Inflater::new().headers(&block);
            let _ = Headers::from_block(&block);
        }
    }
}
