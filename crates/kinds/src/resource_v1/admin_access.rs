//! Devices for administrators: who asks for them does so in a namespace that is marked for it.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, FieldError, Path};
use api_types::resource_v1::constants::{ADMIN_ACCESS_ALLOWED, ADMIN_ACCESS_LABEL};
use api_types::resource_v1::{ResourceClaim, ResourceClaimSpec};

use super::status_validation::{DeviceId, allocated};
use crate::rules::RuleContext;

const NOT_MARKED: &str = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the \
                          containing namespace";

/// The requests that ask for such devices.
fn asked(spec: &ResourceClaimSpec) -> impl Iterator<Item = usize> {
    let wanted = |request: &api_types::resource_v1::DeviceRequest| {
        request.exactly.as_ref().is_some_and(|own| own.admin_access == Some(true))
    };
    let requests = spec.devices.requests.iter().enumerate();
    requests.filter(move |(_, request)| wanted(request)).map(|(index, _)| index)
}

/// Whether a spec asks for such devices.
pub(super) fn is_asked(spec: &ResourceClaimSpec) -> bool {
    asked(spec).next().is_some()
}

/// Those that a claim has, with their places among its results.
fn granted(claim: &ResourceClaim) -> impl Iterator<Item = (usize, DeviceId<'_>)> {
    let results = claim.status.allocation.iter().flat_map(|allocation| allocation.devices.results.iter().enumerate());
    results.filter(|(_, result)| result.admin_access == Some(true)).map(|(index, result)| (index, allocated(result)))
}

/// Whether a claim has such devices.
pub(super) fn is_granted(claim: &ResourceClaim) -> bool {
    granted(claim).next().is_some()
}

/// Why not, in this namespace.
fn refusal(cx: &RuleContext, path: &Path) -> Option<FieldError> {
    match &cx.namespace_labels {
        Some(Err(error)) => {
            Some(path.internal(format!("could not retrieve namespace to verify admin access: {error}")))
        }
        Some(Ok(labels)) if labels.get(ADMIN_ACCESS_LABEL).is_some_and(|value| value == ADMIN_ACCESS_ALLOWED) => None,
        _ => Some(path.forbidden(NOT_MARKED)),
    }
}

/// Checks what is asked for. The path is the same for claims and templates.
pub(super) fn validate(cx: &RuleContext, spec: &ResourceClaimSpec, errors: &mut ErrorList) {
    let path = Path::new("spec").child("devices").child("requests");
    errors.extend(asked(spec).filter_map(|index| refusal(cx, &path.index(index).child("adminAccess"))));
}

/// Checks what a claim gets that it did not have.
pub(super) fn validate_granted(cx: &RuleContext, claim: &ResourceClaim, old: &ResourceClaim, errors: &mut ErrorList) {
    let path = Path::new("status").child("allocation").child("devices").child("results");
    let had: BTreeSet<DeviceId<'_>> = granted(old).map(|(_, id)| id).collect();
    let new = granted(claim).filter(|(_, id)| !had.contains(id));
    errors.extend(new.filter_map(|(index, _)| refusal(cx, &path.index(index).child("adminAccess"))));
}
