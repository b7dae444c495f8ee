//! What servers warn of in answers: headers `Warning: 299 agent "text"` (RFC 7234, section 5.5), of which one may hold
//! several. Other codes are of caches, and nobody's here.

use http::{HeaderMap, header};

/// The code of what concerns the request itself.
const MISCELLANEOUS: &str = "299";

/// Logs the server's warnings.
pub(crate) fn log(headers: &HeaderMap) {
    for value in headers.get_all(header::WARNING) {
        for warning in texts(&String::from_utf8_lossy(value.as_bytes())) {
            tracing::warn!(warning, "Warning from the API server");
        }
    }
}

/// The texts in a header, up to what is of no form.
fn texts(header: &str) -> Vec<String> {
    let (mut texts, mut rest) = (Vec::new(), header.trim_start());
    while let Some((code, text, after)) = one(rest) {
        if code == MISCELLANEOUS && !text.is_empty() {
            texts.push(text);
        }
        // A date may follow.
        let after = after.trim_start();
        let after = after.strip_prefix('"').and_then(quoted).map_or(after, |(_, after)| after);
        let Some(next) = after.trim_start().strip_prefix(',') else { break };
        rest = next.trim_start();
    }
    texts
}

/// The code and the text of the first warning, and what follows it.
fn one(header: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = header.split_once(' ')?;
    let (_agent, rest) = rest.trim_start().split_once(' ')?;
    let (text, rest) = quoted(rest.trim_start().strip_prefix('"')?)?;
    Some((code, text, rest))
}

/// What stands before the next quote, and what behind it; a backslash hides what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut out, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((out, text.get(at + 1..)?)),
            '\\' => out.push(letters.next()?.1),
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_headers() {
        for (header, expected) in [
            (r#"299 - "a""#, vec!["a"]),
            (r#"299 - "say \"a\" and \\""#, vec![r#"say "a" and \"#]),
            (r#"299 - "a, b", 299 agent "c" "Wed, 21 Oct 2026 07:28:00 GMT" , 299 - "d""#, vec!["a, b", "c", "d"]),
            (r#"199 - "a", 299 - "b""#, vec!["b"]),
            (r#"299 - "größer als 1""#, vec!["größer als 1"]),
            (r#"299 - """#, vec![]),
            (r#"299 - "a", 299 - "cut"#, vec!["a"]),
            (r#"299 - "cut\"#, vec![]),
            ("299", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(texts(header), expected, "{header}");
        }
    }
}
