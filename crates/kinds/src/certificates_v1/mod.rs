//! The kinds of certificates.k8s.io/v1.

mod certificate_signing_request;
#[cfg(test)]
mod tests;
mod validation;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] =
    &[&Typed::<certificate_signing_request::CertificateSigningRequestRules>::new()];
