//! The two address families. Each has an engine, a table and addresses of its own.

use std::net::IpAddr;

use crate::backend::UnsupportedMachine;

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// The family of an address or network in text form; nothing where it is neither.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let address = text.split_once('/').map_or(text, |(address, _)| address);
        address.trim().parse().ok().map(Self::of)
    }

    /// As EndpointSlices and Services name it.
    #[must_use]
    pub fn api_name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    /// The table family of nftables, which is also the keyword in rules.
    #[must_use]
    pub fn nft(self) -> &'static str {
        match self {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }

    /// The type of an address in nftables sets.
    #[must_use]
    pub fn nft_type(self) -> &'static str {
        match self {
            Family::V4 => "ipv4_addr",
            Family::V6 => "ipv6_addr",
        }
    }

    /// The address that stands for all.
    #[must_use]
    pub fn unspecified(self) -> IpAddr {
        match self {
            Family::V4 => std::net::Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => std::net::Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// The network of the loopback addresses.
    #[must_use]
    pub fn loopback(self) -> &'static str {
        match self {
            Family::V4 => "127.0.0.0/8",
            Family::V6 => "::1",
        }
    }
}

/// Whether a network in text form contains an address.
pub(crate) fn contains(range: &str, address: IpAddr) -> bool {
    let Some((network, length)) = range.split_once('/') else { return false };
    let (Ok(network), Ok(length)) = (network.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    if Family::of(network) != Family::of(address) {
        return false;
    }
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let ((one, width), (other, _)) = (bits(network), bits(address));
    let shift = width - length.min(width);
    one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
}

/// The families to run, of which the node's own comes first.
///
/// # Errors
/// The machine does not have the node's own.
pub(crate) fn families(primary: Family, has_v6: bool) -> Result<Vec<Family>, UnsupportedMachine> {
    match (primary, has_v6) {
        (Family::V4, true) => Ok(vec![Family::V4, Family::V6]),
        (Family::V6, true) => Ok(vec![Family::V6, Family::V4]),
        (Family::V4, false) => Ok(vec![Family::V4]),
        (Family::V6, false) => Err(UnsupportedMachine::Family(primary)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_own_family_has_to_be_there() {
        assert_eq!(families(Family::V4, false).unwrap(), [Family::V4]);
        assert_eq!(families(Family::V6, true).unwrap(), [Family::V6, Family::V4]);
        assert_eq!(families(Family::V6, false).unwrap_err().to_string(), "no support for primary IP family \"IPv6\"");
    }
}
