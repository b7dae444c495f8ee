//! ResourcePoolStatusRequest of resource.k8s.io/v1alpha3: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_machinery::value::Value;
use api_types::resource_v1alpha3::{PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus};
use feature_gates::MinorVersion;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::resource_v1::pool;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{Cell, since};
use crate::{conditions, field_rules as rules};

const POOLS_MAX: usize = 1000;
const LIMIT_MAX: i32 = 1000;
const CONDITIONS_MAX: usize = 10;
const ERROR_MAX_BYTES: usize = 256;
const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ResourcePoolStatusRequest>("resourcepoolstatusrequests", "iy583CtMwdY=")),
    subresources: &[SubresourceInfo::status("ResourcePoolStatusRequest")],
    introduced: MinorVersion::one(36),
    ..ResourceInfo::of::<ResourcePoolStatusRequest>()
};

/// The rules of the kind.
pub(crate) struct ResourcePoolStatusRequestRules;

impl TypedRules for ResourcePoolStatusRequestRules {
    type Object = ResourcePoolStatusRequest;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ResourcePoolStatusRequest>] = &[
        Cell::NAME,
        Cell::text("Driver", |request, _| request.spec.driver.clone().into()),
        Cell::text("Total", |request, _| sum(request, |pool| pool.total_devices)),
        Cell::text("Available", |request, _| sum(request, |pool| pool.available_devices)),
        Cell::text("Allocated", |request, _| sum(request, |pool| pool.allocated_devices)),
        Cell::text("Unavailable", |request, _| sum(request, |pool| pool.unavailable_devices)),
        Cell::text("Errors", |request, _| sum(request, |pool| Some(i32::from(pool.validation_error.is_some())))),
        Cell { column: Column { type_: "integer", ..Column::text("Pools") }, show: |request, _| pools(request).into() },
        Cell::text("Status", |request, _| state(request).into()),
        Cell::text("Completed", |request, now| {
            let done = condition(request, COMPLETE).map(|condition| since(condition.last_transition_time, now));
            done.unwrap_or_else(|| "<none>".to_owned()).into()
        }),
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ResourcePoolStatusRequest) -> ErrorList {
        let (mut errors, path, spec) = (ErrorList::new(), Path::new("spec"), &object.spec);
        driver(&path.child("driver"), &spec.driver, &mut errors);
        if let Some(name) = &spec.pool_name {
            pool(&path.child("poolName"), name, &mut errors);
        }
        if let Some(limit) = spec.limit {
            let at = path.child("limit");
            at_least(&at, Some(limit), 1, &mut errors);
            if limit > LIMIT_MAX {
                errors.push(at.invalid(limit, format!("must be less than or equal to {LIMIT_MAX}")));
            }
        }
        errors
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &ResourcePoolStatusRequest,
        old: &ResourcePoolStatusRequest,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint != Endpoint::Status {
            if !equal(&object.spec, &old.spec) {
                errors.push(Path::new("spec").invalid(BadValue::null(), rules::IMMUTABLE));
            }
            return errors;
        }
        match (&object.status, &old.status) {
            (new, stored @ Some(_)) if !equal(new, stored) => {
                errors.push(Path::new("status").invalid(BadValue::null(), rules::IMMUTABLE));
            }
            (Some(status), None) => validate_status(&Path::new("status"), status, &mut errors),
            _ => {}
        }
        errors
    }
}

fn driver(path: &Path, name: &str, errors: &mut ErrorList) {
    rules::named(path, name, names::long_name_caseless, errors);
}

fn at_least(path: &Path, value: Option<i32>, least: i32, errors: &mut ErrorList) {
    if let Some(value) = value.filter(|value| *value < least) {
        errors.push(path.invalid(value, format!("must be greater than or equal to {least}")));
    }
}

fn validate_status(path: &Path, status: &ResourcePoolStatusRequestStatus, errors: &mut ErrorList) {
    let at = path.child("poolCount");
    if status.pool_count.is_none() {
        errors.push(at.required(""));
    }
    at_least(&at, status.pool_count, 0, errors);
    let at = path.child("pools");
    if status.pools.len() > POOLS_MAX {
        errors.push(at.too_many(status.pools.len(), POOLS_MAX));
    } else {
        for (index, pool) in status.pools.iter().enumerate() {
            validate_pool(&at.index(index), pool, errors);
        }
    }
    let at = path.child("conditions");
    if status.conditions.len() > CONDITIONS_MAX {
        errors.push(at.too_many(status.conditions.len(), CONDITIONS_MAX));
    } else {
        conditions::validate(&at, &status.conditions, errors);
    }
}

fn validate_pool(path: &Path, status: &PoolStatus, errors: &mut ErrorList) {
    driver(&path.child("driver"), &status.driver, errors);
    pool(&path.child("poolName"), &status.pool_name, errors);
    let at = path.child("generation");
    if status.generation < 0 {
        errors.push(at.invalid(status.generation, "must be greater than or equal to 0"));
    }
    for (name, value, least) in [
        ("resourceSliceCount", status.resource_slice_count, 1),
        ("totalDevices", status.total_devices, 0),
        ("allocatedDevices", status.allocated_devices, 0),
        ("availableDevices", status.available_devices, 0),
        ("unavailableDevices", status.unavailable_devices, 0),
    ] {
        at_least(&path.child(name), value, least, errors);
    }
    if let Some(node) = &status.node_name {
        errors.push_invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node));
    }
    if status.validation_error.as_ref().is_some_and(|text| text.len() > ERROR_MAX_BYTES) {
        errors.push(path.child("validationError").too_long(ERROR_MAX_BYTES));
    }
}

fn condition<'a>(request: &'a ResourcePoolStatusRequest, name: &str) -> Option<&'a api_machinery::meta::Condition> {
    let mut all = request.status.iter().flat_map(|status| &status.conditions);
    all.find(|condition| condition.type_ == name && condition.status == "True")
}

/// A sum over the pools, where there is an answer.
fn sum(request: &ResourcePoolStatusRequest, of: fn(&PoolStatus) -> Option<i32>) -> Value {
    match &request.status {
        Some(status) if condition(request, FAILED).is_none() => {
            status.pools.iter().filter_map(of).map(i64::from).sum::<i64>().to_string().into()
        }
        _ => "-".into(),
    }
}

fn pools(request: &ResourcePoolStatusRequest) -> i32 {
    request.status.as_ref().and_then(|status| status.pool_count).unwrap_or_default()
}

fn state(request: &ResourcePoolStatusRequest) -> String {
    if condition(request, FAILED).is_some() {
        return FAILED.to_owned();
    }
    if condition(request, COMPLETE).is_none() {
        return "Pending".to_owned();
    }
    let listed = request.status.as_ref().map_or(0, |status| status.pools.len());
    let all = usize::try_from(pools(request)).unwrap_or_default();
    if listed < all { format!("{COMPLETE} ({listed}/{all} pools)") } else { COMPLETE.to_owned() }
}
