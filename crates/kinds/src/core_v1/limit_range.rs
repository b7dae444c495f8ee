//! LimitRange of core/v1: its names, and its rules.

use crate::rules::{MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_types::core_v1::{LimitRange, LimitRangeItem};

use crate::info::{ResourceInfo, StorageInfo};
use crate::pod_spec::defaults::round_up;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["limits"],
    storage: Some(StorageInfo::of::<LimitRange>("limitranges", "EBKMFVe6cwo=")),
    create_on_update: true,
    unconditional_update: true,
    ..ResourceInfo::of::<LimitRange>()
};

/// The rules of the kind.
pub(crate) struct LimitRangeRules;

impl TypedRules for LimitRangeRules {
    type Object = LimitRange;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut LimitRange) {
        for item in &mut object.spec.limits {
            let LimitRangeItem { max, min, default, default_request, max_limit_request_ratio, .. } = item;
            round_up([max, min, default, default_request, max_limit_request_ratio]);
        }
        for item in object.spec.limits.iter_mut().filter(|item| item.type_ == "Container") {
            for (name, max) in &item.max {
                item.default.entry(name.clone()).or_insert_with(|| max.clone());
            }
            for (name, amount) in item.default.iter().chain(&item.min) {
                item.default_request.entry(name.clone()).or_insert_with(|| amount.clone());
            }
        }
    }

    fn prepare_create(_: &RuleContext, object: &mut LimitRange) {
        if object.metadata.name.is_empty() {
            object.metadata.name.clone_from(&object.metadata.uid);
        }
    }

    fn validate(_: &RuleContext, object: &LimitRange) -> ErrorList {
        super::limit_range_validation::validate(object)
    }
}
