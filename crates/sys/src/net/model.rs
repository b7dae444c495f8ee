//! What a network consists of.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    pub index: u32,
    pub name: String,
    pub mtu: u32,
    /// The hardware address, `aa:bb:..`; empty for links that have none.
    pub hardware_address: String,
    /// Whether it is meant to be up, cable or not.
    pub is_up: bool,
    pub is_loopback: bool,
    pub addresses: Vec<Address>,
}

/// An address with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub ip: IpAddr,
    pub prefix: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.ip, self.prefix)
    }
}

/// Where a route leads: a network, which for the default route is all of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(pub Address);

impl Destination {
    /// Everything of one family.
    #[must_use]
    pub fn default_of(v6: bool) -> Self {
        let ip = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self(Address { ip, prefix: 0 })
    }

    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0.prefix == 0
    }

    #[must_use]
    pub fn is_v6(&self) -> bool {
        self.0.ip.is_ipv6()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A text that is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an address with a prefix length")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    /// `10.0.0.1/24`; without a length the whole address counts.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        let (ip, prefix) = text.split_once('/').map_or((text, None), |(ip, prefix)| (ip, Some(prefix)));
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > longest { Err(wrong()) } else { Ok(Self { ip, prefix }) }
    }
}

impl FromStr for Destination {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse().map(Self)
    }
}

/// A way to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub destination: Destination,
    pub gateway: Option<IpAddr>,
    pub device: Option<String>,
    /// The address that packets leave with unless their sender chose one.
    pub source: Option<IpAddr>,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// As the tools spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// Which tracked connections are meant: those that agree in everything given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conntrack {
    pub protocol: Protocol,
    pub v6: bool,
    /// Where the client meant to go.
    pub original_destination: Option<IpAddr>,
    pub original_port: Option<u16>,
    /// The address that answers, where destinations were rewritten.
    pub reply_source: Option<IpAddr>,
    pub reply_port: Option<u16>,
}

/// A tracked connection: where its client meant to go, and who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tracked {
    pub original_destination: IpAddr,
    pub original_port: u16,
    pub reply_source: IpAddr,
    pub reply_port: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_text() {
        for (text, expected) in [
            ("10.0.0.1/24", Some("10.0.0.1/24")),
            ("10.0.0.1", Some("10.0.0.1/32")),
            ("fd00::1/64", Some("fd00::1/64")),
            ("::/0", Some("::/0")),
            ("10.0.0.1/33", None),
            ("10.0.0/8", None),
            ("fd00::/129", None),
            ("x", None),
        ] {
            assert_eq!(text.parse::<Address>().ok().map(|address| address.to_string()).as_deref(), expected, "{text}");
        }
        assert!(Destination::default_of(true).is_default() && Destination::default_of(true).is_v6());
    }
}
