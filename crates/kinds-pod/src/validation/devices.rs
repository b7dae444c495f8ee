//! Rules of what containers get from the pod: mounts, raw devices and claimed resources.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{mount_propagation_mode, recursive_read_only_mode};
use api_types::core_v1::{Container, PodResourceClaim, VolumeMount};
use kinds_frame::field_rules as rules;

use super::Around;
use super::volumes::Volumes;

const UNIQUE: &str = "must be unique";

/// What the other list of a container has taken. Of those with the same name, the path of the last counts.
struct Taken<'a> {
    names: BTreeMap<&'a str, &'a str>,
    paths: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn by(items: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let names: BTreeMap<_, _> = items.collect();
        let paths = names.values().copied().collect();
        Self { names, paths }
    }
}

pub(super) fn validate_mounts(volumes: &Volumes<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    let at = path.child("volumeMounts");
    let devices = Taken::by(container.volume_devices.iter().map(|own| (own.name.as_str(), own.device_path.as_str())));
    let mut seen = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().enumerate() {
        let item = at.index(index);
        if rules::required(&item.child("name"), &mount.name, errors) && !volumes.contains_key(mount.name.as_str()) {
            errors.push(item.child("name").not_found(mount.name.as_str()));
        }
        rules::required(&item.child("mountPath"), &mount.mount_path, errors);
        if !seen.insert(mount.mount_path.as_str()) {
            errors.push(item.child("mountPath").invalid(mount.mount_path.as_str(), UNIQUE));
        }
        if devices.names.contains_key(mount.name.as_str()) {
            let detail = "must not already exist in volumeDevices";
            errors.push(item.child("name").invalid(mount.name.as_str(), detail));
        }
        if devices.paths.contains(mount.mount_path.as_str()) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(item.child("mountPath").invalid(mount.mount_path.as_str(), detail));
        }
        validate_sub_path(mount, &at, &item, errors);
        validate_propagation(container, mount, &at, errors);
    }
    validate_devices(volumes, container, &path.child("volumeDevices"), errors);
}

/// Most of these are reported at the list, without the mount's index.
fn validate_sub_path(mount: &VolumeMount, list: &Path, item: &Path, errors: &mut ErrorList) {
    if !mount.sub_path.is_empty() {
        rules::relative_path(&list.child("subPath"), &mount.sub_path, errors);
    }
    if !mount.sub_path_expr.is_empty() {
        if !mount.sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(item.child("subPathExpr").invalid(mount.sub_path_expr.as_str(), detail));
        }
        rules::relative_path(&list.child("subPathExpr"), &mount.sub_path_expr, errors);
    }
}

fn validate_propagation(container: &Container, mount: &VolumeMount, path: &Path, errors: &mut ErrorList) {
    let at = path.child("mountPropagation");
    rules::one_of_if_set(&at, mount.mount_propagation.as_ref(), mount_propagation_mode::ALL, errors);
    let privileged = container.security_context.as_ref().is_some_and(|context| context.privileged == Some(true));
    if mount.mount_propagation.as_deref() == Some("Bidirectional") && !privileged {
        errors.push(at.forbidden("Bidirectional mount propagation is available only to privileged containers"));
    }
    let at = path.child("recursiveReadOnly");
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.read_only {
                errors.push(at.forbidden("may only be specified when readOnly is true"));
            }
            if mount.mount_propagation.as_deref().is_some_and(|propagation| propagation != "None") {
                errors.push(at.forbidden("may only be specified when mountPropagation is None or not specified"));
            }
        }
        Some(other) => {
            errors.push(at.not_supported(BadValue::named(other), recursive_read_only_mode::ALL));
        }
    }
}

fn validate_devices(volumes: &Volumes<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    let mounts = Taken::by(container.volume_mounts.iter().map(|own| (own.name.as_str(), own.mount_path.as_str())));
    let (mut seen, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in container.volume_devices.iter().enumerate() {
        let path = path.index(index);
        let at = path.child("name");
        rules::required(&at, &device.name, errors);
        if !seen.insert(device.name.as_str()) {
            errors.push(at.invalid(device.name.as_str(), UNIQUE));
        }
        match volumes.get(device.name.as_str()) {
            Some(source) if source.persistent_volume_claim.is_none() && source.ephemeral.is_none() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(at.invalid(device.name.as_str(), detail));
            }
            Some(_) => {}
            None => errors.push(at.not_found(device.name.as_str())),
        }
        let at = path.child("devicePath");
        rules::required(&at, &device.device_path, errors);
        if !paths.insert(device.device_path.as_str()) {
            errors.push(at.invalid(device.device_path.as_str(), UNIQUE));
        }
        if device.device_path.split('/').any(|part| part == "..") {
            errors.push(at.invalid(device.device_path.as_str(), "can not contain backsteps ('..')"));
        }
        if mounts.names.contains_key(device.name.as_str()) {
            let detail = "must not already exist in volumeMounts";
            errors.push(path.child("name").invalid(device.name.as_str(), detail));
        }
        if mounts.paths.contains(device.device_path.as_str()) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(at.invalid(device.device_path.as_str(), detail));
        }
    }
}

/// The pod's claims for resources that drivers hand out.
pub(super) fn validate_resource_claims(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, claim) in around.spec.resource_claims.iter().enumerate() {
        if around.mirror {
            errors.push(Path::new("").forbidden("static pods do not support resource claims"));
            continue;
        }
        let path = path.child("resourceClaims").index(index);
        let at = path.child("name");
        if claim.name.is_empty() {
            errors.push(at.required(""));
        } else if !seen.insert(claim.name.as_str()) {
            errors.push(at.duplicate(claim.name.as_str()));
        } else {
            errors.push_invalid(&at, &claim.name, names::dns1123_label(&claim.name));
        }
        validate_claim_source(claim, &path, errors);
    }
}

fn validate_claim_source(claim: &PodResourceClaim, path: &Path, errors: &mut ErrorList) {
    let (direct, template) = (&claim.resource_claim_name, &claim.resource_claim_template_name);
    let entry = || {
        let text = |value: &dyn Fn() -> serde_json::Value| value().to_string();
        BadValue::json(format!(
            "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
            text(&|| claim.name.clone().into()),
            text(&|| direct.clone().into()),
            text(&|| template.clone().into()),
        ))
    };
    match (direct, template) {
        (Some(_), Some(_)) => {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            errors.push(path.invalid(entry(), detail));
        }
        (None, None) => {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.push(path.invalid(entry(), detail));
        }
        _ => {}
    }
    for (field, name) in [("resourceClaimName", direct), ("resourceClaimTemplateName", template)] {
        if let Some(name) = name {
            errors.push_invalid(&path.child(field), name, names::dns1123_subdomain(name));
        }
    }
}
