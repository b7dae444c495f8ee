//! Names of chains and sets: a hash keeps them apart when they are cut, the rest keeps them readable.

use sha2::{Digest as _, Sha256};

use crate::endpoints::Endpoint;
use crate::service::PortKey;

const MAX_NAME: usize = 240;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HASH_LETTERS: usize = 8;

/// The base of a Service port's names.
pub(super) fn of_port(key: &PortKey) -> String {
    hashed(&plain(key))
}

/// The base of the names of an endpoint of a Service port.
pub(super) fn of_endpoint(key: &PortKey, endpoint: &Endpoint) -> String {
    let address = endpoint.address.to_string().replace(':', ".");
    hashed(&format!("{}__{address}/{}", plain(key), endpoint.port))
}

fn plain(key: &PortKey) -> String {
    format!("{}/{}/{}/{}", key.namespace, key.name, key.protocol.to_lowercase(), key.port)
}

fn hashed(name: &str) -> String {
    let full = format!("{}-{name}", base32(&Sha256::digest(name.as_bytes())));
    if full.len() <= MAX_NAME {
        return full;
    }
    let cut = full.get(..MAX_NAME - 3).unwrap_or(&full);
    format!("{cut}...")
}

/// The first letters of RFC 4648 base32.
fn base32(bytes: &[u8]) -> String {
    let mut bits = 0_u64;
    for byte in bytes.iter().take(5) {
        bits = bits << 8 | u64::from(*byte);
    }
    let letter = |index: usize| {
        let shift = 35 - 5 * index;
        let five = usize::try_from(bits >> shift & 31).unwrap_or(0);
        char::from(ALPHABET[five])
    };
    (0..HASH_LETTERS).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: &str) -> PortKey {
        PortKey { namespace: "demo".into(), name: "web".into(), port: port.into(), protocol: "TCP".into() }
    }

    fn endpoint(address: &str) -> Endpoint {
        Endpoint {
            address: address.parse().unwrap(),
            port: 8080,
            local: false,
            ready: true,
            serving: true,
            terminating: false,
            zones: Vec::new(),
            nodes: Vec::new(),
        }
    }

    #[test]
    fn names_are_upstreams() {
        assert_eq!(of_port(&key("http")), "AXK6CI2C-demo/web/tcp/http");
        assert_eq!(of_port(&key("")), "WUFCSIHR-demo/web/tcp/");
        let v4 = of_endpoint(&key("http"), &endpoint("10.0.1.2"));
        assert_eq!(v4, "YGDWQAUX-demo/web/tcp/http__10.0.1.2/8080");
        let v6 = of_endpoint(&key("http"), &endpoint("fd00:10::2"));
        assert_eq!(v6, "OCHRGUXQ-demo/web/tcp/http__fd00.10..2/8080");
    }

    #[test]
    fn long_names_are_cut() {
        let mut long = key("http");
        long.name = "x".repeat(300);
        assert_eq!(of_port(&long).len(), MAX_NAME);
    }
}
