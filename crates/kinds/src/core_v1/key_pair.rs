//! Whether a certificate and a private key belong together, in the words that users know from upstream's warnings.

use pki::{Certificate, PemBlock, PrivateKey, parse_blocks};

/// What is wrong with the pair; nothing where it can serve TLS.
pub(super) fn problem(certificate: &[u8], key: &[u8]) -> Option<String> {
    match (leaf(certificate), private_key(key)) {
        (Err(problem), _) | (_, Err(problem)) => Some(format!("tls: {problem}")),
        (Ok(leaf), Ok(key)) => {
            let differs = leaf.public_key() != key.public_key();
            differs.then(|| "tls: private key does not match public key".to_owned())
        }
    }
}

fn labels(blocks: &[PemBlock]) -> String {
    blocks.iter().map(|block| block.label.as_str()).collect::<Vec<_>>().join(" ")
}

fn leaf(text: &[u8]) -> Result<Certificate, String> {
    let blocks = parse_blocks(text);
    if let Some(block) = blocks.iter().find(|block| block.label == "CERTIFICATE") {
        return Certificate::from_der(&block.der).map_err(|problem| problem.to_string());
    }
    Err(match blocks.as_slice() {
        [] => "failed to find any PEM data in certificate input".to_owned(),
        [only] if only.label.ends_with("PRIVATE KEY") => {
            "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have \
             been switched"
                .to_owned()
        }
        others => format!(
            "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: [{}]",
            labels(others)
        ),
    })
}

fn private_key(text: &[u8]) -> Result<PrivateKey, String> {
    let blocks = parse_blocks(text);
    if blocks.iter().any(|block| block.label.ends_with("PRIVATE KEY")) {
        return PrivateKey::from_pem(text).map_err(|_| "failed to parse private key".to_owned());
    }
    Err(match blocks.as_slice() {
        [] => "failed to find any PEM data in key input".to_owned(),
        [only] if only.label == "CERTIFICATE" => {
            "found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the \
             following types: [{}]",
            labels(others)
        ),
    })
}

#[cfg(test)]
mod tests {
    use pki::KeyAlgorithm;

    use super::*;

    #[test]
    fn pairs_that_cannot_serve() {
        let key = PrivateKey::generate(KeyAlgorithm::default()).and_then(|key| key.to_pem()).expect("a key");
        for (certificate, key, expected) in [
            ("", "", "tls: failed to find any PEM data in certificate input"),
            (
                key.as_str(),
                "",
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs \
                 may have been switched",
            ),
        ] {
            assert_eq!(problem(certificate.as_bytes(), key.as_bytes()).as_deref(), Some(expected));
        }
        assert_eq!(private_key(b"").err().as_deref(), Some("failed to find any PEM data in key input"));
        assert!(private_key(key.as_bytes()).is_ok());
    }
}
