//! Requests for certificates: approving those of kubelets, signing what is approved, clearing away what is done, and what
//! pods asked for.

pub(crate) mod approving;
pub(crate) mod cleaning;
pub(crate) mod pod_requests;
mod rules;
pub(crate) mod signing;

use std::time::Duration;

use api_machinery::time::Time;
use api_types::certificates_v1::constants::request_condition_type::{APPROVED, DENIED, FAILED};
use api_types::certificates_v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use client::RateLimit;

/// Workers of each queue.
const WORKERS: usize = 5;

/// How failing requests are held back.
fn rate_limit() -> RateLimit {
    RateLimit { base: Duration::from_millis(200), ..RateLimit::default() }
}

/// Whether a request has a condition of a type.
fn has(request: &CertificateSigningRequest, type_: &str) -> bool {
    request.status.conditions.iter().any(|condition| condition.type_ == type_)
}

/// Whether a request is approved and nobody denied it.
fn is_approved(request: &CertificateSigningRequest) -> bool {
    has(request, APPROVED) && !has(request, DENIED)
}

/// Whether signing it failed for good.
fn has_failed(request: &CertificateSigningRequest) -> bool {
    let failed =
        |one: &CertificateSigningRequestCondition| one.type_ == FAILED && matches!(one.status.as_str(), "" | "True");
    request.status.conditions.iter().any(failed)
}

/// A condition that holds.
fn condition(type_: &str, reason: &str, message: String, updated: Time) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message,
        last_update_time: updated,
        ..CertificateSigningRequestCondition::default()
    }
}
