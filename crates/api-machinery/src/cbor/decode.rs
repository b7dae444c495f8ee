//! Reading any value, within bounds that do not depend on what the bytes claim.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::float::from_half_bits;
use super::{MAX_DEPTH, MAX_ENTRIES, info, major, simple, tag};
use crate::json;
use crate::time::{MicroTime, Time};
use crate::value::{Number, Value, ValueMap};

/// Why bytes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// They end within an item.
    #[error("unexpected EOF")]
    CutShort,
    /// Something follows the one item.
    #[error("cbor: {0} bytes of extraneous data starting at index {1}")]
    Extraneous(usize, usize),
    /// No item begins with that byte, or not there.
    #[error("cbor: invalid initial byte {0:#04x}")]
    InitialByte(u8),
    /// Items stand within items too often.
    #[error("cbor: exceeded max nested level {MAX_DEPTH}")]
    TooDeep,
    /// An array or a map has too many entries.
    #[error("cbor: exceeded max number of elements {MAX_ENTRIES}")]
    TooLong,
    /// A number that 64 bits do not hold.
    #[error("cbor: cannot unmarshal integer beyond 64 bits")]
    TooLarge,
    /// A number that is none.
    #[error("cbor: cannot unmarshal NaN or infinity")]
    NotFinite,
    /// A value that JSON has not.
    #[error("cbor: unrecognized simple value {0}")]
    Simple(u8),
    /// A string that is no text.
    #[error("cbor: invalid UTF-8 string")]
    NotText,
    /// A name that is no string.
    #[error("cbor: map key is not a string")]
    KeyType,
    /// A name that was there before.
    #[error("cbor: found duplicate map key {0:?}")]
    Duplicate(String),
    /// A tag whose content is of another kind than the tag says.
    #[error("cbor: inadmissible content of tag {0}")]
    TagContent(u64),
}

/// The document as a free-form value.
///
/// # Errors
/// When the bytes are no CBOR, or say what JSON cannot.
pub fn parse_value(bytes: &[u8]) -> Result<Value, CborError> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.item(MAX_DEPTH)?;
    match bytes.len() - reader.at {
        0 => Ok(value),
        rest => Err(CborError::Extraneous(rest, reader.at)),
    }
}

