//! The tags of documents.

use sha2::{Digest as _, Sha512};

/// SHA-512 in upper-case hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}
