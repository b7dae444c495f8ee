//! What a key may be used for: the usage names of the certificates API, and the two X.509 extensions they become.

use crate::der;

/// The KeyUsage bits, bit `i` of the number being named bit `i` of RFC 5280.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyUsages(pub u16);

impl KeyUsages {
    /// Signing other things than certificates.
    pub const DIGITAL_SIGNATURE: Self = Self(1);
    /// Also known as non-repudiation.
    pub const CONTENT_COMMITMENT: Self = Self(1 << 1);
    /// RSA key transport.
    pub const KEY_ENCIPHERMENT: Self = Self(1 << 2);
    /// Direct encryption of data.
    pub const DATA_ENCIPHERMENT: Self = Self(1 << 3);
    /// Diffie-Hellman.
    pub const KEY_AGREEMENT: Self = Self(1 << 4);
    /// Signing certificates.
    pub const CERT_SIGN: Self = Self(1 << 5);
    /// Signing revocation lists.
    pub const CRL_SIGN: Self = Self(1 << 6);
    /// With key agreement: only enciphering.
    pub const ENCIPHER_ONLY: Self = Self(1 << 7);
    /// With key agreement: only deciphering.
    pub const DECIPHER_ONLY: Self = Self(1 << 8);

    /// Both sets of bits.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One purpose of the ExtendedKeyUsage extension, as dotted OID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Purpose(pub String);

impl Purpose {
    /// TLS server.
    #[must_use]
    pub fn server_auth() -> Self {
        Self("1.3.6.1.5.5.7.3.1".to_owned())
    }

    /// TLS client.
    #[must_use]
    pub fn client_auth() -> Self {
        Self("1.3.6.1.5.5.7.3.2".to_owned())
    }

    /// anyExtendedKeyUsage.
    #[must_use]
    pub fn any() -> Self {
        Self("2.5.29.37.0".to_owned())
    }
}

enum Meaning {
    Bits(KeyUsages),
    /// Rank in the library order upstream sorts by, and the OID.
    Purpose(u8, &'static str),
}

/// Every usage name of `certificates.k8s.io`, with what it becomes.
const USAGES: &[(&str, Meaning)] = &[
    ("any", Meaning::Purpose(0, "2.5.29.37.0")),
    ("cert sign", Meaning::Bits(KeyUsages::CERT_SIGN)),
    ("client auth", Meaning::Purpose(2, "1.3.6.1.5.5.7.3.2")),
    ("code signing", Meaning::Purpose(3, "1.3.6.1.5.5.7.3.3")),
    ("content commitment", Meaning::Bits(KeyUsages::CONTENT_COMMITMENT)),
    ("crl sign", Meaning::Bits(KeyUsages::CRL_SIGN)),
    ("data encipherment", Meaning::Bits(KeyUsages::DATA_ENCIPHERMENT)),
    ("decipher only", Meaning::Bits(KeyUsages::DECIPHER_ONLY)),
    ("digital signature", Meaning::Bits(KeyUsages::DIGITAL_SIGNATURE)),
    ("email protection", Meaning::Purpose(4, "1.3.6.1.5.5.7.3.4")),
    ("encipher only", Meaning::Bits(KeyUsages::ENCIPHER_ONLY)),
    ("ipsec end system", Meaning::Purpose(5, "1.3.6.1.5.5.7.3.5")),
    ("ipsec tunnel", Meaning::Purpose(6, "1.3.6.1.5.5.7.3.6")),
    ("ipsec user", Meaning::Purpose(7, "1.3.6.1.5.5.7.3.7")),
    ("key agreement", Meaning::Bits(KeyUsages::KEY_AGREEMENT)),
    ("key encipherment", Meaning::Bits(KeyUsages::KEY_ENCIPHERMENT)),
    ("microsoft sgc", Meaning::Purpose(10, "1.3.6.1.4.1.311.10.3.3")),
    ("netscape sgc", Meaning::Purpose(11, "2.16.840.1.113730.4.1")),
    ("ocsp signing", Meaning::Purpose(9, "1.3.6.1.5.5.7.3.9")),
    ("s/mime", Meaning::Purpose(4, "1.3.6.1.5.5.7.3.4")),
    ("server auth", Meaning::Purpose(1, "1.3.6.1.5.5.7.3.1")),
    ("signing", Meaning::Bits(KeyUsages::DIGITAL_SIGNATURE)),
    ("timestamping", Meaning::Purpose(8, "1.3.6.1.5.5.7.3.8")),
];

/// Usage names outside the known set; `Display` is what upstream reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized usage values: {}", quoted(.0))]
pub struct UnknownUsages(pub Vec<String>);

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(" "))
}

