//! Rules of requests and limits: of containers, of the pod as a whole, and of its overhead; and which names of
//! resources there are, which ranges and quotas ask too.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::quantity::Quantity;
use api_types::core_v1::{PodSpec, ResourceList, ResourceRequirements};
use component_helpers::pod_requests;
use component_helpers::resource_names::{is_extended, is_native};
use kinds_frame::field_rules::{self as rules, NOT_NEGATIVE};
use kinds_frame::pod_containers::each_container;

use super::Around;

const HUGE: &str = "hugepages-";
const NOT_STANDARD: &str = "must be a standard resource type or fully qualified";
const NOT_FOR_CONTAINERS: &str = "must be a standard resource for containers";
const NOT_EXTENDED: &str = "doesn't follow extended resource name standard";
const STANDARD: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// What is counted, so that it comes in whole numbers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge(name: &str) -> bool {
    name.starts_with(HUGE)
}

/// Whether a name without a slash is one of those the project defines.
pub fn standard_name(name: &str) -> bool {
    STANDARD.contains(&name) || COUNTED.contains(&name) || is_huge(name) || name.starts_with("requests.hugepages-")
}

/// Whether a resource is counted in whole numbers.
pub(super) fn is_integer_resource(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Whether the limit may be above the request.
pub fn is_overcommitable(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// Checks a name as containers may ask for it.
pub fn container_resource_name(path: &Path, name: &str, errors: &mut ErrorList) {
    let problems = names::qualified_name(name);
    let good = problems.is_empty();
    let value = || BadValue::named(name);
    errors.extend(problems.into_iter().map(|detail| path.invalid(value(), detail)));
    if !good {
        return;
    }
    if !name.contains('/') {
        if !standard_name(name) {
            errors.push(path.invalid(value(), NOT_STANDARD));
        }
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge(name) {
            errors.push(path.invalid(value(), NOT_FOR_CONTAINERS));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(path.invalid(value(), NOT_EXTENDED));
    }
}

fn pod_resource_name(path: &Path, name: &str, errors: &mut ErrorList) {
    let problems = names::qualified_name(name);
    let good = problems.is_empty();
    errors.extend(problems.into_iter().map(|detail| path.invalid(BadValue::named(name), detail)));
    if !good {
        return;
    }
    if !name.contains('/') && !standard_name(name) {
        errors.push(path.invalid(BadValue::named(name), NOT_STANDARD));
        return;
    }
    if !pod_requests::is_pod_level(name) {
        errors.push(path.not_supported(BadValue::named(name), &["cpu", "hugepages-", "memory"]));
    }
}

/// Checks an amount: never negative, and whole where the resource is counted.
pub fn amount(path: &Path, name: &str, quantity: &Quantity, errors: &mut ErrorList) {
    if quantity.sign() < 0 {
        errors.push(path.invalid(quantity.to_string(), NOT_NEGATIVE));
    }
    if is_integer_resource(name) && !quantity.is_integer() {
        errors.push(path.invalid(quantity, "must be an integer"));
    }
}

/// Whether an amount of huge pages cannot be had in pages of that size.
fn splits_pages(name: &str, quantity: &Quantity) -> bool {
    let Some(size) = name.strip_prefix(HUGE) else { return false };
    let size = Quantity::parse(size).ok().filter(Quantity::is_integer).map_or(0, |size| size.value());
    size <= 0 || quantity.value() % size != 0
}

fn has_split_pages(spec: &PodSpec) -> bool {
    let split = |list: &ResourceList| list.iter().any(|(name, quantity)| splits_pages(name, quantity));
    let containers = each_container(spec, &Path::nil());
    split(&spec.overhead)
        || containers
            .iter()
            .any(|(_, container)| split(&container.resources.limits) || split(&container.resources.requests))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Container,
    Pod,
}

pub(super) fn validate_container(
    around: &Around<'_>,
    resources: &ResourceRequirements,
    path: &Path,
    errors: &mut ErrorList,
) {
    let divisible = !around.stored(has_split_pages);
    validate_requirements(divisible, Level::Container, resources, path, errors);
    validate_claims(around.spec, resources, &path.child("claims"), errors);
}

fn validate_requirements(
    divisible: bool,
    level: Level,
    resources: &ResourceRequirements,
    path: &Path,
    errors: &mut ErrorList,
) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, quantity) in &resources.limits {
        validate_entry(level, divisible, &limits.key(name), name, quantity, errors);
    }
    for (name, request) in &resources.requests {
        validate_entry(level, divisible, &requests.key(name), name, request, errors);
        match resources.limits.get(name) {
            Some(limit) if !is_overcommitable(name) && request != limit => {
                errors.push(requests.invalid(request.to_string(), format!("must be equal to {name} limit of {limit}")));
            }
            Some(limit) if is_overcommitable(name) && request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(requests.invalid(request.to_string(), detail));
            }
            None if !is_overcommitable(name) => {
                errors.push(limits.required("Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
    let all = || resources.limits.keys().chain(resources.requests.keys());
    if all().any(|name| is_huge(name)) && !all().any(|name| matches!(name.as_str(), "cpu" | "memory")) {
        errors.push(path.forbidden("HugePages require cpu or memory"));
    }
}

fn validate_entry(level: Level, divisible: bool, path: &Path, name: &str, quantity: &Quantity, errors: &mut ErrorList) {
    match level {
        Level::Container => container_resource_name(path, name, errors),
        Level::Pod => pod_resource_name(path, name, errors),
    }
    amount(path, name, quantity, errors);
    if divisible && splits_pages(name, quantity) {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        errors.push(path.invalid(quantity.to_string(), detail));
    }
}

fn shown_names(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

fn validate_claims(spec: &PodSpec, resources: &ResourceRequirements, path: &Path, errors: &mut ErrorList) {
    let mut whole = BTreeSet::new();
    let mut parts: BTreeSet<(&str, &str)> = BTreeSet::new();
    let known: BTreeSet<&str> = spec.resource_claims.iter().map(|claim| claim.name.as_str()).collect();
    for (index, claim) in resources.claims.iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (claim.name.as_str(), claim.request.as_str());
        if !rules::required(&path.child("name"), name, errors) {
            continue;
        }
        let shown = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
        // A part of this claim comes no earlier than the claim without a part.
        let first = parts.range((name, "")..).next();
        let used = first.is_some_and(|(earlier, _)| *earlier == name);
        if whole.contains(name) || parts.contains(&(name, request)) || (request.is_empty() && used) {
            errors.push(path.duplicate(shown));
        } else if request.is_empty() {
            whole.insert(name);
        } else {
            parts.insert((name, request));
        }
        rules::named_if_set(&path.child("request"), request, names::dns1123_label, errors);
        if !known.contains(&name) && !errors.is_full() {
            let mut error = path.not_found(name);
            error.detail = match known.is_empty() {
                true => "must be one of the names in pod.spec.resourceClaims which is empty".into(),
                false => format!("must be one of the names in pod.spec.resourceClaims: {}", shown_names(&known)),
            };
            errors.push(error);
        }
    }
}

/// The resources of the pod as a whole, against those of its containers together.
pub(super) fn validate_pod_level(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    let Some(resources) = &spec.resources else { return };
    if around.is_windows() {
        errors.push(path.forbidden("may not be set for a windows pod"));
        return;
    }
    if !resources.claims.is_empty() {
        errors.push(path.child("claims").forbidden("claims may not be set for Resources at pod-level"));
    }
    let divisible = !around.stored(has_split_pages);
    validate_requirements(divisible, Level::Pod, resources, path, errors);
    validate_claims(spec, resources, &path.child("claims"), errors);
    let requests = pod_requests::aggregate(spec, |container| container.resources.requests.clone());
    for (name, quantity) in resources.requests.iter().filter(|(name, _)| pod_requests::is_pod_level(name)) {
        if let Some(total) = requests.get(name).filter(|total| *total > quantity) {
            let detail = format!("must be greater than or equal to aggregate container requests of {total}");
            errors.push(path.child("requests").key(name).invalid(quantity.to_string(), detail));
        }
    }
    let limits = pod_requests::aggregate(spec, |container| container.resources.limits.clone());
    for (name, quantity) in resources.limits.iter().filter(|(name, _)| is_huge(name)) {
        if let Some(total) = limits.get(name).filter(|total| *total > quantity) {
            let detail = format!("must be greater than or equal to aggregate container limits of {total}");
            errors.push(path.child("limits").key(name).invalid(quantity.to_string(), detail));
        }
    }
    for (index, container) in spec.containers.iter().enumerate() {
        for (name, limit) in &container.resources.limits {
            if let Some(whole) = resources.limits.get(name).filter(|whole| limit > *whole) {
                let at = path.child("containers").index(index).key(name).child("limits");
                errors.push(
                    at.invalid(limit.to_string(), format!("must be less than or equal to pod limits of {whole}")),
                );
            }
        }
    }
}

/// What the runtime needs besides the containers; checked as their limits are.
pub(super) fn validate_overhead(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let resources = ResourceRequirements { limits: around.spec.overhead.clone(), ..ResourceRequirements::default() };
    validate_requirements(!around.stored(has_split_pages), Level::Container, &resources, path, errors);
}

/// The same amounts where a runtime class states them.
pub fn validate_overhead_amounts(path: &Path, amounts: &ResourceList, errors: &mut ErrorList) {
    let resources = ResourceRequirements { limits: amounts.clone(), ..ResourceRequirements::default() };
    validate_requirements(true, Level::Container, &resources, path, errors);
}
