//! Rules of persistent volumes: what a pod's volumes do not have, and the sources that differ from theirs.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{persistent_volume_mode, persistent_volume_reclaim_policy};
use api_types::core_v1::{
    PersistentVolume, PersistentVolumeSource, PersistentVolumeSpec, SecretReference, VolumeNodeAffinity,
};
use feature_gates::Gates;

use crate::claim_spec::access_modes;
use crate::field_rules::{self as rules, IMMUTABLE, POSITIVE};
use crate::gates::MUTABLE_NODE_AFFINITY;
use crate::internal_json;
use crate::pod_spec::validation::volume_sources as source;
use crate::pod_spec::validation::{ISCSI_NAME, NodeValues, fits_portal, node_selector};

/// The older way to state mount options.
pub(super) const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
/// Labels of nodes that have newer names.
const RENAMED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Checks a volume that is to be created.
pub(super) fn validate(volume: &PersistentVolume) -> ErrorList {
    validate_with(volume, NodeValues::Checked)
}

fn validate_with(volume: &PersistentVolume, node_values: NodeValues) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, spec) = (Path::new("spec"), &volume.spec);
    validate_access_modes(&path, spec, &mut errors);
    validate_capacity(&path.child("capacity"), spec, &mut errors);
    let at = path.child("persistentVolumeReclaimPolicy");
    if !spec.persistent_volume_reclaim_policy.is_empty() {
        rules::one_of(&at, &spec.persistent_volume_reclaim_policy, persistent_volume_reclaim_policy::ALL, &mut errors);
    }
    if let Some(affinity) = &spec.node_affinity {
        let at = path.child("nodeAffinity").child("required");
        match &affinity.required {
            None => errors.push(at.required("must specify required node constraints")),
            Some(selector) => node_selector(&at, selector, node_values, &mut errors),
        }
    }
    validate_source(&path, &volume.metadata.name, spec, &mut errors);
    validate_classes(&path, spec, &mut errors);
    validate_mount_options(volume, &mut errors);
    errors
}

/// Checks what would be a volume's spec where no volume is: in an attachment, of a volume that a pod holds inline.
pub(crate) fn inline(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    const CONTEXT: &str = "in the context of inline volumes";
    let forbidden = |is_set: bool, field: &'static str, what: &str| {
        is_set.then(|| path.child(field).forbidden(format!("{what} {CONTEXT}")))
    };
    errors.extend(forbidden(spec.claim_ref.is_some(), "claimRef", "may not be specified"));
    errors.extend(forbidden(!spec.capacity.is_empty(), "capacity", "may not be specified"));
    if spec.persistent_volume_source.csi.is_none() {
        errors.push(path.child("csi").required(format!("has to be specified {CONTEXT}")));
    }
    validate_access_modes(path, spec, errors);
    validate_quantities(&path.child("capacity"), spec, errors);
    let policy = spec.persistent_volume_reclaim_policy.as_str();
    errors.extend(forbidden(!matches!(policy, "" | "Retain"), "persistentVolumeReclaimPolicy", "may only be Retain"));
    errors.extend(forbidden(spec.node_affinity.is_some(), "nodeAffinity", "may not be specified"));
    validate_source(path, "", spec, errors);
    errors.extend(forbidden(!spec.storage_class_name.is_empty(), "storageClassName", "may not be specified"));
    let is_other = spec.volume_mode.as_deref().is_some_and(|mode| mode != "Filesystem");
    errors.extend(forbidden(is_other, "volumeMode", "may not specify volumeMode other than Filesystem"));
    validate_attributes_class(path, spec, errors);
}

fn validate_access_modes(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    let at = path.child("accessModes");
    if spec.access_modes.is_empty() {
        errors.push(at.required(""));
    }
    access_modes(&at, &spec.access_modes, errors);
}

/// Only some kinds of volumes are mounted with options; those with options in their annotations have to be of them.
fn validate_mount_options(volume: &PersistentVolume, errors: &mut ErrorList) {
    if volume.metadata.annotations.get(MOUNT_OPTIONS).is_none_or(String::is_empty) {
        return;
    }
    let source = &volume.spec.persistent_volume_source;
    let takes_them = source.gce_persistent_disk.is_some()
        || source.aws_elastic_block_store.is_some()
        || source.glusterfs.is_some()
        || source.nfs.is_some()
        || source.rbd.is_some()
        || source.quobyte.is_some()
        || source.iscsi.is_some()
        || source.cinder.is_some()
        || source.cephfs.is_some()
        || source.azure_file.is_some()
        || source.vsphere_volume.is_some()
        || source.azure_disk.is_some()
        || source.photon_persistent_disk.is_some();
    if !takes_them {
        let at = Path::new("metadata").child("annotations").child(MOUNT_OPTIONS);
        errors.push(at.forbidden("may not specify mount options for this volume type"));
    }
}

