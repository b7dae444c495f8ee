//! Subjects become users.

use super::*;
use crate::testing::{at, authority, client, clock, issue, pool, request};

async fn run(
    ca: &pki::CertificateAuthority,
    peer: &[CertificateDer<'static>],
    seconds: i64,
) -> Result<Option<Identity>, AuthnError> {
    let authenticator = ClientCertificate::new(pool(ca), clock(seconds), SubjectUid::Parsed);
    authenticator.authenticate(&request("/", &[]), peer).await
}

#[tokio::test]
async fn the_subject_is_the_user_and_the_fingerprint_the_credential() {
    let ca = authority();
    let peer = client(&ca, "alice", &["b", "a", "b"]);
    let identity = run(&ca, &peer, 0).await.unwrap().unwrap();
    assert_eq!(identity.user.username, "alice");
    assert_eq!(identity.certificate_ends, Some(at(3600)));
    assert_eq!(identity.user.groups, ["b", "a", "b", "system:authenticated"]);
    assert_eq!(identity.user.uid, "");
    let id = identity.credential_id().unwrap();
    assert!(id.starts_with("X509SHA256=") && id.len() == "X509SHA256=".len() + 64, "{id}");
}

#[tokio::test]
async fn no_certificate_and_no_name_are_no_opinion_and_bad_ones_errors() {
    let ca = authority();
    assert_eq!(run(&ca, &[], 0).await, Ok(None));
    assert_eq!(run(&ca, &client(&ca, "", &["g"]), 0).await, Ok(None));
    let expired = run(&ca, &client(&ca, "alice", &[]), 7200).await.unwrap_err().to_string();
    assert!(expired.contains("failed: x509: certificate has expired or is not yet valid: current time"), "{expired}");
    let server = pki::CertificateSpec::server("x", pki::AltNames::default(), std::time::Duration::from_secs(60));
    let wrong = run(&ca, &issue(&ca, &server), 0).await.unwrap_err().to_string();
    let aki = pki::colon_hex(ca.certificate().subject_key_id());
    assert!(
        wrong.ends_with(&format!(", AKID={aki} failed: x509: certificate specifies an incompatible key usage")),
        "{wrong}"
    );
    let garbage = vec![CertificateDer::from(b"junk".to_vec())];
    assert!(run(&ca, &garbage, 0).await.is_err());
}

#[tokio::test]
async fn a_uid_in_the_subject_is_read_when_switched_on() {
    let ca = authority();
    let attribute = |oid: &str, value: &str| pki::NameAttribute { oid: oid.to_owned(), value: Some(value.to_owned()) };
    let cases: [(&[&str], Result<&str, &str>); 4] = [
        (&[], Ok("")),
        (&["u1"], Ok("u1")),
        (&[""], Err("UID cannot be an empty string")),
        (&["u1", "u2"], Err("expected 1 UID, but found multiple: [u1 u2]")),
    ];
    for (uids, expected) in cases {
        let mut attributes = vec![attribute("2.5.4.3", "alice")];
        attributes.extend(uids.iter().map(|uid| attribute(pki::USER_UID_DOTTED, uid)));
        let mut spec = pki::CertificateSpec::client("", &[], std::time::Duration::from_secs(60));
        spec.subject = pki::Name::from_attributes(attributes);
        let peer = issue(&ca, &spec);
        let got =
            run(&ca, &peer, 0).await.map(|found| found.unwrap().user.uid.clone()).map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), expected, "{uids:?}");
        let ignoring = ClientCertificate::new(pool(&ca), clock(0), SubjectUid::Ignored);
        let identity = ignoring.authenticate(&request("/", &[]), &peer).await.unwrap().unwrap();
        assert_eq!(identity.user.uid, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_was_verified_stands_until_time_or_bundle_say_otherwise() {
    const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);
    let ca = authority();
    let pool = pool(&ca);
    let clock: SharedClock = Arc::new(base::TokioClock::starting_at(clock(0).wall()));
    let authenticator = ClientCertificate::new(Arc::clone(&pool), clock, SubjectUid::Parsed);
    let spec = |name: &str| pki::CertificateSpec::client(name, &[], 2 * MINUTE);
    let (alice, bob) = (issue(&ca, &spec("alice")), issue(&ca, &spec("bob")));
    let user = async |peer: &[CertificateDer<'static>]| {
        let found = authenticator.authenticate(&request("/", &[]), peer).await;
        found.map(|found| found.unwrap().user.username.clone()).map_err(|error| error.to_string())
    };
    for _ in 0..2 {
        assert_eq!(user(&alice).await.as_deref(), Ok("alice"));
        assert_eq!(user(&bob).await.as_deref(), Ok("bob"));
    }
    let own = pool.current();
    pool.replace(pki::CaBundle::new(vec![authority().certificate().clone()]).unwrap());
    assert!(user(&alice).await.is_err(), "the bundle in force does not know the authority");
    pool.replace(pki::CaBundle::new(own.certificates().to_vec()).unwrap());
    assert_eq!(user(&alice).await.as_deref(), Ok("alice"));
    tokio::time::advance(3 * MINUTE).await;
    assert!(user(&alice).await.is_err_and(|error| error.contains("expired")));
}
