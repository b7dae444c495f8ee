//! URLs as the texts of errors tell of them: split as Go splits them, and refused in Go's words.

/// The parts of a URL, unescaped only where errors show them so.
#[derive(Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// In lower case; empty for a mere path.
    pub(crate) scheme: String,
    /// What stands before `@`.
    pub(crate) user: Option<&'a str>,
    /// With the port.
    pub(crate) host: &'a str,
    pub(crate) query: &'a str,
    pub(crate) fragment: &'a str,
}

impl<'a> Url<'a> {
    /// Splits a URL.
    ///
    /// # Errors
    /// Go's words for why it is none.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let refuse = |why: String| format!("parse {}: {why}", api_machinery::quote::go_quote(text));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(refuse("net/url: invalid control character in URL".into()));
        }
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = split_scheme(rest).map_err(refuse)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        if scheme.is_empty()
            && !rest.starts_with('/')
            && rest.split('/').next().is_some_and(|first| first.contains(':'))
        {
            return Err(refuse("first path segment in URL cannot contain colon".into()));
        }
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        check_host(host).map_err(refuse)?;
        check_escapes(path).map_err(refuse)?;
        check_escapes(fragment).map_err(refuse)?;
        Ok(Self { scheme: scheme.to_ascii_lowercase(), user, host, query, fragment })
    }
}

/// The scheme and what is behind its colon; no scheme where there is no colon or something else comes first.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let (_, port) = host.rsplit_once(']').ok_or("missing ']' in host")?;
        port
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !port.is_empty() && (!port.starts_with(':') || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!("invalid port {} after host", api_machinery::quote::go_quote(port)));
    }
    match host.chars().find(|char| matches!(char, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')) {
        Some(char) if char != '"' && char != '<' && char != '>' => {
            Err(format!("invalid character {} in host name", api_machinery::quote::go_quote(&char.to_string())))
        }
        _ => check_escapes(host),
    }
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let escape = text.get(at..).unwrap_or_default();
        let digits = escape.bytes().skip(1).take(2).filter(u8::is_ascii_hexdigit).count();
        if digits != 2 {
            let shown: String = escape.chars().take(3).collect();
            return Err(format!("invalid URL escape {}", api_machinery::quote::go_quote(&shown)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_and_refused_in_gos_words() {
        let url = Url::parse("HTTPS://u:p@h:1/x?q=1#f").unwrap();
        let expected = Url { scheme: "https".into(), user: Some("u:p"), host: "h:1", query: "q=1", fragment: "f" };
        assert_eq!(url, expected);
        assert_eq!(Url::parse("/only/a/path").map(|url| (url.scheme, url.host)), Ok((String::new(), "")));
        assert_eq!(Url::parse("https://[::1]:443/").map(|url| url.host), Ok("[::1]:443"));
        for (text, why) in [
            (":", r#"parse ":": missing protocol scheme"#),
            ("1:2", r#"parse "1:2": first path segment in URL cannot contain colon"#),
            ("https://a b/", r#"parse "https://a b/": invalid character " " in host name"#),
            ("https://a/%zz", r#"parse "https://a/%zz": invalid URL escape "%zz""#),
            ("https://[::1", r#"parse "https://[::1": missing ']' in host"#),
            ("a\nb", r#"parse "a\nb": net/url: invalid control character in URL"#),
        ] {
            assert_eq!(Url::parse(text), Err(why.into()));
        }
    }
}
