//! Warnings about spellings of IP addresses and CIDR blocks that are read, and yet not what everybody reads alike.

use std::net::IpAddr;

use api_machinery::field_path::Path;
use api_machinery::names::{parse_cidr_lenient, parse_ip_lenient};

/// The bits of an IPv4-mapped IPv6 address before the IPv4 one.
const MAPPED_PREFIX_BITS: u8 = 96;

/// What is told of an address; nothing where it is none, as that is for validation to say.
pub fn of_ip(path: &Path, value: &str) -> Option<String> {
    let address = parse_ip_lenient(value)?;
    let strict = value.parse::<IpAddr>();
    if strict.is_err() || is_mapped(address) {
        let good = address.to_canonical();
        return Some(format!("{path}: non-standard IP address \"{value}\" is invalid: use \"{good}\""));
    }
    let canonical = address.to_string();
    (address.is_ipv6() && canonical != value)
        .then(|| format!("{path}: IPv6 address \"{value}\" should be in RFC 5952 canonical format (\"{canonical}\")"))
}

/// What is told of a list of addresses, each at its index.
pub fn of_ips(path: &Path, values: &[String]) -> Vec<String> {
    values.iter().enumerate().filter_map(|(index, value)| of_ip(&path.index(index), value)).collect()
}

/// What is told of a CIDR block.
pub fn of_cidr(path: &Path, value: &str) -> Vec<String> {
    let Some((address, length)) = parse_cidr_lenient(value) else { return Vec::new() };
    let network = network(address, length);
    let mut texts = Vec::new();
    if mask(address, length) != address {
        let single = format!("{}/{}", address.to_canonical(), bits(address));
        let text = "is ambiguous in this context";
        texts.push(format!("{path}: CIDR value \"{value}\" {text} (should be \"{network}\" or \"{single}\"?)"));
    }
    let strict =
        value.split_once('/').is_some_and(|(ip, text)| ip.parse::<IpAddr>().is_ok() && text == length.to_string());
    if !strict || is_mapped(address) {
        texts.push(format!("{path}: non-standard CIDR value \"{value}\" is invalid: use \"{network}\""));
    }
    let canonical = format!("{address}/{length}");
    if texts.is_empty() && address.is_ipv6() && canonical != value {
        let text = "should be in RFC 5952 canonical format";
        texts.push(format!("{path}: IPv6 CIDR value \"{value}\" {text} (\"{canonical}\")"));
    }
    texts
}

/// What is told of a list of CIDR blocks, each at its index.
pub fn of_cidrs(path: &Path, values: &[String]) -> Vec<String> {
    values.iter().enumerate().flat_map(|(index, value)| of_cidr(&path.index(index), value)).collect()
}

/// Whether a block, at most as long as `outer`'s prefix says, lies within `outer`; both as `(address, prefix length)`.
pub fn contains((outer, length): (IpAddr, u8), address: IpAddr) -> bool {
    outer.is_ipv4() == address.is_ipv4() && mask(outer, length) == mask(address, length)
}

fn is_mapped(address: IpAddr) -> bool {
    address.is_ipv6() && address.to_canonical().is_ipv4()
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with the bits beyond the prefix cleared.
fn mask(address: IpAddr, length: u8) -> IpAddr {
    let beyond = u32::from(bits(address).saturating_sub(length));
    match address {
        IpAddr::V4(v4) => {
            let kept = u32::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::from((v4.to_bits() & kept).to_be_bytes())
        }
        IpAddr::V6(v6) => {
            let kept = u128::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::from((v6.to_bits() & kept).to_be_bytes())
        }
    }
}

/// The block in its usual form; that of a mapped address is the IPv4 one.
fn network(address: IpAddr, length: u8) -> String {
    let masked = mask(address, length);
    match is_mapped(masked) && length >= MAPPED_PREFIX_BITS {
        true => format!("{}/{}", masked.to_canonical(), length - MAPPED_PREFIX_BITS),
        false => format!("{masked}/{length}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (value, expected) in [
            ("10.0.0.1", ""),
            ("nothing", ""),
            ("", ""),
            ("010.0.0.1", "ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""),
            ("::ffff:1.2.3.4", "ip: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""),
            ("fd00::1", ""),
            ("FD00:0::1", "ip: IPv6 address \"FD00:0::1\" should be in RFC 5952 canonical format (\"fd00::1\")"),
        ] {
            assert_eq!(of_ip(&Path::new("ip"), value).unwrap_or_default(), expected, "{value}");
        }
    }

    #[test]
    fn blocks() {
        for (value, expected) in [
            ("10.0.0.0/8", &[][..]),
            ("10.0.0.0", &[]),
            (
                "10.1.0.0/8",
                &["c: CIDR value \"10.1.0.0/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \
                   \"10.1.0.0/32\"?)"],
            ),
            ("010.0.0.0/8", &["c: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\""]),
            (
                "::ffff:1.2.3.0/120",
                &["c: non-standard CIDR value \"::ffff:1.2.3.0/120\" is invalid: use \"1.2.3.0/24\""],
            ),
            (
                "fd00:0::/64",
                &["c: IPv6 CIDR value \"fd00:0::/64\" should be in RFC 5952 canonical format (\"fd00::/64\")"],
            ),
        ] {
            assert_eq!(of_cidr(&Path::new("c"), value), expected, "{value}");
        }
    }

    #[test]
    fn blocks_hold_addresses_of_their_family() {
        let block = parse_cidr_lenient("10.0.0.0/8").expect("a block");
        for (address, expected) in [("10.9.9.9", true), ("11.0.0.0", false), ("::a00:0", false)] {
            assert_eq!(contains(block, address.parse().expect("an address")), expected, "{address}");
        }
        let all = parse_cidr_lenient("0.0.0.0/0").expect("a block");
        assert!(contains(all, "1.2.3.4".parse().expect("an address")));
    }
}