fn validate_capacity(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    if spec.capacity.is_empty() {
        errors.push(path.required(""));
    }
    if !spec.capacity.contains_key("storage") || spec.capacity.len() > 1 {
        let shown = spec.capacity.iter().map(|(name, quantity)| (name.clone(), quantity.to_string())).collect();
        errors.push(path.not_supported(BadValue::texts(&shown), &["storage"]));
    }
    validate_quantities(path, spec, errors);
}

fn validate_quantities(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    for (name, quantity) in &spec.capacity {
        let at = path.key(name);
        if quantity.sign() < 0 {
            errors.push(at.invalid(quantity.to_string(), "must be a valid resource quantity"));
        }
        if quantity.sign() <= 0 {
            errors.push(at.invalid(quantity.to_string(), POSITIVE));
        }
    }
}

fn validate_classes(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    let at = path.child("storageClassName");
    rules::named_if_set(&at, &spec.storage_class_name, names::dns1123_subdomain, errors);
    rules::one_of_if_set(&path.child("volumeMode"), spec.volume_mode.as_ref(), persistent_volume_mode::ALL, errors);
    validate_attributes_class(path, spec, errors);
}

fn validate_attributes_class(path: &Path, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    let Some(class) = &spec.volume_attributes_class_name else { return };
    let at = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.push(at.required("an empty string is disallowed"));
    }
    rules::named_if_set(&at, class, names::dns1123_subdomain, errors);
    if spec.persistent_volume_source.csi.is_none() {
        errors.push(path.child("csi").required("has to be specified when using volumeAttributesClassName"));
    }
}

/// Runs the rule of each source that is set; the first counts, more are refused.
macro_rules! each_source {
    ($found:ident, $path:ident, $source:ident, $errors:ident; $($field:ident $name:literal $rule:expr;)*) => {$(
        if let Some(value) = &$source.$field {
            let at = $path.child($name);
            if $found {
                $errors.push(at.forbidden("may not specify more than 1 volume type"));
            } else {
                $found = true;
                $rule(&at, value, $errors);
            }
        }
    )*};
}

fn validate_source(path: &Path, name: &str, spec: &PersistentVolumeSpec, errors: &mut ErrorList) {
    let sources = &spec.persistent_volume_source;
    let found = older_sources(path, sources, errors);
    let found = newer_sources(path, sources, found, errors);
    if !found {
        errors.push(path.required("must specify a volume type"));
    }
    if let Some(iscsi) = &sources.iscsi
        && iscsi.initiator_name.is_some()
        && !fits_portal(name, &iscsi.target_portal)
    {
        let at = path.child("iscsi").child("targetportal");
        errors.push(at.invalid(iscsi.target_portal.as_str(), ISCSI_NAME));
    }
    if sources.local.is_some() && spec.node_affinity.is_none() {
        errors.push(path.child("nodeAffinity").required("Local volume requires node affinity"));
    }
    let root = |path: &str| path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."));
    let whole = sources.host_path.as_ref().is_some_and(|host| root(&host.path));
    if whole && spec.persistent_volume_reclaim_policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(path.child("persistentVolumeReclaimPolicy").forbidden(detail));
    }
}

