//! The mounts of one container: where each volume mount comes from.

use std::collections::BTreeMap;
use std::path::Path;

use api_types::core_v1::{Container, Pod, VolumeDevice, VolumeMount};
use node_api::cri::v1;

use super::set::VolumeSet;
use super::spec::{Kind, kind_of};
use super::sub_path::{self, SubPathError};
use crate::env::expand;
use crate::interfaces::SideError;

/// Why a container has no mounts.
#[derive(Debug, thiserror::Error)]
pub enum MountListError {
    /// The pod has no such volume, or it is not in place.
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    NoVolume { volume: String, container: String },
    #[error("cannot find volume {volume:?} to pass into container {container:?}")]
    NoDevice { volume: String, container: String },
    #[error("missing value for {}", .0.join(", "))]
    NoValue(Vec<String>),
    #[error(transparent)]
    SubPath(SubPathError),
    /// Why is in the log: upstream does not tell the container's owner what lies on the machine.
    #[error("failed to prepare subPath for volumeMount {volume:?} of container {container:?}")]
    Unprepared { volume: String, container: String },
    #[error(
        "failed to resolve recursive read-only mode: volume {volume:?} requested recursive read-only mode, but {why}"
    )]
    Recursive { volume: String, why: NotRecursive },
    #[error("unknown recursive read-only mode {0:?}")]
    RecursiveMode(String),
}

/// Why a mount is not read-only all the way down.
#[derive(Debug, thiserror::Error)]
pub enum NotRecursive {
    #[error("it is not read-only")]
    Writable,
    #[error("it is not compatible with propagation {0:?}")]
    Propagated(String),
    #[error("it is not supported by the runtime")]
    Unsupported,
}

impl From<MountListError> for SideError {
    fn from(error: MountListError) -> Self {
        Self::new(error.to_string())
    }
}

/// What mounts are made for.
pub struct MountRequest<'a> {
    pub pod: &'a Pod,
    pub container: &'a Container,
    /// The container's whole environment, for `subPathExpr`.
    pub environment: &'a BTreeMap<String, String>,
    /// Whether the runtime can make what lies below a read-only mount read-only too.
    pub recursive_read_only: bool,
}

/// The container's volume mounts in order; sub paths are put into place.
pub fn mounts_of(set: &VolumeSet, request: &MountRequest<'_>) -> Result<Vec<v1::Mount>, MountListError> {
    let mounts = request.container.volume_mounts.iter().enumerate();
    mounts.map(|(index, mount)| one(set, request, index, mount)).collect()
}

/// The container's block devices in order.
pub fn devices_of(set: &VolumeSet, pod: &Pod, container: &Container) -> Result<Vec<v1::Device>, MountListError> {
    let device = |device: &VolumeDevice| {
        let (volume, container) = (device.name.clone(), container.name.clone());
        let mounted = set.mounted(&pod.metadata.uid, &device.name);
        let mounted = mounted.ok_or(MountListError::NoDevice { volume, container })?;
        Ok(v1::Device {
            container_path: device.device_path.clone(),
            host_path: mounted.path.display().to_string(),
            permissions: if mounted.read_only { "r" } else { "mrw" }.to_owned(),
        })
    };
    container.volume_devices.iter().map(device).collect()
}

fn one(
    set: &VolumeSet,
    request: &MountRequest<'_>,
    index: usize,
    mount: &VolumeMount,
) -> Result<v1::Mount, MountListError> {
    let container = &request.container.name;
    let missing = || MountListError::NoVolume { volume: mount.name.clone(), container: container.clone() };
    let volume = request.pod.spec.volumes.iter().find(|volume| volume.name == mount.name).ok_or_else(missing)?;
    let inside = sub_path_of(mount, request.environment)?;
    let container_path = absolute(&mount.mount_path);
    if let (Kind::Image, Some(image)) = (kind_of(volume), &volume.volume_source.image) {
        let spec = v1::ImageSpec {
            image: image.reference.clone(),
            user_specified_image: image.reference.clone(),
            ..v1::ImageSpec::default()
        };
        return Ok(v1::Mount {
            container_path,
            image: Some(spec),
            image_sub_path: inside,
            readonly: true,
            ..v1::Mount::default()
        });
    }
    let mounted = set.mounted(&request.pod.metadata.uid, &mount.name).ok_or_else(missing)?;
    let readonly = mount.read_only || mounted.read_only;
    let mut host_path = mounted.path.clone();
    if !inside.is_empty() {
        let uid = &request.pod.metadata.uid;
        let target = set.layout().sub_path(uid, &mount.name, container, index);
        host_path =
            sub_path::bind(set.mounts(), &mounted.path, &inside, &target, mounted.read_only).map_err(|error| {
                tracing::warn!(%error, volume = mount.name, container, "Preparing a sub path failed");
                MountListError::Unprepared { volume: mount.name.clone(), container: container.clone() }
            })?;
    }
    Ok(v1::Mount {
        container_path,
        host_path: host_path.display().to_string(),
        readonly,
        selinux_relabel: mounted.relabel,
        propagation: propagation(mount).into(),
        recursive_read_only: recursive(mount, readonly, request.recursive_read_only)?,
        ..v1::Mount::default()
    })
}

