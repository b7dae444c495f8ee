//! Every reader of bytes from outside, fed with damaged input: it may refuse, it must not panic.

use std::time::{Duration, UNIX_EPOCH};

use base::Rng;
use serde_json::json;

use crate::jws::{self, UnverifiedToken};
use crate::{
    AltNames, CertificateAuthority, CertificateRequest, CertificateSpec, KeyAlgorithm, Name, PrivateKey, PublicKey,
};

const ROUNDS: usize = 2000;

/// The sample with a few bytes changed, or cut short.
fn damaged(sample: &[u8], rng: &Rng) -> Vec<u8> {
    let mut out = sample.to_vec();
    let length = u64::try_from(out.len()).unwrap();
    for _ in 0..=rng.below(3) {
        let at = usize::try_from(rng.below(length)).unwrap();
        out[at] = u8::try_from(rng.below(256)).unwrap();
    }
    if rng.below(4) == 0 {
        out.truncate(usize::try_from(rng.below(length)).unwrap());
    }
    out
}

#[test]
fn damaged_input_is_refused_without_panic() {
    let rng = Rng::seeded(11);
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let ca = CertificateAuthority::create("ca", key, Duration::from_secs(86_400), now, &rng).unwrap();
    let names = AltNames { dns: vec!["a".into()], ips: vec![[10, 0, 0, 1].into()], ..AltNames::default() };
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let request = CertificateRequest::create(&key, &Name::new("x", &["o".into()]), &names).unwrap();
    let spec = CertificateSpec::server("x", names, Duration::from_secs(60));
    let leaf = ca.issue(&spec, key.public_key(), now, &rng).unwrap();
    let pool = crate::CaPool::new(crate::CaBundle::new(vec![ca.certificate().clone()]).unwrap());
    let token = jws::sign(&key, &json!({ "sub": "x" })).unwrap();
    let (pkcs8, pem) = (key.to_pkcs8().unwrap(), key.to_pem().unwrap());
    for _ in 0..ROUNDS {
        let certificate = damaged(leaf.der(), &rng);
        let accepted = pool.verify_client(&[certificate.clone().into()], now);
        assert!(accepted.is_err(), "a server certificate, damaged or not, is no client");
        if let Ok(read) = CertificateRequest::from_der(&damaged(request.der(), &rng)) {
            assert!(read.verify().is_err() || read == request);
        }
        let text = damaged(token.as_bytes(), &rng);
        if let Ok(read) = UnverifiedToken::parse(&String::from_utf8_lossy(&text)) {
            assert!(read.verify(key.public_key()).is_err() || text == token.as_bytes());
        }
        let _ = PrivateKey::from_pkcs8(&damaged(&pkcs8, &rng));
        let _ = PrivateKey::from_pem(&damaged(pem.as_bytes(), &rng));
        let _ = PublicKey::from_spki(&damaged(key.public_key().spki(), &rng));
    }
}
