//! Names of volumes, and of what lies on disk of them.

use sha2::{Digest as _, Sha256};

/// What tells a volume from others of all drivers: the end of its name in the node's status.
#[must_use]
pub fn unique_id(driver: &str, handle: &str) -> String {
    format!("{driver}^{handle}")
}

/// The hash of texts one after the other, in hexadecimal.
#[must_use]
pub fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part.as_bytes()));
    base::hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams() {
        assert_eq!(unique_id("csi.example.com", "vol^1"), "csi.example.com^vol^1");
        assert_eq!(hash(&["ab", "c"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
