//! Bundles and requests of pods, with certificates that are made here.

use std::time::{Duration, SystemTime};

use api_machinery::meta::Condition;
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;
use api_types::certificates_v1beta1::{ClusterTrustBundle, PodCertificateRequest};
use pki::{AltNames, CertificateAuthority, CertificateRequest, CertificateSpec, KeyAlgorithm, Name, PrivateKey};

use super::cluster_trust_bundle::ClusterTrustBundleRules;
use super::pod_certificate_request::PodCertificateRequestRules;
use crate::rules::{Endpoint, RuleContext, Rules, Typed};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

fn authority() -> CertificateAuthority {
    let rng = base::Rng::seeded(1);
    CertificateAuthority::create("ca", key(), Duration::from_secs(30 * DAY), at(NOW), &rng).expect("an authority")
}

fn context() -> RuleContext {
    // Certificates begin five minutes before they are made, and may begin up to that before now.
    RuleContext { now: at(NOW - 10).into(), ..RuleContext::default() }
}

fn texts(errors: &api_machinery::field_path::ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn bundle(name: &str, signer: &str, text: &str) -> ClusterTrustBundle {
    let mut bundle = ClusterTrustBundle::default();
    bundle.metadata.name = name.into();
    bundle.spec.signer_name = signer.into();
    bundle.spec.trust_bundle = text.into();
    bundle
}

#[test]
fn bundles_are_named_after_their_signer_and_hold_authorities() {
    let rules = Typed::<ClusterTrustBundleRules>::new();
    let (ca, rng) = (authority(), base::Rng::seeded(2));
    let anchor = ca.certificate().to_pem();
    let spec = CertificateSpec::client("jane", &[], Duration::from_secs(DAY));
    let leaf = ca.issue(&spec, key().public_key(), at(NOW), &rng).expect("a certificate").to_pem();
    for (name, signer, text, expected) in [
        ("b", "", anchor.clone(), ""),
        ("x.y:z:b", "x.y/z", anchor.clone(), ""),
        (
            "a:b",
            "",
            anchor.clone(),
            "metadata.name: Invalid value: \"a:b\": ClusterTrustBundle without signer name must not",
        ),
        (
            "b",
            "x.y/z",
            anchor.clone(),
            "metadata.name: Invalid value: \"b\": ClusterTrustBundle for signerName x.y/z must be named with prefix x.y:z:",
        ),
        (
            "b",
            "",
            String::new(),
            "spec.trustBundle: Invalid value: \"<value omitted>\": at least one trust anchor must be provided",
        ),
        ("b", "", leaf, "spec.trustBundle: Invalid value: \"<value omitted>\": entry 0 does not have the CA bit set"),
        (
            "b",
            "",
            anchor.replace("CERTIFICATE", "KEY"),
            "spec.trustBundle: Invalid value: \"<value omitted>\": entry 0 has bad block type: KEY",
        ),
        (
            "b",
            "",
            anchor.repeat(2),
            "spec.trustBundle: Invalid value: \"<value omitted>\": duplicate trust anchor (indices [0 1])",
        ),
    ] {
        let errors = rules.validate_create(&context(), &bundle(name, signer, &text));
        let found = texts(&errors).join("\n");
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{name} of {signer}: {found}");
    }
    // A bundle that is stored is not looked at again, and its signer stays.
    let (old, new) = (bundle("b", "", "nothing"), bundle("x.y:z:b", "x.y/z", "nothing"));
    assert!(rules.validate_update(&context(), Endpoint::Main, &old, &old).is_empty());
    let errors = rules.validate_update(&context(), Endpoint::Main, &new, &old);
    assert_eq!(texts(&errors), ["spec.signerName: Invalid value: \"x.y/z\": field is immutable"]);
}

fn request(key: &PrivateKey) -> PodCertificateRequest {
    let stub = CertificateRequest::create(key, &Name::new("", &[]), &AltNames::default()).expect("a request");
    let mut request = PodCertificateRequest::default();
    let spec = &mut request.spec;
    spec.signer_name = "x.y/z".into();
    for (name, uid) in [
        (&mut spec.pod_name, &mut spec.pod_uid),
        (&mut spec.service_account_name, &mut spec.service_account_uid),
        (&mut spec.node_name, &mut spec.node_uid),
    ] {
        (*name, *uid) = ("n".into(), "u".into());
    }
    spec.max_expiration_seconds = Some(i32::try_from(DAY).unwrap());
    spec.stub_pkcs10_request = ByteString(stub.der().to_vec());
    request
}

#[test]
fn requests_say_whose_certificate_for_how_long_and_for_which_key() {
    let rules = Typed::<PodCertificateRequestRules>::new();
    type Change = fn(&mut PodCertificateRequest);
    let rows: &[(Change, &[&str])] = &[
        (|_| {}, &[]),
        (|own| own.spec.pod_uid.clear(), &["spec.podUID: Invalid value: \"\": must not be empty"]),
        (|own| own.spec.max_expiration_seconds = None, &["spec.maxExpirationSeconds: Required value: must be set"]),
        (
            |own| own.spec.max_expiration_seconds = Some(3_599),
            &["spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"],
        ),
        (
            |own| {
                own.spec.signer_name = "a.kubernetes.io/z".into();
                own.spec.max_expiration_seconds = Some(86_401);
            },
            &["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"],
        ),
        (
            |own| own.spec.pkix_public_key = ByteString(vec![1]),
            &[
                "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
            ],
        ),
        (
            |own| own.spec.stub_pkcs10_request = ByteString(vec![1]),
            &["spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"],
        ),
        (
            |own| {
                let key = key().public_key().spki().to_vec();
                own.spec.stub_pkcs10_request = ByteString::default();
                own.spec.pkix_public_key = ByteString(key);
                own.spec.proof_of_possession = ByteString(vec![1]);
            },
            &["spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"],
        ),
        (
            |own| {
                own.spec.unverified_user_annotations.insert("a".into(), "b".into());
            },
            &[
                "spec.unverifiedUserAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")",
            ],
        ),
    ];
    for (change, expected) in rows {
        let mut own = request(&key());
        change(&mut own);
        assert_eq!(texts(&rules.validate_create(&context(), &own)), *expected);
    }
}

