//! Subject alternative names.

use std::net::IpAddr;

use x509_parser::extensions::{GeneralName, SubjectAlternativeName};

use crate::der;

/// The alternative names Kubernetes looks at, by type and in order of appearance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AltNames {
    /// DNS names, wildcards included.
    pub dns: Vec<String>,
    /// IP addresses.
    pub ips: Vec<IpAddr>,
    /// Mail addresses.
    pub emails: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
}

impl AltNames {
    /// Whether there is no name of any type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.ips.is_empty() && self.emails.is_empty() && self.uris.is_empty()
    }

    /// Adds a host: an IP address if it reads as one, else a DNS name in lower case.
    pub fn push_host(&mut self, host: &str) {
        match host.parse::<IpAddr>() {
            Ok(address) => self.ips.push(address),
            Err(_) => self.dns.push(host.to_ascii_lowercase()),
        }
    }

    /// Sorts DNS names and addresses and drops repeats, as kubeadm does before signing.
    pub fn normalize(&mut self) {
        self.dns.sort();
        self.dns.dedup();
        self.ips.sort_by_key(ToString::to_string);
        self.ips.dedup();
    }

    /// Whether every DNS name and address of `wanted` is here.
    #[must_use]
    pub fn covers(&self, wanted: &Self) -> bool {
        wanted.dns.iter().all(|name| self.dns.iter().any(|own| own.eq_ignore_ascii_case(name)))
            && wanted.ips.iter().all(|address| self.ips.contains(address))
    }

    pub(crate) fn from_parsed(names: &SubjectAlternativeName<'_>) -> Self {
        let mut out = Self::default();
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => out.dns.push((*name).to_owned()),
                GeneralName::RFC822Name(address) => out.emails.push((*address).to_owned()),
                GeneralName::URI(uri) => out.uris.push((*uri).to_owned()),
                GeneralName::IPAddress(bytes) => out.ips.extend(address(bytes)),
                _ => {}
            }
        }
        out
    }

    /// The extension's value: a SEQUENCE of names in the order DNS, mail, IP, URI.
    pub(crate) fn to_der(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut push = |tag, content: &[u8]| names.extend(der::element(der::implicit(tag), content));
        self.dns.iter().for_each(|name| push(2, name.as_bytes()));
        self.emails.iter().for_each(|address| push(1, address.as_bytes()));
        for address in &self.ips {
            match address {
                IpAddr::V4(address) => push(7, &address.octets()),
                IpAddr::V6(address) => push(7, &address.octets()),
            }
        }
        self.uris.iter().for_each(|uri| push(6, uri.as_bytes()));
        der::element(der::SEQUENCE, &names)
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
