//! The certificates directory: complete from nothing, stable when run again, honest about what does not fit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::layout::{EtcdPki, LEAVES, USERS};

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn config() -> PkiConfig {
    let mut config = PkiConfig::new("node-1", [10, 0, 0, 5].into(), [10, 96, 0, 1].into());
    config.key_algorithm = KeyAlgorithm::EcdsaP256;
    config.control_plane_host = "API.example".into();
    config.api_server_hosts = vec!["192.0.2.7".into(), "*.alt.example".into()];
    config
}

fn run(directory: &Path, config: &PkiConfig, at: SystemTime) -> Result<EnsureReport, EnsureError> {
    ensure(directory, config, at, &Rng::seeded(3))
}

fn certificate(directory: &Path, name: &str) -> Certificate {
    Certificate::one_from_pem(&fs::read(directory.join(name)).unwrap()).unwrap()
}

#[test]
fn an_empty_directory_becomes_kubeadms_and_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let report = run(path, &config(), now()).unwrap();
    assert_eq!(report.entries.len(), 11);
    assert_eq!(report.created().count(), 11);

    let server = certificate(path, "apiserver.crt");
    assert_eq!(server.subject().common_name(), "kube-apiserver");
    assert_eq!(
        server.alt_names().dns,
        [
            "*.alt.example",
            "api.example",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "node-1"
        ]
    );
    let addresses: Vec<String> = server.alt_names().ips.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.5", "10.96.0.1", "192.0.2.7"]);
    assert_eq!(server.purposes(), [Purpose::server_auth()]);
    assert_eq!(server.not_before(), now() - crate::BACKDATE);
    assert_eq!(server.not_after(), now() + crate::layout::LEAF_VALIDITY);
    let etcd = certificate(path, "etcd/server.crt");
    assert_eq!(etcd.subject().common_name(), "node-1");
    assert_eq!(etcd.purposes(), [Purpose::server_auth(), Purpose::client_auth()]);
    assert_eq!(etcd.issuer().common_name(), "etcd-ca");

    for (name, mode) in
        [("ca.key", 0o600), ("ca.crt", 0o644), ("sa.key", 0o600), ("sa.pub", 0o600), ("etcd/peer.key", 0o600)]
    {
        assert_eq!(fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    let before = fs::read(path.join("apiserver.crt")).unwrap();
    let again = run(path, &config(), now()).unwrap();
    assert!(again.entries.iter().all(|(_, outcome)| *outcome == Ensured::Kept), "{again:?}");
    assert_eq!(fs::read(path.join("apiserver.crt")).unwrap(), before);
    let later = run(path, &config(), now() + 2 * crate::layout::LEAF_VALIDITY).unwrap();
    assert!(
        later.entries.contains(&("apiserver", Ensured::KeptExpired)) && later.entries.contains(&("ca", Ensured::Kept))
    );
    assert!(later.expired().any(|name| name == "apiserver") && later.expired().all(|name| name != "ca"));
}

#[test]
fn what_is_missing_is_made_again_and_a_lone_key_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run(path, &config(), now()).unwrap();
    fs::remove_file(path.join("apiserver.crt")).unwrap();
    let key = fs::read(path.join("apiserver.key")).unwrap();
    let report = run(path, &config(), now()).unwrap();
    assert_eq!(report.created().collect::<Vec<_>>(), ["apiserver"]);
    assert_eq!(fs::read(path.join("apiserver.key")).unwrap(), key);
}

#[test]
fn what_does_not_fit_is_named() {
    let fresh = || {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &config(), now()).unwrap();
        directory
    };
    let swap = |from: &str, to: &str| {
        let directory = fresh();
        fs::copy(directory.path().join(from), directory.path().join(to)).unwrap();
        run(directory.path(), &config(), now()).unwrap_err().to_string()
    };
    assert!(
        swap("sa.key", "apiserver.key")
            .ends_with("apiserver.key: private key does not match the certificate's public key")
    );
    assert!(swap("etcd/ca.key", "ca.key").contains("ca.key: private key does not match"));
    assert!(swap("apiserver.crt", "ca.crt").contains("ca.crt: certificate is not a certificate authority"));
    let directory = fresh();
    for extension in ["crt", "key"] {
        let from = directory.path().join(format!("etcd/healthcheck-client.{extension}"));
        fs::copy(from, directory.path().join(format!("apiserver-kubelet-client.{extension}"))).unwrap();
    }
    let error = run(directory.path(), &config(), now()).unwrap_err().to_string();
    assert!(
        error.contains("apiserver-kubelet-client not signed by CA certificate ca: x509: certificate signed by unknown"),
        "{error}"
    );
    let mut renamed = config();
    renamed.node_name = "node-2".into();
    let error = run(fresh().path(), &renamed, now()).unwrap_err().to_string();
    assert!(error.ends_with("apiserver.crt: certificate does not carry all names this node needs"), "{error}");
}

#[test]
fn an_external_ca_signs_nothing_here() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run(path, &config(), now()).unwrap();
    fs::remove_file(path.join("ca.key")).unwrap();
    run(path, &config(), now()).unwrap();
    fs::remove_file(path.join("apiserver.crt")).unwrap();
    let error = run(path, &config(), now()).unwrap_err().to_string();
    assert_eq!(error, "certificate apiserver is missing and the key of ca is not here to sign it");
    assert!(issue_user(path, &USERS[0], &config(), now(), &Rng::seeded(1)).is_err());
}

#[test]
fn external_etcd_leaves_etcd_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config();
    config.etcd = EtcdPki::External;
    let report = run(directory.path(), &config, now()).unwrap();
    assert_eq!(report.entries.len(), 6);
    assert!(!directory.path().join("etcd").exists());
}

#[test]
fn users_and_renewals_carry_the_right_identity() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run(path, &config(), now()).unwrap();
    let rng = Rng::seeded(8);
    for (file, user, groups) in [
        ("admin.conf", "kubernetes-admin", vec!["kubeadm:cluster-admins"]),
        ("kubelet.conf", "system:node:node-1", vec!["system:nodes"]),
        ("scheduler.conf", "system:kube-scheduler", vec![]),
    ] {
        let leaf = USERS.iter().find(|leaf| leaf.name == file).unwrap();
        let identity = issue_user(path, leaf, &config(), now(), &rng).unwrap();
        let certificate = Certificate::one_from_pem(identity.certificate_pem.as_bytes()).unwrap();
        assert_eq!(certificate.subject().common_name(), user);
        assert_eq!(certificate.subject().organizations(), groups);
        let key = PrivateKey::from_pem(identity.key_pem.as_bytes()).unwrap();
        assert_eq!(key.public_key(), certificate.public_key());
    }
    let old = certificate(path, "apiserver.crt");
    let later = now() + Duration::from_secs(86_400);
    let renewed = renew(path, &LEAVES[0], &config(), later, &rng).unwrap();
    assert_eq!((renewed.subject(), renewed.alt_names()), (old.subject(), old.alt_names()));
    assert_ne!(renewed.public_key(), old.public_key());
    assert_eq!(renewed.not_after(), later + crate::layout::LEAF_VALIDITY);
    run(path, &config(), later).unwrap();
}
