//! Header reading that the front proxy and impersonation share: values as text, and keys hidden in header names.

use std::collections::BTreeMap;

use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName};

/// All values of a header that are text, in order.
pub(crate) fn values<'a, N: AsHeaderName>(
    headers: &'a HeaderMap,
    name: N,
) -> impl Iterator<Item = &'a str> + use<'a, N> {
    headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
}

/// What follows `prefix` (any case) in a name, which is lower-case.
pub(crate) fn after<'a>(name: &'a HeaderName, prefix: &str) -> Option<&'a str> {
    let (head, rest) = name.as_str().split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The headers that start with `prefix` (any case): what follows, lower-cased and percent-decoded, with all values.
pub(crate) fn prefixed(headers: &HeaderMap, prefix: &str) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let Some(key) = after(name, prefix) else { continue };
        let Ok(value) = std::str::from_utf8(value.as_bytes()) else { continue };
        out.entry(percent_decode(key)).or_default().push(value.to_owned());
    }
    out
}

/// Removes every header that starts with `prefix` (any case).
pub(crate) fn remove_prefixed(headers: &mut HeaderMap, prefix: &str) {
    let names: Vec<_> = headers.keys().filter(|name| after(name, prefix).is_some()).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Decodes `%XX`; text that is not well-formed stays as it is, as upstream keeps it.
fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = (bytes.next().and_then(hex_digit), bytes.next().and_then(hex_digit));
        let (Some(high), Some(low)) = digits else { return text.to_owned() };
        out.push(high << 4 | low);
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_decode_or_stay_raw() {
        for (text, expected) in [
            ("acme.com%2fproject", "acme.com/project"),
            ("plain", "plain"),
            ("bad%2", "bad%2"),
            ("bad%zz", "bad%zz"),
            ("%ff", "%ff"),
        ] {
            assert_eq!(percent_decode(text), expected);
        }
    }
}
