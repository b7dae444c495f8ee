//! The fields of claims that came with features, in the specs of claims and of their templates.

use api_types::resource_v1::{
    CapacityRequirements, DeviceRequest, DeviceSubRequest, DeviceToleration, ExactDeviceRequest, ResourceClaim,
    ResourceClaimSpec, ResourceClaimTemplate,
};

use crate::gated::Gated;
use crate::gates;

/// Fields of a spec.
struct Fields {
    used: fn(&ResourceClaimSpec) -> bool,
    drop: fn(&mut ResourceClaimSpec),
}

fn exact(spec: &ResourceClaimSpec) -> impl Iterator<Item = &ExactDeviceRequest> {
    spec.devices.requests.iter().filter_map(|request| request.exactly.as_ref())
}

fn alternatives(spec: &ResourceClaimSpec) -> impl Iterator<Item = &DeviceSubRequest> {
    spec.devices.requests.iter().flat_map(|request| &request.first_available)
}

fn each_asked(spec: &mut ResourceClaimSpec, change: fn(&mut Vec<DeviceToleration>, &mut Option<CapacityRequirements>)) {
    for DeviceRequest { exactly, first_available, .. } in &mut spec.devices.requests {
        if let Some(exactly) = exactly {
            change(&mut exactly.tolerations, &mut exactly.capacity);
        }
        first_available.iter_mut().for_each(|own| change(&mut own.tolerations, &mut own.capacity));
    }
}

const ADMIN_ACCESS: Fields = Fields {
    used: |spec| exact(spec).any(|request| request.admin_access.is_some()),
    drop: |spec| {
        let requests = spec.devices.requests.iter_mut().filter_map(|request| request.exactly.as_mut());
        requests.for_each(|request| request.admin_access = None);
    },
};

const ALTERNATIVES: Fields = Fields {
    used: |spec| alternatives(spec).next().is_some(),
    drop: |spec| spec.devices.requests.iter_mut().for_each(|request| request.first_available.clear()),
};

const TOLERATIONS: Fields = Fields {
    used: |spec| {
        let all = exact(spec).map(|own| &own.tolerations).chain(alternatives(spec).map(|own| &own.tolerations));
        all.into_iter().any(|own| !own.is_empty())
    },
    drop: |spec| each_asked(spec, |tolerations, _| tolerations.clear()),
};

const SHARES: Fields = Fields {
    used: |spec| {
        let mut asked = exact(spec).map(|own| &own.capacity).chain(alternatives(spec).map(|own| &own.capacity));
        let distinct = spec.devices.constraints.iter().any(|own| own.distinct_attribute.is_some());
        distinct || asked.any(Option::is_some)
    },
    drop: |spec| {
        each_asked(spec, |_, capacity| *capacity = None);
        spec.devices.constraints.iter_mut().for_each(|own| own.distinct_attribute = None);
    },
};

/// The fields of claims.
pub(super) const OF_CLAIM: &[Gated<ResourceClaim>] = &[
    Gated {
        features: &[gates::ADMIN_ACCESS],
        used: |claim| (ADMIN_ACCESS.used)(&claim.spec) || results(claim).any(|own| own.admin_access.is_some()),
        drop: |claim| {
            (ADMIN_ACCESS.drop)(&mut claim.spec);
            results_mut(claim).for_each(|own| own.admin_access = None);
        },
    },
    Gated {
        features: &[gates::PRIORITIZED_LIST],
        used: |claim| (ALTERNATIVES.used)(&claim.spec),
        drop: |claim| (ALTERNATIVES.drop)(&mut claim.spec),
    },
    Gated {
        features: &[gates::DEVICE_TAINTS],
        used: |claim| (TOLERATIONS.used)(&claim.spec) || results(claim).any(|own| !own.tolerations.is_empty()),
        drop: |claim| {
            (TOLERATIONS.drop)(&mut claim.spec);
            results_mut(claim).for_each(|own| own.tolerations.clear());
        },
    },
    Gated { features: &[gates::CONSUMABLE_CAPACITY], used: has_shares, drop: drop_shares },
    Gated {
        features: &[gates::BINDING_CONDITIONS, gates::DEVICE_STATUS],
        used: |claim| {
            let waits = |own: &Result| !own.binding_conditions.is_empty() || !own.binding_failure_conditions.is_empty();
            let allocation = claim.status.allocation.as_ref();
            allocation.is_some_and(|own| own.allocation_timestamp.is_some()) || results(claim).any(waits)
        },
        drop: |claim| {
            claim.status.allocation.iter_mut().for_each(|own| own.allocation_timestamp = None);
            results_mut(claim).for_each(|own| {
                own.binding_conditions.clear();
                own.binding_failure_conditions.clear();
            });
        },
    },
    Gated {
        features: &[gates::DEVICE_STATUS],
        used: |claim| !claim.status.devices.is_empty(),
        drop: |claim| claim.status.devices.clear(),
    },
];

type Result = api_types::resource_v1::DeviceRequestAllocationResult;

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &Result> {
    claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results)
}

fn results_mut(claim: &mut ResourceClaim) -> impl Iterator<Item = &mut Result> {
    claim.status.allocation.iter_mut().flat_map(|allocation| &mut allocation.devices.results)
}

fn has_shares(claim: &ResourceClaim) -> bool {
    let shared = |own: &Result| own.share_id.is_some() || !own.consumed_capacity.is_empty();
    let described = claim.status.devices.iter().any(|own| own.share_id.is_some());
    (SHARES.used)(&claim.spec) || described || results(claim).any(shared)
}

fn drop_shares(claim: &mut ResourceClaim) {
    (SHARES.drop)(&mut claim.spec);
    claim.status.devices.iter_mut().for_each(|own| own.share_id = None);
    results_mut(claim).for_each(|own| {
        own.share_id = None;
        own.consumed_capacity.clear();
    });
}

/// The fields of templates.
pub(super) const OF_TEMPLATE: &[Gated<ResourceClaimTemplate>] = &[
    Gated {
        features: &[gates::ADMIN_ACCESS],
        used: |template| (ADMIN_ACCESS.used)(&template.spec.spec),
        drop: |template| (ADMIN_ACCESS.drop)(&mut template.spec.spec),
    },
    Gated {
        features: &[gates::PRIORITIZED_LIST],
        used: |template| (ALTERNATIVES.used)(&template.spec.spec),
        drop: |template| (ALTERNATIVES.drop)(&mut template.spec.spec),
    },
    Gated {
        features: &[gates::DEVICE_TAINTS],
        used: |template| (TOLERATIONS.used)(&template.spec.spec),
        drop: |template| (TOLERATIONS.drop)(&mut template.spec.spec),
    },
    Gated {
        features: &[gates::CONSUMABLE_CAPACITY],
        used: |template| (SHARES.used)(&template.spec.spec),
        drop: |template| (SHARES.drop)(&mut template.spec.spec),
    },
];
