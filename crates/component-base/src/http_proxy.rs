//! Which proxy the environment names for a server: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, or the same in lower case, by
//! the rules of Go's `golang.org/x/net/http/httpproxy`, which upstream's components follow. How to get through a proxy is
//! the client's business.

use std::net::IpAddr;

/// The proxies of a process. Without any, connections go straight to their servers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyEnvironment {
    http: String,
    https: String,
    exempt: Vec<Exempt>,
}

/// Servers that are reached without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exempt {
    All,
    Network(IpAddr, u8),
    Address(IpAddr, String),
    Domain(Domain),
}

/// A domain; the port is empty where any will do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Domain {
    /// What names in it end with, a dot in front.
    suffix: String,
    /// Whether the domain's own name belongs to it.
    has_itself: bool,
    port: String,
}

impl ProxyEnvironment {
    /// What the process's own environment says.
    #[must_use]
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// What an environment says, of which variables are asked by name. A variable in capitals beats its like; what of
    /// `NO_PROXY` makes no sense is passed over.
    #[must_use]
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let names = [name.to_owned(), name.to_ascii_lowercase()];
            names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty())).unwrap_or_default()
        };
        Self { http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), exempt: exempt(&either("NO_PROXY")) }
    }

    /// The proxy for a server, as the environment has it: a URL, or a host with or without a port. The scheme is that of
    /// requests to the server. Nothing for this host itself.
    #[must_use]
    pub fn proxy_for(&self, secure: bool, host: &str, port: u16) -> Option<&str> {
        let proxy = if secure { &self.https } else { &self.http };
        if proxy.is_empty() || host == "localhost" {
            return None;
        }
        let host = bare(host).trim().to_ascii_lowercase();
        // A zone says through which link; it is no part of the address.
        let address: Option<IpAddr> = host.split('%').next().and_then(|address| address.parse().ok());
        let address = address.map(|address| address.to_canonical());
        if address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = port.to_string();
        let is_exempt = self.exempt.iter().any(|exempt| exempt.covers(&host, address, &port));
        (!is_exempt).then_some(proxy)
    }
}

/// URLs of proxies may hold passwords.
impl std::fmt::Debug for ProxyEnvironment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has = |proxy: &str| !proxy.is_empty();
        out.debug_struct("ProxyEnvironment")
            .field("http", &has(&self.http))
            .field("https", &has(&self.https))
            .field("exempt", &self.exempt)
            .finish()
    }
}

impl Exempt {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: &str) -> bool {
        let any_or = |own: &str| own.is_empty() || own == port;
        match (self, address) {
            (Self::All, _) => true,
            (Self::Network(network, length), Some(address)) => is_within(address, *network, *length),
            (Self::Address(own, own_port), Some(address)) => *own == address && any_or(own_port),
            (Self::Domain(domain), None) => domain.has(host) && any_or(&domain.port),
            _ => false,
        }
    }
}

impl Domain {
    fn has(&self, host: &str) -> bool {
        host.ends_with(&self.suffix) || (self.has_itself && self.suffix.strip_prefix('.') == Some(host))
    }
}

fn is_within(address: IpAddr, network: IpAddr, length: u8) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((address, width), (network, own_width)) = (bits(address), bits(network));
    let tail = own_width - u32::from(length).min(own_width);
    width == own_width && (address ^ network).checked_shr(tail).unwrap_or_default() == 0
}

fn exempt(list: &str) -> Vec<Exempt> {
    let entries: Vec<String> = list.split(',').map(|entry| entry.trim().to_lowercase()).collect();
    if entries.iter().any(|entry| entry == "*") {
        return vec![Exempt::All];
    }
    entries.iter().filter_map(|entry| parse(entry)).collect()
}

fn parse(entry: &str) -> Option<Exempt> {
    if let Some(network) = network(entry) {
        return Some(network);
    }
    let (host, port) = host_and_port(entry).unwrap_or((entry, ""));
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(Exempt::Address(address.to_canonical(), port.to_owned()));
    }
    let host = if host.starts_with("*.") { host.strip_prefix('*')? } else { host };
    if host.is_empty() {
        return None;
    }
    let has_itself = !host.starts_with('.');
    let suffix = if has_itself { format!(".{host}") } else { host.to_owned() };
    Some(Exempt::Domain(Domain { suffix, has_itself, port: port.to_owned() }))
}

