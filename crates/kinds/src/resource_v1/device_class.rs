//! DeviceClass of resource.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_types::resource_v1::DeviceClass;
use feature_gates::MinorVersion;

use super::claim_validation::validate_configuration;
use super::selector::{self, Reading};
use super::values::fits;
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::validation::is_extended;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;

const CONFIG_MAX: usize = 32;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<DeviceClass>("deviceclasses", "Yk2PTc1Ybxk=")),
    unconditional_update: true,
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<DeviceClass>()
};

/// The rules of the kind.
pub(crate) struct DeviceClassRules;

impl TypedRules for DeviceClassRules {
    type Object = DeviceClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<DeviceClass>] = &[Cell::NAME, Cell::AGE];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const STRATEGY: Strategy = Strategy::Generation;
    const GATED: &'static [Gated<DeviceClass>] = &[Gated {
        features: &[gates::EXTENDED_RESOURCE],
        used: |class| class.spec.extended_resource_name.is_some(),
        drop: |class| class.spec.extended_resource_name = None,
    }];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        if prefix { names::long_name(&names::mask_trailing_dash(name)) } else { names::long_name(name) }
    }

    fn validate(cx: &RuleContext, object: &DeviceClass) -> ErrorList {
        validate_over(cx, object, None)
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &DeviceClass, old: &DeviceClass) -> ErrorList {
        validate_over(cx, object, Some(old))
    }
}

fn validate_over(cx: &RuleContext, object: &DeviceClass, old: Option<&DeviceClass>) -> ErrorList {
    let (mut errors, path, spec) = (ErrorList::new(), Path::new("spec"), &object.spec);
    let stored = old.is_some_and(|old| equal(&old.spec.selectors, &spec.selectors));
    selector::validate(&path.child("selectors"), &spec.selectors, Reading { stored, gates: &cx.gates }, &mut errors);
    let at = path.child("config");
    if fits(&at, &spec.config, CONFIG_MAX, &mut errors) {
        let unchanged = old.is_some_and(|old| equal(&old.spec.config, &spec.config));
        for (index, config) in spec.config.iter().enumerate() {
            validate_configuration(&at.index(index), &config.device_configuration, unchanged, &mut errors);
        }
    }
    if let Some(name) = spec.extended_resource_name.as_ref().filter(|name| !is_extended(name)) {
        errors.push(path.child("extendedResourceName").invalid(name, "must be a valid extended resource name"));
    }
    errors
}
