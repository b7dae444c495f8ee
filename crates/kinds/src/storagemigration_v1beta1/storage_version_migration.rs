//! StorageVersionMigration of storagemigration.k8s.io/v1beta1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_types::storagemigration_v1beta1::constants::migration_condition_type::{FAILED, RUNNING, SUCCEEDED};
use api_types::storagemigration_v1beta1::{StorageVersionMigration, StorageVersionMigrationStatus};
use feature_gates::MinorVersion;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::{conditions, field_rules as rules, gates, internal_json};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<StorageVersionMigration>("storageversionmigrations", "pCjmmKOkLy4=")),
    subresources: &[SubresourceInfo::status("StorageVersionMigration")],
    introduced: MinorVersion::one(35),
    gates: &[gates::STORAGE_VERSION_MIGRATOR],
    ..ResourceInfo::of::<StorageVersionMigration>()
};

/// The rules of the kind.
pub(crate) struct StorageVersionMigrationRules;

impl TypedRules for StorageVersionMigrationRules {
    type Object = StorageVersionMigration;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<StorageVersionMigration>] = &[
        Cell { column: Column::text("Name"), show: |own, _| own.metadata.name.clone().into() },
        Cell::text("Resource", |own, _| format!("{}.{}", own.spec.resource.resource, own.spec.resource.group).into()),
        Cell::text("Status", |own, _| state(&own.status).into()),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &StorageVersionMigration) -> ErrorList {
        let (mut errors, path, wanted) = (ErrorList::new(), Path::new("spec").child("resource"), &object.spec.resource);
        let at = path.child("resource");
        if wanted.resource.is_empty() {
            errors.push(at.required("resource is required to be set"));
        } else {
            errors.push_invalid(&at, &wanted.resource, names::dns1035_label(&wanted.resource));
        }
        rules::named_if_set(&path.child("group"), &wanted.group, names::dns1123_subdomain, &mut errors);
        errors
    }

    fn validate_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &StorageVersionMigration,
        old: &StorageVersionMigration,
    ) -> ErrorList {
        if endpoint == Endpoint::Status {
            return validate_status(&object.status, &old.status);
        }
        let mut errors = Self::validate(cx, object);
        if !equal(&object.spec, &old.spec) {
            errors.push(Path::new("spec").invalid(internal_json::bad_value(&object.spec), rules::IMMUTABLE));
        }
        errors
    }
}

fn is_true(status: &StorageVersionMigrationStatus, name: &str) -> bool {
    status.conditions.iter().any(|own| own.type_ == name && own.status == "True")
}

/// The last of what has come true.
fn state(status: &StorageVersionMigrationStatus) -> &'static str {
    [SUCCEEDED, FAILED, RUNNING].into_iter().find(|name| is_true(status, name)).unwrap_or("Unknown")
}

fn validate_status(new: &StorageVersionMigrationStatus, old: &StorageVersionMigrationStatus) -> ErrorList {
    let (mut errors, path) = (ErrorList::new(), Path::new("status"));
    let (at, version) = (path.child("resourceVersion"), new.resource_version.as_str());
    let well_formed = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    if !well_formed {
        errors.push(at.invalid(version, format!("resource version is not well formed: {version}")));
    }
    if !old.resource_version.is_empty() && old.resource_version != version {
        errors.push(at.invalid(version, rules::IMMUTABLE));
    }
    let at = path.child("conditions");
    conditions::validate(&at, &new.conditions, &mut errors);
    if is_true(new, SUCCEEDED) && is_true(new, FAILED) {
        let detail = "Both success and failed conditions cannot be true at the same time";
        errors.push(at.invalid_unshown(detail));
    }
    for (name, detail) in [
        (SUCCEEDED, "Success condition cannot be set to false once it is true"),
        (FAILED, "Failed condition cannot be set to false once it is true"),
    ] {
        if is_true(old, name) && !is_true(new, name) {
            errors.push(at.invalid_unshown(detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::Condition;
    use api_machinery::time::Time;

    use super::*;

    fn status(version: &str, true_ones: &[&str]) -> StorageVersionMigrationStatus {
        let condition = |name: &&str| Condition {
            type_: (*name).to_owned(),
            status: "True".into(),
            reason: "R".into(),
            last_transition_time: Time::from_unix_seconds(1),
            ..Condition::default()
        };
        let conditions = true_ones.iter().map(condition).collect();
        StorageVersionMigrationStatus { conditions, resource_version: version.into() }
    }

    #[test]
    fn what_has_ended_stays_ended() {
        let both = "Both success and failed conditions cannot be true at the same time";
        for (new, old, shown, expected) in [
            (status("", &[]), status("", &[]), "Unknown", vec![]),
            (status("7", &[RUNNING]), status("", &[]), RUNNING, vec![]),
            (status("8", &[RUNNING, SUCCEEDED]), status("7", &[RUNNING]), SUCCEEDED, vec![rules::IMMUTABLE]),
            (status("07", &[]), status("", &[]), "Unknown", vec!["resource version is not well formed: 07"]),
            (status("0", &[]), status("", &[]), "Unknown", vec!["resource version is not well formed: 0"]),
            (status("7", &[SUCCEEDED, FAILED]), status("7", &[]), SUCCEEDED, vec![both]),
            (
                status("7", &[FAILED]),
                status("7", &[SUCCEEDED]),
                FAILED,
                vec!["Success condition cannot be set to false once it is true"],
            ),
            (
                status("7", &[]),
                status("7", &[FAILED]),
                "Unknown",
                vec!["Failed condition cannot be set to false once it is true"],
            ),
        ] {
            let errors = validate_status(&new, &old);
            let found: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!((found, state(&new)), (expected, shown), "{new:?} over {old:?}");
        }
    }
}
