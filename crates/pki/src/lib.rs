//! Keys, certificates, signing requests, CA bundles, signed tokens.
//!
//! Everything cryptographic that Kubernetes components share, without any knowledge of API objects: whoever holds a
//! CertificateSigningRequest or a Secret takes the strings out and calls this. Time and randomness come from the caller;
//! only key generation and signing draw from the crypto library's own generator.
//!
//! Certificates are written by this crate's own DER writer, because subjects repeat `O` (each one a group) and common
//! builders lose all but one. Parsing is `x509-parser`'s, chain building `webpki`'s, arithmetic `aws-lc-rs`'s.

mod alt_names;
mod authority;
mod bootstrap_token;
mod bundle;
mod certificate;
mod der;
mod ensure;
mod extension;
mod file;
mod key;
mod keyed_digest;
mod name;
mod oid;
mod pem;
mod public_key;
mod request;
mod verify;

pub mod jwks;
pub mod jws;
pub mod layout;
pub mod usage;

pub use alt_names::AltNames;
pub use authority::{BACKDATE, CertificateAuthority, CertificateSpec, IssueError, MINIMUM_LIFETIME, granted_lifetime};
pub use bootstrap_token::{BootstrapToken, constant_time_equal};
pub use bundle::{BundleError, CaBundle, MAX_BUNDLE_CERTIFICATES};
pub use certificate::{Certificate, CertificateError, colon_hex};
pub use ensure::{ClientIdentity, EnsureError, EnsureReport, Ensured, ensure, issue_server, issue_user, renew};
pub use file::{PRIVATE_MODE, PUBLIC_MODE, write_atomically};
pub use key::{KeyAlgorithm, KeyError, PrivateKey};
pub use keyed_digest::KeyedDigest;
pub use name::{Name, NameAttribute, USER_UID_DOTTED, UserUidError};
pub use pem::{PemBlock, encode_block, parse_blocks};
pub use public_key::{Curve, PublicKey, PublicKeyKind};
pub use request::{CertificateRequest, RequestError};
pub use usage::{KeyUsages, Purpose, UnknownUsages};
pub use verify::{CaPool, ChainError, MAX_CHAIN_CERTIFICATES, describe, verify_chain};

#[cfg(test)]
mod hostile_input_tests;
