//! ResourceClaim and ResourceClaimTemplate of resource.k8s.io/v1beta1: their names, and the way to the stored form and
//! back.

use api_machinery::object::Kind;
use api_types::resource_v1 as stored;
use api_types::resource_v1::constants::device_allocation_mode::EXACT_COUNT;
use api_types::resource_v1beta1::{
    DeviceClaim, DeviceRequest, DeviceSubRequest, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
};

use super::INTRODUCED;
use crate::info::ResourceInfo;
use crate::other_form::OtherForm;
use crate::resource_v1::{ResourceClaimRules, ResourceClaimTemplateRules};
use crate::rules::TypedRules;

static CLAIM: ResourceInfo<'static> =
    ResourceInfo { version: ResourceClaim::TYPE.version, introduced: INTRODUCED, ..*ResourceClaimRules::INFO };

static TEMPLATE: ResourceInfo<'static> = ResourceInfo {
    version: ResourceClaimTemplate::TYPE.version,
    introduced: INTRODUCED,
    ..*ResourceClaimTemplateRules::INFO
};

/// Claims whose requests have one form.
pub(super) struct FirstClaim;

impl OtherForm for FirstClaim {
    type Served = ResourceClaim;
    type Stored = ResourceClaimRules;
    const INFO: &'static ResourceInfo<'static> = &CLAIM;

    fn set_defaults(object: &mut ResourceClaim) {
        set_defaults(&mut object.spec);
    }

    fn to_stored(served: &ResourceClaim) -> stored::ResourceClaim {
        let (metadata, status) = (served.metadata.clone(), served.status.clone());
        stored::ResourceClaim { metadata, spec: stored_spec(served.spec.clone()), status }
    }

    fn to_served(from: &stored::ResourceClaim) -> ResourceClaim {
        let (metadata, status) = (from.metadata.clone(), from.status.clone());
        ResourceClaim { metadata, spec: first_spec(from.spec.clone()), status }
    }
}

/// Templates of such claims.
pub(super) struct FirstTemplate;

impl OtherForm for FirstTemplate {
    type Served = ResourceClaimTemplate;
    type Stored = ResourceClaimTemplateRules;
    const INFO: &'static ResourceInfo<'static> = &TEMPLATE;

    fn set_defaults(object: &mut ResourceClaimTemplate) {
        set_defaults(&mut object.spec.spec);
    }

    fn to_stored(served: &ResourceClaimTemplate) -> stored::ResourceClaimTemplate {
        let ResourceClaimTemplateSpec { metadata, spec } = served.spec.clone();
        let spec = stored::ResourceClaimTemplateSpec { metadata, spec: stored_spec(spec) };
        stored::ResourceClaimTemplate { metadata: served.metadata.clone(), spec }
    }

    fn to_served(from: &stored::ResourceClaimTemplate) -> ResourceClaimTemplate {
        let stored::ResourceClaimTemplateSpec { metadata, spec } = from.spec.clone();
        let spec = ResourceClaimTemplateSpec { metadata, spec: first_spec(spec) };
        ResourceClaimTemplate { metadata: from.metadata.clone(), spec }
    }
}

/// A request without alternatives asks for one device unless it says otherwise.
fn set_defaults(spec: &mut ResourceClaimSpec) {
    for request in &mut spec.devices.requests {
        if !request.first_available.is_empty() {
            continue;
        }
        if request.allocation_mode.is_empty() {
            EXACT_COUNT.clone_into(&mut request.allocation_mode);
        }
        if request.allocation_mode == EXACT_COUNT && request.count == 0 {
            request.count = 1;
        }
    }
}

fn stored_spec(spec: ResourceClaimSpec) -> stored::ResourceClaimSpec {
    let DeviceClaim { requests, constraints, config } = spec.devices;
    let requests = requests.into_iter().map(stored_request).collect();
    stored::ResourceClaimSpec { devices: stored::DeviceClaim { requests, constraints, config } }
}

fn first_spec(spec: stored::ResourceClaimSpec) -> ResourceClaimSpec {
    let stored::DeviceClaim { requests, constraints, config } = spec.devices;
    let requests = requests.into_iter().map(first_request).collect();
    ResourceClaimSpec { devices: DeviceClaim { requests, constraints, config } }
}

/// Whether a request says more than its name and its alternatives.
fn asks(request: &DeviceRequest) -> bool {
    !(request.device_class_name.is_empty()
        && request.selectors.is_empty()
        && request.allocation_mode.is_empty()
        && request.count == 0
        && request.admin_access.is_none()
        && request.tolerations.is_empty()
        && request.capacity.is_none())
}

fn stored_request(request: DeviceRequest) -> stored::DeviceRequest {
    let asks = asks(&request);
    let exactly = stored::ExactDeviceRequest {
        device_class_name: request.device_class_name,
        selectors: request.selectors,
        allocation_mode: request.allocation_mode,
        count: request.count,
        admin_access: request.admin_access,
        tolerations: request.tolerations,
        capacity: request.capacity,
    };
    stored::DeviceRequest {
        name: request.name,
        exactly: asks.then_some(exactly),
        first_available: request.first_available.into_iter().map(stored_alternative).collect(),
    }
}

fn first_request(request: stored::DeviceRequest) -> DeviceRequest {
    let exactly = request.exactly.unwrap_or_default();
    DeviceRequest {
        name: request.name,
        device_class_name: exactly.device_class_name,
        selectors: exactly.selectors,
        allocation_mode: exactly.allocation_mode,
        count: exactly.count,
        admin_access: exactly.admin_access,
        first_available: request.first_available.into_iter().map(first_alternative).collect(),
        tolerations: exactly.tolerations,
        capacity: exactly.capacity,
    }
}

fn stored_alternative(own: DeviceSubRequest) -> stored::DeviceSubRequest {
    stored::DeviceSubRequest {
        name: own.name,
        device_class_name: own.device_class_name,
        selectors: own.selectors,
        allocation_mode: own.allocation_mode,
        count: own.count,
        tolerations: own.tolerations,
        capacity: own.capacity,
    }
}

fn first_alternative(own: stored::DeviceSubRequest) -> DeviceSubRequest {
    DeviceSubRequest {
        name: own.name,
        device_class_name: own.device_class_name,
        selectors: own.selectors,
        allocation_mode: own.allocation_mode,
        count: own.count,
        tolerations: own.tolerations,
        capacity: own.capacity,
    }
}
