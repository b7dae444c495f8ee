//! Issuing: identities survive byte for byte, lifetimes follow the signers' table, and OpenSSL agrees where present.

use std::io::Write as _;
use std::time::UNIX_EPOCH;

use super::*;
use crate::key::KeyAlgorithm;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn authority(validity: Duration) -> (CertificateAuthority, std::sync::Arc<Rng>) {
    let rng = Rng::seeded(1);
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    (CertificateAuthority::create("kubernetes", key, validity, now(), &rng).unwrap(), rng)
}

fn request(groups: &[&str], names: &AltNames) -> CertificateRequest {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
    let made = CertificateRequest::create(&key, &Name::new("alice", &groups), names).unwrap();
    CertificateRequest::from_pem(made.to_pem().as_bytes()).unwrap()
}

const YEAR: Duration = Duration::from_secs(8760 * 3600);

#[test]
fn the_ca_says_what_kubeadm_says() {
    let (ca, _) = authority(YEAR);
    let certificate = ca.certificate();
    assert!(certificate.is_ca() && certificate.has_basic_constraints());
    assert_eq!(certificate.subject().common_name(), "kubernetes");
    assert_eq!(certificate.issuer(), certificate.subject());
    assert_eq!(certificate.alt_names().dns, ["kubernetes"]);
    assert!(certificate.key_usages().contains(KeyUsages::CERT_SIGN.and(KeyUsages::DIGITAL_SIGNATURE)));
    assert_eq!(certificate.not_before(), now() - BACKDATE);
    assert_eq!(certificate.not_after(), now() + YEAR);
    let pem = (certificate.to_pem(), ca.key().to_pem().unwrap());
    CertificateAuthority::from_pem(pem.0.as_bytes(), pem.1.as_bytes()).unwrap();
    let other = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    assert!(matches!(CertificateAuthority::new(certificate.clone(), other), Err(IssueError::KeyMismatch)));
}

#[test]
fn every_group_of_a_request_survives_signing() {
    let (ca, rng) = authority(YEAR);
    let names = AltNames {
        dns: vec!["a.example".into(), "*.b.example".into()],
        ips: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        emails: vec!["a@example.org".into()],
        uris: vec!["spiffe://x/y".into()],
    };
    let request = request(&["system:nodes", "two", "two", "ünïcode"], &names);
    request.verify().unwrap();
    let usages = ["client auth", "digital signature", "key encipherment"];
    let issued = ca.sign_request(&request, &usages, YEAR, now(), &rng).unwrap();
    assert_eq!(issued.subject().raw(), request.subject().raw());
    assert_eq!(issued.subject().organizations(), ["system:nodes", "two", "two", "ünïcode"]);
    assert_eq!(issued.subject().common_name(), "alice");
    assert_eq!(issued.alt_names(), &names);
    assert_eq!(issued.public_key(), request.public_key());
    assert!(!issued.is_ca() && issued.has_basic_constraints());
    assert_eq!(issued.purposes(), [Purpose::client_auth()]);
    assert_eq!(issued.authority_key_id(), ca.certificate().subject_key_id());
    assert!(!issued.serial().is_empty() && issued.serial().len() <= 16);
}

