//! The W3C trace context.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that names the trace and the caller's span.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with what others note of the trace.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The flag of a trace that somebody records.
const SAMPLED: u8 = 1;
/// `00-` trace `-` span `-` flags.
const PARENT_LENGTH: usize = 55;

/// A span as others know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl SpanContext {
    /// The context that headers carry; nothing where they carry none that is well formed.
    #[must_use]
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(TRACEPARENT)?.to_str().ok()?)
    }

    /// Reads a `traceparent`. Versions after 00 may say more than is understood.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_ascii() || text.len() < PARENT_LENGTH {
            return None;
        }
        let mut parts = text.splitn(5, '-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let (trace_id, span_id, flags) = (bytes(parts.next()?)?, bytes(parts.next()?)?, bytes::<1>(parts.next()?)?);
        let more = parts.next();
        let is_well_formed = version != [0xff] && (version != [0] || more.is_none());
        let has_ids = trace_id != [0; 16] && span_id != [0; 8];
        (is_well_formed && has_ids).then_some(Self { trace_id, span_id, is_sampled: flags[0] & SAMPLED != 0 })
    }

    /// Writes the context into headers, in place of one that is there.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            headers.insert(TRACEPARENT, value);
        }
    }
}

impl std::fmt::Display for SpanContext {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        write!(out, "-{:02x}", u8::from(self.is_sampled))
    }
}

/// So many bytes in lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_lower_hex) {
        return None;
    }
    let mut out = [0; N];
    for (index, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn contexts_are_read_as_w3c_says() {
        let context = SpanContext::parse(TEXT).unwrap();
        assert_eq!((context.to_string().as_str(), context.is_sampled), (TEXT, true));
        let unsampled = TEXT.replace("-01", "-00");
        assert_eq!(SpanContext::parse(&unsampled).map(|context| context.to_string()), Some(unsampled));
        assert!(SpanContext::parse(&format!("{TEXT}-more").replacen("00", "01", 1)).is_some(), "a version to come");
        for bad in [
            "",
            "00",
            &TEXT.replacen("00", "ff", 1),
            &format!("{TEXT}-more"),
            &TEXT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &TEXT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &TEXT.to_uppercase(),
            &TEXT.replace('-', "_"),
            &TEXT.replace("af", "\u{e4}"),
            &"x".repeat(10_000),
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }
}
