//! What volumes need on the machine: directories, mounts, files, owners. Every call here may block, for as long as a
//! network file system without a server blocks; [`super::set`] calls from threads that may.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use api_types::core_v1::{EmptyDirVolumeSource, Pod, Volume};
use base::{SharedClock, SharedRng};
use sys::mounts::{Depth, Mount, Mounts, Restrictions, Unmount};

use super::empty_dir::{self, in_memory, make_directory, mount_once};
use super::error::VolumeError;
use super::file_error::FileError;
use super::layout::{Layout, Plugin};
use super::ownership::{Access, When, give_to_group};
use super::scratch_quota::ScratchQuotas;
use super::spec::nested_mount_points;
use super::sub_path;
use super::writer::{self, Payload};
use crate::interfaces::NodeView;

/// How often mounts that lie over each other are looked for again.
const MAX_STACKED: usize = 16;

/// The machine, as far as volumes go.
pub(super) struct Disk {
    pub(super) layout: Layout,
    pub(super) mounts: Arc<dyn Mounts>,
    pub(super) node: Arc<dyn NodeView>,
    pub(super) clock: SharedClock,
    pub(super) rng: SharedRng,
    /// None while the feature is off.
    pub(super) quotas: Option<Arc<ScratchQuotas>>,
}

/// A volume is of another group than a pod wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForeignGroup {
    pub(super) wanted: u32,
    pub(super) of: u32,
}

impl Disk {
    pub(super) fn empty_dir(
        &self,
        pod: &Pod,
        volume: &Volume,
        source: &EmptyDirVolumeSource,
        path: &Path,
    ) -> Result<(), VolumeError> {
        let uid = &pod.metadata.uid;
        if self.is_marked(uid, &volume.name) && path.is_dir() {
            let on_disk = source.medium.is_empty();
            // Memory is gone after a reboot, its directory is not.
            if on_disk || self.mounts.is_mount_point(path)? {
                if let Some(quotas) = &self.quotas {
                    quotas.adopt(pod, source, path);
                }
                return Ok(());
            }
        }
        let memory = self.node.node().and_then(|node| Some(node.status.allocatable.get("memory")?.value()));
        empty_dir::set_up(&*self.mounts, pod, source, path, memory)?;
        if let Some(quotas) = &self.quotas {
            quotas.assign(pod, source, path);
        }
        if let Some(group) = fs_group(pod) {
            give(path, group)?;
        }
        self.mark(uid, &volume.name)
    }

    fn is_marked(&self, uid: &str, volume: &str) -> bool {
        self.layout.ready_mark(uid, volume).exists()
    }

    fn mark(&self, uid: &str, volume: &str) -> Result<(), VolumeError> {
        make_mark(&self.layout.ready_mark(uid, volume))
    }

    /// A local volume in a pod's directory, and of which group it is where that is not the pod's. Of a volume that another pod has
    /// already, the group stays that one's.
    pub(super) fn claimed(
        &self,
        pod: &Pod,
        name: &str,
        source: &Path,
        read_only: bool,
        given: &AtomicU64,
    ) -> Result<(PathBuf, Option<ForeignGroup>), VolumeError> {
        let uid = &pod.metadata.uid;
        let path = self.layout.volume(uid, Plugin::Local, name);
        let mark = self.layout.given_mark(uid, Plugin::Local, name);
        make_directory(&path, 0o750)?;
        let is_new = !self.mounts.is_mount_point(&path)?;
        let is_shared = self.others_have(uid, name)?;
        if is_new {
            // Left by a machine that was started anew since.
            let _ = std::fs::remove_file(&mark);
            let mut mount = Mount::bind(source, &path, Depth::One);
            mount.read_only = read_only;
            self.mounts.mount(&mount)?;
        }
        if !is_shared {
            self.give_once(pod, Plugin::Local, name, &path, read_only, given)?;
            return Ok((path, None));
        }
        let of = std::fs::metadata(source).map_err(VolumeError::Owner)?.gid();
        let foreign = fs_group(pod).filter(|wanted| is_new && *wanted != of).map(|wanted| ForeignGroup { wanted, of });
        Ok((path, foreign))
    }