/// The document as JSON text, for whoever reads typed values.
///
/// # Errors
/// As [`parse_value`].
pub fn to_json(bytes: &[u8]) -> Result<String, CborError> {
    parse_value(bytes).map(|value| json::encode_value(&value))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The beginning of an item.
struct Head {
    first: u8,
    major: u8,
    info: u8,
    /// The number that is told, in the one way or the other; nothing where the end tells.
    number: Option<u64>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], CborError> {
        let end = self.at.checked_add(length).ok_or(CborError::CutShort)?;
        let taken = self.bytes.get(self.at..end).ok_or(CborError::CutShort)?;
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        self.take(N)?.try_into().map_err(|_| CborError::CutShort)
    }

    fn head(&mut self) -> Result<Head, CborError> {
        let [first] = self.fixed()?;
        let (major, info) = (first >> 5, first & 0x1f);
        let number = match info {
            0..info::ONE_BYTE => Some(u64::from(info)),
            info::ONE_BYTE => Some(u64::from(u8::from_be_bytes(self.fixed()?))),
            info::TWO_BYTES => Some(u64::from(u16::from_be_bytes(self.fixed()?))),
            info::FOUR_BYTES => Some(u64::from(u32::from_be_bytes(self.fixed()?))),
            info::EIGHT_BYTES => Some(u64::from_be_bytes(self.fixed()?)),
            info::INDEFINITE if (major::BYTES..=major::MAP).contains(&major) => None,
            _ => return Err(CborError::InitialByte(first)),
        };
        Ok(Head { first, major, info, number })
    }

    /// Whether the mark is next that ends what has no length; it is taken if so.
    fn take_end(&mut self) -> Result<bool, CborError> {
        let is_end = *self.bytes.get(self.at).ok_or(CborError::CutShort)? == 0xff;
        self.at += usize::from(is_end);
        Ok(is_end)
    }

    fn item(&mut self, depth: usize) -> Result<Value, CborError> {
        let head = self.head()?;
        match (head.major, head.number) {
            (major::UNSIGNED, Some(number)) => integer(i64::try_from(number).ok()),
            (major::NEGATIVE, Some(number)) => integer(i64::try_from(number).ok().map(|number| !number)),
            (major::BYTES | major::TEXT, _) => self.string(&head).and_then(text).map(Value::String),
            (major::ARRAY, length) => self.array(length, depth),
            (major::MAP, length) => self.map(length, depth),
            (major::TAG, Some(number)) => self.tagged(number, depth),
            (_, number) => other(&head, number.unwrap_or_default()),
        }
    }

    /// The bytes of a string, whole or in pieces.
    fn string(&mut self, head: &Head) -> Result<Vec<u8>, CborError> {
        if let Some(length) = head.number {
            return self.take(usize::try_from(length).map_err(|_| CborError::CutShort)?).map(<[u8]>::to_vec);
        }
        let mut whole = Vec::new();
        while !self.take_end()? {
            let piece = self.head()?;
            let length = piece.number.filter(|_| piece.major == head.major);
            let length = length.ok_or(CborError::InitialByte(piece.first))?;
            whole.extend_from_slice(self.take(usize::try_from(length).map_err(|_| CborError::CutShort)?)?);
        }
        Ok(whole)
    }

    /// Whether there is another entry after so many.
    fn goes_on(&mut self, length: Option<u64>, read: usize) -> Result<bool, CborError> {
        let goes_on = match length {
            Some(length) => u64::try_from(read).is_ok_and(|read| read < length),
            None => !self.take_end()?,
        };
        if goes_on && read == MAX_ENTRIES { Err(CborError::TooLong) } else { Ok(goes_on) }
    }

    fn array(&mut self, length: Option<u64>, depth: usize) -> Result<Value, CborError> {
        let depth = depth.checked_sub(1).ok_or(CborError::TooDeep)?;
        let mut items = Vec::new();
        while self.goes_on(length, items.len())? {
            items.push(self.item(depth)?);
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, length: Option<u64>, depth: usize) -> Result<Value, CborError> {
        let depth = depth.checked_sub(1).ok_or(CborError::TooDeep)?;
        let mut map = ValueMap::new();
        while self.goes_on(length, map.len())? {
            let head = self.head()?;
            if !matches!(head.major, major::BYTES | major::TEXT) {
                return Err(CborError::KeyType);
            }
            let key = self.string(&head).and_then(text)?;
            if map.contains_key(&key) {
                return Err(CborError::Duplicate(key));
            }
            let value = self.item(depth)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    /// What a tag stands before: bytes in the form that JSON has them in, times; other tags say nothing here.
    fn tagged(&mut self, number: u64, depth: usize) -> Result<Value, CborError> {
        let depth = depth.checked_sub(1).ok_or(CborError::TooDeep)?;
        let wrong = CborError::TagContent(number);
        match number {
            tag::BASE64 | tag::BASE64_URL | tag::BASE16 => {
                let head = self.head()?;
                if head.major != major::BYTES {
                    return Err(wrong);
                }
                let bytes = self.string(&head)?;
                Ok(Value::String(match number {
                    tag::BASE64 => STANDARD.encode(bytes),
                    tag::BASE64_URL => URL_SAFE.encode(bytes),
                    _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                }))
            }
            tag::POSITIVE_BIG | tag::NEGATIVE_BIG => Err(CborError::TooLarge),
            tag::TIME_TEXT => self.item(depth).and_then(|item| if item.is_string() { Ok(item) } else { Err(wrong) }),
            tag::TIME_NUMBER => time(&self.item(depth)?).map(Value::String).ok_or(wrong),
            _ => self.item(depth),
        }
    }
}

fn integer(number: Option<i64>) -> Result<Value, CborError> {
    number.map(Value::from).ok_or(CborError::TooLarge)
}

fn text(bytes: Vec<u8>) -> Result<String, CborError> {
    String::from_utf8(bytes).map_err(|_| CborError::NotText)
}

/// Truth values, null and doubles.
fn other(head: &Head, number: u64) -> Result<Value, CborError> {
    let float = match head.info {
        simple::FALSE => return Ok(Value::Bool(false)),
        simple::TRUE => return Ok(Value::Bool(true)),
        simple::NULL => return Ok(Value::Null),
        info::TWO_BYTES => from_half_bits(u16::try_from(number).unwrap_or_default()),
        info::FOUR_BYTES => f64::from(f32::from_bits(u32::try_from(number).unwrap_or_default())),
        info::EIGHT_BYTES => f64::from_bits(number),
        _ => return Err(CborError::Simple(u8::try_from(number).unwrap_or(u8::MAX))),
    };
    Number::from_f64(float).map(Value::Number).ok_or(CborError::NotFinite)
}

/// Seconds since 1970 as text.
fn time(seconds: &Value) -> Option<String> {
    if let Some(whole) = seconds.as_i64() {
        return Some(Time::from_unix_seconds(whole).to_string());
    }
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit ends at the last moment that does")]
    let micros = (seconds.as_f64()? * 1e6).round() as i64;
    Some(MicroTime::from_unix_micros(micros).to_string())
}
