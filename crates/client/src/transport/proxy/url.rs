//! What a proxy's URL says.

use base64::Engine as _;
use component_base::logging::Redacted;
use http::Uri;

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyScheme {
    Http,
    Https,
    Socks5,
}

/// A proxy: where it is, how it is spoken to, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyUrl {
    pub(crate) scheme: ProxyScheme,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    user: Option<(String, Redacted<String>)>,
}

impl ProxyUrl {
    /// Reads a URL, or says why it is none; never shows the password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        // `socks5h` says that the proxy resolves names, which it always does here.
        let (scheme, default_port) = match uri.scheme_str() {
            Some("http") => (ProxyScheme::Http, 80),
            Some("https") => (ProxyScheme::Https, 443),
            Some("socks5" | "socks5h") => (ProxyScheme::Socks5, 1080),
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("unsupported scheme {other:?}, must be http, https, or socks5"));
            }
        };
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("it has no host".to_owned());
        }
        let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')).map(|(user, _)| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (unescaped(name), Redacted::new(unescaped(password)))
        });
        Ok(Self { scheme, host, port: uri.port_u16().unwrap_or(default_port), user })
    }

    /// Reads what an environment holds, which may lack a scheme; then it is that of HTTP.
    pub(crate) fn of_environment(text: &str) -> Result<Self, String> {
        if text.contains("://") { Self::parse(text) } else { Self::parse(&format!("http://{text}")) }
    }

    /// The name and the password, if the URL has any.
    pub(crate) fn user(&self) -> Option<(&str, &str)> {
        self.user.as_ref().map(|(name, password)| (name.as_str(), password.expose().as_str()))
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> Option<String> {
        let (name, password) = self.user()?;
        Some(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"))))
    }
}

/// The text with its escapes (`%40`) undone; what is no escape stays.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let escape = match tail {
            [high, low, after @ ..] if *first == b'%' => hex(high).zip(hex(low)).zip(Some(after)),
            _ => None,
        };
        let (byte, after) = escape.map_or((*first, tail), |((high, low), after)| (high << 4 | low, after));
        out.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_how_where_and_who() {
        use ProxyScheme::{Http, Https, Socks5};
        for (text, scheme, host, port, user) in [
            ("http://proxy", Http, "proxy", 80, None),
            ("https://proxy", Https, "proxy", 443, None),
            ("socks5://proxy", Socks5, "proxy", 1080, None),
            ("socks5h://proxy:9", Socks5, "proxy", 9, None),
            ("http://[fd00::1]:3128/", Http, "fd00::1", 3128, None),
            ("http://me:s%40crt%2@proxy:3128", Http, "proxy", 3128, Some(("me", "s@crt%2"))),
            ("http://me@proxy", Http, "proxy", 80, Some(("me", ""))),
        ] {
            let url = ProxyUrl::parse(text).unwrap();
            assert_eq!((url.scheme, url.host.as_str(), url.port, url.user()), (scheme, host, port, user), "{text}");
            assert!(!format!("{url:?}").contains("s@crt"), "{url:?}");
        }
        let authorized = ProxyUrl::parse("http://Aladdin:open%20sesame@proxy").unwrap().authorization();
        assert_eq!(authorized.as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    }

    #[test]
    fn other_texts_are_refused_and_environments_may_lack_the_scheme() {
        for (text, explicit, environment) in [
            ("proxy:3128", false, true),
            ("me:x@proxy:3128", false, true),
            ("proxy", false, true),
            ("ftp://proxy", false, false),
            ("http://", false, false),
        ] {
            assert_eq!(ProxyUrl::parse(text).is_ok(), explicit, "{text}");
            assert_eq!(ProxyUrl::of_environment(text).is_ok(), environment, "{text}");
        }
    }
}
