//! Rules of the sources of volumes, one function each; those that persistent volumes have too are shared.

use std::sync::LazyLock;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::names;
use api_machinery::reflect::{Reflect, is_zero};
use api_types::core_v1::constants::{azure_data_disk_caching_mode, azure_data_disk_kind, host_path_type, pull_policy};
use api_types::core_v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource, CSIVolumeSource,
    CephFSVolumeSource, CinderVolumeSource, ConfigMapVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource,
    FCVolumeSource, FlexVolumeSource, FlockerVolumeSource, GCEPersistentDiskVolumeSource, GitRepoVolumeSource,
    GlusterfsVolumeSource, HostPathVolumeSource, ISCSIVolumeSource, ImageVolumeSource, KeyToPath, NFSVolumeSource,
    PersistentVolumeClaimVolumeSource, PhotonPersistentDiskVolumeSource, PortworxVolumeSource, QuobyteVolumeSource,
    RBDVolumeSource, ScaleIOVolumeSource, SecretVolumeSource, StorageOSVolumeSource, VsphereVirtualDiskVolumeSource,
};
use kinds_frame::field_rules as rules;
use regex::Regex;

use crate::claim_spec;

const REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";
const MAX_TENANT: usize = 65;
const MANAGED_DISK: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

pub(super) fn empty_dir(path: &Path, source: &EmptyDirVolumeSource, errors: &mut ErrorList) {
    if source.size_limit.as_ref().is_some_and(|limit| limit.sign() < 0) {
        errors.push(path.child("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

pub fn host_path(path: &Path, source: &HostPathVolumeSource, errors: &mut ErrorList) {
    let at = path.child("path");
    if rules::required(&at, &source.path, errors) {
        rules::no_backsteps(&at, &source.path, errors);
        rules::one_of_if_set(&path.child("type"), source.type_.as_ref(), host_path_type::ALL, errors);
    }
}

pub(super) fn git_repo(path: &Path, source: &GitRepoVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("repository"), &source.repository, errors);
    rules::relative_path(&path.child("directory"), &source.directory, errors);
}

fn partition(path: &Path, partition: i32, errors: &mut ErrorList) {
    if !(0..=255).contains(&partition) {
        errors.push(path.child("partition").invalid(partition, names::range_detail(1, 255)));
    }
}

pub fn gce_persistent_disk(path: &Path, source: &GCEPersistentDiskVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("pdName"), &source.pd_name, errors);
    partition(path, source.partition, errors);
}

pub fn aws_elastic_block_store(path: &Path, source: &AWSElasticBlockStoreVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("volumeID"), &source.volume_id, errors);
    partition(path, source.partition, errors);
}

pub(super) fn secret(path: &Path, source: &SecretVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("secretName"), &source.secret_name, errors);
    rules::mode(&path.child("defaultMode"), source.default_mode, errors);
    items(path, &source.items, errors);
}

pub(super) fn config_map(path: &Path, source: &ConfigMapVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("name"), &source.local_object_reference.name, errors);
    rules::mode(&path.child("defaultMode"), source.default_mode, errors);
    items(path, &source.items, errors);
}

/// Which keys become which files.
pub(super) fn items(path: &Path, items: &[KeyToPath], errors: &mut ErrorList) {
    for (index, item) in items.iter().enumerate() {
        let path = path.child("items").index(index);
        rules::required(&path.child("key"), &item.key, errors);
        rules::required(&path.child("path"), &item.path, errors);
        rules::relative_unreserved_path(&path.child("path"), &item.path, errors);
        rules::mode(&path.child("mode"), item.mode, errors);
    }
}

pub fn nfs(path: &Path, source: &NFSVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("server"), &source.server, errors);
    rules::required(&path.child("path"), &source.path, errors);
    if !source.path.starts_with('/') {
        errors.push(path.child("path").invalid(source.path.as_str(), "must be an absolute path"));
    }
}

/// Why a name of an initiator or target is not one, if it is not.
pub fn iqn_problem(name: &str) -> Option<&'static str> {
    const FORMAT: &str = "must be valid format";
    let alphanumeric =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let good = match name.get(..3) {
        Some("iqn") => IQN.as_ref().is_some_and(|format| format.is_match(name)),
        Some("eui") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 16)),
        Some("naa") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 32)),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!good).then_some(FORMAT)
}

/// `iqn.YYYY-MM.` and a name, then a colon and anything without separators. Upstream looks for it anywhere in the text,
/// up to the end.
static IQN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"iqn\.[0-9]{4}-[0-9]{2}\.[0-9A-Za-z.-]+:[^,;*&$|\t\n\f\r ]+$").ok());

