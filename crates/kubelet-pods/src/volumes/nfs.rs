//! Exports of NFS servers: mounted for each pod by the machine's own `mount`, with the options of the persistent volume.
//!
//! Their files are the server's: nothing is given to the pod's group, and nothing is labelled.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::core_v1::{NFSVolumeSource, PersistentVolume, Pod};
use async_trait::async_trait;

use super::claims::Backing;
use super::disk::Disk;
use super::empty_dir::make_directory;
use super::error::VolumeError;
use super::layout::Plugin;
use super::mount_program::{self, MountOptions};
use super::plugin::{VolumePlugin, VolumeSpec};
use super::plugins::Tools;
use super::spec::{Kind, kind_of};
use super::world::MountedVolume;

/// What is mounted, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Export {
    server: String,
    path: String,
    options: MountOptions,
}

impl Export {
    /// As a pod has it.
    fn inline(source: &NFSVolumeSource) -> Self {
        Self { server: source.server.clone(), path: source.path.clone(), options: MountOptions::default() }
    }

    /// As a persistent volume has it.
    pub(super) fn of_claim(source: &NFSVolumeSource, volume: &PersistentVolume) -> Self {
        Self { options: MountOptions::of_volume(volume), ..Self::inline(source) }
    }

    fn of(spec: &VolumeSpec) -> Result<Self, VolumeError> {
        match (spec.claim.as_ref().map(|claim| &claim.backing), kind_of(&spec.volume)) {
            (Some(Backing::Nfs(export)), _) => Ok(export.clone()),
            (None, Kind::Nfs(source)) => Ok(Self::inline(source)),
            _ => Err(VolumeError::Unmatched),
        }
    }

    fn device(&self) -> String {
        match self.server.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{}]:{}", self.server, self.path),
            Err(_) => format!("{}:{}", self.server, self.path),
        }
    }
}

/// The plugin `kubernetes.io/nfs`.
pub(super) struct Nfs(pub(super) Arc<Tools>);

impl Nfs {
    fn place(&self, uid: &str, directory: &str) -> PathBuf {
        self.0.disk.layout.volume(uid, Plugin::Nfs, directory)
    }
}

/// Whether something is mounted at a place. The place itself is not looked at: that may take for ever.
fn is_mounted(disk: &Disk, place: &Path) -> Result<bool, VolumeError> {
    let parent = place.parent().and_then(|parent| parent.canonicalize().ok());
    let (Some(parent), Some(name)) = (parent, place.file_name()) else { return Ok(false) };
    let place = parent.join(name);
    Ok(disk.mounts.list()?.iter().any(|mount| mount.target == place))
}

#[async_trait]
impl VolumePlugin for Nfs {
    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let (export, uid) = (Export::of(spec)?, &pod.metadata.uid);
        let path = self.place(uid, spec.directory());
        let place = path.clone();
        let prepare = move |disk: &Disk| {
            if is_mounted(disk, &place)? {
                return Ok(true);
            }
            make_directory(&place, 0o750)?;
            Ok(false)
        };
        if !self.0.on_disk(uid, prepare).await? {
            let (device, options) = (export.device(), export.options.list(spec.read_only));
            if let Err(error) = mount_program::mount(&*self.0.exec, "nfs", &options, &device, &path).await {
                // Only an empty directory goes, and only where nothing is mounted after all.
                let _ = self.0.on_disk(uid, move |_| Ok(std::fs::remove_dir(path))).await;
                return Err(error.into());
            }
        }
        let group = spec.claim.as_ref().and_then(|claim| claim.group);
        Ok(MountedVolume { path, read_only: spec.read_only, relabel: false, group })
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        let place = self.place(uid, directory);
        let looked = place.clone();
        if self.0.on_disk(uid, move |disk| is_mounted(disk, &looked)).await? {
            mount_program::unmount(&*self.0.exec, &place).await?;
        }
        self.0.remove(Plugin::Nfs, uid, directory).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_named_as_mount_wants_them() {
        let source = |server: &str| NFSVolumeSource { server: server.into(), path: "/x".into(), read_only: false };
        for (server, device) in
            [("nas.example.com", "nas.example.com:/x"), ("10.0.0.9", "10.0.0.9:/x"), ("fd00:0::9", "[fd00:0::9]:/x")]
        {
            assert_eq!(Export::inline(&source(server)).device(), device);
        }
    }
}
