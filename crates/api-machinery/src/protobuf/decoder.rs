//! The fields of a protobuf message, one after the other.

use std::borrow::Cow;

/// The deepest nesting that is read. The deepest objects are definitions: schemas of 100 levels are accepted, and each level
/// is two messages (`items` and what it holds, or a property's entry and its value).
const MAX_DEPTH: usize = 256;

/// Why a message was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field has a number of 0 or less.
    #[error("proto: illegal tag {0} (wire type {1})")]
    IllegalTag(u64, u64),
    /// A field has another wire type than its number calls for, or one that does not exist.
    #[error("proto: wrong wireType = {0} for field {1}")]
    WrongType(u64, u64),
    /// Messages are nested too deeply.
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// The prefix of an envelope is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoEnvelope,
    /// There is nothing.
    #[error("empty data")]
    Empty,
    /// A leaf could not understand its text.
    #[error("{0}")]
    Leaf(String),
}

/// A field's value before its type is known.
#[derive(Debug, Clone, Copy)]
pub enum WireValue<'a> {
    /// A varint.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Bytes, text or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> WireValue<'a> {
    /// Its wire type.
    pub(super) fn kind(&self) -> u64 {
        match self {
            WireValue::Varint(_) => 0,
            WireValue::Fixed64(_) => 1,
            WireValue::Bytes(_) => 2,
            WireValue::Fixed32(_) => 5,
        }
    }

    /// The value as an integer.
    ///
    /// # Errors
    /// When it is not a varint.
    pub fn int(&self) -> Result<i64, WireError> {
        match self {
            WireValue::Varint(value) => Ok(value.cast_signed()),
            other => Err(WireError::WrongType(other.kind(), 0)),
        }
    }

    /// The value as a 32-bit integer; higher bits are cut off, as generated readers do.
    ///
    /// # Errors
    /// When it is not a varint.
    #[expect(clippy::cast_possible_truncation, reason = "cutting is what generated readers do")]
    pub fn int32(&self) -> Result<i32, WireError> {
        self.int().map(|value| value as i32)
    }

    /// The value as bytes.
    ///
    /// # Errors
    /// When it is a number.
    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            other => Err(WireError::WrongType(other.kind(), 0)),
        }
    }

    /// The value as text; what is not UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// When it is a number.
    pub fn text(&self) -> Result<String, WireError> {
        let bytes = self.bytes()?;
        Ok(std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned))
    }

    /// The value as text that is borrowed where it can be.
    pub(super) fn shared_text(&self) -> Result<Cow<'a, str>, WireError> {
        // Almost all texts are valid, and checking that is faster than looking for what is not.
        self.bytes()
            .map(|bytes| std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
    }
}

/// A position in a message.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl<'a> Decoder<'a> {
    /// Starts at the beginning of a message.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// A message within this one.
    pub(super) fn nested(&self, bytes: &'a [u8]) -> Result<Self, WireError> {
        if self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        Ok(Self { bytes, depth: self.depth + 1 })
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, WireError> {
        if let [byte @ 0..0x80, rest @ ..] = self.bytes {
            self.bytes = rest;
            return Ok(u64::from(*byte));
        }
        if let [low, high @ 0..0x80, rest @ ..] = self.bytes {
            self.bytes = rest;
            return Ok(u64::from(low & 0x7f) | u64::from(*high) << 7);
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for (index, byte) in self.bytes.iter().enumerate().take(10) {
            let part = u64::from(byte & 0x7f);
            if index == 9 && part > 1 {
                return Err(WireError::Overflow);
            }
            value |= part << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = self.bytes.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(if self.bytes.len() < 10 { WireError::Truncated } else { WireError::Overflow })
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
        let (head, tail) = self.bytes.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    /// The next field, nothing at the end of the message.
    ///
    /// # Errors
    /// When the bytes are not a message.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would hide the first error's end")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(u64, WireValue<'a>)>, WireError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, kind) = (tag >> 3, tag & 7);
        if number == 0 || number > 0x1fff_ffff {
            return Err(WireError::IllegalTag(number, kind));
        }
        let value = match kind {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => WireValue::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups have been out of use since proto2 and no API message has any.
            _ => return Err(WireError::IllegalTag(number, kind)),
        };
        Ok(Some((number, value)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self.bytes.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.bytes = tail;
        Ok(*head)
    }
}
