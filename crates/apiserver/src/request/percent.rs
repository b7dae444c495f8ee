//! Percent-decoding of paths and parameters.

/// Decodes `%XX`; malformed sequences stay as they are and bytes that are not UTF-8 are replaced.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |offset: usize| bytes.get(at + offset).and_then(|byte| char::from(*byte).to_digit(16));
        match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high << 4 | low).unwrap_or(b'?'));
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Whether every `%` is followed by two hexadecimal digits.
pub(crate) fn is_sound(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_decode_or_stay() {
        for (text, expected) in [("a%2Fb", "a/b"), ("%41", "A"), ("100%", "100%"), ("%zz", "%zz"), ("%e4", "\u{fffd}")]
        {
            assert_eq!(decode(text), expected, "{text}");
        }
        let sound = ["a%2Fb", "plain", "%e4", "100%", "%zz", "%4", "%\u{e4}"].map(is_sound);
        assert_eq!(sound, [true, true, true, false, false, false, false]);
    }
}
