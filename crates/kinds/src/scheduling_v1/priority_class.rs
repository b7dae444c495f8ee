//! PriorityClass of scheduling.k8s.io/v1: its names, and its rules.

use api_types::core_v1::constants::preemption_policy;
use api_types::scheduling_v1::PriorityClass;

use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::{BadValue, Path};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pc"],
    storage: Some(StorageInfo::of::<PriorityClass>("priorityclasses", "1QwjyaZjj3Y=")),
    unconditional_update: true,
    ..ResourceInfo::of::<PriorityClass>()
};

/// The rules of the kind.
pub(crate) struct PriorityClassRules;

impl TypedRules for PriorityClassRules {
    type Object = PriorityClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PriorityClass>] = &[
        Cell::NAME,
        Cell::number("Value", |object, _| object.value.into()),
        Cell::boolean("Global-Default", |object, _| object.global_default.into()),
        Cell::AGE,
        Cell::text("PreemptionPolicy", |object, _| object.preemption_policy.clone().unwrap_or_default().into()),
    ];
    const FORMER: &'static [Former] =
        &[Former::same("scheduling.k8s.io/v1alpha1"), Former::same("scheduling.k8s.io/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &PriorityClass) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.metadata.name.starts_with("system-") {
            if let Some(reason) = system_class_problem(object) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {reason}"
                );
                errors.push(Path::new("metadata").child("name").forbidden(detail));
            }
        } else if object.value > HIGHEST_USER_VALUE {
            let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}");
            errors.push(Path::new("value").forbidden(detail));
        }
        if let Some(policy) = &object.preemption_policy {
            field_rules::choice_in_order(&Path::new("preemptionPolicy"), policy, preemption_policy::ALL, &mut errors);
        }
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &PriorityClass, old: &PriorityClass) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.value != old.value {
            errors.push(Path::new("value").forbidden("may not be changed in an update."));
        }
        let policy = &object.preemption_policy;
        if *policy != old.preemption_policy {
            let value = policy.as_deref().map_or_else(BadValue::null, BadValue::named);
            errors.push(Path::new("preemptionPolicy").invalid(value, field_rules::IMMUTABLE));
        }
        errors
    }

    fn keeps(name: &str) -> Option<&'static str> {
        let known = SYSTEM_CLASSES.iter().any(|(system, _)| *system == name);
        known.then_some("this is a system priority class and cannot be deleted")
    }

    fn prepare_create(_: &RuleContext, object: &mut PriorityClass) {
        object.metadata.generation = 1;
    }
}

const HIGHEST_USER_VALUE: i32 = 1_000_000_000;
const SYSTEM_CLASSES: [(&str, i32); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Why a class with a reserved name is not the one that the system has by that name.
fn system_class_problem(class: &PriorityClass) -> Option<String> {
    let name = &class.metadata.name;
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.value != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class.global_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_classes_stay() {
        assert!(PriorityClassRules::keeps("system-node-critical").is_some());
        assert_eq!(PriorityClassRules::keeps("mine"), None);
    }

    #[test]
    fn system_classes_are_reserved() {
        let text = |name: &str, value: i32| {
            let mut class = PriorityClass { value, ..PriorityClass::default() };
            class.metadata.name = name.into();
            system_class_problem(&class).unwrap_or_default()
        };
        assert_eq!(text("system-node-critical", 2_000_001_000), "");
        assert_eq!(text("system-x", 1), "system-x is not a known system priority class");
        let expected = "value of system-cluster-critical PriorityClass must be 2000000000";
        assert_eq!(text("system-cluster-critical", 1), expected);
    }
}
