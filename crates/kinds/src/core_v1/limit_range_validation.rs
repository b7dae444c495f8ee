//! Rules of limit ranges.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::quantity::Quantity;
use api_types::core_v1::{LimitRange, LimitRangeItem};

use crate::pod_spec::validation::{container_resource_name, is_overcommitable};
use crate::quota_rules::resource_name;

/// Checks a limit range, whichever way it is written.
pub(super) fn validate(range: &LimitRange) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("limits");
    let mut seen = BTreeSet::new();
    for (index, item) in range.spec.limits.iter().enumerate() {
        let path = path.index(index);
        let type_ = item.type_.as_str();
        errors.push_invalid(&path.child("type"), type_, names::qualified_name(type_));
        let known = type_.contains('/') || matches!(type_, "Pod" | "Container" | "PersistentVolumeClaim");
        if !known && names::qualified_name(type_).is_empty() {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(path.child("type").invalid(type_, detail));
        }
        if !seen.insert(type_) {
            errors.push(path.child("type").duplicate(type_));
        }
        validate_names(&path, item, &mut errors);
        validate_item(&path, item, &mut errors);
    }
    errors
}

fn validate_names(path: &Path, item: &LimitRangeItem, errors: &mut ErrorList) {
    let of_containers = matches!(item.type_.as_str(), "Pod" | "Container");
    for (field, list) in [
        ("max", &item.max),
        ("min", &item.min),
        ("default", &item.default),
        ("defaultRequest", &item.default_request),
        ("maxLimitRequestRatio", &item.max_limit_request_ratio),
    ] {
        for name in list.keys() {
            let at = path.child(field).key(name);
            if of_containers {
                container_resource_name(&at, name, errors);
            } else {
                resource_name(&at, name, errors);
            }
        }
    }
    if item.type_ == "Pod" {
        for (field, list) in [("default", &item.default), ("defaultRequest", &item.default_request)] {
            if !list.is_empty() {
                errors.push(path.child(field).forbidden("may not be specified when `type` is 'Pod'"));
            }
        }
    }
    let sized = item.min.contains_key("storage") || item.max.contains_key("storage");
    if item.type_ == "PersistentVolumeClaim" && !sized {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(path.child("limits").required(detail));
    }
}

fn validate_item(path: &Path, item: &LimitRangeItem, errors: &mut ErrorList) {
    let lists = [&item.max, &item.min, &item.default, &item.default_request, &item.max_limit_request_ratio];
    let names: BTreeSet<&String> = lists.into_iter().flat_map(|list| list.keys()).collect();
    for name in names {
        validate_order(path, name, item, errors);
        validate_ratio(path, name, item, errors);
        if let (Some(limit), Some(request)) = (item.default.get(name), item.default_request.get(name))
            && !is_overcommitable(name)
            && limit != request
        {
            let at = path.child("defaultRequest").key(name);
            let detail = format!("default value {limit} must equal to defaultRequest value {request} in {name}");
            errors.push(at.invalid(request.to_string(), detail));
        }
    }
}

/// Each pair of bounds that must be in order, which field says so, and with which value.
fn validate_order(path: &Path, name: &str, item: &LimitRangeItem, errors: &mut ErrorList) {
    let (min, max) = (item.min.get(name), item.max.get(name));
    let (limit, request) = (item.default.get(name), item.default_request.get(name));
    for (field, low, low_text, high, high_text, shows_low) in [
        ("min", min, "min value", max, "max value", true),
        ("defaultRequest", min, "min value", request, "default request value", false),
        ("defaultRequest", request, "default request value", max, "max value", true),
        ("defaultRequest", request, "default request value", limit, "default limit value", true),
        ("default", min, "min value", limit, "default value", true),
        ("default", limit, "default value", max, "max value", false),
    ] {
        let (Some(low), Some(high)) = (low, high) else { continue };
        if low > high {
            let shown = if shows_low { low } else { high };
            let detail = format!("{low_text} {low} is greater than {high_text} {high}");
            errors.push(path.child(field).key(name).invalid(shown.to_string(), detail));
        }
    }
}

fn validate_ratio(path: &Path, name: &str, item: &LimitRangeItem, errors: &mut ErrorList) {
    let Some(ratio) = item.max_limit_request_ratio.get(name) else { return };
    let at = path.child("maxLimitRequestRatio").key(name);
    if *ratio < Quantity::from_value(1, ratio.format()) {
        errors.push(at.invalid(ratio.to_string(), format!("ratio {ratio} is less than 1")));
    }
    let (Some(min), Some(max)) = (item.min.get(name), item.max.get(name)) else { return };
    if min.is_zero() {
        return;
    }
    let greatest = max.as_f64() / min.as_f64();
    if ratio.as_f64() > greatest {
        let detail = format!("ratio {ratio} is greater than max/min = {greatest:.6}");
        errors.push(at.invalid(ratio.to_string(), detail));
    }
}
