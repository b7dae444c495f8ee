//! URLs: absolute ones, or paths that begin with a slash.

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{Opaque, Value};

/// URLs.
pub const URLS: Library = Library { name: "urls", functions: FUNCTIONS, types: &[NAME], macros: NO_MACROS };

const NAME: &str = "kubernetes.URL";
const ONE: Cost = Cost::Fixed(1);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Opaque for Url {
    fn type_name(&self) -> &'static str {
        NAME
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }
}

const FUNCTIONS: &[Overload] = &[
    overload("string_to_url", "url(string) -> kubernetes.URL", Cost::Reads(0, 1), |args| {
        let fail = |why| EvalError::failed(format!("URL parse error during conversion from string: {why}"));
        parse(args.str(0)).map(Value::opaque).map_err(fail)
    }),
    overload("is_url_string", "isURL(string) -> bool", ONE, |args| Ok(Value::Bool(parse(args.str(0)).is_ok()))),
    overload("url_get_scheme", "kubernetes.URL::getScheme() -> string", ONE, |args| {
        text(args, |url| url.scheme.clone())
    }),
    overload("url_get_host", "kubernetes.URL::getHost() -> string", ONE, |args| text(args, |url| url.host.clone())),
    overload("url_get_hostname", "kubernetes.URL::getHostname() -> string", ONE, |args| {
        text(args, |url| url.host_and_port().0.trim_matches(['[', ']']).to_owned())
    }),
    overload("url_get_port", "kubernetes.URL::getPort() -> string", ONE, |args| {
        text(args, |url| url.host_and_port().1.to_owned())
    }),
    overload("url_get_escaped_path", "kubernetes.URL::getEscapedPath() -> string", ONE, |args| {
        text(args, |url| escaped(&url.path))
    }),
    overload("url_get_query", "kubernetes.URL::getQuery() -> map<string, list<string>>", ONE, query),
];

fn url<'c>(args: &'c Args<'_, '_>) -> Out<&'c Url> {
    args.get(0).as_opaque().ok_or(EvalError::NoSuchOverload)
}

fn text<'v>(args: &Args<'_, 'v>, part: fn(&Url) -> String) -> Out<Value<'v>> {
    Ok(Value::text(part(url(args)?)))
}

impl Url {
    fn host_and_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (&self.host, ""),
        }
    }
}

/// Whether a text is an absolute URL or a path.
pub(super) fn is_url(text: &str) -> bool {
    parse(text).is_ok()
}

fn parse(text: &str) -> Result<Url, String> {
    let fail = |why: &str| Err(format!("parse {text:?}: {why}"));
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return fail("net/url: invalid control character in URL");
    }
    let (rest, query) = text.split_once('?').unwrap_or((text, ""));
    let query = query.to_owned();
    if rest.starts_with('/') && !rest.starts_with("//") {
        unescaped(rest).ok_or_else(|| format!("parse {text:?}: invalid URL escape"))?;
        return Ok(Url { path: rest.to_owned(), query, ..Url::default() });
    }
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        Some(("", _)) => return fail("missing protocol scheme"),
        _ => return fail("invalid URI for request"),
    };
    let Some(rest) = rest.strip_prefix("//") else {
        // A scheme with something that is no path is as good as none.
        let valid = rest.starts_with('/');
        return if valid {
            Ok(Url { scheme: scheme.to_ascii_lowercase(), path: rest.to_owned(), query, ..Url::default() })
        } else {
            fail("invalid URI for request")
        };
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or("", |(_, port)| port);
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return fail(&format!("invalid port {:?} after host", format!(":{port}")));
    }
    if host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']) {
        return fail("invalid character in host name");
    }
    if host.starts_with('[') && !host.contains(']') {
        return fail("missing ']' in host");
    }
    unescaped(path).ok_or_else(|| format!("parse {text:?}: invalid URL escape"))?;
    Ok(Url { scheme: scheme.to_ascii_lowercase(), host: host.to_owned(), path: path.to_owned(), query })
}

fn is_scheme(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    first && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// The text with what stands for bytes replaced by them; nothing where that is broken.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
            out.push(digit()? * 16 + digit()?);
        } else {
            out.push(byte);
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// What may not stand in a path as it is, escaped.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!*'()[]".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn query<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let mut found: Vec<(String, Vec<Value<'v>>)> = Vec::new();
    for part in url(args)?.query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (Some(key), Some(value)) = (unescaped(&key.replace('+', " ")), unescaped(&value.replace('+', " "))) else {
            continue;
        };
        match found.iter_mut().find(|(name, _)| *name == key) {
            Some((_, values)) => values.push(Value::text(value)),
            None => found.push((key, vec![Value::text(value)])),
        }
    }
    Value::map(found.into_iter().map(|(key, values)| (Value::text(key), Value::list(values))))
}