/// The part of the volume that is wanted, with variables filled in; empty for all of it.
fn sub_path_of(mount: &VolumeMount, environment: &BTreeMap<String, String>) -> Result<String, MountListError> {
    let mut path = mount.sub_path.clone();
    if !mount.sub_path_expr.is_empty() {
        let missing = parking_lot::Mutex::new(Vec::new());
        path = expand(&mount.sub_path_expr, &|name| {
            let value = environment.get(name).filter(|value| !value.is_empty());
            if value.is_none() {
                missing.lock().push(name.to_owned());
            }
            Some(value.cloned().unwrap_or_default())
        });
        let missing = missing.into_inner();
        if !missing.is_empty() {
            return Err(MountListError::NoValue(missing));
        }
    }
    sub_path::check(&path).map_err(MountListError::SubPath)?;
    Ok(path)
}

fn absolute(path: &str) -> String {
    if Path::new(path).is_absolute() { path.to_owned() } else { format!("/{path}") }
}

fn propagation(mount: &VolumeMount) -> v1::MountPropagation {
    match mount.mount_propagation.as_deref() {
        Some("HostToContainer") => v1::MountPropagation::PropagationHostToContainer,
        Some("Bidirectional") => v1::MountPropagation::PropagationBidirectional,
        _ => v1::MountPropagation::PropagationPrivate,
    }
}

fn recursive(mount: &VolumeMount, readonly: bool, supported: bool) -> Result<bool, MountListError> {
    let wish = mount.recursive_read_only.as_deref().unwrap_or("Disabled");
    let refuse = |why| Err(MountListError::Recursive { volume: mount.name.clone(), why });
    if wish == "Disabled" {
        return Ok(false);
    }
    if !readonly {
        return refuse(NotRecursive::Writable);
    }
    match mount.mount_propagation.as_deref() {
        None | Some("None") => {}
        Some(other) => return refuse(NotRecursive::Propagated(other.to_owned())),
    }
    match wish {
        "IfPossible" => Ok(supported),
        "Enabled" if supported => Ok(true),
        "Enabled" => refuse(NotRecursive::Unsupported),
        other => Err(MountListError::RecursiveMode(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursive_read_only_needs_support() {
        let mount = |wish: &str, propagation: Option<&str>| VolumeMount {
            name: "v".into(),
            recursive_read_only: Some(wish.into()),
            mount_propagation: propagation.map(Into::into),
            ..VolumeMount::default()
        };
        let cases = [
            (mount("Disabled", None), false, false, Ok(false)),
            (mount("IfPossible", None), true, false, Ok(false)),
            (mount("IfPossible", Some("None")), true, true, Ok(true)),
            (mount("Enabled", None), true, true, Ok(true)),
            (mount("Enabled", None), true, false, Err("not supported by the runtime")),
            (mount("Enabled", None), false, true, Err("not read-only")),
            (mount("Enabled", Some("Bidirectional")), true, true, Err("not compatible")),
        ];
        for (mount, readonly, supported, expected) in cases {
            match (recursive(&mount, readonly, supported), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn sub_paths_take_variables() {
        let environment: BTreeMap<_, _> =
            [("POD".to_owned(), "web".to_owned()), ("NO".to_owned(), String::new())].into();
        let mount = |expr: &str| VolumeMount { sub_path_expr: expr.into(), ..VolumeMount::default() };
        assert_eq!(sub_path_of(&mount("logs/$(POD)"), &environment).unwrap(), "logs/web");
        let missing = sub_path_of(&mount("$(A)/$(POD)/$(NO)"), &environment).unwrap_err();
        assert_eq!(missing.to_string(), "missing value for A, NO");
        assert!(sub_path_of(&mount("../$(POD)"), &environment).is_err());
    }
}
