//! IP addresses and CIDR blocks: the lenient reader of old fields and the strict rules of new ones.

use std::net::{IpAddr, Ipv4Addr};

const BAD_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const BAD_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const BAD_INTERFACE: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";

/// An IP address of an older field: any spelling but leading zeros and IPv4-mapped IPv6.
pub fn ip(value: &str) -> Vec<String> {
    ip_problem(value).map(ToOwned::to_owned).into_iter().collect()
}

/// An IP address of a newer field: the canonical spelling only.
pub fn ip_strict(value: &str) -> Vec<String> {
    match (ip_problem(value), value.parse::<IpAddr>()) {
        (Some(problem), _) => vec![problem.to_owned()],
        (None, Ok(address)) => canonical_problem(value, &address.to_string()),
        (None, Err(_)) => vec![BAD_IP.to_owned()],
    }
}

/// A CIDR block of an older field.
pub fn cidr(value: &str) -> Vec<String> {
    cidr_problem(value).map(ToOwned::to_owned).into_iter().collect()
}

/// A CIDR block of a newer field: the canonical spelling only.
pub fn cidr_strict(value: &str) -> Vec<String> {
    match (cidr_problem(value), parse_cidr_lenient(value)) {
        (Some(problem), _) => vec![problem.to_owned()],
        (None, Some((address, length))) => canonical_problem(value, &format!("{address}/{length}")),
        (None, None) => vec![BAD_CIDR.to_owned()],
    }
}

/// An address with the prefix length of its network, in canonical spelling.
pub fn interface_address(value: &str) -> Vec<String> {
    match parse_cidr_lenient(value) {
        Some((address, length)) => canonical_problem(value, &format!("{address}/{length}")),
        None => vec![BAD_INTERFACE.to_owned()],
    }
}

/// What keeps an address from being an endpoint.
pub fn endpoint_ip(address: IpAddr) -> Vec<String> {
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), matches!(v4.octets(), [224, 0, 0, _])),
        IpAddr::V6(v6) => {
            let [first, ..] = v6.segments();
            (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
        }
    };
    let checks = [
        (address.is_unspecified(), format!("may not be unspecified ({address})")),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ];
    checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text).collect()
}

/// Reads an address as old fields do: leading zeros in IPv4 octets are decimal and ignored.
pub fn parse_ip_lenient(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let (head, dotted) = text.rsplit_once(':').map_or(("", text), |(head, tail)| (head, tail));
        let octets: Option<Vec<u8>> = dotted.split('.').map(lenient_octet).collect();
        let [a, b, c, d] = *octets?.as_slice() else { return None };
        let v4 = Ipv4Addr::new(a, b, c, d);
        if text.contains(':') { format!("{head}:{v4}").parse().ok() } else { Some(IpAddr::V4(v4)) }
    })
}

fn lenient_octet(text: &str) -> Option<u8> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads an address and prefix length as old fields do.
pub fn parse_cidr_lenient(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_ip_lenient(address)?;
    let length = lenient_octet(length)?;
    (length <= bits(address)).then_some((address, length))
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_ipv4_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn ip_problem(value: &str) -> Option<&'static str> {
    let Some(address) = parse_ip_lenient(value) else { return Some(BAD_IP) };
    if value.parse::<IpAddr>().is_err() {
        return Some("must not have leading 0s");
    }
    is_ipv4_mapped(address).then_some("must not be an IPv4-mapped IPv6 address")
}

fn cidr_problem(value: &str) -> Option<&'static str> {
    let Some((address, length)) = parse_cidr_lenient(value) else { return Some(BAD_CIDR) };
    let (ip_text, length_text) = value.split_once('/')?;
    if ip_text.parse::<IpAddr>().is_err() || length_text != length.to_string() {
        return Some("must not have leading 0s in IP or prefix length");
    }
    if is_ipv4_mapped(address) {
        return Some("must not have an IPv4-mapped IPv6 address");
    }
    let host_bits = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).checked_shl(96 + u32::from(length)),
        IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(length)),
    };
    (host_bits.unwrap_or(0) != 0).then_some("must not have bits set beyond the prefix length")
}

fn canonical_problem(value: &str, canonical: &str) -> Vec<String> {
    if value == canonical { Vec::new() } else { vec![format!("must be in canonical form (\"{canonical}\")")] }
}