fn ended(own: &PodCertificateRequest, how: &str) -> PodCertificateRequest {
    let mut own = own.clone();
    own.status.conditions = vec![Condition {
        type_: how.into(),
        status: "True".into(),
        reason: "R".into(),
        last_transition_time: Time::from_unix_seconds(1),
        ..Condition::default()
    }];
    own
}

#[test]
fn a_status_tells_of_one_end_and_of_the_certificate() {
    let rules = Typed::<PodCertificateRequestRules>::new();
    let (key, ca, rng) = (key(), authority(), base::Rng::seeded(3));
    let asked = request(&key);
    let spec = CertificateSpec::client("pod", &[], Duration::from_secs(DAY / 2));
    let leaf = ca.issue(&spec, key.public_key(), at(NOW), &rng).expect("a certificate");
    let issued = |change: &dyn Fn(&mut PodCertificateRequest)| {
        let mut own = ended(&asked, "Issued");
        own.status.certificate_chain = leaf.to_pem();
        own.status.not_before = Some(leaf.not_before().into());
        own.status.not_after = Some(leaf.not_after().into());
        own.status.begin_refresh_at = Some(at(NOW + DAY / 4).into());
        change(&mut own);
        own
    };
    let other = ca.issue(&spec, super::tests::key().public_key(), at(NOW), &rng).expect("a certificate");
    let chain = "status.certificateChain: Invalid value: ";
    for (new, old, expected) in [
        (issued(&|_| {}), asked.clone(), String::new()),
        (ended(&asked, "Denied"), asked.clone(), String::new()),
        (issued(&|own| own.status.certificate_chain.clear()), asked.clone(), format!("{chain}issued certificate chain must contain at least one certificate")),
        (issued(&|own| own.status.certificate_chain = other.to_pem()), asked.clone(), format!("{chain}leaf certificate was not issued to the requested public key")),
        (issued(&|own| own.status.certificate_chain += "-----BEGIN KEY-----\nAA==\n-----END KEY-----\n"), asked.clone(), format!("{chain}issued certificate chain must consist entirely of CERTFICATE PEM blocks")),
        (issued(&|own| own.status.not_after = None), asked.clone(), "status.notAfter: Required value: must be present and consistent with the issued certificate".to_owned()),
        (issued(&|own| own.status.begin_refresh_at = own.status.not_after), asked.clone(), "status.beginRefreshAt: Invalid value".to_owned()),
        (issued(&|own| own.spec.max_expiration_seconds = Some(3_600)), asked.clone(), "status.notAfter: Invalid value".to_owned()),
        (ended(&asked, "Issued"), ended(&asked, "Denied"), "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed".to_owned()),
        (issued(&|own| own.status.conditions.clone_from(&ended(&asked, "Failed").status.conditions)), asked.clone(), "status: Invalid value: non-condition status fields must be empty".to_owned()),
        (issued(&|own| own.status.conditions.clear()), asked.clone(), "status: Invalid value: status is immutable unless transitioning to".to_owned()),
        (ended(&asked, "Done"), asked.clone(), "status.conditions.[0].type: Unsupported value: \"Done\": supported values: \"Issued\", \"Denied\", \"Failed\"".to_owned()),
    ] {
        let errors = rules.validate_update(&context(), Endpoint::Status, &new, &old);
        let found = texts(&errors).join("\n");
        assert!(found.starts_with(&expected) && found.is_empty() == expected.is_empty(), "{expected}: {found}");
    }
}
