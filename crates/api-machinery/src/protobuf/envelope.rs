//! The envelope that says what kind of object a message is: `k8s\0` and a `runtime.Unknown` message.

use crate::protobuf::{Decoder, Encoder, WireError};

/// The first bytes of every enveloped object, on the wire and in storage.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// An opened envelope.
#[derive(Debug, Clone, Default)]
pub struct Envelope<'a> {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// `kind` of the object.
    pub kind: String,
    /// The object's message.
    pub raw: &'a [u8],
    /// What `raw` is when it is not protobuf; usually empty.
    pub content_type: String,
}

/// Whether the bytes start as an envelope does.
#[must_use]
pub fn is_enveloped(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Opens an envelope.
///
/// # Errors
/// When the bytes are not one.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, WireError> {
    if bytes.is_empty() {
        return Err(WireError::Empty);
    }
    let body = bytes.strip_prefix(MAGIC).ok_or(WireError::NoEnvelope)?;
    let mut envelope = Envelope::default();
    let mut decoder = Decoder::new(body);
    while let Some((number, value)) = decoder.next()? {
        match number {
            1 => {
                let mut meta = Decoder::new(value.bytes()?);
                while let Some((number, value)) = meta.next()? {
                    match number {
                        1 => envelope.api_version = value.text()?,
                        2 => envelope.kind = value.text()?,
                        _ => {}
                    }
                }
            }
            2 => envelope.raw = value.bytes()?,
            4 => envelope.content_type = value.text()?,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Closes an envelope around what `members` writes.
#[must_use]
pub fn seal(api_version: &str, kind: &str, members: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut out = Encoder::default();
    out.bytes(4, b"");
    out.bytes(3, b"");
    out.message(2, members);
    out.message(1, |out| {
        out.bytes(2, kind.as_bytes());
        out.bytes(1, api_version.as_bytes());
    });
    out.raw(MAGIC);
    out.into_vec()
}
