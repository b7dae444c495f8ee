//! What claims ask for, made ready for the search.

use std::sync::Arc;

use api_types::resource_v1::constants::device_allocation_mode::ALL_FITTING;
use api_types::resource_v1::{
    CapacityRequirements, DeviceClass, DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim,
};

use crate::allocator::{AllocateError, Inventory};
use crate::features::Features;

/// A claim and what it asks for.
pub(crate) struct Wanted<'a> {
    pub(crate) claim: &'a ResourceClaim,
    pub(crate) requests: Vec<Request<'a>>,
}

/// A request: what it asks for, the best first. Without alternatives it is one.
pub(crate) struct Request<'a> {
    pub(crate) name: &'a str,
    pub(crate) parts: Vec<Part<'a>>,
}

/// What a request, or one of its alternatives, asks for.
pub(crate) struct Part<'a> {
    /// `request`, or `request/alternative`.
    pub(crate) name: String,
    pub(crate) class: Arc<DeviceClass>,
    pub(crate) selectors: &'a [DeviceSelector],
    pub(crate) tolerations: &'a [DeviceToleration],
    pub(crate) capacity: Option<&'a CapacityRequirements>,
    pub(crate) is_admin: bool,
    /// So many devices; none for all that fit.
    pub(crate) count: Option<usize>,
}

/// `namespace/name`, as texts name a claim.
pub(crate) fn full_name(claim: &ResourceClaim) -> String {
    format!("{}/{}", claim.metadata.namespace, claim.metadata.name)
}

/// The claim with its requests.
pub(crate) fn wanted<'a>(
    claim: &'a ResourceClaim,
    inventory: &dyn Inventory,
    features: Features,
) -> Result<Wanted<'a>, AllocateError> {
    let requests = claim.spec.devices.requests.iter();
    let requests = requests.map(|request| made_ready(claim, request, inventory, features)).collect::<Result<_, _>>()?;
    Ok(Wanted { claim, requests })
}

fn made_ready<'a>(
    claim: &ResourceClaim,
    request: &'a DeviceRequest,
    inventory: &dyn Inventory,
    features: Features,
) -> Result<Request<'a>, AllocateError> {
    let failed = |what: String| AllocateError::failed(claim, &request.name, &what);
    let class_of = |name: &str| {
        let found = inventory.class(name);
        let missing =
            || format!("could not retrieve device class {name}: deviceclass.resource.k8s.io {name:?} not found");
        found.ok_or_else(|| failed(missing()))
    };
    let count_of = |mode: &str, count: i64| (mode != ALL_FITTING).then(|| usize::try_from(count).unwrap_or(0).max(1));
    let mut parts = Vec::new();
    if let Some(exact) = &request.exactly {
        let is_admin = exact.admin_access == Some(true);
        if is_admin && !features.admin_access {
            return Err(failed("admin access is requested, but the feature is disabled".to_owned()));
        }
        parts.push(Part {
            name: request.name.clone(),
            class: class_of(&exact.device_class_name)?,
            selectors: &exact.selectors,
            tolerations: &exact.tolerations,
            capacity: exact.capacity.as_ref(),
            is_admin,
            count: count_of(&exact.allocation_mode, exact.count),
        });
    } else if !features.prioritized_list {
        return Err(failed("has subrequests, but the DRAPrioritizedList feature is disabled".to_owned()));
    }
    for own in request.first_available.iter().filter(|_| request.exactly.is_none()) {
        parts.push(Part {
            name: format!("{}/{}", request.name, own.name),
            class: class_of(&own.device_class_name)?,
            selectors: &own.selectors,
            tolerations: &own.tolerations,
            capacity: own.capacity.as_ref(),
            is_admin: false,
            count: count_of(&own.allocation_mode, own.count),
        });
    }
    if parts.is_empty() {
        return Err(failed("unknown request type".to_owned()));
    }
    Ok(Request { name: &request.name, parts })
}
