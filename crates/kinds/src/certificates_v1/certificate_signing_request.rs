//! CertificateSigningRequest of certificates.k8s.io/v1: its names, and its rules.

use super::validation;
use api_machinery::field_path::ErrorList;
use api_machinery::leaf::StringList;
use api_types::certificates_v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestStatus,
};

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::object::Object;
use api_machinery::time::Time;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["csr"],
    storage: Some(StorageInfo::of::<CertificateSigningRequest>("certificatesigningrequests", "95fRKMXA+00=")),
    unconditional_update: true,
    field_selectors: &["spec.signerName"],
    subresources: &[
        SubresourceInfo::part("approval", "CertificateSigningRequest"),
        SubresourceInfo::status("CertificateSigningRequest"),
    ],
    ..ResourceInfo::of::<CertificateSigningRequest>()
};

/// The rules of the kind.
pub(crate) struct CertificateSigningRequestRules;

impl TypedRules for CertificateSigningRequestRules {
    type Object = CertificateSigningRequest;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const FORMER: &'static [Former] = &[Former::mended("certificates.k8s.io/v1beta1", conditions_hold)];
    const COLUMNS: &'static [Cell<CertificateSigningRequest>] = &[
        Cell::NAME,
        Cell::AGE,
        Cell::text("SignerName", |object, _| table::or_none(&*object.spec.signer_name).into()),
        Cell::text("Requestor", |object, _| object.spec.username.clone().into()),
        Cell::text("RequestedDuration", |object, _| duration(object.spec.expiration_seconds).into()),
        Cell::text("Condition", |object, _| state(object).into()),
    ];

    fn reset_fields(subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" => &["spec", "status"],
            "status" => &["spec", "status.conditions"],
            "approval" => &["spec", "status.certificate"],
            _ => &[],
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn prepare_create(cx: &RuleContext, object: &mut CertificateSigningRequest) {
        let spec = &mut object.spec;
        spec.username.clone_from(&cx.user);
        spec.uid.clone_from(&cx.user_uid);
        spec.groups.clone_from(&cx.groups);
        spec.extra = cx.extra.iter().map(|(key, values)| (key.clone(), StringList(values.clone()))).collect();
        object.status = CertificateSigningRequestStatus::default();
    }

    fn prepare_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &mut CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) {
        object.spec = old.spec.clone();
        let sent = std::mem::replace(&mut object.status, old.status.clone());
        match endpoint {
            Endpoint::Status => {
                object.status = sent;
                for type_ in ["Approved", "Denied"] {
                    restore(type_, &mut object.status.conditions, &old.status.conditions);
                }
            }
            Endpoint::Other("approval") => object.status.conditions = sent.conditions,
            _ => return,
        }
        date(&mut object.status.conditions, &old.status.conditions, cx.now);
    }

    fn validate(_: &RuleContext, object: &CertificateSigningRequest) -> ErrorList {
        validation::validate(object, None)
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &CertificateSigningRequest,
        old: &CertificateSigningRequest,
    ) -> ErrorList {
        let mut errors = validation::validate(object, Some(old));
        validation::validate_changes(endpoint, object, old, &mut errors);
        errors
    }

    fn field(object: &CertificateSigningRequest, path: &str) -> Option<String> {
        (path == "spec.signerName").then(|| object.spec.signer_name.clone())
    }
}

/// A condition that was there held, before conditions had a status.
fn conditions_hold(object: &mut dyn Object) {
    let Some(request) = object.downcast_mut::<CertificateSigningRequest>() else { return };
    for condition in request.status.conditions.iter_mut().filter(|condition| condition.status.is_empty()) {
        condition.status = "True".to_owned();
    }
}

fn duration(seconds: Option<i32>) -> String {
    seconds.map_or_else(|| "<none>".to_owned(), |seconds| api_machinery::human_duration::age_text(i64::from(seconds)))
}

/// Puts the stored conditions of a type back in order, unless some were added or taken away: that is refused later.
fn restore(
    type_: &str,
    conditions: &mut [CertificateSigningRequestCondition],
    stored: &[CertificateSigningRequestCondition],
) {
    let stored: Vec<_> = stored.iter().filter(|condition| condition.type_ == type_).collect();
    let sent: Vec<_> = conditions.iter_mut().filter(|condition| condition.type_ == type_).collect();
    if stored.len() == sent.len() {
        sent.into_iter().zip(stored).for_each(|(sent, stored)| sent.clone_from(stored));
    }
}

/// Fills in the times that the client left out.
fn date(
    conditions: &mut [CertificateSigningRequestCondition],
    stored: &[CertificateSigningRequestCondition],
    now: Time,
) {
    for condition in conditions {
        if condition.last_update_time.is_zero() {
            condition.last_update_time = now;
        }
        if condition.last_transition_time.is_zero() {
            let same = stored.iter().find(|old| old.type_ == condition.type_ && old.status == condition.status);
            condition.last_transition_time = same.map_or(now, |old| old.last_transition_time);
        }
    }
}

/// What was decided, then what became of it.
fn state(request: &CertificateSigningRequest) -> String {
    let has = |type_: &str| request.status.conditions.iter().any(|condition| condition.type_ == type_);
    let mut state = String::from(if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    });
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !request.status.certificate.is_empty() {
        state.push_str(",Issued");
    }
    state
}
