//! ResourceQuota of core/v1: its names, and its rules.

use crate::quota_rules;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::core_v1::ResourceQuota;
use std::collections::BTreeSet;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::pod_spec::defaults::round_up;
use crate::strategy::Strategy;
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["quota"],
    storage: Some(StorageInfo::of::<ResourceQuota>("resourcequotas", "8uhSgffRX6w=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("ResourceQuota")],
    ..ResourceInfo::of::<ResourceQuota>()
};

/// The rules of the kind.
pub(crate) struct ResourceQuotaRules;

impl TypedRules for ResourceQuotaRules {
    type Object = ResourceQuota;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ResourceQuota>] = &[
        Cell::NAME,
        Cell::text("Request", |object, _| shown(object, false).into()),
        Cell::text("Limit", |object, _| shown(object, true).into()),
        Cell::AGE,
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Status;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut ResourceQuota) {
        round_up([&mut object.spec.hard, &mut object.status.hard, &mut object.status.used]);
    }

    fn validate(_: &RuleContext, object: &ResourceQuota) -> ErrorList {
        let mut errors = ErrorList::new();
        quota_rules::quota(&Path::new("spec"), &object.spec, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, endpoint: Endpoint, object: &ResourceQuota, old: &ResourceQuota) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            let path = Path::new("status");
            quota_rules::amounts(&path.child("hard"), &object.status.hard, &mut errors);
            quota_rules::amounts(&path.child("used"), &object.status.used, &mut errors);
            return errors;
        }
        quota_rules::quota(&Path::new("spec"), &object.spec, &mut errors);
        let set = |quota: &ResourceQuota| quota.spec.scopes.iter().cloned().collect::<BTreeSet<_>>();
        if set(object) != set(old) {
            let value = BadValue::list(&object.spec.scopes);
            errors.push(Path::new("spec").child("scopes").invalid(value, crate::field_rules::IMMUTABLE));
        }
        errors
    }

    fn warnings(object: &ResourceQuota, old: Option<&ResourceQuota>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let hard = &object.spec.hard;
        let warning = |name: &str| {
            let limit = hard.get(&format!("limits.{name}"))?;
            let (asked, request) =
                hard.get_key_value(&format!("requests.{name}")).or_else(|| hard.get_key_value(name))?;
            let text = || format!("ResourceQuota {asked} ({request}) should be less than limits.{name} ({limit})");
            (request > limit).then(text)
        };
        ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter_map(warning).collect()
    }
}

/// What is used of what is allowed, of requests or of limits.
fn shown(quota: &ResourceQuota, limits: bool) -> String {
    let hard = quota.status.hard.iter().filter(|(name, _)| name.starts_with("limits.") == limits);
    let used = |name: &String| quota.status.used.get(name).cloned().unwrap_or_default();
    hard.map(|(name, hard)| format!("{name}: {}/{hard}", used(name))).collect::<Vec<_>>().join(", ")
}
