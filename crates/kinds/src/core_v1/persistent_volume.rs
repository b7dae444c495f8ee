//! PersistentVolume of core/v1: its names, and its rules.

use super::{volume_validation, volume_warnings};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_types::core_v1::PersistentVolume;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::defaults::round_up;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pv"],
    storage: Some(StorageInfo::of::<PersistentVolume>("persistentvolumes", "HN/zwEC+JgM=")),
    unconditional_update: true,
    columns: &[
        Column::NAME,
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("Reclaim Policy"),
        Column::text("Status"),
        Column::text("Claim"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::text("Reason"),
        Column::AGE,
        Column::wide("VolumeMode"),
    ],
    subresources: &[SubresourceInfo::status("PersistentVolume")],
    ..ResourceInfo::of::<PersistentVolume>()
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeRules;

impl TypedRules for PersistentVolumeRules {
    type Object = PersistentVolume;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create, MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Status;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut PersistentVolume) {
        round_up([&mut object.spec.capacity]);
    }

    fn prepare_create(cx: &RuleContext, object: &mut PersistentVolume) {
        object.status.phase = "Pending".into();
        object.status.last_phase_transition_time = Some(cx.now);
    }

    fn validate(_: &RuleContext, object: &PersistentVolume) -> ErrorList {
        volume_validation::validate(object)
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut PersistentVolume, old: &PersistentVolume) {
        if endpoint != Endpoint::Status {
            return;
        }
        let (new, stored) = (&mut object.status, &old.status);
        let said = new.last_phase_transition_time;
        if new.phase == stored.phase {
            new.last_phase_transition_time = said.or(stored.last_phase_transition_time);
        } else if said.is_none() || said == stored.last_phase_transition_time {
            new.last_phase_transition_time = Some(cx.now);
        }
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &PersistentVolume,
        old: &PersistentVolume,
    ) -> ErrorList {
        match endpoint {
            Endpoint::Status => ErrorList::new(),
            Endpoint::Main | Endpoint::Other(_) => volume_validation::validate_update(object, old),
        }
    }

    fn warnings(object: &PersistentVolume, _: Option<&PersistentVolume>) -> Vec<String> {
        volume_warnings::of(object)
    }

    fn cells(object: &PersistentVolume, now: Time) -> Vec<Value> {
        let spec = &object.spec;
        let capacity = table::storage(&spec.capacity);
        let deleting = object.metadata.deletion_timestamp.is_some();
        let phase = if deleting { "Terminating" } else { object.status.phase.as_str() };
        let claim =
            spec.claim_ref.as_ref().map(|claim| format!("{}/{}", claim.namespace, claim.name)).unwrap_or_default();
        vec![
            object.metadata.name.clone().into(),
            capacity.into(),
            table::joined(table::access_modes(&spec.access_modes), ",").into(),
            spec.persistent_volume_reclaim_policy.clone().into(),
            phase.into(),
            claim.into(),
            table::class_of(&object.metadata, Some(&spec.storage_class_name)).into(),
            spec.volume_attributes_class_name.clone().unwrap_or_else(|| "<unset>".into()).into(),
            object.status.reason.clone().into(),
            table::age(&object.metadata, now),
            spec.volume_mode.clone().unwrap_or_else(|| "<unset>".into()).into(),
        ]
    }
}