fn older_sources(path: &Path, sources: &PersistentVolumeSource, errors: &mut ErrorList) -> bool {
    let mut found = false;
    each_source! { found, path, sources, errors;
        host_path "hostPath" source::host_path;
        gce_persistent_disk "gcePersistentDisk" source::gce_persistent_disk;
        aws_elastic_block_store "awsElasticBlockStore" source::aws_elastic_block_store;
        glusterfs "glusterfs" |at: &Path, value: &api_types::core_v1::GlusterfsPersistentVolumeSource, errors: &mut ErrorList| {
            rules::required(&at.child("endpoints"), &value.endpoints, errors);
            rules::required(&at.child("path"), &value.path, errors);
            let at = at.child("endpointsNamespace");
            match value.endpoints_namespace.as_deref() {
                Some("") => errors.push(at.invalid("", "if the endpointnamespace is set, it must be a valid namespace name")),
                Some(name) => errors.push_invalid(&at, name, names::dns1123_label(name)),
                None => {}
            }
        };
        flocker "flocker" source::flocker;
        nfs "nfs" source::nfs;
        rbd "rbd" |at: &Path, value: &api_types::core_v1::RBDPersistentVolumeSource, errors: &mut ErrorList| {
            source::monitors(at, &value.monitors, errors);
            rules::required(&at.child("image"), &value.image, errors);
        };
        quobyte "quobyte" source::quobyte;
        cephfs "cephFS" |at: &Path, value: &api_types::core_v1::CephFSPersistentVolumeSource, errors: &mut ErrorList| {
            source::monitors(at, &value.monitors, errors);
        };
        iscsi "iscsi" iscsi;
        cinder "cinder" |at: &Path, value: &api_types::core_v1::CinderPersistentVolumeSource, errors: &mut ErrorList| {
            rules::required(&at.child("volumeID"), &value.volume_id, errors);
            if let Some(secret) = &value.secret_ref {
                secret_parts(&at.child("secretRef"), &secret.name, &secret.namespace, errors);
            }
        };
    }
    found
}

fn newer_sources(path: &Path, sources: &PersistentVolumeSource, earlier: bool, errors: &mut ErrorList) -> bool {
    let mut found = earlier;
    if let Some(flex) = &sources.flex_volume {
        // Upstream counts this one without ever refusing it.
        found = true;
        source::flex_options(&path.child("flexVolume"), &flex.driver, flex.options.keys(), errors);
    }
    each_source! { found, path, sources, errors;
        fc "fc" source::fc;
        azure_file "azureFile" |at: &Path, value: &api_types::core_v1::AzureFilePersistentVolumeSource, errors: &mut ErrorList| {
            rules::required(&at.child("secretName"), &value.secret_name, errors);
            rules::required(&at.child("shareName"), &value.share_name, errors);
            if let Some(namespace) = &value.secret_namespace {
                rules::required(&at.child("secretNamespace"), namespace, errors);
            }
        };
        vsphere_volume "vsphereVolume" source::vsphere_volume;
        photon_persistent_disk "photonPersistentDisk" source::photon_persistent_disk;
        portworx_volume "portworxVolume" source::portworx_volume;
        azure_disk "azureDisk" source::azure_disk;
        scale_io "scaleIO" |at: &Path, value: &api_types::core_v1::ScaleIOPersistentVolumeSource, errors: &mut ErrorList| {
            source::scale_io_names(at, [&value.gateway, &value.system, &value.volume_name], errors);
        };
        local "local" |at: &Path, value: &api_types::core_v1::LocalVolumeSource, errors: &mut ErrorList| {
            if rules::required(&at.child("path"), &value.path, errors) {
                rules::no_backsteps(&at.child("path"), &value.path, errors);
            }
        };
        storageos "storageos" |at: &Path, value: &api_types::core_v1::StorageOSPersistentVolumeSource, errors: &mut ErrorList| {
            source::storageos_names(at, &value.volume_name, &value.volume_namespace, errors);
            if let Some(secret) = &value.secret_ref {
                secret_parts(&at.child("secretRef"), &secret.name, &secret.namespace, errors);
            }
        };
        csi "csi" csi;
    }
    found
}

fn secret_parts(path: &Path, name: &str, namespace: &str, errors: &mut ErrorList) {
    rules::required(&path.child("name"), name, errors);
    rules::required(&path.child("namespace"), namespace, errors);
}

fn iscsi(path: &Path, value: &api_types::core_v1::ISCSIPersistentVolumeSource, errors: &mut ErrorList) {
    const FORMAT: &str = "must be valid format";
    rules::required(&path.child("targetPortal"), &value.target_portal, errors);
    if rules::required(&path.child("iqn"), &value.iqn, errors) && source::iqn_problem(&value.iqn).is_some() {
        errors.push(path.child("iqn").invalid(value.iqn.as_str(), FORMAT));
    }
    source::lun(&path.child("lun"), value.lun, errors);
    if (value.chap_auth_discovery || value.chap_auth_session) && value.secret_ref.is_none() {
        errors.push(path.child("secretRef").required(""));
    }
    if let Some(secret) = &value.secret_ref {
        rules::required(&path.child("secretRef").child("name"), &secret.name, errors);
    }
    if let Some(name) = &value.initiator_name
        && source::iqn_problem(name).is_some()
    {
        errors.push(path.child("initiatorname").invalid(name, FORMAT));
    }
}

