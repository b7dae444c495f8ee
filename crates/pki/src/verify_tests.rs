//! Chains: who is let in, and in which words the others are refused.

use std::time::Duration;

use base::Rng;

use super::*;
use crate::authority::{CertificateAuthority, CertificateSpec};
use crate::key::{KeyAlgorithm, PrivateKey};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn authority(name: &str, validity: Duration) -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::create(name, key, validity, now(), &Rng::seeded(4)).unwrap()
}

fn issue(ca: &CertificateAuthority, spec: &CertificateSpec) -> CertificateDer<'static> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let issued = ca.issue(spec, key.public_key(), now(), &Rng::seeded(5)).unwrap();
    CertificateDer::from(issued.der().to_vec())
}

fn pool(ca: &CertificateAuthority) -> CaPool {
    CaPool::new(CaBundle::new(vec![ca.certificate().clone()]).unwrap())
}

#[test]
fn a_good_client_is_let_in_and_others_refused_in_gos_words() {
    let ca = authority("ca", 100 * DAY);
    let pool = pool(&ca);
    let groups = ["a".to_owned(), "b".to_owned()];
    let client = issue(&ca, &CertificateSpec::client("alice", &groups, DAY));
    let server = issue(&ca, &CertificateSpec::server("x", crate::AltNames::default(), DAY));
    let mut any = CertificateSpec::client("bob", &[], DAY);
    any.purposes = vec![Purpose::any()];
    let any = issue(&ca, &any);
    let foreign = issue(&authority("ca", DAY), &CertificateSpec::client("mallory", &[], DAY));

    let leaf = pool.verify_client(std::slice::from_ref(&client), now()).unwrap();
    assert_eq!(leaf.subject().organizations(), groups);
    pool.verify_client(&[any], now()).unwrap();
    assert_eq!(pool.verify_client(&[], now()), Err(ChainError::Empty));
    assert_eq!(pool.verify_client(&[server], now()), Err(ChainError::IncompatibleUsage));
    assert_eq!(pool.verify_client(&[foreign], now()), Err(ChainError::UnknownAuthority));
    let many = vec![client.clone(); MAX_CHAIN_CERTIFICATES + 1];
    assert_eq!(pool.verify_client(&many, now()), Err(ChainError::TooLong));
    let late = pool.verify_client(std::slice::from_ref(&client), now() + 2 * DAY).unwrap_err().to_string();
    assert_eq!(
        late,
        "x509: certificate has expired or is not yet valid: current time 2026-09-23T14:13:20Z is after 2026-09-22T14:13:20Z"
    );
    let early = pool.verify_client(&[client], now() - DAY).unwrap_err();
    assert!(matches!(early, ChainError::NotCurrent { relation: "before", .. }), "{early}");
}

#[test]
fn a_root_past_its_end_vouches_for_nobody() {
    let ca = authority("ca", DAY);
    let client = issue(&ca, &CertificateSpec::client("alice", &[], 10 * DAY));
    let refused = pool(&ca).verify_client(&[client], now() + 2 * DAY);
    assert_eq!(refused, Err(ChainError::UnknownAuthority));
}

#[test]
fn a_certificate_in_the_bundle_is_trusted_as_it_stands() {
    let other = authority("other", DAY);
    let client = issue(&other, &CertificateSpec::client("pinned", &[], DAY));
    let bundle = CaBundle::new(vec![Certificate::from_der(&client).unwrap()]).unwrap();
    let pool = CaPool::new(bundle);
    pool.verify_client(std::slice::from_ref(&client), now()).unwrap();
    assert!(matches!(pool.verify_client(&[client], now() + 2 * DAY), Err(ChainError::NotCurrent { .. })));
}

#[test]
fn reload_swaps_good_files_and_keeps_the_old_bundle_for_bad_ones() {
    let (first, second) = (authority("first", DAY), authority("second", DAY));
    let pool = pool(&first);
    let client = issue(&second, &CertificateSpec::client("alice", &[], DAY));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.crt");
    std::fs::write(&path, "nothing").unwrap();
    let error = pool.reload(&path).unwrap_err().to_string();
    assert!(error.contains("ca.crt: data does not contain any valid RSA or ECDSA certificates"), "{error}");
    std::fs::write(&path, crate::encode_block("CERTIFICATE", b"junk")).unwrap();
    let error = pool.reload(&path).unwrap_err().to_string();
    assert!(error.contains("ca.crt: entry 0: x509: malformed certificate"), "{error}");
    assert!(pool.verify_client(std::slice::from_ref(&client), now()).is_err());
    std::fs::write(&path, first.certificate().to_pem() + &second.certificate().to_pem()).unwrap();
    pool.reload(&path).unwrap();
    pool.verify_client(&[client], now()).unwrap();
    assert_eq!(pool.current().subjects().len(), 2);
}
