//! Validation of certificate signing requests. Faults that the stored object has already are not held against a write.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::certificates_v1::constants::key_usage;
use api_types::certificates_v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use api_types::core_v1::constants::condition_status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::field_rules as rules;
use crate::rules::Endpoint;
use crate::signers;

const MINIMUM_SECONDS: i32 = 600;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// Checks a request that is created, or that replaces `old`.
pub(super) fn validate(request: &CertificateSigningRequest, old: Option<&CertificateSigningRequest>) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_spec(&request.spec, old.map(|old| &old.spec), &mut errors);
    let conditions = Path::new("status").child("conditions");
    let stored = old.map(|old| old.status.conditions.as_slice());
    validate_conditions(&conditions, &request.status.conditions, stored, &mut errors);
    let certificate = &request.status.certificate.0;
    let is_stored = old.is_some_and(|old| {
        old.status.certificate.0 == *certificate || certificate_problem(&old.status.certificate.0).is_some()
    });
    if let Some(problem) = certificate_problem(certificate).filter(|_| !is_stored) {
        errors.push(Path::new("status").child("certificate").invalid("<certificate data>", problem));
    }
    errors
}

fn validate_spec(
    spec: &CertificateSigningRequestSpec,
    old: Option<&CertificateSigningRequestSpec>,
    errors: &mut ErrorList,
) {
    let path = Path::new("spec");
    let parsed = pki::CertificateRequest::from_pem(&spec.request.0).and_then(|request| request.verify());
    if let Err(error) = parsed {
        let value = BadValue::named(&STANDARD.encode(&spec.request.0));
        errors.push(path.child("request").invalid(value, error.to_string()));
    }
    let at = path.child("usages");
    if spec.usages.is_empty() {
        errors.push(at.required(""));
    }
    let is_known = |usage: &String| key_usage::ALL.contains(&usage.as_str());
    let has_repeats = |usages: &[String]| usages.iter().collect::<BTreeSet<_>>().len() < usages.len();
    let unknown_stored = old.is_some_and(|old| !old.usages.iter().all(is_known));
    let repeats_stored = old.is_some_and(|old| has_repeats(&old.usages));
    let mut seen = BTreeSet::new();
    for (index, usage) in spec.usages.iter().enumerate() {
        if !is_known(usage) && !unknown_stored {
            errors.push(at.index(index).not_supported(BadValue::named(usage), key_usage::ALL));
        }
        if !seen.insert(usage) && !repeats_stored {
            errors.push(at.index(index).duplicate(BadValue::named(usage)));
        }
    }
    let at = path.child("signerName");
    if spec.signer_name != LEGACY_SIGNER {
        signers::validate_name(&at, &spec.signer_name, errors);
    } else if old.is_none_or(|old| old.signer_name != LEGACY_SIGNER) {
        errors.push(at.invalid(&spec.signer_name, "the legacy signerName is not allowed via this API version"));
    }
    if let Some(seconds) = spec.expiration_seconds.filter(|seconds| *seconds < MINIMUM_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(path.child("expirationSeconds").invalid(seconds, detail));
    }
}

/// What is wrong with the issued chain; an empty one is not issued yet.
fn certificate_problem(pem: &[u8]) -> Option<String> {
    if pem.is_empty() {
        return None;
    }
    let blocks = pki::parse_blocks(pem);
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found \"{}\"", block.label));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if block.der.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        if let Err(error) = pki::Certificate::from_der(&block.der) {
            return Some(error.to_string());
        }
    }
    blocks.is_empty().then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

type Conditions = [CertificateSigningRequestCondition];

fn count(conditions: &Conditions, type_: &str) -> usize {
    conditions.iter().filter(|condition| condition.type_ == type_).count()
}

fn validate_conditions(path: &Path, conditions: &Conditions, old: Option<&Conditions>, errors: &mut ErrorList) {
    let stored = |is_bad: fn(&Conditions) -> bool| old.is_some_and(is_bad);
    let repeats_stored = stored(|old| old.iter().any(|condition| count(old, &condition.type_) > 1));
    let unnamed_stored = stored(|old| old.iter().any(|condition| condition.type_.is_empty()));
    let both_stored = stored(|old| count(old, "Approved") > 0 && count(old, "Denied") > 0);
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        let type_ = condition.type_.as_str();
        if !unnamed_stored {
            rules::required(&at.child("type"), type_, errors);
        }
        let known: &[&str] = if matches!(type_, "Approved" | "Denied" | "Failed") {
            &[condition_status::TRUE]
        } else {
            condition_status::ALL
        };
        rules::choice(&at.child("status"), &condition.status, known, errors);
        let earlier = conditions.get(..index).unwrap_or_default();
        let other = match type_ {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !both_stored && !other.is_empty() && count(earlier, other) > 0 {
            errors.push(path.invalid(BadValue::named(type_), "Approved and Denied conditions are mutually exclusive"));
        }
        if !repeats_stored && count(earlier, type_) > 0 {
            errors.push(at.child("type").duplicate(BadValue::named(type_)));
        }
    }
}

/// Checks what an endpoint may change: approval and denial go through `approval` and stay; the certificate is set once.
pub(super) fn validate_changes(
    endpoint: Endpoint,
    request: &CertificateSigningRequest,
    old: &CertificateSigningRequest,
    errors: &mut ErrorList,
) {
    let path = Path::new("status").child("conditions");
    let counts = |type_: &str| (count(&request.status.conditions, type_), count(&old.status.conditions, type_));
    for type_ in ["Approved", "Denied", "Failed"] {
        let (new, stored) = counts(type_);
        if new < stored {
            errors.push(path.forbidden(format!("updates may not remove a condition of type \"{type_}\"")));
        }
        if new > stored && type_ != "Failed" && endpoint != Endpoint::Other("approval") {
            errors.push(path.forbidden(format!("updates may not add a condition of type \"{type_}\"")));
        }
    }
    let (new, stored) = (&request.status.certificate.0, &old.status.certificate.0);
    let path = Path::new("status").child("certificate");
    if new == stored {
        return;
    }
    if endpoint != Endpoint::Status {
        errors.push(path.forbidden("updates may not set certificate content"));
    } else if !stored.is_empty() {
        errors.push(path.forbidden("updates may not modify existing certificate content"));
    }
}
