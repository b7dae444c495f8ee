//! VolumeAttributesClass of storage.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::storage_v1::VolumeAttributesClass;
use feature_gates::MinorVersion;

use super::parameters;
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["vac"],
    storage: Some(StorageInfo::of::<VolumeAttributesClass>("volumeattributesclasses", "tIjydgKBC5w=")),
    unconditional_update: true,
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<VolumeAttributesClass>()
};

/// The rules of the kind.
pub(crate) struct VolumeAttributesClassRules;

impl TypedRules for VolumeAttributesClassRules {
    type Object = VolumeAttributesClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<VolumeAttributesClass>] =
        &[Cell::NAME, Cell::text("DriverName", |class, _| class.driver_name.clone().into()), Cell::AGE];
    const FORMER: &'static [Former] = &[Former::same("storage.k8s.io/v1alpha1")];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &VolumeAttributesClass) -> ErrorList {
        let mut errors = ErrorList::new();
        let driver = object.driver_name.to_lowercase();
        field_rules::named(&Path::new("driverName"), &driver, names::qualified_name, &mut errors);
        if parameters::validate(&object.parameters, &mut errors) && object.parameters.is_empty() {
            errors.push(Path::new("parameters").required("must contain at least one key/value pair"));
        }
        errors
    }

    fn validate_update(
        cx: &RuleContext,
        _: Endpoint,
        object: &VolumeAttributesClass,
        old: &VolumeAttributesClass,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.driver_name != old.driver_name {
            errors.push(Path::new("driverName").forbidden("updates to driverName are forbidden."));
        }
        if object.parameters != old.parameters {
            errors.push(Path::new("parameters").forbidden("updates to parameters are forbidden."));
        }
        errors.extend(Self::validate(cx, object));
        errors
    }
}
