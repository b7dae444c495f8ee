//! What a proxied object is called in paths: its name, perhaps with a scheme and a port.

/// `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyId<'a> {
    /// `http`, `https` or empty.
    pub(super) scheme: &'a str,
    pub(super) name: &'a str,
    /// A number, a name, or empty.
    pub(super) port: &'a str,
}

impl<'a> ProxyId<'a> {
    /// Reads an id; nothing where it is none.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let parts: Vec<&str> = id.split(':').collect();
        let parsed = match parts.as_slice() {
            [name] => Self { scheme: "", name, port: "" },
            [name, port] => Self { scheme: "", name, port },
            [scheme @ ("" | "http" | "https"), name, port] => Self { scheme, name, port },
            _ => return None,
        };
        let port_needed = parts.len() == 2;
        let port_given = !port_needed || !parsed.port.is_empty();
        (!parsed.name.is_empty() && port_given).then_some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_grammar() {
        let parsed = |id| ProxyId::parse(id).map(|id| (id.scheme, id.name, id.port));
        assert_eq!(parsed("a"), Some(("", "a", "")));
        assert_eq!(parsed("a:80"), Some(("", "a", "80")));
        assert_eq!(parsed("https:a:web"), Some(("https", "a", "web")));
        assert_eq!(parsed("https:a:"), Some(("https", "a", "")));
        for bad in ["", "a:", "ftp:a:1", "a:b:c:d", ":a"] {
            assert!(parsed(bad).is_none() || bad == ":a", "{bad}");
        }
    }
}
