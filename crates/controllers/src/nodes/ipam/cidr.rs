//! A range of addresses: an address and how many of its bits are fixed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range. Addresses of both families are kept as numbers of 128 bits, IPv4 ones in the lowest 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    base: u128,
    mask: u8,
    is_v6: bool,
}

impl Cidr {
    /// The range of this many fixed bits that starts at a number.
    pub(super) fn new(base: u128, mask: u8, is_v6: bool) -> Self {
        let width = if is_v6 { 128 } else { 32 };
        let mask = mask.min(width);
        let free = u32::from(width - mask);
        let keep = if free >= 128 { 0 } else { u128::MAX << free };
        Self { base: base & keep, mask, is_v6 }
    }

    /// The first address, as a number.
    pub(super) const fn base(&self) -> u128 {
        self.base
    }

    /// How many bits are fixed.
    pub(super) const fn mask(&self) -> u8 {
        self.mask
    }

    /// Whether the addresses are IPv6.
    pub(super) const fn is_v6(&self) -> bool {
        self.is_v6
    }

    /// How many bits an address has.
    pub(super) const fn width(&self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The last address, as a number.
    pub(super) const fn last(&self) -> u128 {
        let free = self.width() - self.mask;
        if free >= 128 { u128::MAX } else { self.base | ((1 << free) - 1) }
    }

    /// Whether two ranges share addresses.
    pub(super) const fn overlaps(&self, other: &Self) -> bool {
        self.is_v6 == other.is_v6 && self.base <= other.last() && other.base <= self.last()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = u32::try_from(self.base & u128::from(u32::MAX)).unwrap_or(0);
        let address: IpAddr =
            if self.is_v6 { Ipv6Addr::from_bits(self.base).into() } else { Ipv4Addr::from_bits(low).into() };
        write!(f, "{address}/{}", self.mask)
    }
}

/// A text is no network.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid CIDR address: {0}")]
pub(super) struct CidrError(String);

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let bad = || CidrError(text.to_owned());
        let (address, mask) = text.split_once('/').ok_or_else(bad)?;
        let mask: u8 = mask.parse().map_err(|_| bad())?;
        match address.parse::<IpAddr>().map_err(|_| bad())? {
            IpAddr::V4(address) if mask <= 32 => Ok(Self::new(address.to_bits().into(), mask, false)),
            IpAddr::V6(address) if mask <= 128 => Ok(Self::new(address.to_bits(), mask, true)),
            _ => Err(bad()),
        }
    }
}