fn network(entry: &str) -> Option<Exempt> {
    let (address, length) = entry.split_once('/')?;
    let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
    let width = if address.is_ipv4() { 32 } else { 128 };
    (length <= width).then_some(Exempt::Network(address, length))
}

/// Takes `host:port` apart; nothing where there is no port, as in a bare IPv6 address.
fn host_and_port(entry: &str) -> Option<(&str, &str)> {
    let (host, port) = entry.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    (is_bracketed || !host.contains(':')).then_some((bare(host), port))
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> ProxyEnvironment {
        let value = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        ProxyEnvironment::new(value)
    }

    #[test]
    fn the_scheme_of_requests_chooses_the_variable_and_capitals_win() {
        let both = [("HTTPS_PROXY", "s"), ("HTTP_PROXY", "p")];
        for (name, variables, secure, expected) in [
            ("nothing", &[][..], true, None),
            ("secure", &both, true, Some("s")),
            ("plain", &both, false, Some("p")),
            ("one does not stand for the other", &both[1..], true, None),
            ("lower case", &[("https_proxy", "l")], true, Some("l")),
            ("both cases", &[("https_proxy", "l"), ("HTTPS_PROXY", "u")], true, Some("u")),
            ("empty is unset", &[("https_proxy", "l"), ("HTTPS_PROXY", "")], true, Some("l")),
        ] {
            assert_eq!(environment(variables).proxy_for(secure, "example.com", 443), expected, "{name}");
        }
    }

    #[test]
    fn some_servers_are_reached_without_a_proxy() {
        for (list, host, port, is_proxied) in [
            ("", "example.com", 443, true),
            ("", "localhost", 6443, false),
            ("", "127.3.4.5", 6443, false),
            ("", "[::1]", 6443, false),
            ("", "::ffff:127.0.0.1", 6443, false),
            ("*", "example.com", 443, false),
            ("a.com, *", "10.0.0.1", 443, false),
            ("example.com", "example.com", 443, false),
            ("example.com", "EXAMPLE.com", 443, false),
            ("example.com", "api.example.com", 443, false),
            ("example.com", "myexample.com", 443, true),
            (".example.com", "api.example.com", 443, false),
            (".example.com", "example.com", 443, true),
            ("*.example.com", "api.example.com", 443, false),
            ("*.example.com", "example.com", 443, true),
            ("example.com:8443", "example.com", 8443, false),
            ("example.com:8443", "example.com", 443, true),
            ("a.com , Example.com", "example.com", 443, false),
            ("10.0.0.0/8", "10.96.0.1", 443, false),
            ("10.0.0.0/8", "11.96.0.1", 443, true),
            ("10.0.0.0/8", "example.com", 443, true),
            ("0.0.0.0/0", "10.1.2.3", 443, false),
            ("0.0.0.0/0", "fd00::1", 443, true),
            ("fd00::/64", "[fd00::7]", 443, false),
            ("fd00::/64", "[fd00:0:0:1::7]", 443, true),
            ("10.0.0.1", "10.0.0.1", 443, false),
            ("10.0.0.1", "10.0.0.10", 443, true),
            ("10.0.0.1:443", "10.0.0.1", 443, false),
            ("10.0.0.1:80", "10.0.0.1", 443, true),
            ("fd00::1", "[fd00::1]", 443, false),
            ("[fd00::1]:443", "[fd00::1]", 443, false),
            ("[fd00::1]:80", "[fd00::1]", 443, true),
            ("0.0.1", "10.0.0.1", 443, true),
            (":443,,/,10.0.0.0/33", "10.0.0.1", 443, true),
            (".svc,.cluster.local", "hook.ns.svc", 443, false),
        ] {
            let environment = environment(&[("HTTPS_PROXY", "proxy"), ("NO_PROXY", list)]);
            let found = environment.proxy_for(true, host, port);
            assert_eq!(found.is_some(), is_proxied, "{list:?} {host}:{port}");
        }
    }

    #[test]
    fn passwords_are_not_printed() {
        let environment = environment(&[("HTTPS_PROXY", "http://me:secret@proxy")]);
        assert!(!format!("{environment:?}").contains("secret"));
    }
}