/// Turns usage names of a CertificateSigningRequest into the two extensions' contents; purposes are sorted and unique.
///
/// # Errors
/// [`UnknownUsages`] listing every unknown name.
pub fn from_names<S: AsRef<str>>(names: &[S]) -> Result<(KeyUsages, Vec<Purpose>), UnknownUsages> {
    let mut bits = KeyUsages::default();
    let mut purposes = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        match USAGES.iter().find(|(known, _)| *known == name.as_ref()) {
            Some((_, Meaning::Bits(more))) => bits = bits.and(*more),
            Some((_, Meaning::Purpose(rank, oid))) => purposes.push((*rank, *oid)),
            None => unknown.push(name.as_ref().to_owned()),
        }
    }
    if !unknown.is_empty() {
        return Err(UnknownUsages(unknown));
    }
    purposes.sort_unstable();
    purposes.dedup();
    Ok((bits, purposes.into_iter().map(|(_, oid)| Purpose(oid.to_owned())).collect()))
}

/// A SEQUENCE of purposes; OIDs that are not valid dotted decimal are left out.
pub(crate) fn purposes_to_der(purposes: &[Purpose]) -> Vec<u8> {
    let encoded = purposes.iter().filter_map(|purpose| oid_content(&purpose.0));
    der::element(der::SEQUENCE, &encoded.flat_map(|content| der::element(der::OID, &content)).collect::<Vec<u8>>())
}

/// The DER content of a dotted OID; `None` when it is not one.
pub(crate) fn oid_content(dotted: &str) -> Option<Vec<u8>> {
    let arcs: Vec<u64> = dotted.split('.').map(|arc| arc.parse().ok()).collect::<Option<_>>()?;
    let [first, second, rest @ ..] = arcs.as_slice() else { return None };
    let head = first.checked_mul(40)?.checked_add(*second)?;
    let mut out = Vec::new();
    for arc in std::iter::once(&head).chain(rest) {
        let groups = (0..10).rev().map(|group| (arc >> (7 * group)) & 0x7f).skip_while(|bits| *bits == 0);
        let groups: Vec<u64> = groups.collect();
        let last = groups.len().saturating_sub(1);
        let bytes = groups.iter().enumerate().map(|(i, bits)| if i < last { bits | 0x80 } else { *bits });
        out.extend(bytes.filter_map(|byte| u8::try_from(byte).ok()));
        if groups.is_empty() {
            out.push(0);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_bits_and_sorted_purposes() {
        let (bits, purposes) = from_names(&["client auth", "server auth", "signing", "key encipherment"]).unwrap();
        assert_eq!(bits, KeyUsages::DIGITAL_SIGNATURE.and(KeyUsages::KEY_ENCIPHERMENT));
        assert_eq!(purposes, [Purpose::server_auth(), Purpose::client_auth()]);
        assert_eq!(from_names(&["s/mime", "email protection"]).unwrap().1.len(), 1);
        let error = from_names(&["signing", "a", "b"]).unwrap_err();
        assert_eq!(error.to_string(), r#"unrecognized usage values: ["a" "b"]"#);
    }

    #[test]
    fn dotted_oids_encode() {
        assert_eq!(oid_content("1.3.6.1.5.5.7.3.1").unwrap(), [0x2b, 6, 1, 5, 5, 7, 3, 1]);
        assert_eq!(oid_content("2.5.29.37.0").unwrap(), [0x55, 0x1d, 0x25, 0]);
        assert_eq!(oid_content("2.16.840.1.113730.4.1").unwrap(), [0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]);
        assert_eq!(oid_content("x"), None);
    }
}
