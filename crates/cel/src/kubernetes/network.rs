//! Addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{Opaque, Value};

/// Addresses.
pub const IP: Library = Library { name: "ip", functions: IP_FUNCTIONS, types: &["net.IP"], macros: NO_MACROS };
/// Networks.
pub const CIDR: Library = Library { name: "cidr", functions: CIDR_FUNCTIONS, types: &["net.CIDR"], macros: NO_MACROS };

const ONE: Cost = Cost::Fixed(1);
const READ: Cost = Cost::Reads(0, 1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address(IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network(IpAddr, u8);

fn bytes(address: IpAddr) -> u64 {
    if address.is_ipv4() { 4 } else { 16 }
}

impl Opaque for Address {
    fn type_name(&self) -> &'static str {
        "net.IP"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }

    fn size(&self) -> u64 {
        bytes(self.0)
    }
}

impl Opaque for Network {
    fn type_name(&self) -> &'static str {
        "net.CIDR"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }

    fn size(&self) -> u64 {
        u64::from(self.1).div_ceil(8)
    }
}

const IP_FUNCTIONS: &[Overload] = &[
    overload("string_to_ip", "ip(string) -> net.IP", READ, |args| {
        parse(args.str(0)).map(|address| Value::opaque(Address(address))).map_err(EvalError::Failed)
    }),
    overload("is_ip", "isIP(string) -> bool", READ, |args| Ok(Value::Bool(parse(args.str(0)).is_ok()))),
    overload("ip_is_canonical", "ip.isCanonical(string) -> bool", Cost::Reads(0, 2), |args| {
        let address = parse(args.str(0)).map_err(EvalError::Failed)?;
        Ok(Value::Bool(address.to_string() == args.str(0)))
    }),
    overload("ip_to_string", "string(net.IP) -> string", ONE, |args| Ok(Value::text(ip(args, 0)?.to_string()))),
    overload("ip_family", "net.IP::family() -> int", ONE, |args| {
        Ok(Value::Int(if ip(args, 0)?.is_ipv4() { 4 } else { 6 }))
    }),
    overload("ip_is_unspecified", "net.IP::isUnspecified() -> bool", ONE, |args| {
        Ok(Value::Bool(ip(args, 0)?.is_unspecified()))
    }),
    overload("ip_is_loopback", "net.IP::isLoopback() -> bool", ONE, |args| Ok(Value::Bool(ip(args, 0)?.is_loopback()))),
    overload("ip_is_link_local_multicast", "net.IP::isLinkLocalMulticast() -> bool", ONE, |args| {
        Ok(Value::Bool(is_link_local_multicast(ip(args, 0)?)))
    }),
    overload("ip_is_link_local_unicast", "net.IP::isLinkLocalUnicast() -> bool", ONE, |args| {
        Ok(Value::Bool(is_link_local(ip(args, 0)?)))
    }),
    overload("ip_is_global_unicast", "net.IP::isGlobalUnicast() -> bool", ONE, |args| {
        let address = ip(args, 0)?;
        let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast() || broadcast;
        Ok(Value::Bool(!special && !is_link_local(address)))
    }),
];

