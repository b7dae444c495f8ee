//! What a name asks for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Another server's business.
    Foreign,
    /// The zone itself.
    Apex,
    /// The name server of the zone.
    NameServer,
    /// The version of the naming scheme.
    Version,
    /// A name that exists only because names below it do.
    Between {
        /// The namespace that must exist, if one is named.
        namespace: Option<String>,
    },
    /// A Service, or something of it.
    Service {
        /// The namespace.
        namespace: String,
        /// The Service's name.
        service: String,
        /// What of it.
        part: Part,
    },
    /// A pod by its address.
    Pod {
        /// The namespace.
        namespace: String,
        /// The address; nothing where the label is none.
        address: Option<IpAddr>,
    },
    /// An address, backwards.
    Reverse(Option<IpAddr>),
    /// A name of the zone that cannot be.
    Nothing,
}

/// What of a Service is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The Service.
    Whole,
    /// An endpoint by its label.
    Endpoint(String),
    /// A port by name and protocol.
    Port(String, String),
}

/// Takes a lower-case name without its last dot apart; `zone` is like it.
#[must_use]
pub fn parse(name: &str, zone: &str) -> Asked {
    if let Some(address) = reverse(name) {
        return address;
    }
    let rest = match name.strip_suffix(zone) {
        Some("") => return Asked::Apex,
        Some(rest) if rest.ends_with('.') => rest.trim_end_matches('.'),
        _ => return Asked::Foreign,
    };
    let labels: Vec<&str> = rest.rsplit('.').collect();
    match labels.as_slice() {
        ["dns-version"] => Asked::Version,
        ["dns", "ns"] => Asked::NameServer,
        ["svc" | "pod"] => Asked::Between { namespace: None },
        ["svc" | "pod", namespace] => Asked::Between { namespace: Some((*namespace).to_owned()) },
        ["pod", namespace, label] => {
            Asked::Pod { namespace: (*namespace).to_owned(), address: address_of_label(label) }
        }
        ["svc", namespace, service, rest @ ..] => match part(rest) {
            Some(part) => Asked::Service { namespace: (*namespace).to_owned(), service: (*service).to_owned(), part },
            None => Asked::Nothing,
        },
        _ => Asked::Nothing,
    }
}

/// What stands in front of a Service's name, nearest label first.
fn part(labels: &[&str]) -> Option<Part> {
    let bare = |label: &str| label.strip_prefix('_').unwrap_or(label).to_owned();
    match labels {
        [] => Some(Part::Whole),
        [endpoint] => Some(Part::Endpoint((*endpoint).to_owned())),
        [protocol, port] => Some(Part::Port(bare(port), bare(protocol))),
        _ => None,
    }
}

/// `1-2-3-4` or `fd00--1` as an address.
fn address_of_label(label: &str) -> Option<IpAddr> {
    if label.matches('-').count() == 3 && !label.contains("--") {
        label.replace('-', ".").parse::<Ipv4Addr>().ok().map(IpAddr::V4)
    } else {
        label.replace('-', ":").parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    }
}

fn reverse(name: &str) -> Option<Asked> {
    if let Some(octets) = name.strip_suffix(".in-addr.arpa") {
        let forward: Vec<&str> = octets.rsplit('.').collect();
        return Some(Asked::Reverse(forward.join(".").parse().ok().map(IpAddr::V4)));
    }
    let nibbles = name.strip_suffix(".ip6.arpa")?;
    let digits: String = nibbles.rsplit('.').collect();
    let whole = digits.len() == 32 && nibbles.len() == 63;
    let bits = u128::from_str_radix(&digits, 16).ok().filter(|_| whole);
    Some(Asked::Reverse(bits.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let service = |part| Asked::Service { namespace: "n".into(), service: "s".into(), part };
        let v4 = |text: &str| text.parse::<IpAddr>().ok();
        for (name, expected) in [
            ("example.com", Asked::Foreign),
            ("xcluster.local", Asked::Foreign),
            ("cluster.local", Asked::Apex),
            ("ns.dns.cluster.local", Asked::NameServer),
            ("dns-version.cluster.local", Asked::Version),
            ("svc.cluster.local", Asked::Between { namespace: None }),
            ("n.svc.cluster.local", Asked::Between { namespace: Some("n".into()) }),
            ("s.n.svc.cluster.local", service(Part::Whole)),
            ("e.s.n.svc.cluster.local", service(Part::Endpoint("e".into()))),
            ("_http._tcp.s.n.svc.cluster.local", service(Part::Port("http".into(), "tcp".into()))),
            ("x._http._tcp.s.n.svc.cluster.local", Asked::Nothing),
            ("x.cluster.local", Asked::Nothing),
            ("1-2-3-4.n.pod.cluster.local", Asked::Pod { namespace: "n".into(), address: v4("1.2.3.4") }),
            ("fd00--1.n.pod.cluster.local", Asked::Pod { namespace: "n".into(), address: v4("fd00::1") }),
            ("x.n.pod.cluster.local", Asked::Pod { namespace: "n".into(), address: None }),
            ("4.3.2.1.in-addr.arpa", Asked::Reverse(v4("1.2.3.4"))),
            ("2.1.in-addr.arpa", Asked::Reverse(None)),
        ] {
            assert_eq!(parse(name, "cluster.local"), expected, "{name}");
        }
        let v6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa";
        assert_eq!(parse(v6, "cluster.local"), Asked::Reverse(v4("fd00::1")));
    }
}
