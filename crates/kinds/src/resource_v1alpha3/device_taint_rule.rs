//! DeviceTaintRule of resource.k8s.io/v1alpha3: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_types::resource_v1alpha3::DeviceTaintRule;
use feature_gates::MinorVersion;

use crate::conditions;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::resource_v1::{date_taint, driver, label, pool, validate_taint};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{Cell, since};

const CONDITIONS_MAX: usize = 8;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<DeviceTaintRule>("devicetaintrules", "DJ3UJ0fj8MI=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("DeviceTaintRule")],
    introduced: MinorVersion::one(33),
    ..ResourceInfo::of::<DeviceTaintRule>()
};

/// The rules of the kind.
pub(crate) struct DeviceTaintRuleRules;

impl TypedRules for DeviceTaintRuleRules {
    type Object = DeviceTaintRule;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<DeviceTaintRule>] = &[
        Cell::NAME,
        Cell::text("Key", |rule, _| rule.spec.taint.key.clone().into()),
        Cell::text("Value", |rule, _| rule.spec.taint.value.clone().into()),
        Cell::text("Effect", |rule, _| rule.spec.taint.effect.clone().into()),
        Cell::text("TimeAdded", |rule, now| since(rule.spec.taint.time_added.unwrap_or_default(), now).into()),
        Cell::AGE,
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const STATUS_KEEPS_METADATA: bool = true;

    fn prepare_create(cx: &RuleContext, object: &mut DeviceTaintRule) {
        date_taint(&mut object.spec.taint, cx.now);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut DeviceTaintRule, old: &DeviceTaintRule) {
        if endpoint == Endpoint::Status {
            return;
        }
        let (taint, stored) = (&mut object.spec.taint, &old.spec.taint);
        if taint.effect != stored.effect && taint.time_added == stored.time_added {
            taint.time_added = Some(cx.now);
        }
        date_taint(taint, cx.now);
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &DeviceTaintRule) -> ErrorList {
        validate_over(object, None)
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &DeviceTaintRule,
        old: &DeviceTaintRule,
    ) -> ErrorList {
        if endpoint != Endpoint::Status {
            return validate_over(object, Some(old));
        }
        let (mut errors, path) = (ErrorList::new(), Path::new("status").child("conditions"));
        let list = &object.status.conditions;
        if list.len() > CONDITIONS_MAX {
            errors.push(path.too_many(list.len(), CONDITIONS_MAX));
        } else {
            conditions::validate(&path, list, &mut errors);
        }
        errors
    }
}

fn validate_over(rule: &DeviceTaintRule, old: Option<&DeviceTaintRule>) -> ErrorList {
    let (mut errors, path) = (ErrorList::new(), Path::new("spec"));
    if let Some(selector) = &rule.spec.device_selector {
        type Check = fn(&Path, &str, &mut ErrorList);
        let at = path.child("deviceSelector");
        let parts: [(&'static str, &Option<String>, Check); 3] =
            [("driver", &selector.driver, driver), ("pool", &selector.pool, pool), ("device", &selector.device, label)];
        for (name, value, check) in parts {
            if let Some(value) = value {
                check(&at.child(name), value, &mut errors);
            }
        }
    }
    validate_taint(&path.child("taint"), &rule.spec.taint, old.map(|old| &old.spec.taint), &mut errors);
    errors
}