pub(super) fn iscsi(path: &Path, source: &ISCSIVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("targetPortal"), &source.target_portal, errors);
    if rules::required(&path.child("iqn"), &source.iqn, errors)
        && let Some(problem) = iqn_problem(&source.iqn)
    {
        errors.push(path.child("iqn").invalid(source.iqn.as_str(), problem));
    }
    lun(&path.child("lun"), source.lun, errors);
    if (source.chap_auth_discovery || source.chap_auth_session) && source.secret_ref.is_none() {
        errors.push(path.child("secretRef").required(""));
    }
    if let Some(name) = &source.initiator_name
        && let Some(problem) = iqn_problem(name)
    {
        errors.push(path.child("initiatorname").invalid(name, problem));
    }
}

/// The number of a logical unit.
pub fn lun(path: &Path, lun: i32, errors: &mut ErrorList) {
    if !(0..=255).contains(&lun) {
        errors.push(path.invalid(lun, names::range_detail(0, 255)));
    }
}

pub(super) fn glusterfs(path: &Path, source: &GlusterfsVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("endpoints"), &source.endpoints, errors);
    rules::required(&path.child("path"), &source.path, errors);
}

pub fn flocker(path: &Path, source: &FlockerVolumeSource, errors: &mut ErrorList) {
    match (source.dataset_name.is_empty(), source.dataset_uuid.is_empty()) {
        (true, true) => errors.push(path.required("one of datasetName and datasetUUID is required")),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(path.invalid("resource", detail));
        }
        _ => {}
    }
    if source.dataset_name.contains('/') {
        errors.push(path.child("datasetName").invalid(source.dataset_name.as_str(), "must not contain '/'"));
    }
}

pub(super) fn claim(path: &Path, source: &PersistentVolumeClaimVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("claimName"), &source.claim_name, errors);
}

pub(super) fn rbd(path: &Path, source: &RBDVolumeSource, errors: &mut ErrorList) {
    monitors(path, &source.monitors, errors);
    rules::required(&path.child("image"), &source.image, errors);
}

pub fn monitors(path: &Path, monitors: &[String], errors: &mut ErrorList) {
    if monitors.is_empty() {
        errors.push(path.child("monitors").required(""));
    }
}

pub(super) fn cinder(path: &Path, source: &CinderVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("volumeID"), &source.volume_id, errors);
    if let Some(secret) = &source.secret_ref {
        rules::required(&path.child("secretRef").child("name"), &secret.name, errors);
    }
}

pub(super) fn cephfs(path: &Path, source: &CephFSVolumeSource, errors: &mut ErrorList) {
    monitors(path, &source.monitors, errors);
}

pub fn quobyte(path: &Path, source: &QuobyteVolumeSource, errors: &mut ErrorList) {
    let is_pair =
        |pair: &str| pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.starts_with('['));
    if source.registry.is_empty() {
        errors.push(path.child("registry").required(REGISTRY));
    } else if source.tenant.len() >= MAX_TENANT {
        errors.push(path.child("tenant").required("must be a UUID and may not exceed a length of 64 characters"));
    } else if !source.registry.split(',').all(is_pair) {
        errors.push(path.child("registry").invalid(source.registry.as_str(), REGISTRY));
    }
    rules::required(&path.child("volume"), &source.volume, errors);
}

pub fn fc(path: &Path, source: &FCVolumeSource, errors: &mut ErrorList) {
    let at = path.child("targetWWNs");
    match (source.target_wwns.is_empty(), source.wwids.is_empty()) {
        (true, true) => errors.push(at.required("must specify either targetWWNs or wwids, but not both")),
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(at.invalid(BadValue::list(&source.target_wwns), detail));
        }
        _ => {}
    }
    match source.lun {
        None if !source.target_wwns.is_empty() => {
            errors.push(path.child("lun").required("lun is required if targetWWNs is specified"));
        }
        Some(number) if !source.target_wwns.is_empty() => lun(&path.child("lun"), number, errors),
        _ => {}
    }
}

pub(super) fn flex_volume(path: &Path, source: &FlexVolumeSource, errors: &mut ErrorList) {
    flex_options(path, &source.driver, source.options.keys(), errors);
}

/// What persistent and other flexible volumes share.
pub fn flex_options<'a>(path: &Path, driver: &str, options: impl Iterator<Item = &'a String>, errors: &mut ErrorList) {
    rules::required(&path.child("driver"), driver, errors);
    for key in options {
        let namespace = key.split('/').next().unwrap_or_default();
        let dotted = format!(".{}", namespace.to_lowercase());
        if dotted.ends_with(".kubernetes.io") || dotted.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(path.child("options").key(key).invalid(key, detail));
        }
    }
}

