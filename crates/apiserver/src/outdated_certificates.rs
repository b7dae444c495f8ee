//! What is wrong with certificates that servers once could have: no names beside the subject's, or signed over SHA-1.

use std::io;

use component_base::metrics::{Counters, Desc, Metrics};
use rustls::{CertificateError, Error};

/// Identifiers of such signatures: RSA and ECDSA, as they are encoded.
const SHA1: [&[u8]; 2] =
    [&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]];

/// Why a certificate is refused that older clients took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outdated {
    WithoutNames,
    Sha1,
}

impl Outdated {
    /// What a connection failed of, if it is one of these.
    fn of(error: &io::Error) -> Option<Self> {
        let Error::InvalidCertificate(error) = error.get_ref()?.downcast_ref::<Error>()? else { return None };
        match error {
            CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
                Some(Self::WithoutNames)
            }
            CertificateError::UnsupportedSignatureAlgorithmContext { signature_algorithm_id, .. } => {
                let has = |id: &&[u8]| signature_algorithm_id.windows(id.len()).any(|part| part == *id);
                SHA1.iter().any(has).then_some(Self::Sha1)
            }
            _ => None,
        }
    }
}

/// How many of them were met.
#[derive(Clone)]
pub(crate) struct OutdatedCertificates {
    without_names: Counters,
    sha1: Counters,
}

impl OutdatedCertificates {
    /// Adds the families: of those without names, and of those that are signed over SHA-1.
    pub(crate) fn new(metrics: &Metrics, without_names: &'static Desc, sha1: &'static Desc) -> Self {
        Self { without_names: metrics.counters(without_names), sha1: metrics.counters(sha1) }
    }

    /// A connection failed.
    pub(crate) fn note_failure(&self, error: &io::Error) {
        match Outdated::of(error) {
            Some(Outdated::WithoutNames) => self.without_names.with(&[]).inc(),
            Some(Outdated::Sha1) => self.sha1.with(&[]).inc(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, alg_id};

    use super::*;

    #[test]
    fn outdated_certificates_are_told_from_wrong_ones() {
        let named = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("a.b.svc").unwrap(),
            presented: presented.iter().map(|&name| name.to_owned()).collect(),
        };
        let signed = |id: &[u8]| CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: id.to_vec(),
            supported_algorithms: Vec::new(),
        };
        let sha1_with_rsa = [&[0x06, 0x09], SHA1[0], &[0x05, 0x00]].concat();
        for (error, expected) in [
            (named(&[]), Some(Outdated::WithoutNames)),
            (named(&["other"]), None),
            (signed(&sha1_with_rsa), Some(Outdated::Sha1)),
            (signed(&[&[0x06, 0x07], SHA1[1]].concat()), Some(Outdated::Sha1)),
            (signed(&alg_id::RSA_PKCS1_SHA256), None),
            (CertificateError::UnknownIssuer, None),
        ] {
            let error = io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(error));
            assert_eq!(Outdated::of(&error), expected, "{error}");
        }
        assert_eq!(Outdated::of(&io::Error::other("dial tcp: refused")), None);
    }
}