#[test]
fn requests_with_a_foreign_signature_are_refused() {
    let (ca, rng) = authority(YEAR);
    let good = request(&[], &AltNames::default());
    let mut der = good.der().to_vec();
    let last = der.len() - 1;
    der[last] ^= 1;
    if let Ok(bad) = CertificateRequest::from_der(&der) {
        let error = ca.sign_request(&bad, &["client auth"], YEAR, now(), &rng).unwrap_err().to_string();
        assert!(error.starts_with("unable to verify certificate request signature: "), "{error}");
    }
    let error = ca.sign_request(&good, &["client auth", "x"], YEAR, now(), &rng).unwrap_err();
    assert_eq!(error.to_string(), r#"unrecognized usage values: ["x"]"#);
    assert_eq!(CertificateRequest::from_pem(b"").unwrap_err(), RequestError::WrongBlock);
    assert_eq!(CertificateRequest::from_pem(ca.certificate().to_pem().as_bytes()), Err(RequestError::WrongBlock));
}

#[test]
fn lifetimes_follow_the_signers_table() {
    let minutes = |n: u64| Duration::from_secs(n * 60);
    let far = now() + 100 * YEAR;
    let cases = [
        ("no wish", None, far, Ok(YEAR - minutes(5))),
        ("more than the maximum", Some(31_622_400), far, Ok(YEAR - minutes(5))),
        ("eight hours count as long", Some(28_800), far, Ok(minutes(7 * 60 + 55))),
        ("just under eight hours", Some(28_799), far, Ok(Duration::from_secs(28_799))),
        ("ten minutes", Some(600), far, Ok(minutes(10))),
        ("below the minimum", Some(5), far, Ok(minutes(10))),
        ("the CA ends first", Some(600), now() + minutes(4), Ok(minutes(4))),
        ("the CA has ended", None, now() - minutes(1), Err("refusing to sign a certificate that expired in the past")),
        ("the CA ended long ago", None, now() - minutes(6), Err("the signer has expired: NotAfter=2026-09-2")),
    ];
    for (name, wish, ca_end, expected) in cases {
        let window = signing_window(now(), granted_lifetime(wish, YEAR), ca_end);
        match (window, expected) {
            (Ok((start, end)), Ok(after)) => {
                assert_eq!((start, end), (now() - minutes(5), now() + after), "{name}");
            }
            (Err(error), Err(text)) => assert!(error.to_string().starts_with(text), "{name}: {error}"),
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other implementation to compare with is a command")]
fn openssl_accepts_what_is_written() {
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        return test_facts::skipped("no openssl command");
    }
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new("openssl").args(arguments).current_dir(&directory).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments:?}: {text}");
        text
    };
    let write = |name: &str, text: &str| {
        std::fs::File::create(directory.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
    };
    let rng = Rng::seeded(9);
    for algorithm in [KeyAlgorithm::Rsa2048, KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384] {
        let key = PrivateKey::generate(algorithm).unwrap();
        write("ca.key", &key.to_pem().unwrap());
        let ca = CertificateAuthority::create("kubernetes", key, YEAR, now(), &rng).unwrap();
        let names = AltNames { dns: vec!["x".into()], ips: vec!["::1".parse().unwrap()], ..AltNames::default() };
        let request = request(&["g1", "g2"], &names);
        let leaf = ca.sign_request(&request, &["server auth", "signing"], YEAR, now(), &rng).unwrap();
        write("ca.crt", &ca.certificate().to_pem());
        write("leaf.crt", &leaf.to_pem());
        write("leaf.csr", &request.to_pem());
        run(&["pkey", "-in", "ca.key", "-check", "-noout"]);
        run(&["req", "-in", "leaf.csr", "-verify", "-noout"]);
        run(&["verify", "-x509_strict", "-attime", "1790000100", "-CAfile", "ca.crt", "leaf.crt"]);
        let text = run(&["x509", "-in", "leaf.crt", "-noout", "-text"]);
        for part in ["O = g1, O = g2, CN = alice", "TLS Web Server Authentication", "DNS:x", "CA:FALSE"] {
            assert!(
                text.replace("O=g1, O=g2, CN=alice", "O = g1, O = g2, CN = alice").contains(part),
                "{part}: {text}"
            );
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other implementation to compare with is a command")]
fn keys_and_requests_of_openssl_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&str, &[&str]); 4] = [
        ("pkcs8 rsa", &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "k.pem"]),
        ("sec1 with parameters", &["ecparam", "-name", "secp521r1", "-genkey", "-out", "k.pem"]),
        ("pkcs8 ec", &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", "k.pem"]),
        ("ed25519", &["genpkey", "-algorithm", "ED25519", "-out", "k.pem"]),
    ];
    for (name, arguments) in cases {
        let command =
            |arguments: &[&str]| std::process::Command::new("openssl").args(arguments).current_dir(&directory).output();
        let Ok(output) = command(arguments) else {
            return test_facts::skipped("no openssl command");
        };
        assert!(output.status.success(), "{name}");
        let key = PrivateKey::load(&directory.path().join("k.pem")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let subject = ["req", "-new", "-key", "k.pem", "-subj", "/O=a/O=b/CN=c", "-addext", "subjectAltName=DNS:d"];
        let request = CertificateRequest::from_pem(&command(&subject).unwrap().stdout).unwrap();
        request.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(request.public_key(), key.public_key(), "{name}");
        assert_eq!(request.subject().organizations(), ["a", "b"]);
        assert_eq!(request.alt_names().dns, ["d"]);
        let (ca, rng) = (CertificateAuthority::create("x", key, YEAR, now(), &Rng::seeded(2)).unwrap(), Rng::seeded(3));
        ca.sign_request(&request, &["client auth"], YEAR, now(), &rng).unwrap();
    }
}

/// Made by `openssl req -x509` without extensions, as was common before 1999 and still is by hand.
const WITHOUT_CONSTRAINTS: (&str, &str) = (
    "-----BEGIN CERTIFICATE-----\n\
MIIBGDCBvwIUa0i0BHAGaOHBcr2wR/pCYO9RQrYwCgYIKoZIzj0EAwIwDjEMMAoG\n\
A1UEAwwDb2xkMCAXDTI2MTEyMzA3MTIxNloYDzIxMjYxMDMwMDcxMjE2WjAOMQww\n\
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATAjJQDg6ex1k4y\n\
/t+04j5VKTMlM1mR/w53fph+K0v3rwITMni7vMRTVOd950lS28ckyqxa0ji/VG0a\n\
qikfEmpLMAoGCCqGSM49BAMCA0gAMEUCIFs4CNd/KUj5THa9zs8jpv/Nm0TFQv+H\n\
Dr3ZNHuEMCSBAiEA7/pvzJmW9I7PI3mLnWTNyjrFLyRrJaIS8Nhtt8UnHxU=\n\
-----END CERTIFICATE-----\n\
",
    "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfSzjCk687M1OxJsu\n\
IwD+XGwYJT3mEhP0nGJdDVhGNryhRANCAATAjJQDg6ex1k4y/t+04j5VKTMlM1mR\n\
/w53fph+K0v3rwITMni7vMRTVOd950lS28ckyqxa0ji/VG0aqikfEmpL\n\
-----END PRIVATE KEY-----\n\
",
);

#[test]
fn a_certificate_that_does_not_say_whether_it_is_a_ca_may_sign() {
    let (certificate, key) = WITHOUT_CONSTRAINTS;
    let old = CertificateAuthority::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    assert!(!old.certificate().has_basic_constraints());
    let request = request(&["g"], &AltNames::default());
    let issued = old.sign_request(&request, &["client auth"], YEAR, now(), &authority(YEAR).1).unwrap();
    assert_eq!(issued.issuer().common_name(), "old");
    let leaf = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let (ca, rng) = authority(YEAR);
    let names = AltNames::default();
    let own = CertificateRequest::create(&leaf, &Name::new("leaf", &[]), &names).unwrap();
    let issued = ca.sign_request(&own, &["client auth"], YEAR, now(), &rng).unwrap();
    assert!(
        matches!(CertificateAuthority::new(issued, leaf), Err(IssueError::NotAuthority)),
        "it says that it is none"
    );
}