pub(super) fn azure_file(path: &Path, source: &AzureFileVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("secretName"), &source.secret_name, errors);
    rules::required(&path.child("shareName"), &source.share_name, errors);
}

pub fn vsphere_volume(path: &Path, source: &VsphereVirtualDiskVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("volumePath"), &source.volume_path, errors);
}

pub fn photon_persistent_disk(path: &Path, source: &PhotonPersistentDiskVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("pdID"), &source.pd_id, errors);
}

pub fn portworx_volume(path: &Path, source: &PortworxVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("volumeID"), &source.volume_id, errors);
}

pub fn azure_disk(path: &Path, source: &AzureDiskVolumeSource, errors: &mut ErrorList) {
    rules::required(&path.child("diskName"), &source.disk_name, errors);
    let at = path.child("diskURI");
    rules::required(&at, &source.disk_uri, errors);
    rules::one_of_if_set(
        &path.child("cachingMode"),
        source.caching_mode.as_ref(),
        azure_data_disk_caching_mode::ALL,
        errors,
    );
    rules::one_of_if_set(&path.child("kind"), source.kind.as_ref(), azure_data_disk_kind::ALL, errors);
    let (prefix, form) = match source.kind.as_deref() {
        Some("Managed") => ("/subscriptions/", MANAGED_DISK),
        _ => ("https://", BLOB_DISK),
    };
    if !source.disk_uri.starts_with(prefix) {
        errors.push(at.not_supported(source.disk_uri.as_str(), &[form]));
    }
}

pub(super) fn storageos(path: &Path, source: &StorageOSVolumeSource, errors: &mut ErrorList) {
    storageos_names(path, &source.volume_name, &source.volume_namespace, errors);
    if let Some(secret) = &source.secret_ref {
        rules::required(&path.child("secretRef").child("name"), &secret.name, errors);
    }
}

/// What persistent and other volumes of this kind share.
pub fn storageos_names(path: &Path, name: &str, namespace: &str, errors: &mut ErrorList) {
    rules::named(&path.child("volumeName"), name, names::dns1123_label, errors);
    rules::named_if_set(&path.child("volumeNamespace"), namespace, names::dns1123_label, errors);
}

pub(super) fn scale_io(path: &Path, source: &ScaleIOVolumeSource, errors: &mut ErrorList) {
    scale_io_names(path, [&source.gateway, &source.system, &source.volume_name], errors);
}

/// What persistent and other volumes of this kind share: gateway, system and volume.
pub fn scale_io_names(path: &Path, values: [&String; 3], errors: &mut ErrorList) {
    for (field, value) in ["gateway", "system", "volumeName"].into_iter().zip(values) {
        rules::required(&path.child(field), value, errors);
    }
}

pub(super) fn csi(path: &Path, source: &CSIVolumeSource, errors: &mut ErrorList) {
    errors.extend(names::csi_driver_name(&path.child("driver"), &source.driver));
    let Some(secret) = &source.node_publish_secret_ref else { return };
    if rules::required(&path.child("nodePublishSecretRef").child("name"), &secret.name, errors) {
        errors.push_invalid(&path.child("name"), &secret.name, names::dns1123_subdomain(&secret.name));
    }
}

pub(super) fn ephemeral(path: &Path, source: &EphemeralVolumeSource, errors: &mut ErrorList) {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = &source.volume_claim_template else {
        errors.push(path.required(""));
        return;
    };
    validate_template_metadata(&path.child("metadata"), &template.metadata, errors);
    claim_spec::validate(&path.child("spec"), &template.spec, None, errors);
}

/// Checks the metadata of a template, which are labels and annotations.
pub fn validate_template_metadata(path: &Path, metadata: &ObjectMeta, errors: &mut ErrorList) {
    errors.extend(names::annotations(&path.child("annotations"), &metadata.annotations));
    errors.extend(names::labels(&path.child("labels"), &metadata.labels));
    for (index, field) in metadata.struct_type().fields.iter().enumerate() {
        if matches!(field.name, "labels" | "annotations") || is_zero(metadata.field(index)) {
            continue;
        }
        // The internal name with its first letter in lower case: `UID` becomes `uID`.
        let name = if field.name == "uid" { "uID" } else { field.name };
        errors.push(path.child(name).forbidden("cannot be set"));
    }
}

pub(super) fn image(path: &Path, source: &ImageVolumeSource, needs_reference: bool, errors: &mut ErrorList) {
    if needs_reference {
        rules::required(&path.child("reference"), &source.reference, errors);
    }
    rules::choice(&path.child("pullPolicy"), &source.pull_policy, pull_policy::ALL, errors);
}
