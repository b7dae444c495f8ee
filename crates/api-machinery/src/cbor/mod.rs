//! CBOR (RFC 8949) as upstream writes and reads it, over the tables of [`crate::reflect`].
//!
//! Upstream writes strings and names as byte strings, bytes as byte strings that are tagged for base64, members in the
//! order of their encoded names, the shorter first, and numbers in their shortest form; every document begins with the tag
//! that says it is CBOR. It reads more than it writes: text strings, lengths that are told at the end, and known tags. What
//! JSON has no word for (numbers beyond 64 bits, infinities, keys that are no strings) is refused.
//!
//! Reading goes by way of JSON, so that both find the same fields, in the same words.

mod decode;
mod encode;
mod float;

pub use decode::{CborError, parse_value, to_json};
pub use encode::{Members, array, encode, encode_typed, encode_value, text};

/// What every document begins with: tag 55799.
pub const SELF_DESCRIBED: &[u8] = &[0xd9, 0xd9, 0xf7];

/// The deepest nesting that is read, as of JSON, so that recursion never exhausts the stack.
pub const MAX_DEPTH: usize = crate::json::MAX_DEPTH;

/// The most members of one map that are read, and the most entries of one array; upstream's.
pub const MAX_ENTRIES: usize = 2_097_152;

/// Whether a value says that it is CBOR.
#[must_use]
pub fn is_self_described(bytes: &[u8]) -> bool {
    bytes.starts_with(SELF_DESCRIBED)
}

/// The kinds of items, as the first three bits of each say.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
    pub(super) const OTHER: u8 = 7;
}

/// What comes after the first three bits of an item.
mod info {
    /// A number of one byte follows; numbers of two, four and eight come after it. Below, it is the number itself.
    pub(super) const ONE_BYTE: u8 = 24;
    pub(super) const TWO_BYTES: u8 = 25;
    pub(super) const FOUR_BYTES: u8 = 26;
    pub(super) const EIGHT_BYTES: u8 = 27;
    /// How long it is is told by where it ends.
    pub(super) const INDEFINITE: u8 = 31;
}

/// Numbers of tags.
mod tag {
    pub(super) const TIME_TEXT: u64 = 0;
    pub(super) const TIME_NUMBER: u64 = 1;
    pub(super) const POSITIVE_BIG: u64 = 2;
    pub(super) const NEGATIVE_BIG: u64 = 3;
    pub(super) const BASE64_URL: u64 = 21;
    pub(super) const BASE64: u64 = 22;
    pub(super) const BASE16: u64 = 23;
}

/// The values that are neither numbers nor made of others.
mod simple {
    pub(super) const FALSE: u8 = 20;
    pub(super) const TRUE: u8 = 21;
    pub(super) const NULL: u8 = 22;
}

#[cfg(test)]
mod tests;