    /// Whether a local volume is in another pod's directory.
    fn others_have(&self, uid: &str, name: &str) -> Result<bool, VolumeError> {
        for other in self.pods().map_err(FileError::of("list", &self.layout.pods()))? {
            let place = self.layout.volume(&other, Plugin::Local, name);
            if other != uid && place.exists() && self.mounts.is_mount_point(&place)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives a volume in place to the pod's group, as the pod says when. Once for each mount: what containers make of it
    /// afterwards is theirs.
    pub(super) fn give_once(
        &self,
        pod: &Pod,
        plugin: Plugin,
        name: &str,
        path: &Path,
        read_only: bool,
        given: &AtomicU64,
    ) -> Result<(), VolumeError> {
        let mark = self.layout.given_mark(&pod.metadata.uid, plugin, name);
        let (Some(group), false, false) = (fs_group(pod), read_only, mark.exists()) else { return Ok(()) };
        let policy = pod.spec.security_context.as_ref().and_then(|c| c.fs_group_change_policy.as_deref());
        let when = if policy == Some("OnRootMismatch") { When::RootMismatch } else { When::Always };
        give_to_group(path, group, Access::ReadWrite, when, given).map_err(VolumeError::Owner)?;
        make_mark(&mark)
    }

    /// Files in a directory, or in memory for what may be secret.
    pub(super) fn files(&self, pod: &Pod, volume: &Volume, path: &Path, payload: &Payload) -> Result<(), VolumeError> {
        let is_secret = volume.volume_source.config_map.is_none();
        let is_new = !self.is_marked(&pod.metadata.uid, &volume.name) || !path.is_dir();
        if is_new {
            make_directory(path, 0o777)?;
        }
        if is_secret {
            let restrictions = Restrictions { no_exec: false, no_suid: true, no_dev: true };
            mount_once(&*self.mounts, &in_memory(&*self.mounts, path, None).restricted(restrictions), path)?;
        }
        let group = fs_group(pod);
        if let (true, Some(group)) = (is_new, group) {
            give(path, group)?;
        }
        for place in nested_mount_points(pod, &volume.name) {
            // A file of the payload of that name comes first and is a fine place to mount on.
            if !payload.contains_key(&place.to_string_lossy().into_owned()) {
                make_directory(&path.join(place), 0o755)?;
            }
        }
        let prepare = |new: &Path| match group {
            Some(group) => give_to_group(new, group, Access::ReadOnly, When::Always, &AtomicU64::default()),
            None => Ok(()),
        };
        writer::write(path, payload, self.clock.wall(), &self.rng, &prepare)?;
        self.mark(&pod.metadata.uid, &volume.name)
    }

    /// The directories of a pod.
    pub(super) fn directories(&self, uid: &str) -> Result<(), VolumeError> {
        let layout = &self.layout;
        for directory in [layout.pod(uid), layout.volumes(uid), layout.plugins(uid)] {
            make_directory(&directory, 0o750)?;
        }
        Ok(())
    }

    /// Takes the parts of volumes away that containers had for themselves.
    pub(super) fn clean_sub_paths(&self, uid: &str) -> Result<(), VolumeError> {
        Ok(sub_path::clean(&*self.mounts, &self.layout.sub_paths(uid))?)
    }

    /// Takes one volume away.
    pub(super) fn tear_down_volume(&self, uid: &str, plugin: Plugin, name: &str) -> Result<(), VolumeError> {
        let layout = &self.layout;
        let path = layout.volume(uid, plugin, name);
        if path.exists() {
            self.unmount_all(&path)?;
            if plugin == Plugin::EmptyDir {
                self.clear_quota(&path);
            }
        }
        let marks = [layout.ready_mark(uid, name), layout.given_mark(uid, plugin, name)];
        for tree in [path.as_path()].into_iter().chain(marks.iter().filter_map(|mark| mark.parent())) {
            sys::fs::remove_tree(tree).map_err(FileError::of("remove", tree))?;
        }
        Ok(())
    }

    fn clear_quota(&self, path: &Path) {
        if let Some(quotas) = &self.quotas {
            quotas.clear(path);
        }
    }

    /// The volumes that have a directory: the pod's uid, the plugin, and the directory's name.
    pub(super) fn reconstruct(&self) -> Vec<(String, Plugin, String)> {
        let names = |path: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let mut found = Vec::new();
        let mut look = |uid: &str, root: PathBuf, plugin_of: fn(&str) -> Option<Plugin>| {
            for directory in names(&root) {
                let Some(plugin) = plugin_of(&directory) else { continue };
                let own = names(&root.join(&directory)).into_iter();
                found.extend(own.map(|name| (uid.to_owned(), plugin, name)));
            }
        };
        for uid in names(&self.layout.pods()) {
            look(&uid, self.layout.volumes(&uid), Plugin::of_directory);
            look(&uid, self.layout.devices(&uid), Plugin::of_device_directory);
        }
        found
    }

    /// Takes everything away that is mounted below the pod's directory, and then the volumes.
    pub(super) fn tear_down(&self, uid: &str) -> Result<(), VolumeError> {
        let layout = &self.layout;
        self.clean_sub_paths(uid)?;
        // Links, and nothing that is anybody's data.
        let devices = layout.devices(uid);
        sys::fs::remove_tree(&devices).map_err(FileError::of("remove", &devices))?;
        let volumes = layout.volumes(uid);
        if !volumes.exists() {
            return Ok(());
        }
        self.unmount_all(&volumes)?;
        if self.quotas.is_some() {
            let entries = std::fs::read_dir(volumes.join(Plugin::EmptyDir.directory())).into_iter().flatten();
            entries.flatten().for_each(|entry| self.clear_quota(&entry.path()));
        }
        let removed = sys::fs::remove_tree(&volumes).and_then(|()| sys::fs::remove_tree(&layout.plugins(uid)));
        Ok(removed.map_err(FileError::of("remove", &volumes))?)
    }

    /// Nothing may be removed while a mount is left below: it might be someone's data.
    pub(super) fn unmount_all(&self, root: &Path) -> Result<(), VolumeError> {
        for _ in 0..MAX_STACKED {
            let gone = self.mounts.unmount_below(root, Unmount::IfUnused);
            match gone.or_else(|_| self.mounts.unmount_below(root, Unmount::Lazy)) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(VolumeError::StillMounted(root.to_owned()))
    }

    /// Takes away all that is left of a pod.
    ///
    /// # Errors
    /// Something is in use, or mounted where it should not be.
    pub(super) fn remove_pod(&self, uid: &str) -> Result<(), VolumeError> {
        self.tear_down(uid)?;
        let path = self.layout.pod(uid);
        self.unmount_all(&path)?;
        Ok(sys::fs::remove_tree(&path).map_err(FileError::of("remove", &path))?)
    }

    /// The uids of pods that have a directory.
    pub(super) fn pods(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(self.layout.pods())?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }
}

/// Marks that something was done, for this process and those after it.
fn make_mark(mark: &Path) -> Result<(), VolumeError> {
    if let Some(parent) = mark.parent() {
        make_directory(parent, 0o750)?;
    }
    let made = std::fs::OpenOptions::new().create(true).append(true).open(mark);
    made.map_err(FileError::of("open", mark))?;
    Ok(())
}

fn fs_group(pod: &Pod) -> Option<u32> {
    pod.spec.security_context.as_ref()?.fs_group.and_then(|group| u32::try_from(group).ok())
}

/// What the kubelet has just made is soon given.
fn give(path: &Path, group: u32) -> Result<(), VolumeError> {
    let given = AtomicU64::default();
    give_to_group(path, group, Access::ReadWrite, When::Always, &given).map_err(VolumeError::Owner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use api_types::core_v1::PodSecurityContext;
    use base::{Rng, SystemClock};
    use sys::mounts::FakeMounts;
    use sys::project_quota::{FakeProjectQuotas, ProjectQuotas as _};

    use super::*;
    use crate::node::FixedNode;
    use crate::volumes::project_files::ProjectFiles;

    #[test]
    fn scratch_space_is_a_project_from_its_beginning_to_its_end() {
        let (dir, fake) = (tempfile::tempdir().unwrap(), Arc::new(FakeProjectQuotas::counting()));
        let disk = Disk {
            layout: Layout::new(dir.path().join("kubelet")),
            mounts: Arc::new(FakeMounts::new()),
            node: Arc::new(FixedNode::default()),
            clock: SystemClock::shared(),
            rng: Rng::seeded(1),
            quotas: Some(ScratchQuotas::new(fake.clone(), dir.path())),
        };
        let mut pod = Pod::default();
        pod.metadata.uid = "u".into();
        pod.spec.host_users = Some(false);
        let source = EmptyDirVolumeSource::default();
        let noted = || std::fs::read_to_string(dir.path().join("projects")).unwrap().lines().count();
        for name in ["one", "two", "three"] {
            let volume = Volume { name: name.into(), ..Volume::default() };
            let path = disk.layout.volume("u", Plugin::EmptyDir, name);
            disk.empty_dir(&pod, &volume, &source, &path).unwrap();
            assert!(fake.project(&path).unwrap() > 0);
            // Another kubelet, on a machine whose `/etc` is new.
            std::fs::remove_file(dir.path().join("projects")).unwrap();
            disk.empty_dir(&pod, &volume, &source, &path).unwrap();
            assert_eq!(noted(), 1);
            let files = ProjectFiles::in_directory(dir.path());
            files.note(Path::new("/another"), 11).unwrap();
            match name {
                "one" => disk.tear_down_volume("u", Plugin::EmptyDir, name).unwrap(),
                "two" => disk.tear_down("u").unwrap(),
                _ => disk.remove_pod("u").unwrap(),
            }
            assert_eq!(noted(), 1, "{name}: all but that of another");
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_claimed_directory_is_given_to_the_group_once_for_each_mount() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = Arc::new(FakeMounts::new());
        let disk = Disk {
            layout: Layout::new(dir.path().join("kubelet")),
            mounts: mounts.clone(),
            node: Arc::new(FixedNode::default()),
            clock: SystemClock::shared(),
            rng: Rng::seeded(1),
            quotas: None,
        };
        let group = i64::from(std::fs::metadata(dir.path()).unwrap().gid());
        let mut pod = Pod::default();
        pod.metadata.uid = "u".into();
        pod.spec.security_context = Some(PodSecurityContext { fs_group: Some(group), ..Default::default() });
        let file = disk.layout.volume("u", Plugin::Local, "pv").join("file");
        make_directory(file.parent().unwrap(), 0o750).unwrap();
        let mut given = Vec::new();
        for event in ["first", "again", "read only", "started anew"] {
            if event == "started anew" {
                // The mount is gone, the mark on the disk is not.
                mounts.unmount(file.parent().unwrap(), Unmount::Lazy).unwrap();
            }
            std::fs::write(&file, "x").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
            disk.claimed(&pod, "pv", dir.path(), event == "read only", &AtomicU64::default()).unwrap();
            given.push(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777 == 0o660);
        }
        assert_eq!(given, [true, false, false, true]);
        disk.tear_down("u").unwrap();
        assert!(!disk.layout.given_mark("u", Plugin::Local, "pv").exists());
    }
}