const CIDR_FUNCTIONS: &[Overload] = &[
    overload("string_to_cidr", "cidr(string) -> net.CIDR", READ, |args| {
        network(args.str(0)).map(Value::opaque).map_err(EvalError::Failed)
    }),
    overload("is_cidr", "isCIDR(string) -> bool", READ, |args| Ok(Value::Bool(network(args.str(0)).is_ok()))),
    overload("cidr_to_string", "string(net.CIDR) -> string", ONE, |args| {
        let Network(address, length) = cidr(args, 0)?;
        Ok(Value::text(format!("{address}/{length}")))
    }),
    overload("cidr_contains_ip_string", "net.CIDR::containsIP(string) -> bool", CONTAINS_TEXT, |args| {
        let address = parse(args.str(1)).map_err(EvalError::Failed)?;
        Ok(Value::Bool(cidr(args, 0)?.contains(address)))
    }),
    overload("cidr_contains_ip_ip", "net.CIDR::containsIP(net.IP) -> bool", CONTAINS, |args| {
        Ok(Value::Bool(cidr(args, 0)?.contains(ip(args, 1)?)))
    }),
    overload("cidr_contains_cidr_string", "net.CIDR::containsCIDR(string) -> bool", CONTAINS_NETWORK_TEXT, |args| {
        let other = network(args.str(1)).map_err(EvalError::Failed)?;
        Ok(Value::Bool(cidr(args, 0)?.contains_network(other)))
    }),
    overload("cidr_contains_cidr", "net.CIDR::containsCIDR(net.CIDR) -> bool", CONTAINS_NETWORK, |args| {
        Ok(Value::Bool(cidr(args, 0)?.contains_network(cidr(args, 1)?)))
    }),
    overload("cidr_ip", "net.CIDR::ip() -> net.IP", ONE, |args| Ok(Value::opaque(Address(cidr(args, 0)?.0)))),
    overload("cidr_masked", "net.CIDR::masked() -> net.CIDR", ONE, |args| {
        let Network(address, length) = cidr(args, 0)?;
        Ok(Value::opaque(Network(masked(address, length), length)))
    }),
    overload("cidr_prefix_length", "net.CIDR::prefixLength() -> int", ONE, |args| {
        Ok(Value::Int(i64::from(cidr(args, 0)?.1)))
    }),
];

const CONTAINS: Cost = Cost::Contains { network: false, text: false };
const CONTAINS_TEXT: Cost = Cost::Contains { network: false, text: true };
const CONTAINS_NETWORK: Cost = Cost::Contains { network: true, text: false };
const CONTAINS_NETWORK_TEXT: Cost = Cost::Contains { network: true, text: true };

fn ip(args: &Args<'_, '_>, index: usize) -> Out<IpAddr> {
    args.get(index).as_opaque::<Address>().map(|value| value.0).ok_or(EvalError::NoSuchOverload)
}

fn cidr(args: &Args<'_, '_>, index: usize) -> Out<Network> {
    args.get(index).as_opaque::<Network>().copied().ok_or(EvalError::NoSuchOverload)
}

/// Neither with a zone nor of the other family in disguise.
fn parse(text: &str) -> Result<IpAddr, String> {
    if let Some((address, _)) = text.split_once('%')
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address \"{text}\" with zone value is not allowed"));
    }
    let parsed: Result<IpAddr, _> = text.parse();
    let address = parsed.map_err(|_| {
        let why = format!("ParseAddr({text:?}): unable to parse IP");
        format!("IP Address \"{text}\" parse error during conversion from string: {why}")
    })?;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address \"{text}\" is not allowed"))
        }
        address => Ok(address),
    }
}

fn network(text: &str) -> Result<Network, String> {
    const WHY: &str = "network address parse error during conversion from string: ";
    let wrong = |why: &str| format!("{WHY}{WHY}{why}");
    let no_prefix = || wrong(&format!("netip.ParsePrefix({text:?}): no '/'"));
    let (address, length) = text.split_once('/').ok_or_else(no_prefix)?;
    let address = parse(address).map_err(|why| format!("{WHY}{why}"))?;
    let plain = length.bytes().all(|b| b.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = if plain { length.parse().ok().filter(|length: &u8| *length <= most) } else { None };
    let length = length.ok_or_else(|| wrong(&format!("netip.ParsePrefix({text:?}): bad bits after slash")))?;
    Ok(Network(address, length))
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        self.0.is_ipv4() == address.is_ipv4() && masked(self.0, self.1) == masked(address, self.1)
    }

    fn contains_network(self, other: Self) -> bool {
        self.1 <= other.1 && self.contains(other.0)
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}
