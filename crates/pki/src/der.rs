//! DER writing and the little DER reading that X.509 and key files need.
//!
//! The writer exists because the usual certificate builder keeps a subject as a map from attribute type to value, which
//! silently loses all but one organization; in Kubernetes organizations are groups, so that loss changes privileges.
//! Reading certificates and requests is left to `x509-parser`; here is only what takes keys and signatures apart.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// Tag of `[number]` holding other elements.
pub(crate) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// Tag of `[number] IMPLICIT` over a primitive type.
pub(crate) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// One element: tag, definite length, content.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    push_length(&mut out, content.len());
    out.extend_from_slice(content);
    out
}

/// A SEQUENCE of already encoded parts.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    let bytes = length.to_be_bytes();
    let significant: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    match significant.as_slice() {
        [] => out.push(0),
        [short] if *short < 0x80 => out.push(*short),
        long => {
            // A usize has at most eight bytes, so the count always fits.
            out.push(0x80 | u8::try_from(long.len()).unwrap_or(8));
            out.extend_from_slice(long);
        }
    }
}

/// A non-negative INTEGER from big-endian magnitude bytes.
pub(crate) fn unsigned_integer(magnitude: &[u8]) -> Vec<u8> {
    let significant: Vec<u8> = magnitude.iter().copied().skip_while(|byte| *byte == 0).collect();
    match significant.first() {
        None => element(INTEGER, &[0]),
        Some(first) if *first >= 0x80 => element(INTEGER, &[&[0], significant.as_slice()].concat()),
        Some(_) => element(INTEGER, &significant),
    }
}

/// A BIT STRING whose bits fill whole bytes (keys, signatures).
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// A named bit list: bit `i` of `bits` is named bit `i`; trailing zero bits are dropped, as DER demands.
pub(crate) fn named_bits(bits: u16) -> Vec<u8> {
    let [first, second] = bits.reverse_bits().to_be_bytes();
    let bytes: &[u8] = match (first, second) {
        (0, 0) => &[],
        (first, 0) => &[first],
        (first, second) => &[first, second],
    };
    let unused = bytes.last().map_or(0, |last| last.trailing_zeros());
    element(BIT_STRING, &[&[u8::try_from(unused).unwrap_or(0)], bytes].concat())
}

/// A certificate time: UTCTime through 2049, GeneralizedTime from 2050 (RFC 5280 section 4.1.2.5). Whole seconds.
pub(crate) fn time(at: SystemTime) -> Vec<u8> {
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stamp = i64::try_from(seconds).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    let stamp = stamp.unwrap_or(jiff::Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC);
    let rest =
        format!("{:02}{:02}{:02}{:02}{:02}Z", stamp.month(), stamp.day(), stamp.hour(), stamp.minute(), stamp.second());
    let year = stamp.year();
    if (1950..2050).contains(&year) {
        element(UTC_TIME, format!("{:02}{rest}", year % 100).as_bytes())
    } else {
        element(GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes())
    }
}

/// Reads consecutive elements; `None` on anything that is not definite-length DER with a one-byte tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The next element's tag and content.
    pub(crate) fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.rest.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match *first {
            short @ 0..=0x7f => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (bytes.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some((*tag, content))
    }

    /// The next element's content if it has this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (found, content) = ahead.any()?;
        if found != tag {
            return None;
        }
        *self = ahead;
        Some(content)
    }

    /// The next element, which holds others.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self::new)
    }

    /// The next INTEGER's magnitude without leading zeros; `None` when it is negative.
    pub(crate) fn unsigned(&mut self) -> Option<&'a [u8]> {
        let content = self.expect(INTEGER)?;
        match content {
            [] => None,
            [0, rest @ ..] => Some(rest),
            [first, ..] if *first >= 0x80 => None,
            whole => Some(whole),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lengths_and_integers_take_their_shortest_form() {
        assert_eq!(element(OCTET_STRING, &[]), [4, 0]);
        assert_eq!(element(OCTET_STRING, &[7; 0x80])[..4], [4, 0x81, 0x80, 7]);
        assert_eq!(element(OCTET_STRING, &[7; 0x100])[..5], [4, 0x82, 1, 0, 7]);
        assert_eq!(unsigned_integer(&[]), [2, 1, 0]);
        assert_eq!(unsigned_integer(&[0, 0x7f]), [2, 1, 0x7f]);
        assert_eq!(unsigned_integer(&[0x80]), [2, 2, 0, 0x80]);
    }

    #[test]
    fn named_bits_drop_trailing_zeros() {
        assert_eq!(named_bits(0b1), [3, 2, 7, 0x80]);
        assert_eq!(named_bits(0b101), [3, 2, 5, 0xa0]);
        assert_eq!(named_bits(1 << 8), [3, 3, 7, 0, 0x80]);
        assert_eq!(named_bits(0), [3, 1, 0]);
    }

    #[test]
    fn the_century_decides_the_time_form() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(time(at(0))[2..], *b"700101000000Z");
        assert_eq!(time(at(2_524_607_999))[2..], *b"491231235959Z");
        assert_eq!(time(at(2_524_608_000))[2..], *b"20500101000000Z");
    }

    #[test]
    fn the_reader_refuses_lies_about_length() {
        assert_eq!(Reader::new(&[4, 2, 1]).any(), None);
        assert_eq!(Reader::new(&[4, 0x80, 1]).any(), None);
        assert_eq!(Reader::new(&[4, 0x85, 1, 1, 1, 1, 1]).any(), None);
        let nested = sequence(&[&unsigned_integer(&[0xff])]);
        let mut inner = Reader::new(&nested).enter(SEQUENCE).unwrap();
        assert_eq!(inner.unsigned(), Some(&[0xff][..]));
        assert!(inner.is_empty());
    }
}
