//! PersistentVolumeClaim of core/v1: its names, and its rules.

use super::claim_validation;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_machinery::value::Value;
use api_types::core_v1::PersistentVolumeClaim;

use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::defaults::round_up;
use crate::strategy::Strategy;
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pvc"],
    storage: Some(StorageInfo::of::<PersistentVolumeClaim>("persistentvolumeclaims", "QWTyNDq0dC4=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("PersistentVolumeClaim")],
    ..ResourceInfo::of::<PersistentVolumeClaim>()
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeClaimRules;

impl TypedRules for PersistentVolumeClaimRules {
    type Object = PersistentVolumeClaim;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PersistentVolumeClaim>] = &[
        Cell::NAME,
        Cell::text("Status", |object, _| table::phase(&object.metadata, &object.status.phase)),
        Cell::text("Volume", |object, _| object.spec.volume_name.clone().into()),
        Cell::text("Capacity", |object, _| if_bound(object, table::storage(&object.status.capacity))),
        Cell::text("Access Modes", |object, _| if_bound(object, table::access_modes(&object.status.access_modes))),
        Cell::text("StorageClass", |object, _| {
            table::class_of(&object.metadata, object.spec.storage_class_name.as_deref()).into()
        }),
        Cell::text("VolumeAttributesClass", |object, _| {
            table::or_unset(object.spec.volume_attributes_class_name.as_deref())
        }),
        Cell::AGE,
        Cell::wide("VolumeMode", |object, _| table::or_unset(object.spec.volume_mode.as_deref())),
    ];
    const GATED: &'static [Gated<PersistentVolumeClaim>] = &[Gated {
        features: &[gates::CROSS_NAMESPACE_SOURCE],
        // As upstream: what is stored with any source is compared as it is written.
        used: |claim| claim.spec.data_source.is_some() || claim.spec.data_source_ref.is_some(),
        drop: |claim| claim.spec.data_source_ref = claim.spec.data_source_ref.take().filter(claim_validation::is_local),
    }];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const STRATEGY: Strategy = Strategy::Status;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut PersistentVolumeClaim) {
        let (resources, status) = (&mut object.spec.resources, &mut object.status);
        round_up([&mut resources.limits, &mut resources.requests]);
        round_up([&mut status.capacity, &mut status.allocated_resources]);
    }

    fn prepare_create(_: &RuleContext, object: &mut PersistentVolumeClaim) {
        object.status.phase = "Pending".into();
        claim_validation::settle_sources(&mut object.spec, None);
    }

    fn validate(_: &RuleContext, object: &PersistentVolumeClaim) -> ErrorList {
        claim_validation::validate(object)
    }

    fn prepare_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &mut PersistentVolumeClaim,
        old: &PersistentVolumeClaim,
    ) {
        if endpoint != Endpoint::Status {
            claim_validation::settle_sources(&mut object.spec, Some(&old.spec));
        }
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &PersistentVolumeClaim,
        old: &PersistentVolumeClaim,
    ) -> ErrorList {
        match endpoint {
            Endpoint::Status => claim_validation::validate_status(object),
            _ => claim_validation::validate_update(object, old),
        }
    }

    fn warnings(object: &PersistentVolumeClaim, _: Option<&PersistentVolumeClaim>) -> Vec<String> {
        claim_validation::warnings(object)
    }
}

/// What the status says of a volume that is the claim's own.
fn if_bound(claim: &PersistentVolumeClaim, text: String) -> Value {
    if claim.spec.volume_name.is_empty() { "".into() } else { text.into() }
}
