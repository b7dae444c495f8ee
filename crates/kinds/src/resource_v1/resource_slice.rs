//! ResourceSlice of resource.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::time::Time;
use api_types::resource_v1::{DeviceTaint, ResourceSlice};
use feature_gates::MinorVersion;

use super::{slice_fields, slice_validation};
use crate::gated::Gated;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;

const NODE_NAME: &str = "spec.nodeName";
const DRIVER: &str = "spec.driver";

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ResourceSlice>("resourceslices", "KsC072WgaEY=")),
    unconditional_update: true,
    field_selectors: &[DRIVER, NODE_NAME],
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<ResourceSlice>()
};

/// The rules of the kind.
pub(crate) struct ResourceSliceRules;

impl TypedRules for ResourceSliceRules {
    type Object = ResourceSlice;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ResourceSlice>] = &[
        Cell::NAME,
        Cell::text("Node", |slice, _| node(slice).into()),
        Cell::text("Driver", |slice, _| slice.spec.driver.clone().into()),
        Cell::text("Pool", |slice, _| slice.spec.pool.name.clone().into()),
        Cell::AGE,
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Generation;
    const GATED: &'static [Gated<ResourceSlice>] = slice_fields::OF_SLICE;

    fn prepare_create(cx: &RuleContext, object: &mut ResourceSlice) {
        date_taints(object, cx.now);
    }

    fn prepare_update(cx: &RuleContext, _: Endpoint, object: &mut ResourceSlice, _: &ResourceSlice) {
        date_taints(object, cx.now);
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ResourceSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        slice_validation::validate(&Path::new("spec"), &object.spec, None, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &ResourceSlice, old: &ResourceSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        slice_validation::validate(&Path::new("spec"), &object.spec, Some(&old.spec), &mut errors);
        errors
    }

    fn warnings(object: &ResourceSlice, _: Option<&ResourceSlice>) -> Vec<String> {
        let driver = &object.spec.driver;
        let shouts = driver.chars().any(char::is_uppercase);
        let text =
            || format!("spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters");
        shouts.then(text).into_iter().collect()
    }

    fn unknown_field(field: &str) -> String {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
    }

    fn field(object: &ResourceSlice, path: &str) -> Option<String> {
        match path {
            NODE_NAME => Some(node(object)),
            DRIVER => Some(object.spec.driver.clone()),
            _ => None,
        }
    }
}

fn node(slice: &ResourceSlice) -> String {
    slice.spec.node_name.clone().unwrap_or_default()
}

/// A taint of which nobody says since when it is there is there since now.
pub(crate) fn date_taint(taint: &mut DeviceTaint, now: Time) {
    taint.time_added.get_or_insert(now);
}

fn date_taints(slice: &mut ResourceSlice, now: Time) {
    slice.spec.devices.iter_mut().flat_map(|device| &mut device.taints).for_each(|taint| date_taint(taint, now));
}
