//! What signing requests are told, and what each endpoint may write.

use api_machinery::reflect::ByteString;
use api_machinery::time::Time;
use api_types::certificates_v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

use super::certificate_signing_request::CertificateSigningRequestRules;
use crate::rules::{Endpoint, RuleContext, Rules, Typed};

fn context() -> RuleContext {
    RuleContext {
        now: Time::default(),
        user: "jane".into(),
        user_uid: "7".into(),
        groups: vec!["devs".into()],
        extra: [("scope".to_owned(), vec!["a".to_owned()])].into(),
        ..RuleContext::default()
    }
}

fn request() -> CertificateSigningRequest {
    let key = pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).expect("a key");
    let pem = pki::CertificateRequest::create(&key, &pki::Name::new("jane", &[]), &pki::AltNames::default())
        .expect("a request");
    let mut request = CertificateSigningRequest::default();
    request.metadata.name = "r".into();
    request.spec.request = ByteString(pem.to_pem().into_bytes());
    request.spec.signer_name = "example.com/signer".into();
    request.spec.usages = vec!["client auth".into()];
    request
}

fn condition(type_: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition { type_: type_.into(), status: "True".into(), ..Default::default() }
}

fn created(change: impl Fn(&mut CertificateSigningRequest)) -> String {
    let mut request = request();
    change(&mut request);
    let errors = Typed::<CertificateSigningRequestRules>::new().validate_create(&context(), &request);
    if errors.is_empty() { String::new() } else { errors.to_string() }
}

#[test]
fn requests_carry_who_sent_them() {
    let mut request = request();
    request.spec.username = "root".into();
    request.status.conditions.push(condition("Approved"));
    Typed::<CertificateSigningRequestRules>::new().prepare_create(&context(), &mut request);
    let spec = &request.spec;
    assert_eq!(
        (spec.username.as_str(), spec.uid.as_str(), spec.groups.as_slice()),
        ("jane", "7", &["devs".to_owned()][..])
    );
    assert_eq!(spec.extra["scope"].0, ["a"]);
    assert!(request.status.conditions.is_empty());
}

#[test]
fn specs() {
    assert_eq!(created(|_| {}), "");
    let text = created(|request| request.spec.request = ByteString(b"x".to_vec()));
    assert_eq!(text, r#"spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST"#);
    let text = created(|request| request.spec.usages.push("client auth".into()));
    assert_eq!(text, r#"spec.usages[1]: Duplicate value: "client auth""#);
    let text = created(|request| request.spec.usages = vec!["x".into()]);
    assert!(
        text.starts_with(r#"spec.usages[0]: Unsupported value: "x": supported values: "any", "cert sign""#),
        "{text}"
    );
    let text = created(|request| request.spec.signer_name = "signer".into());
    let expected = r#"spec.signerName: Invalid value: "signer": must be a fully qualified domain and path of the form"#;
    assert!(text.starts_with(expected), "{text}");
    let text = created(|request| request.spec.signer_name = "kubernetes.io/legacy-unknown".into());
    assert!(text.ends_with("the legacy signerName is not allowed via this API version"), "{text}");
    let text = created(|request| request.spec.expiration_seconds = Some(1));
    assert!(text.starts_with("spec.expirationSeconds: Invalid value: 1: may not specify a duration less"), "{text}");
}

#[test]
fn each_endpoint_writes_its_own_part() {
    let rules = Typed::<CertificateSigningRequestRules>::new();
    let old = request();
    let mut wanted = old.clone();
    wanted.status.conditions.push(condition("Approved"));
    wanted.status.certificate = ByteString(b"x".to_vec());
    wanted.spec.signer_name = "example.com/other".into();
    let written = |endpoint: Endpoint| {
        let mut new = wanted.clone();
        rules.prepare_update(&context(), endpoint, &mut new, &old);
        assert_eq!(new.spec, old.spec);
        let errors = rules.validate_update(&context(), endpoint, &new, &old);
        let text = if errors.is_empty() { String::new() } else { errors.to_string() };
        (new.status.conditions.len(), new.status.certificate.0.is_empty(), text)
    };
    assert_eq!(written(Endpoint::Main), (0, true, String::new()));
    assert_eq!(written(Endpoint::Other("approval")), (1, true, String::new()));
    let (conditions, has_none, text) = written(Endpoint::Status);
    assert_eq!((conditions, has_none), (1, false));
    assert_eq!(
        text,
        "[status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block, \
         status.conditions: Forbidden: updates may not add a condition of type \"Approved\"]"
    );
}

#[test]
fn decisions_are_final() {
    let rules = Typed::<CertificateSigningRequestRules>::new();
    let mut old = request();
    old.status.conditions.push(condition("Approved"));
    let mut denied = old.clone();
    denied.status.conditions.push(condition("Denied"));
    let text = rules.validate_update(&context(), Endpoint::Other("approval"), &denied, &old).to_string();
    let expected =
        r#"status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive"#;
    assert_eq!(text, expected);
    let mut undone = old.clone();
    undone.status.conditions.clear();
    let text = rules.validate_update(&context(), Endpoint::Other("approval"), &undone, &old).to_string();
    assert_eq!(text, "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"");
}
