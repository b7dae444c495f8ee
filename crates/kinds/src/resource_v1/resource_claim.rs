//! ResourceClaim of resource.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::reflect::equal;
use api_types::resource_v1::constants::device_allocation_mode::EXACT_COUNT;
use api_types::resource_v1::{ResourceClaim, ResourceClaimSpec};
use feature_gates::MinorVersion;

use super::selector::Reading;
use super::{admin_access, claim_fields, claim_validation, status_validation};
use crate::gated::Gated;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::{field_rules as rules, internal_json};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ResourceClaim>("resourceclaims", "wgAZaHcZxUg=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("ResourceClaim")],
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<ResourceClaim>()
};

/// The rules of the kind.
pub(crate) struct ResourceClaimRules;

impl TypedRules for ResourceClaimRules {
    type Object = ResourceClaim;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ResourceClaim>] =
        &[Cell::NAME, Cell::text("State", |claim, _| state(claim).into()), Cell::AGE];
    const GATED: &'static [Gated<ResourceClaim>] = claim_fields::OF_CLAIM;
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    fn set_defaults(object: &mut ResourceClaim) {
        set_counts(&mut object.spec);
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut ResourceClaim, old: &ResourceClaim) {
        if endpoint == Endpoint::Status {
            forget_freed(object, old);
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &ResourceClaim) -> ErrorList {
        let mut errors = ErrorList::new();
        admin_access::validate(cx, &object.spec, &mut errors);
        let reading = Reading { stored: false, gates: &cx.gates };
        claim_validation::validate(&Path::new("spec"), &object.spec, reading, &mut errors);
        errors
    }

    fn reads_namespace(object: &ResourceClaim) -> bool {
        admin_access::is_asked(&object.spec) || admin_access::is_granted(object)
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &ResourceClaim, old: &ResourceClaim) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            admin_access::validate_granted(cx, object, old, &mut errors);
            status_validation::validate(object, old, &mut errors);
        } else if !equal(&object.spec, &old.spec) {
            errors.push(Path::new("spec").invalid(internal_json::bad_value(&object.spec), rules::IMMUTABLE));
        }
        errors
    }
}

/// Who asks for an exact number of devices without saying how many asks for one.
pub(super) fn set_counts(spec: &mut ResourceClaimSpec) {
    for request in &mut spec.devices.requests {
        let exactly = request.exactly.iter_mut().map(|own| (&own.allocation_mode, &mut own.count));
        let alternatives = request.first_available.iter_mut().map(|own| (&own.allocation_mode, &mut own.count));
        for (mode, count) in exactly.chain(alternatives) {
            if mode == EXACT_COUNT && *count == 0 {
                *count = 1;
            }
        }
    }
}

/// What was told of devices goes with them.
fn forget_freed(object: &mut ResourceClaim, old: &ResourceClaim) {
    let kept = status_validation::devices(object);
    let freed: Vec<_> = status_validation::devices(old).into_iter().filter(|id| !kept.contains(id)).collect();
    let mut devices = std::mem::take(&mut object.status.devices);
    devices.retain(|device| !freed.contains(&status_validation::described(device)));
    object.status.devices = devices;
}

fn state(claim: &ResourceClaim) -> String {
    let mut states = Vec::new();
    if claim.metadata.deletion_timestamp.is_some() {
        states.push("deleted");
    }
    match &claim.status.allocation {
        Some(_) => {
            states.push("allocated");
            if !claim.status.reserved_for.is_empty() {
                states.push("reserved");
            }
        }
        None if states.is_empty() => states.push("pending"),
        None => {}
    }
    states.join(",")
}
