//! Resource versions in requests: unsigned decimals, where empty and `0` both mean "no particular one".

use storage::Revision;

/// Reads a resource version; the error is the text that upstream's number parser gives.
pub(crate) fn parse(text: &str) -> Result<Revision, String> {
    if text.is_empty() {
        return Ok(Revision(0));
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let problem = match text.parse::<u64>() {
        // Greater than any revision there can be is as good as the greatest.
        Ok(number) if digits => return Ok(Revision(i64::try_from(number).unwrap_or(i64::MAX))),
        Err(_) if digits => "value out of range",
        _ => "invalid syntax",
    };
    Err(format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimals_are_read() {
        for (text, expected) in
            [("", Some(0)), ("0", Some(0)), ("12", Some(12)), ("-1", None), ("+1", None), ("x", None)]
        {
            assert_eq!(parse(text).ok(), expected.map(Revision), "{text}");
        }
        assert!(parse("99999999999999999999").unwrap_err().ends_with("value out of range"));
    }
}
