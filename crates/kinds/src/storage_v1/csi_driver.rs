//! CSIDriver of storage.k8s.io/v1: its names, and its rules.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::reflect::equal_structs;
use api_types::storage_v1::constants::{fs_group_policy, volume_lifecycle_mode};
use api_types::storage_v1::{CSIDriver, CSIDriverSpec, TokenRequest};

use crate::field_rules::{self, IMMUTABLE};
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::next_generation;
use crate::table::{self, Cell};
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<CSIDriver>("csidrivers", "hL6j/rwBV5w=")),
    ..ResourceInfo::of::<CSIDriver>()
};

/// The rules of the kind.
pub(crate) struct CSIDriverRules;

impl TypedRules for CSIDriverRules {
    type Object = CSIDriver;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<CSIDriver>] = &[
        Cell::NAME,
        Cell::boolean("AttachRequired", |driver, _| driver.spec.attach_required.unwrap_or(true).into()),
        Cell::boolean("PodInfoOnMount", |driver, _| driver.spec.pod_info_on_mount.unwrap_or_default().into()),
        Cell::boolean("StorageCapacity", |driver, _| driver.spec.storage_capacity.unwrap_or_default().into()),
        Cell::text("TokenRequests", |driver, _| table::or_else(audiences(&driver.spec), "<unset>").into()),
        Cell::boolean("RequiresRepublish", |driver, _| driver.spec.requires_republish.unwrap_or_default().into()),
        Cell::text("Modes", |driver, _| table::or_none(driver.spec.volume_lifecycle_modes.join(",")).into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("storage.k8s.io/v1beta1")];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const GATED: &'static [Gated<CSIDriver>] = &[Gated {
        features: &[gates::VOLUME_LIMIT_SCALING],
        used: |driver| driver.spec.prevent_pod_scheduling_if_missing.is_some(),
        drop: |driver| driver.spec.prevent_pod_scheduling_if_missing = None,
    }];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(cx: &RuleContext, object: &mut CSIDriver) {
        default_scheduling(cx, &mut object.spec);
    }

    /// Unlike most, the first generation is not 1.
    fn prepare_update(cx: &RuleContext, _: Endpoint, object: &mut CSIDriver, old: &CSIDriver) {
        let mut stored = old.spec.clone();
        for spec in [&mut object.spec, &mut stored] {
            default_scheduling(cx, spec);
        }
        if !equal_structs(&object.spec, &stored) {
            next_generation(&mut object.metadata);
        }
    }

    fn validate(_: &RuleContext, object: &CSIDriver) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &CSIDriver, old: &CSIDriver) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        let (path, new, stored) = (Path::new("spec"), &object.spec, &old.spec);
        if new.attach_required != stored.attach_required {
            errors.push(path.child("attachedRequired").invalid(new.attach_required, IMMUTABLE));
        }
        if new.volume_lifecycle_modes != stored.volume_lifecycle_modes {
            let modes = BadValue::list(&new.volume_lifecycle_modes);
            errors.push(path.child("volumeLifecycleModes").invalid(modes, IMMUTABLE));
        }
        errors
    }

    fn warnings(object: &CSIDriver, old: Option<&CSIDriver>) -> Vec<String> {
        let (spec, stored) = (&object.spec, old.map(|old| &old.spec));
        let are_new = stored.is_none_or(|stored| stored.token_requests != spec.token_requests);
        let leaks = are_new && !spec.token_requests.is_empty() && spec.service_account_token_in_secrets.is_none();
        leaks.then(|| TOKENS_IN_ATTRIBUTES.to_owned()).into_iter().collect()
    }
}

const TOKENS_IN_ATTRIBUTES: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
     possible logging of tokens in volume attributes";
const MIN_TOKEN_SECONDS: i64 = 10 * 60;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;
const MIN_UPDATE_SECONDS: i64 = 10;

/// A default that is behind a feature; a driver that was stored without counts as if it had it.
fn default_scheduling(cx: &RuleContext, spec: &mut CSIDriverSpec) {
    if cx.gates.enabled(gates::VOLUME_LIMIT_SCALING) {
        spec.prevent_pod_scheduling_if_missing.get_or_insert(false);
    }
}

fn audiences(spec: &CSIDriverSpec) -> String {
    table::joined(spec.token_requests.iter().map(|request| request.audience.as_str()), ",")
}

fn validate_spec(path: &Path, spec: &CSIDriverSpec, errors: &mut ErrorList) {
    let defaulted = [
        // Upstream's name of the field, with a letter too many.
        ("attachedRequired", spec.attach_required),
        ("podInfoOnMount", spec.pod_info_on_mount),
        ("storageCapacity", spec.storage_capacity),
    ];
    for (field, value) in defaulted {
        if value.is_none() {
            errors.push(path.child(field).required(""));
        }
    }
    let policy = spec.fs_group_policy.as_ref();
    field_rules::one_of_if_set(&path.child("fsGroupPolicy"), policy, fs_group_policy::ALL, errors);
    validate_token_requests(&path.child("tokenRequests"), &spec.token_requests, errors);
    for mode in &spec.volume_lifecycle_modes {
        let at = path.child("volumeLifecycleModes");
        if !volume_lifecycle_mode::ALL.contains(&mode.as_str()) {
            errors.push(at.not_supported_in_order(BadValue::named(mode), volume_lifecycle_mode::ALL));
        }
    }
    if spec.se_linux_mount.is_none() {
        errors.push(path.child("seLinuxMount").required(""));
    }
    if let Some(seconds) = spec.node_allocatable_update_period_seconds.filter(|seconds| *seconds < MIN_UPDATE_SECONDS) {
        let detail = format!("must be greater than or equal to {MIN_UPDATE_SECONDS} seconds");
        errors.push(path.child("nodeAllocatableUpdatePeriodSeconds").invalid(seconds, detail));
    }
    if spec.service_account_token_in_secrets.is_some() && spec.token_requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(path.child("serviceAccountTokenInSecrets").invalid(spec.service_account_token_in_secrets, detail));
    }
}

fn validate_token_requests(path: &Path, requests: &[TokenRequest], errors: &mut ErrorList) {
    let mut audiences = BTreeSet::new();
    for (index, request) in requests.iter().enumerate() {
        let path = path.index(index);
        if !audiences.insert(request.audience.as_str()) {
            errors.push(path.child("audience").duplicate(&request.audience));
            continue;
        }
        let Some(seconds) = request.expiration_seconds else { continue };
        let at = path.child("expirationSeconds");
        if seconds < MIN_TOKEN_SECONDS {
            errors.push(at.invalid(seconds, "may not specify a duration less than 10 minutes"));
        }
        if seconds > MAX_TOKEN_SECONDS {
            errors.push(at.invalid(seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
}
