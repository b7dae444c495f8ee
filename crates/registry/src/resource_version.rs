//! Resource versions in requests: unsigned decimals, where empty and `0` both mean "no particular one".

use storage::Revision;

/// Reads a resource version of a request's options; the error is upstream's.
pub(crate) fn parse(text: &str) -> Result<Revision, String> {
    parse_stored(text).map_err(|error| format!("resourceVersion: Invalid value: {text:?}: {error}"))
}

/// Reads a resource version of an object; the error is the text that upstream's number parser gives.
pub(crate) fn parse_stored(text: &str) -> Result<Revision, String> {
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
    Err(format!("strconv.ParseUint: parsing {text:?}: {problem}"))
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
        let number = "strconv.ParseUint: parsing \"x\": invalid syntax";
        assert_eq!(parse_stored("x").unwrap_err(), number);
        assert_eq!(parse("x").unwrap_err(), format!("resourceVersion: Invalid value: \"x\": {number}"));
    }
}
