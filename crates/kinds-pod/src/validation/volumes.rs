//! Rules of a pod's list of volumes: names, and that each has exactly one source.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::{Volume, VolumeSource};

use super::{Around, Form, projected, volume_sources as source};

/// The volumes that passed, by name: one that did not counts as missing for mounts.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a VolumeSource>;

/// Portal and volume make one name on the node, of at most this many bytes.
const MAX_ISCSI_NAME: usize = 64;
/// What a volume is told whose name and portal are too long together.
pub const ISCSI_NAME: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                                     iscsi.initiatorName is specified.";

/// Whether portal and name together are short enough for the node.
pub fn fits_portal(name: &str, portal: &str) -> bool {
    name.len() + 1 + portal.len() <= MAX_ISCSI_NAME
}

pub(super) fn validate<'a>(around: &Around<'a>, path: &Path, errors: &mut ErrorList) -> Volumes<'a> {
    let path = path.child("volumes");
    let created: BTreeSet<String> = around
        .spec
        .volumes
        .iter()
        .filter(|volume| volume.volume_source.ephemeral.is_some() && !around.name.is_empty())
        .map(|volume| format!("{}-{}", around.name, volume.name))
        .collect();
    let mut good = Volumes::new();
    for (index, volume) in around.spec.volumes.iter().enumerate() {
        let path = path.index(index);
        let mut own = ErrorList::new();
        validate_source(around, volume, &path, &mut own);
        let at = path.child("name");
        if volume.name.is_empty() {
            own.push(at.required(""));
        } else {
            own.push_invalid(&at, &volume.name, names::dns1123_label(&volume.name));
        }
        if good.contains_key(volume.name.as_str()) {
            own.push(at.duplicate(volume.name.as_str()));
        }
        if own.is_empty() {
            good.insert(&volume.name, &volume.volume_source);
        }
        errors.extend(own);
        if let Some(claim) = &volume.volume_source.persistent_volume_claim
            && created.contains(&claim.claim_name)
        {
            let at = path.child("persistentVolumeClaim").child("claimName");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(at.invalid(claim.claim_name.as_str(), detail));
        }
    }
    good
}

/// The sources of one volume: the first counts, more are refused.
struct Sources<'a> {
    path: &'a Path,
    found: bool,
}

impl Sources<'_> {
    fn admit(&mut self, name: &'static str, errors: &mut ErrorList) -> bool {
        if self.found {
            errors.push(self.path.child(name).forbidden("may not specify more than 1 volume type"));
            return false;
        }
        self.found = true;
        true
    }
}

/// Runs the rule of each source that is set. The second name is where its contents are reported.
macro_rules! each_source {
    ($sources:ident, $volume:ident, $errors:ident; $($field:ident $name:literal $at:literal $rule:expr;)*) => {$(
        if let Some(value) = &$volume.$field
            && $sources.admit($name, $errors)
        {
            $rule(&$sources.path.child($at), value, $errors);
        }
    )*};
}

fn validate_source(around: &Around<'_>, volume: &Volume, path: &Path, errors: &mut ErrorList) {
    let mut sources = Sources { path, found: false };
    local_sources(&mut sources, &volume.volume_source, errors);
    network_sources(&mut sources, &volume.volume_source, errors);
    newer_sources(&mut sources, around, &volume.volume_source, errors);
    if !sources.found {
        errors.push(path.required("must specify a volume type"));
    }
    validate_derived_names(around, volume, path, errors);
}

fn local_sources(sources: &mut Sources<'_>, volume: &VolumeSource, errors: &mut ErrorList) {
    each_source! { sources, volume, errors;
        empty_dir "emptyDir" "emptyDir" source::empty_dir;
        host_path "hostPath" "hostPath" source::host_path;
        git_repo "gitRepo" "gitRepo" source::git_repo;
        gce_persistent_disk "gcePersistentDisk" "persistentDisk" source::gce_persistent_disk;
        aws_elastic_block_store "awsElasticBlockStore" "awsElasticBlockStore" source::aws_elastic_block_store;
        secret "secret" "secret" source::secret;
        nfs "nfs" "nfs" source::nfs;
        iscsi "iscsi" "iscsi" source::iscsi;
        glusterfs "glusterfs" "glusterfs" source::glusterfs;
        flocker "flocker" "flocker" source::flocker;
        persistent_volume_claim "persistentVolumeClaim" "persistentVolumeClaim" source::claim;
        rbd "rbd" "rbd" source::rbd;
    }
}

fn network_sources(sources: &mut Sources<'_>, volume: &VolumeSource, errors: &mut ErrorList) {
    each_source! { sources, volume, errors;
        cinder "cinder" "cinder" source::cinder;
        cephfs "cephFS" "cephfs" source::cephfs;
        quobyte "quobyte" "quobyte" source::quobyte;
        downward_api "downwarAPI" "downwardAPI" projected::downward_api;
        fc "fc" "fc" source::fc;
        flex_volume "flexVolume" "flexVolume" source::flex_volume;
        config_map "configMap" "configMap" source::config_map;
        azure_file "azureFile" "azureFile" source::azure_file;
        vsphere_volume "vsphereVolume" "vsphereVolume" source::vsphere_volume;
        photon_persistent_disk "photonPersistentDisk" "photonPersistentDisk" source::photon_persistent_disk;
        portworx_volume "portworxVolume" "portworxVolume" source::portworx_volume;
        azure_disk "azureDisk" "azureDisk" source::azure_disk;
        storageos "storageos" "storageos" source::storageos;
    }
}

fn newer_sources(sources: &mut Sources<'_>, around: &Around<'_>, volume: &VolumeSource, errors: &mut ErrorList) {
    let projected = |path: &Path, value: &_, errors: &mut ErrorList| projected::validate(around, path, value, errors);
    let ephemeral = |path: &Path, value: &_, errors: &mut ErrorList| source::ephemeral(path, value, errors);
    let image = |path: &Path, value: &_, errors: &mut ErrorList| {
        source::image(path, value, around.form == Form::Pod, errors);
    };
    each_source! { sources, volume, errors;
        projected "projected" "projected" projected;
        scale_io "scaleIO" "scaleIO" source::scale_io;
        csi "csi" "csi" source::csi;
        ephemeral "ephemeral" "ephemeral" ephemeral;
        image "image" "image" image;
    }
}

/// Names that are made of the volume's name must be valid as well.
fn validate_derived_names(around: &Around<'_>, volume: &Volume, path: &Path, errors: &mut ErrorList) {
    let at = path.child("name");
    if volume.volume_source.ephemeral.is_some() && !around.name.is_empty() {
        let claim = format!("{}-{}", around.name, volume.name);
        for problem in names::dns1123_subdomain(&claim) {
            errors.push(at.invalid(volume.name.as_str(), format!("PVC name \"{claim}\": {problem}")));
        }
    }
    if let Some(iscsi) = &volume.volume_source.iscsi
        && iscsi.initiator_name.is_some()
        && !fits_portal(&volume.name, &iscsi.target_portal)
    {
        errors.push(at.invalid(volume.name.as_str(), ISCSI_NAME));
    }
}
