//! Which volumes of a pod are to be mounted, and what kind each is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use api_types::core_v1::{
    CSIVolumeSource, ConfigMapVolumeSource, DownwardAPIVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource,
    NFSVolumeSource, Pod, ProjectedVolumeSource, SecretVolumeSource, Volume,
};

use super::reconcile::Step;

/// A volume by its kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    EmptyDir(&'a EmptyDirVolumeSource),
    HostPath(&'a HostPathVolumeSource),
    ConfigMap(&'a ConfigMapVolumeSource),
    Secret(&'a SecretVolumeSource),
    Downward(&'a DownwardAPIVolumeSource),
    Projected(&'a ProjectedVolumeSource),
    Nfs(&'a NFSVolumeSource),
    Csi(&'a CSIVolumeSource),
    Claim {
        name: &'a str,
        ephemeral: bool,
        read_only: bool,
    },
    /// The runtime mounts it.
    Image,
    Refused(Refused),
    /// No plugin has it: those of some kinds are gone.
    Unmatched,
}

/// A kind of volume that this kubelet does not bring into place, told as upstream tells that it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate \
         `GitRepoVolumeDriver`"
    )]
    GitRepo,
    #[error("failed to get any path for iscsi disk, last err seen:\nthis kubelet does not log in to iSCSI portals")]
    Iscsi,
    #[error("no fc disk found: this kubelet does not look for disks of Fibre Channel")]
    Fc,
}

impl Refused {
    /// The step at which upstream fails, as events name it.
    pub(super) fn step(self, block: bool) -> &'static str {
        match self {
            Self::Iscsi | Self::Fc => Step::Attach.name(block),
            Self::GitRepo => "MountVolume.NewMounter initialization",
        }
    }
}

impl Kind<'_> {
    /// Whether containers may never write to it.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::ConfigMap(_) | Self::Secret(_) | Self::Downward(_) | Self::Projected(_) | Self::Image => true,
            Self::Claim { read_only, .. } => *read_only,
            Self::Csi(source) => source.read_only == Some(true),
            Self::Nfs(source) => source.read_only,
            Self::EmptyDir(_) | Self::HostPath(_) | Self::Refused(_) | Self::Unmatched => false,
        }
    }
}

/// What a volume is.
pub(super) fn kind_of(volume: &Volume) -> Kind<'_> {
    let source = &volume.volume_source;
    if let Some(source) = &source.empty_dir {
        return Kind::EmptyDir(source);
    }
    if let Some(source) = &source.host_path {
        return Kind::HostPath(source);
    }
    if let Some(source) = &source.config_map {
        return Kind::ConfigMap(source);
    }
    if let Some(source) = &source.secret {
        return Kind::Secret(source);
    }
    if let Some(source) = &source.downward_api {
        return Kind::Downward(source);
    }
    if let Some(source) = &source.projected {
        return Kind::Projected(source);
    }
    if let Some(source) = &source.nfs {
        return Kind::Nfs(source);
    }
    if let Some(source) = &source.csi {
        return Kind::Csi(source);
    }
    if let Some(source) = &source.persistent_volume_claim {
        return Kind::Claim { name: &source.claim_name, ephemeral: false, read_only: source.read_only };
    }
    if source.ephemeral.is_some() {
        return Kind::Claim { name: "", ephemeral: true, read_only: false };
    }
    if source.image.is_some() {
        return Kind::Image;
    }
    match source {
        source if source.git_repo.is_some() => Kind::Refused(Refused::GitRepo),
        source if source.iscsi.is_some() => Kind::Refused(Refused::Iscsi),
        source if source.fc.is_some() => Kind::Refused(Refused::Fc),
        _ => Kind::Unmatched,
    }
}

/// The volumes that containers mount.
pub(super) fn mounted_names(pod: &Pod) -> BTreeSet<&str> {
    let own = pod.spec.init_containers.iter().chain(&pod.spec.containers).map(|container| &container.volume_mounts);
    let ephemeral = pod.spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common.volume_mounts);
    own.chain(ephemeral).flatten().map(|mount| mount.name.as_str()).collect()
}

/// The volumes that containers have as block devices.
pub(super) fn device_names(pod: &Pod) -> BTreeSet<&str> {
    let own = pod.spec.init_containers.iter().chain(&pod.spec.containers).map(|container| &container.volume_devices);
    let ephemeral = pod.spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common.volume_devices);
    own.chain(ephemeral).flatten().map(|device| device.name.as_str()).collect()
}

/// The volumes that containers of any kind use; others are left alone, as upstream does.
pub(super) fn used(pod: &Pod) -> Vec<&Volume> {
    let mut names = mounted_names(pod);
    names.append(&mut device_names(pod));
    pod.spec.volumes.iter().filter(|volume| names.contains(volume.name.as_str())).collect()
}

/// Places inside a volume that other volumes are mounted on: the volume is read-only for containers, so these must be
/// there before. Relative to the volume.
pub(super) fn nested_mount_points(pod: &Pod, volume: &str) -> BTreeSet<PathBuf> {
    let mut places = BTreeSet::new();
    for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
        let whole = container
            .volume_mounts
            .iter()
            .filter(|mount| mount.name == volume && mount.sub_path.is_empty() && mount.sub_path_expr.is_empty());
        for outer in whole {
            let root = Path::new(&outer.mount_path);
            let inner = container.volume_mounts.iter().map(|mount| Path::new(&mount.mount_path));
            places.extend(inner.filter_map(|path| path.strip_prefix(root).ok()).filter_map(climbing_free));
        }
    }
    places
}

fn climbing_free(path: &Path) -> Option<PathBuf> {
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    (plain && !path.as_os_str().is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Container, VolumeMount};

    use super::*;

    fn mount(name: &str, path: &str) -> VolumeMount {
        VolumeMount { name: name.into(), mount_path: path.into(), ..VolumeMount::default() }
    }

    #[test]
    fn only_used_volumes_count_and_nesting_is_seen() {
        let mut pod = Pod::default();
        pod.spec.volumes = ["a", "b", "c"].map(|name| Volume { name: name.into(), ..Volume::default() }).into();
        pod.spec.containers.push(Container {
            volume_mounts: vec![
                mount("a", "/etc/app"),
                mount("c", "/etc/app/secrets/x"),
                mount("c", "/etc/application"),
            ],
            ..Container::default()
        });
        let names: Vec<&str> = used(&pod).iter().map(|volume| volume.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(nested_mount_points(&pod, "a"), [PathBuf::from("secrets/x")].into());
        assert!(nested_mount_points(&pod, "c").is_empty());
    }
}
