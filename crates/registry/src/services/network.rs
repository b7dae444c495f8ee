//! Address ranges of Services as ranges of numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// IPv6 networks of more addresses are not counted through.
const SHORTEST_IPV6_PREFIX: u8 = 64;
/// The fewest addresses a range may have.
const MIN_ADDRESSES: u32 = 8;

/// An IP family, as the API writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.as_str() == text)
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// A network in CIDR form, such as `10.96.0.0/12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid CIDR address: {text}");
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            return Err(invalid());
        }
        let host = u32::from(bits - prefix);
        let number = to_number(address) >> host.min(127) << host.min(127);
        let number = if host == 128 { 0 } else { number };
        Ok(Self { network: from_number(Family::of(address), number), prefix })
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.network, self.prefix)
    }
}

impl Cidr {
    pub(crate) fn family(self) -> Family {
        Family::of(self.network)
    }

    /// The first address, which stands for "some address" in a dry run.
    pub(crate) fn network(self) -> IpAddr {
        self.network
    }

    /// Whether the address lies in the network.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        Family::of(address) == self.family()
            && to_number(address)
                .checked_sub(to_number(self.network))
                .is_some_and(|at| 1_u128.checked_shl(self.host_bits()).is_none_or(|size| at < size))
    }

    fn host_bits(self) -> u32 {
        u32::from((if self.network.is_ipv4() { 32 } else { 128 }) - self.prefix)
    }

    /// How many addresses can be given out: not the network's own nor, in IPv4, the broadcast address.
    pub(crate) fn size(self) -> u64 {
        let all = 1_u128.checked_shl(self.host_bits()).unwrap_or(u128::MAX);
        let usable = all.saturating_sub(if self.network.is_ipv4() { 2 } else { 1 });
        u64::try_from(usable).unwrap_or(u64::MAX)
    }

    /// Why addresses cannot be taken from it though it is one: more than can be counted.
    pub(crate) fn problem(self) -> Option<String> {
        let too_large = !self.network.is_ipv4() && self.prefix < SHORTEST_IPV6_PREFIX;
        too_large.then(|| {
            let given = self.prefix;
            format!("shortest allowed prefix length for service CIDR is {SHORTEST_IPV6_PREFIX}, got {given}")
        })
    }

    /// Whether it is too small to be of use.
    #[must_use]
    pub fn is_too_small(&self) -> bool {
        self.host_bits() < MIN_ADDRESSES.trailing_zeros()
    }

    /// The address of this number; the first that can be given out is 0.
    pub(crate) fn address(self, offset: u64) -> IpAddr {
        from_number(self.family(), to_number(self.network) + 1 + u128::from(offset))
    }

    /// The number of an address, where it can be given out.
    pub(crate) fn offset(self, address: IpAddr) -> Option<u64> {
        if Family::of(address) != self.family() {
            return None;
        }
        let offset = to_number(address).checked_sub(to_number(self.network) + 1)?;
        u64::try_from(offset).ok().filter(|offset| *offset < self.size())
    }

    /// How many of the first addresses are left to those who choose themselves.
    pub(crate) fn lower_band(self) -> u64 {
        let size = self.size();
        if size <= 16 { 0 } else { (size / 16).clamp(16, 256) }
    }
}

fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn from_number(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_count_their_usable_addresses() {
        for (text, size, first, last) in [
            ("10.96.0.0/12", 1_048_574, "10.96.0.1", "10.111.255.254"),
            ("10.0.0.7/24", 254, "10.0.0.1", "10.0.0.254"),
            ("fd00::/112", 65_535, "fd00::1", "fd00::ffff"),
            ("fd00::/108", 1_048_575, "fd00::1", "fd00::f:ffff"),
            ("fd00::/64", u64::MAX, "fd00::1", "fd00::ffff:ffff:ffff:ffff"),
        ] {
            let cidr: Cidr = text.parse().unwrap();
            assert_eq!(cidr.size(), size, "{text}");
            assert_eq!(cidr.address(0).to_string(), first);
            assert_eq!(cidr.address(size - 1).to_string(), last);
            assert_eq!(cidr.offset(last.parse().unwrap()), Some(size - 1));
            assert_eq!(cidr.offset(cidr.network()), None);
        }
        assert!("10.0.0.0/33".parse::<Cidr>().is_err() && "x/8".parse::<Cidr>().is_err());
        assert_eq!("10.0.0.9/24".parse::<Cidr>().unwrap().to_string(), "10.0.0.0/24");
        assert!("0.0.0.0/0".parse::<Cidr>().is_ok() && "::/0".parse::<Cidr>().is_ok());
        assert_eq!("fd00::/64".parse::<Cidr>().unwrap().problem(), None);
        let told = "shortest allowed prefix length for service CIDR is 64, got 63";
        assert_eq!("fd00::/63".parse::<Cidr>().unwrap().problem().as_deref(), Some(told));
        assert!("10.0.0.0/30".parse::<Cidr>().unwrap().is_too_small());
    }
}