fn csi(path: &Path, value: &api_types::core_v1::CSIPersistentVolumeSource, errors: &mut ErrorList) {
    errors.extend(names::csi_driver_name(&path.child("driver"), &value.driver));
    rules::required(&path.child("volumeHandle"), &value.volume_handle, errors);
    let secrets: [(&str, &Option<SecretReference>); 4] = [
        ("controllerPublishSecretRef", &value.controller_publish_secret_ref),
        ("controllerExpandSecretRef", &value.controller_expand_secret_ref),
        ("nodePublishSecretRef", &value.node_publish_secret_ref),
        ("nodeExpandSecretRef", &value.node_expand_secret_ref),
    ];
    for (field, secret) in secrets {
        let Some(secret) = secret else { continue };
        let at = path.child(field);
        rules::named(&at.child("name"), &secret.name, names::dns1123_subdomain, errors);
        rules::named(&at.child("namespace"), &secret.namespace, names::dns1123_label, errors);
    }
}

fn has_bad_value(volume: &PersistentVolume) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let mut terms = required.into_iter().flat_map(|selector| &selector.node_selector_terms);
    terms.any(|term| {
        let mut values = term.match_expressions.iter().flat_map(|one| &one.values);
        values.any(|value| !names::label_value(value).is_empty())
    })
}

/// The affinity with the older names of labels where `old` has those and the newer ones came in their places.
fn with_older_names(affinity: &VolumeNodeAffinity, old: &VolumeNodeAffinity) -> VolumeNodeAffinity {
    let mut affinity = affinity.clone();
    let (Some(new), Some(stored)) = (&mut affinity.required, &old.required) else { return affinity };
    for (new, stored) in new.node_selector_terms.iter_mut().zip(&stored.node_selector_terms) {
        for (new, stored) in new.match_expressions.iter_mut().zip(&stored.match_expressions) {
            if RENAMED.contains(&(stored.key.as_str(), new.key.as_str())) {
                new.key.clone_from(&stored.key);
            }
        }
    }
    affinity
}

/// Checks a volume that is to replace `old`. As upstream, the rules of new ones run twice.
pub(super) fn validate_update(volume: &PersistentVolume, old: &PersistentVolume, gates: &Gates) -> ErrorList {
    let node_values = if has_bad_value(old) { NodeValues::Free } else { NodeValues::Checked };
    let mut errors = validate_with(volume, node_values);
    errors.extend(errors.clone());
    let (new, stored) = (&volume.spec, &old.spec);
    let mut source = new.persistent_volume_source.clone();
    if let (Some(csi), Some(stored)) = (&mut source.csi, &stored.persistent_volume_source.csi)
        && stored.controller_expand_secret_ref.is_none()
    {
        csi.controller_expand_secret_ref = None;
    }
    if !api_machinery::reflect::equal_structs(&source, &stored.persistent_volume_source) {
        let difference = internal_json::difference(&stored.persistent_volume_source, &new.persistent_volume_source);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(Path::new("spec").child("persistentvolumesource").forbidden(detail));
    }
    if new.volume_mode != stored.volume_mode {
        let value = new.volume_mode.as_deref().map(BadValue::named);
        errors.push(Path::new("volumeMode").invalid(value.unwrap_or_else(BadValue::null), IMMUTABLE));
    }
    if let Some(affinity) = &stored.node_affinity
        && !gates.enabled(MUTABLE_NODE_AFFINITY)
        && new.node_affinity.as_ref().is_none_or(|new| with_older_names(new, affinity) != *affinity)
    {
        let value = new.node_affinity.as_ref().map_or_else(BadValue::null, |one| internal_json::bad_value(one));
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(Path::new("nodeAffinity").invalid(value, detail));
    }
    if stored.volume_attributes_class_name.is_some() && new.volume_attributes_class_name.is_none() {
        let at = Path::new("spec").child("volumeAttributesClassName");
        errors.push(at.forbidden("update from non-nil value to nil is forbidden"));
    }
    errors
}
