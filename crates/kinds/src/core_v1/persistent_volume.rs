//! PersistentVolume of core/v1: its names, and its rules.

use super::{volume_validation, volume_warnings};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_types::core_v1::PersistentVolume;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::defaults::round_up;
use crate::strategy::Strategy;
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pv"],
    storage: Some(StorageInfo::of::<PersistentVolume>("persistentvolumes", "HN/zwEC+JgM=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("PersistentVolume")],
    ..ResourceInfo::of::<PersistentVolume>()
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeRules;

impl TypedRules for PersistentVolumeRules {
    type Object = PersistentVolume;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PersistentVolume>] = &[
        Cell::NAME,
        Cell::text("Capacity", |object, _| table::storage(&object.spec.capacity).into()),
        Cell::text("Access Modes", |object, _| table::access_modes(&object.spec.access_modes).into()),
        Cell::text("Reclaim Policy", |object, _| object.spec.persistent_volume_reclaim_policy.clone().into()),
        Cell::text("Status", |object, _| table::phase(&object.metadata, &object.status.phase)),
        Cell::text("Claim", |object, _| claim(object).into()),
        Cell::text("StorageClass", |object, _| {
            table::class_of(&object.metadata, Some(&object.spec.storage_class_name)).into()
        }),
        Cell::text("VolumeAttributesClass", |object, _| {
            table::or_unset(object.spec.volume_attributes_class_name.as_deref())
        }),
        Cell::text("Reason", |object, _| object.status.reason.clone().into()),
        Cell::AGE,
        Cell::wide("VolumeMode", |object, _| table::or_unset(object.spec.volume_mode.as_deref())),
    ];
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
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &PersistentVolume,
        old: &PersistentVolume,
    ) -> ErrorList {
        match endpoint {
            Endpoint::Status => ErrorList::new(),
            Endpoint::Main | Endpoint::Other(_) => volume_validation::validate_update(object, old, &cx.gates),
        }
    }

    fn warnings(object: &PersistentVolume, _: Option<&PersistentVolume>) -> Vec<String> {
        volume_warnings::of(object)
    }
}

fn claim(volume: &PersistentVolume) -> String {
    let claim = volume.spec.claim_ref.as_ref();
    claim.map(|claim| format!("{}/{}", claim.namespace, claim.name)).unwrap_or_default()
}
