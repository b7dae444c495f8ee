//! PersistentVolumeClaim of core/v1: its names, and its rules.

use super::claim_validation;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_types::core_v1::PersistentVolumeClaim;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::defaults::round_up;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pvc"],
    storage: Some(StorageInfo::of::<PersistentVolumeClaim>("persistentvolumeclaims", "QWTyNDq0dC4=")),
    unconditional_update: true,
    columns: &[
        Column::NAME,
        Column::text("Status"),
        Column::text("Volume"),
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::AGE,
        Column::wide("VolumeMode"),
    ],
    subresources: &[SubresourceInfo::status("PersistentVolumeClaim")],
    ..ResourceInfo::of::<PersistentVolumeClaim>()
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeClaimRules;

impl TypedRules for PersistentVolumeClaimRules {
    type Object = PersistentVolumeClaim;
    const INFO: &'static ResourceInfo<'static> = &INFO;
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

    fn cells(object: &PersistentVolumeClaim, now: Time) -> Vec<Value> {
        let (spec, status) = (&object.spec, &object.status);
        let deleting = object.metadata.deletion_timestamp.is_some();
        let phase = if deleting { "Terminating" } else { status.phase.as_str() };
        let bound = !spec.volume_name.is_empty();
        // A claim that names its volume shows `0` until the volume is its own.
        let capacity = if bound { table::storage(&status.capacity) } else { String::new() };
        let modes = if bound { table::joined(table::access_modes(&status.access_modes), ",") } else { String::new() };
        vec![
            object.metadata.name.clone().into(),
            phase.into(),
            spec.volume_name.clone().into(),
            capacity.into(),
            modes.into(),
            table::class_of(&object.metadata, spec.storage_class_name.as_deref()).into(),
            spec.volume_attributes_class_name.clone().unwrap_or_else(|| "<unset>".into()).into(),
            table::age(&object.metadata, now),
            spec.volume_mode.clone().unwrap_or_else(|| "<unset>".into()).into(),
        ]
    }
}
