//! PodCertificateRequest of certificates.k8s.io/v1beta1: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_types::certificates_v1beta1::constants::pod_certificate_condition::{self, DENIED, FAILED, ISSUED};
use api_types::certificates_v1beta1::{PodCertificateRequest, PodCertificateRequestSpec, PodCertificateRequestStatus};
use feature_gates::MinorVersion;

use super::{issued_chain, requested_key};
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::{conditions, field_rules as rules, gates, internal_json, signers};

const UID_MAX_BYTES: usize = 128;
const SIGNER_NAME: &str = "spec.signerName";
const POD_NAME: &str = "spec.podName";
const NODE_NAME: &str = "spec.nodeName";

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<PodCertificateRequest>("podcertificaterequests", "wYA9yXQH8fg=")),
    field_selectors: &[NODE_NAME, POD_NAME, SIGNER_NAME],
    subresources: &[SubresourceInfo::status("PodCertificateRequest")],
    introduced: MinorVersion::one(35),
    gates: &[gates::POD_CERTIFICATE_REQUEST],
    ..ResourceInfo::of::<PodCertificateRequest>()
};

/// The rules of the kind.
pub(crate) struct PodCertificateRequestRules;

impl TypedRules for PodCertificateRequestRules {
    type Object = PodCertificateRequest;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PodCertificateRequest>] = &[
        Cell::NAME,
        Cell::text("PodName", |request, _| request.spec.pod_name.clone().into()),
        Cell::text("ServiceAccountName", |request, _| request.spec.service_account_name.clone().into()),
        Cell::text("NodeName", |request, _| request.spec.node_name.clone().into()),
        Cell::text("SignerName", |request, _| request.spec.signer_name.clone().into()),
        Cell::text("State", |request, _| final_state(&request.status).unwrap_or("Pending").into()),
        Cell::text("UnverifiedUserAnnotations", |request, _| table::labels(&request.spec.unverified_user_annotations)),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &PodCertificateRequest) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, &mut errors);
        errors
    }

    fn validate_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &PodCertificateRequest,
        old: &PodCertificateRequest,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validate_status(cx, object, old, &mut errors);
        } else if !equal(&object.spec, &old.spec) {
            errors.push(Path::new("spec").invalid(internal_json::bad_value(&object.spec), rules::IMMUTABLE));
        }
        errors
    }

    fn field(object: &PodCertificateRequest, path: &str) -> Option<String> {
        let spec = &object.spec;
        match path {
            SIGNER_NAME => Some(spec.signer_name.clone()),
            POD_NAME => Some(spec.pod_name.clone()),
            NODE_NAME => Some(spec.node_name.clone()),
            _ => None,
        }
    }
}

/// The condition that ends a request; the last one counts.
fn final_state(status: &PodCertificateRequestStatus) -> Option<&'static str> {
    let known = |name: &str| pod_certificate_condition::ALL.iter().find(|own| **own == name).copied();
    status.conditions.iter().rev().find_map(|condition| known(&condition.type_))
}

fn validate_spec(path: &Path, spec: &PodCertificateRequestSpec, errors: &mut ErrorList) {
    signers::validate_name(&path.child("signerName"), &spec.signer_name, errors);
    let at = path.child("unverifiedUserAnnotations");
    signers::validate_user_annotations(&at, &spec.unverified_user_annotations, errors);
    for (name, value, uid_name, uid) in [
        ("podName", &spec.pod_name, "podUID", &spec.pod_uid),
        ("serviceAccountName", &spec.service_account_name, "serviceAccountUID", &spec.service_account_uid),
        ("nodeName", &spec.node_name, "nodeUID", &spec.node_uid),
    ] {
        errors.push_invalid(&path.child(name), value, names::dns1123_subdomain(value));
        let at = path.child(uid_name);
        if uid.is_empty() {
            errors.push(at.invalid(uid, "must not be empty"));
        } else if uid.len() > UID_MAX_BYTES {
            errors.push(at.too_long(UID_MAX_BYTES));
        }
    }
    let at = path.child("maxExpirationSeconds");
    let Some(wanted) = spec.max_expiration_seconds else {
        return errors.push(at.required("must be set"));
    };
    let (shortest, longest) = (signers::SHORTEST, signers::longest(&spec.signer_name));
    if !(shortest..=longest).contains(&wanted) {
        errors.push(at.invalid(wanted, format!("must be in the range [{shortest}, {longest}]")));
    }
    requested_key::validate(path, spec, errors);
}

/// Checks a status in stages: what is wrong in one is told before the next is looked at.
fn validate_status(
    cx: &RuleContext,
    object: &PodCertificateRequest,
    old: &PodCertificateRequest,
    errors: &mut ErrorList,
) {
    let (path, status) = (Path::new("status"), &object.status);
    validate_conditions(&path.child("conditions"), status, errors);
    if !errors.is_empty() {
        return;
    }
    let unchanged = equal(status, &old.status);
    if final_state(&old.status).is_some() {
        if !unchanged {
            let detail = "immutable after PodCertificateRequest is issued, denied, or failed";
            errors.push(path.invalid_unshown(detail));
        }
        return;
    }
    match final_state(status) {
        Some(DENIED | FAILED) => {
            let only = PodCertificateRequestStatus { conditions: status.conditions.clone(), ..Default::default() };
            if !equal(status, &only) {
                let detail =
                    "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
                errors.push(path.invalid_unshown(detail));
            }
        }
        Some(ISSUED) => issued_chain::validate(&path, status, &object.spec, cx.now, errors),
        _ if !unchanged => {
            let detail = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(path.invalid_unshown(detail));
        }
        _ => {}
    }
}

fn validate_conditions(path: &Path, status: &PodCertificateRequestStatus, errors: &mut ErrorList) {
    for (index, condition) in status.conditions.iter().enumerate() {
        // A dot before the bracket, as upstream has it.
        let at = path.child(format!("[{index}]"));
        let known = [ISSUED, DENIED, FAILED];
        if !known.contains(&condition.type_.as_str()) {
            errors.push(at.child("type").not_supported_in_order(BadValue::named(&condition.type_), &known));
        }
        if condition.status != "True" {
            errors.push(at.child("status").not_supported(BadValue::named(&condition.status), &["True"]));
        }
    }
    let known = status.conditions.iter().filter(|own| pod_certificate_condition::ALL.contains(&own.type_.as_str()));
    if known.count() > 1 {
        let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
        errors.push(path.invalid_unshown(detail));
    }
    conditions::validate(path, &status.conditions, errors);
}
