//! Configurations that would open a door (NCC F9W).

use std::time::Duration;

use base::{Rng, SystemClock};
use pki::{CertificateAuthority, KeyAlgorithm, PrivateKey};

use super::tests::{KUBEADM, completed};

/// Whoever has a client certificate could otherwise call itself a front proxy, and then anybody.
#[test]
fn one_authority_for_clients_and_proxies_needs_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let now = SystemClock::shared().wall();
        let made = CertificateAuthority::create(name, key, Duration::from_secs(3600), now, &Rng::seeded(1)).unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, made.certificate().to_pem()).unwrap();
        path.display().to_string()
    };
    let (one, other) = (file("one"), file("other"));
    for (clients, proxies, names, refused) in
        [(&one, &one, "", true), (&one, &one, "front-proxy", false), (&one, &other, "", false)]
    {
        let line = format!(
            "{KUBEADM} --client-ca-file={clients} --requestheader-client-ca-file={proxies} --requestheader-allowed-names={names}"
        );
        let problem = completed(&line).err().unwrap_or_default();
        assert_eq!(problem.contains("overlapping certificates"), refused, "{clients} {proxies} {names}: {problem}");
    }
}
