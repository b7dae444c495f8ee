//! What claims ask for, made ready for the search.

use std::sync::Arc;

use api_types::resource_v1::constants::device_allocation_mode::ALL_FITTING;
use api_types::resource_v1::{CapacityRequirements, DeviceClass, DeviceRequest, DeviceToleration, ResourceClaim};

use crate::allocator::{AllocateError, Inventory};
use crate::features::Features;
use crate::pools::Slices;
use crate::verdicts::Expression;

/// A claim and what it asks for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) claim: &'a ResourceClaim,
    pub(crate) requests: &'a [Request],
}

/// A request: what it asks for, the best first. Without alternatives it is one.
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
}

/// What a request, or one of its alternatives, asks for.
pub(crate) struct Part {
    /// `request`, or `request/alternative`.
    pub(crate) name: String,
    pub(crate) class: Arc<DeviceClass>,
    /// The class's expressions.
    pub(crate) of_class: Vec<Option<Expression>>,
    /// Its own.
    pub(crate) of_request: Vec<Option<Expression>>,
    pub(crate) tolerations: Vec<DeviceToleration>,
    pub(crate) capacity: Option<CapacityRequirements>,
    pub(crate) is_admin: bool,
    /// So many devices; none for all that fit.
    pub(crate) count: Option<usize>,
}

/// `namespace/name`, as texts name a claim.
pub(crate) fn full_name(claim: &ResourceClaim) -> String {
    format!("{}/{}", claim.metadata.namespace, claim.metadata.name)
}

/// The requests of a claim, to be served of what is offered.
pub(crate) fn requests_of(
    claim: &ResourceClaim,
    offered: &Slices,
    inventory: &dyn Inventory,
    features: Features,
) -> Result<Vec<Request>, AllocateError> {
    let requests = claim.spec.devices.requests.iter();
    requests.map(|request| made_ready(claim, request, offered, inventory, features)).collect()
}

fn made_ready(
    claim: &ResourceClaim,
    request: &DeviceRequest,
    offered: &Slices,
    inventory: &dyn Inventory,
    features: Features,
) -> Result<Request, AllocateError> {
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
        let class = class_of(&exact.device_class_name)?;
        parts.push(Part {
            name: request.name.clone(),
            of_class: offered.expressions(&class.spec.selectors),
            of_request: offered.expressions(&exact.selectors),
            class,
            tolerations: exact.tolerations.clone(),
            capacity: exact.capacity.clone(),
            is_admin,
            count: count_of(&exact.allocation_mode, exact.count),
        });
    } else if !features.prioritized_list {
        return Err(failed("has subrequests, but the DRAPrioritizedList feature is disabled".to_owned()));
    }
    for own in request.first_available.iter().filter(|_| request.exactly.is_none()) {
        let class = class_of(&own.device_class_name)?;
        parts.push(Part {
            name: format!("{}/{}", request.name, own.name),
            of_class: offered.expressions(&class.spec.selectors),
            of_request: offered.expressions(&own.selectors),
            class,
            tolerations: own.tolerations.clone(),
            capacity: own.capacity.clone(),
            is_admin: false,
            count: count_of(&own.allocation_mode, own.count),
        });
    }
    if parts.is_empty() {
        return Err(failed("unknown request type".to_owned()));
    }
    Ok(Request { name: request.name.clone(), parts })
}
