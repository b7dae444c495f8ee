//! Joining what several servers have written: certificate bundles and lists of header names, without duplicates.

use std::time::{Duration, SystemTime};

use pki::Certificate;

/// How long a certificate stays after its end, for clocks that are behind.
const AFTERLIFE: Duration = Duration::from_secs(5 * 60);
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The certificates of both bundles that have not ended, the stored ones first.
pub(super) fn bundles(stored: &str, own: &str, now: SystemTime) -> String {
    let has_ended = |block: &str| {
        Certificate::one_from_pem(block.as_bytes()).is_ok_and(|certificate| certificate.not_after() + AFTERLIFE < now)
    };
    let mut blocks: Vec<&str> = Vec::new();
    for block in certificates(stored).chain(certificates(own)) {
        if !blocks.contains(&block) && !has_ended(block) {
            blocks.push(block);
        }
    }
    blocks.iter().map(|block| format!("{block}\n")).collect()
}

fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    let starts = pem.match_indices(BEGIN).map(|(start, _)| start);
    starts.filter_map(move |start| {
        let rest = pem.get(start..)?;
        rest.get(..rest.find(END)? + END.len())
    })
}

/// The names of both lists as a JSON array, the stored ones first.
///
/// # Errors
/// When what is stored is no array of texts.
pub(super) fn names(stored: &str, own: &[String]) -> Result<String, serde_json::Error> {
    let mut names: Vec<String> = if stored.is_empty() { Vec::new() } else { serde_json::from_str(stored)? };
    names.extend(own.iter().cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    serde_json::to_string(&names)
}

#[cfg(test)]
mod tests {
    use base::Rng;
    use pki::{CertificateAuthority, KeyAlgorithm, PrivateKey};

    use super::*;

    #[test]
    fn unions_keep_order_and_drop_duplicates() {
        let cert = |body: &str| format!("{BEGIN}\n{body}\n{END}\n");
        let stored = format!("# note\n{}{}", cert("a"), cert("b"));
        let own = format!("{}{}", cert("b"), cert("c"));
        assert_eq!(bundles(&stored, &own, SystemTime::UNIX_EPOCH), cert("a") + &cert("b") + &cert("c"));
        assert_eq!(names("[\"x\"]", &["y".into(), "x".into()]).unwrap(), "[\"x\",\"y\"]");
        assert!(names("{", &[]).is_err());
    }

    #[test]
    fn what_has_ended_goes() {
        let (rng, begin) = (Rng::seeded(3), SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        let authority = |name: &str, hours: u64| {
            let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
            let validity = Duration::from_secs(hours * 3600);
            CertificateAuthority::create(name, key, validity, begin, &rng).unwrap().certificate().to_pem()
        };
        let (short, long) = (authority("short", 1), authority("long", 2));
        let end = begin + Duration::from_secs(3600);
        for (now, expected) in [(end + AFTERLIFE, 2), (end + AFTERLIFE + Duration::from_secs(1), 1)] {
            let joined = bundles(&format!("{short}{long}"), &short, now);
            assert_eq!(joined.matches(BEGIN).count(), expected);
            assert!(joined.contains(long.trim_end()));
        }
    }
}
