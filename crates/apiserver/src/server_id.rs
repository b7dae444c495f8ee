//! What this server is called: by its lease, and by metrics.

use std::fmt::Write as _;

use crate::gates::API_SERVER_IDENTITY;
use component_base::Gates;
use component_base::metrics::hash_label;
pub(crate) use component_helpers::api_server_leases::COMPONENT;
use sha2::{Digest as _, Sha256};

/// Where the host's name stands.
pub(crate) const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";
/// How many bytes of a host's digest are its servers' names.
const ID_BYTES: usize = 16;

/// The name of this host.
pub(crate) fn host() -> std::io::Result<String> {
    Ok(std::fs::read_to_string(HOSTNAME_FILE)?.trim().to_owned())
}

/// What traces call this server on a host: nothing where servers have no names of their own.
pub(crate) fn shown_id(host: &str, gates: &Gates) -> String {
    if gates.enabled(API_SERVER_IDENTITY) { server_id(host) } else { String::new() }
}

/// What metrics call this server: a digest of its name.
pub(crate) fn server_id_hash(gates: &Gates) -> String {
    match shown_id(&host().unwrap_or_default(), gates).as_str() {
        "" => String::new(),
        id => hash_label(id.as_bytes()),
    }
}

/// The name of the servers of a host, the same after a restart.
pub(crate) fn server_id(host: &str) -> String {
    let mut digest = Sha256::new();
    for part in [host, COMPONENT] {
        digest.update(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    format!("apiserver-{}", base32(digest.get(..ID_BYTES).unwrap_or_default()))
}

/// RFC 4648 in small letters, without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits: String = bytes.iter().fold(String::new(), |mut bits, byte| {
        let _ = write!(bits, "{byte:08b}");
        bits
    });
    let letter = |chunk: &[u8]| {
        let value = (0..5).fold(0, |value, bit| value * 2 + usize::from(chunk.get(bit) == Some(&b'1')));
        char::from(LETTERS.get(value).copied().unwrap_or(b'a'))
    };
    bits.as_bytes().chunks(5).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_base32() {
        for (bytes, expected) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(bytes.as_bytes()), expected, "{bytes}");
        }
        let id = server_id("master-1");
        assert_eq!((id.len(), id == server_id("master-1"), id == server_id("master-2")), (36, true, false), "{id}");
    }
}
