//! What may be said of the devices that a claim has.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal;
use api_types::resource_v1::constants::{ALLOCATION_RESULTS_MAX, allocation_config_source};
use api_types::resource_v1::{
    AllocatedDeviceStatus, AllocationResult, DeviceRequestAllocationResult, NetworkDeviceData, ResourceClaim,
};

use super::claim_validation::{Requests, validate_configuration};
use super::device_validation::CONDITIONS_MAX;
use super::values::{self, Unique, fits};
use crate::pod_spec::validation::{NodeValues, node_selector};
use crate::{conditions, field_rules as rules, internal_json};

const USERS_MAX: usize = 256;
const CONFIG_MAX: usize = 64;
const DEVICE_CONDITIONS_MAX: usize = 8;
const ADDRESSES_MAX: usize = 16;
const INTERFACE_MAX_BYTES: usize = 256;
const HARDWARE_MAX_BYTES: usize = 128;

/// What tells one device, or share of one, from others.
pub(super) type DeviceId<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

pub(super) fn allocated(result: &DeviceRequestAllocationResult) -> DeviceId<'_> {
    (&result.driver, &result.pool, &result.device, result.share_id.as_deref())
}

pub(super) fn described(device: &AllocatedDeviceStatus) -> DeviceId<'_> {
    (&device.driver, &device.pool, &device.device, device.share_id.as_deref())
}

/// The devices that a claim has.
pub(super) fn devices(claim: &ResourceClaim) -> BTreeSet<DeviceId<'_>> {
    let allocation = claim.status.allocation.iter();
    allocation.flat_map(|allocation| allocation.devices.results.iter().map(allocated)).collect()
}

/// Checks the status of a claim over the stored one.
pub(super) fn validate(claim: &ResourceClaim, old: &ResourceClaim, errors: &mut ErrorList) {
    let (path, status) = (Path::new("status"), &claim.status);
    let at = path.child("reservedFor");
    if fits(&at, &status.reserved_for, USERS_MAX, errors) {
        let mut seen = Unique::new();
        for (index, user) in status.reserved_for.iter().enumerate() {
            let at = at.index(index);
            for (name, value) in [("resource", &user.resource), ("name", &user.name), ("uid", &user.uid)] {
                rules::required(&at.child(name), value, errors);
            }
            seen.note(&at, &user.uid, &user.uid, errors);
        }
    }
    if let Some(allocation) = &status.allocation {
        let requests = Requests::of(&claim.spec.devices);
        validate_allocation(&path.child("allocation"), allocation, old, &requests, errors);
    }
    validate_devices(&path.child("devices"), claim, old, errors);
    if !status.reserved_for.is_empty() && status.allocation.is_none() {
        errors.push(at.forbidden("may not be specified when `allocated` is not set"));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        let known: BTreeSet<&str> = old.status.reserved_for.iter().map(|user| user.uid.as_str()).collect();
        if status.reserved_for.iter().any(|user| !known.contains(user.uid.as_str())) {
            let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(at.forbidden(detail));
        }
    }
    if let (Some(new), Some(stored)) = (&status.allocation, &old.status.allocation)
        && !equal(new, stored)
    {
        errors.push(path.child("allocation").invalid(internal_json::bad_value(new), rules::IMMUTABLE));
    }
}

fn validate_allocation(
    path: &Path,
    allocation: &AllocationResult,
    old: &ResourceClaim,
    requests: &Requests<'_>,
    errors: &mut ErrorList,
) {
    let devices = path.child("devices");
    let (at, results) = (devices.child("results"), &allocation.devices.results);
    if fits(&at, results, ALLOCATION_RESULTS_MAX, errors) {
        for (index, result) in results.iter().enumerate() {
            validate_result(&at.index(index), result, requests, errors);
        }
    }
    let (at, config) = (devices.child("config"), &allocation.devices.config);
    if fits(&at, config, CONFIG_MAX, errors) {
        let stored = old.status.allocation.as_ref().is_some_and(|stored| equal(&stored.devices.config, config));
        for (index, own) in config.iter().enumerate() {
            let at = at.index(index);
            rules::choice(&at.child("source"), &own.source, allocation_config_source::ALL, errors);
            requests.all_named(&at.child("requests"), &own.requests, errors);
            validate_configuration(&at, &own.device_configuration, stored, errors);
        }
    }
    if let Some(selector) = &allocation.node_selector {
        node_selector(&path.child("nodeSelector"), selector, NodeValues::Checked, errors);
    }
}

fn validate_result(
    path: &Path,
    result: &DeviceRequestAllocationResult,
    requests: &Requests<'_>,
    errors: &mut ErrorList,
) {
    requests.named(&path.child("request"), &result.request, errors);
    values::driver(&path.child("driver"), &result.driver, errors);
    values::pool(&path.child("pool"), &result.pool, errors);
    values::label(&path.child("device"), &result.device, errors);
    super::device_validation::validate_conditions(
        path,
        &result.binding_conditions,
        &result.binding_failure_conditions,
        CONDITIONS_MAX,
        errors,
    );
    if let Some(share) = &result.share_id {
        values::share(&path.child("shareID"), share, errors);
    }
}

fn validate_devices(path: &Path, claim: &ResourceClaim, old: &ResourceClaim, errors: &mut ErrorList) {
    let (allocated, mut seen) = (devices(claim), Unique::new());
    for (index, device) in claim.status.devices.iter().enumerate() {
        let (path, id) = (path.index(index), described(device));
        values::driver(&path.child("driver"), &device.driver, errors);
        values::pool(&path.child("pool"), &device.pool, errors);
        values::label(&path.child("device"), &device.device, errors);
        let shown = || {
            let (driver, pool, device, share) = id;
            let share = share.map(|share| format!("/{share}")).unwrap_or_default();
            BadValue::from(format!("{driver}/{pool}/{device}{share}"))
        };
        if !allocated.contains(&id) {
            errors.push(path.invalid(shown(), "must be an allocated device in the claim"));
        }
        let at = path.child("conditions");
        if fits(&at, &device.conditions, DEVICE_CONDITIONS_MAX, errors) {
            conditions::validate(&at, &device.conditions, errors);
        }
        if let Some(data) = device.data.as_ref().filter(|data| !data.is_empty()) {
            let stored = old.status.devices.iter().find(|stored| described(stored) == id);
            let unchanged = stored.is_some_and(|stored| stored.data.as_ref() == Some(data));
            values::blob(&path.child("data"), data, unchanged, errors);
        }
        if let Some(network) = &device.network_data {
            validate_network(&path.child("networkData"), network, errors);
        }
        seen.note(&path, id, shown(), errors);
    }
}

fn validate_network(path: &Path, network: &NetworkDeviceData, errors: &mut ErrorList) {
    if network.interface_name.len() > INTERFACE_MAX_BYTES {
        errors.push(path.child("interfaceName").too_long(INTERFACE_MAX_BYTES));
    }
    if network.hardware_address.len() > HARDWARE_MAX_BYTES {
        errors.push(path.child("hardwareAddress").too_long(HARDWARE_MAX_BYTES));
    }
    let path = path.child("ips");
    if !fits(&path, &network.ips, ADDRESSES_MAX, errors) {
        return;
    }
    let mut seen = Unique::new();
    for (index, address) in network.ips.iter().enumerate() {
        let path = path.index(index);
        errors.push_invalid(&path, address, names::interface_address(address));
        seen.note(&path, address, address, errors);
    }
}
