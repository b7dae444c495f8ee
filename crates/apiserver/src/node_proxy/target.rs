//! Paths and queries of requests to node agents.

use std::fmt::Write as _;

/// A path with parameters, sorted by name as upstream writes them.
pub(super) fn target(path: &str, parameters: &[(&str, String)]) -> String {
    let mut sorted: Vec<&(&str, String)> = parameters.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let pairs: Vec<String> = sorted.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A text as the value of a parameter.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_escaped() {
        let parameters = [("output", "1".to_owned()), ("command", "sh".to_owned()), ("command", "a b&c/ä".to_owned())];
        assert_eq!(target("/exec", &parameters), "/exec?command=sh&command=a+b%26c%2F%C3%A4&output=1");
        assert_eq!(target("/exec", &[]), "/exec");
    }
}
