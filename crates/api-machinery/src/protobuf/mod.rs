//! Protobuf as upstream writes it, by the tables of [`crate::reflect`].
//!
//! Scalars and messages that are not pointers are always written, pointers only when set, fields in ascending order,
//! lists unpacked, maps as entries sorted by key. The writer works from the end to the front, so that the length of a
//! message is known when its header is written and nothing is measured twice.

mod decode;
pub(crate) mod decoder;
mod encode;
pub(crate) mod encoder;
mod envelope;

pub use decoder::{Decoder, WireError, WireValue};
pub use encoder::Encoder;
pub use envelope::{Envelope, MAGIC, is_enveloped, open, seal};

use crate::reflect::Reflect;

/// The struct as a bare message.
#[must_use]
pub fn encode(value: &dyn Reflect) -> Vec<u8> {
    let mut out = Encoder::default();
    out.members(value);
    out.into_vec()
}

/// Decodes a bare message into `target`, which should be a default value.
///
/// # Errors
/// When the bytes are not such a message.
pub fn decode(bytes: &[u8], target: &mut dyn Reflect) -> Result<(), WireError> {
    Decoder::new(bytes).read_message(target)
}

#[cfg(test)]
mod tests;
