//! All volumes of a node's pods.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::core_v1::{Pod, Volume};
use async_trait::async_trait;
use base::{SharedClock, SharedRng};
use client::Client;
use parking_lot::Mutex;
use sys::mounts::{Depth, Mount, Mounts, Restrictions, Unmount};

use super::claims::{self, Resolved};
use super::empty_dir::{self, make_directory, mount_once, told};
use super::host_path;
use super::layout::{Layout, Plugin};
use super::ownership::{Access, When, give_to_group};
use super::payload::Maker;
use super::plan::{Kind, kind_of, nested_mount_points, used};
use super::sub_path;
use super::tokens::Tokens;
use super::writer::{self, Payload};
use crate::border::{MountError, NodeView, SideError, Volumes};
use crate::env::fields::Surroundings;
use crate::objects::Objects;

/// How often mounts that lie over each other are looked for again.
const MAX_STACKED: usize = 16;

/// What volumes are made with.
pub(crate) struct VolumeDeps {
    pub(crate) layout: Layout,
    pub(crate) mounts: Arc<dyn Mounts>,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) client: Option<Client>,
    pub(crate) node: Arc<dyn NodeView>,
    pub(crate) clock: SharedClock,
    pub(crate) rng: SharedRng,
}

/// A volume that is in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where on the machine it is.
    pub(crate) path: PathBuf,
    /// Whether containers may not write, whatever their mount says.
    pub(crate) read_only: bool,
    /// Whether the kubelet made it, so that the runtime may label it.
    pub(crate) managed: bool,
    /// The group it adds to the pod.
    group: Option<i64>,
}

/// The volumes of the pods of a node.
pub(crate) struct VolumeSet {
    deps: VolumeDeps,
    tokens: Option<Tokens>,
    places: Mutex<BTreeMap<String, BTreeMap<String, Place>>>,
}

impl VolumeSet {
    pub(crate) fn new(deps: VolumeDeps) -> Arc<Self> {
        let tokens = deps.client.as_ref().map(Tokens::new);
        Arc::new(Self { deps, tokens, places: Mutex::default() })
    }

    /// Where a pod's volume is, once it is in place.
    pub(crate) fn place(&self, uid: &str, volume: &str) -> Option<Place> {
        self.places.lock().get(uid)?.get(volume).cloned()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.deps.layout
    }

    pub(crate) fn mounts(&self) -> &dyn Mounts {
        self.deps.mounts.as_ref()
    }

    async fn set_up(&self, pod: &Pod, volume: &Volume) -> Result<Option<Place>, Problem> {
        let (kind, uid) = (kind_of(volume), &pod.metadata.uid);
        let path = kind.plugin().map(|plugin| self.deps.layout.volume(uid, plugin, &volume.name));
        let path = path.unwrap_or_default();
        let place = |path: PathBuf, managed: bool| Place { path, read_only: kind.is_read_only(), managed, group: None };
        match kind {
            Kind::Image => Ok(None),
            Kind::Unsupported(text) => Err(Problem::SetUp(SideError::new(text))),
            Kind::HostPath(source) => {
                host_path::check(source).map_err(Problem::SetUp)?;
                Ok(Some(place(source.path.clone().into(), false)))
            }
            Kind::EmptyDir(source) => {
                self.empty_dir(pod, volume, source, &path).map_err(Problem::SetUp)?;
                Ok(Some(place(path, true)))
            }
            Kind::Claim { name, ephemeral, read_only } => {
                let resolved = self.claim(pod, volume, name, ephemeral).await?;
                let path = self.claimed(pod, &resolved, read_only).map_err(Problem::SetUp)?;
                Ok(Some(Place { group: resolved.group, ..place(path, resolved.local) }))
            }
            Kind::ConfigMap(_) | Kind::Secret(_) | Kind::Downward(_) | Kind::Projected(_) => {
                let payload = self.payload(pod, kind).await.map_err(Problem::SetUp)?;
                self.files(pod, volume, kind, &path, &payload).map_err(Problem::SetUp)?;
                Ok(Some(place(path, true)))
            }
        }
    }

    fn empty_dir(
        &self,
        pod: &Pod,
        volume: &Volume,
        source: &api_types::core_v1::EmptyDirVolumeSource,
        path: &Path,
    ) -> Result<(), SideError> {
        let uid = &pod.metadata.uid;
        if self.is_marked(uid, &volume.name) && path.is_dir() {
            let on_disk = source.medium.is_empty();
            // Memory is gone after a reboot, its directory is not.
            if on_disk || self.mounts().is_mount_point(path).map_err(|error| told(&error))? {
                return Ok(());
            }
        }
        let memory = self.deps.node.node().and_then(|node| Some(node.status.allocatable.get("memory")?.value()));
        empty_dir::set_up(self.mounts(), pod, source, path, memory)?;
        if let Some(group) = fs_group(pod) {
            give(path, group, Access::ReadWrite, When::Always)?;
        }
        self.mark(uid, &volume.name)
    }

    fn is_marked(&self, uid: &str, volume: &str) -> bool {
        self.deps.layout.ready_mark(uid, volume).exists()
    }

    fn mark(&self, uid: &str, volume: &str) -> Result<(), SideError> {
        let mark = self.deps.layout.ready_mark(uid, volume);
        if let Some(parent) = mark.parent() {
            make_directory(parent, 0o750)?;
        }
        let made = std::fs::OpenOptions::new().create(true).append(true).open(&mark);
        made.map(drop).map_err(|error| SideError(format!("open {}: {error}", mark.display())))
    }

    async fn claim(&self, pod: &Pod, volume: &Volume, name: &str, ephemeral: bool) -> Result<Resolved, Problem> {
        let Some(client) = &self.deps.client else {
            return Err(Problem::Process(SideError::new("kube client is not configured")));
        };
        let name = claims::claim_name(pod, &volume.name, ephemeral, name);
        let node = self.deps.node.node();
        claims::resolve(client, pod, &name, ephemeral, node.as_deref()).await.map_err(Problem::Process)
    }

    fn claimed(&self, pod: &Pod, resolved: &Resolved, read_only: bool) -> Result<PathBuf, SideError> {
        if !resolved.local {
            return Ok(resolved.source.clone());
        }
        let meta = std::fs::metadata(&resolved.source)
            .map_err(|error| SideError(format!("path {:?} does not exist: {error}", resolved.source)))?;
        if !meta.is_dir() {
            return Err(SideError::new("only directory and block device are supported"));
        }
        let path = self.deps.layout.volume(&pod.metadata.uid, Plugin::Local, &resolved.volume);
        make_directory(&path, 0o750)?;
        let mut mount = Mount::bind(&resolved.source, &path, Depth::One);
        mount.read_only = read_only;
        mount_once(self.mounts(), &mount, &path)?;
        if let (Some(group), false) = (fs_group(pod), read_only) {
            let policy = pod.spec.security_context.as_ref().and_then(|c| c.fs_group_change_policy.as_deref());
            let when = if policy == Some("OnRootMismatch") { When::RootMismatch } else { When::Always };
            give(&path, group, Access::ReadWrite, when)?;
        }
        Ok(path)
    }

    async fn payload(&self, pod: &Pod, kind: Kind<'_>) -> Result<Payload, SideError> {
        let allocatable = self.deps.node.node().map(|node| node.status.allocatable.clone()).unwrap_or_default();
        let around = Surroundings { allocatable, ..Surroundings::default() };
        let maker = Maker { pod, objects: self.deps.objects.as_ref(), tokens: self.tokens.as_ref(), around: &around };
        match kind {
            Kind::ConfigMap(source) => maker.config_map(source).await,
            Kind::Secret(source) => maker.secret(source).await,
            Kind::Downward(source) => maker.downward(source),
            Kind::Projected(source) => maker.projected(source).await,
            _ => Ok(Payload::new()),
        }
    }

    /// Files in a directory, or in memory for what may be secret.
    fn files(
        &self,
        pod: &Pod,
        volume: &Volume,
        kind: Kind<'_>,
        path: &Path,
        payload: &Payload,
    ) -> Result<(), SideError> {
        let in_memory = !matches!(kind, Kind::ConfigMap(_));
        let is_new = !self.is_marked(&pod.metadata.uid, &volume.name) || !path.is_dir();
        if is_new {
            make_directory(path, 0o777)?;
        }
        if in_memory {
            let restrictions = Restrictions { no_exec: false, no_suid: true, no_dev: true };
            mount_once(self.mounts(), &Mount::tmpfs(path, None, 0o1777).restricted(restrictions), path)?;
        }
        let group = fs_group(pod);
        if let (true, Some(group)) = (is_new, group) {
            give(path, group, Access::ReadWrite, When::Always)?;
        }
        for place in nested_mount_points(pod, &volume.name) {
            // A file of the payload of that name comes first and is a fine place to mount on.
            if !payload.contains_key(&place.to_string_lossy().into_owned()) {
                make_directory(&path.join(place), 0o755)?;
            }
        }
        let prepare = |new: &Path| match group {
            Some(group) => give_to_group(new, group, Access::ReadOnly, When::Always),
            None => Ok(()),
        };
        writer::write(path, payload, self.deps.clock.wall(), &self.deps.rng, &prepare)
            .map_err(|error| SideError(error.to_string()))?;
        self.mark(&pod.metadata.uid, &volume.name)
    }

    fn directories(&self, uid: &str) -> Result<(), SideError> {
        let layout = &self.deps.layout;
        for directory in [layout.pod(uid), layout.volumes(uid), layout.plugins(uid)] {
            make_directory(&directory, 0o750)?;
        }
        Ok(())
    }

    /// Takes everything away that is mounted below the pod's directory, and then the volumes.
    fn tear_down(&self, uid: &str) -> Result<(), SideError> {
        let layout = &self.deps.layout;
        sub_path::clean(self.mounts(), &layout.sub_paths(uid))?;
        let volumes = layout.volumes(uid);
        if !volumes.exists() {
            return Ok(());
        }
        self.unmount_all(&volumes)?;
        let removed = sys::fs::remove_tree(&volumes).and_then(|()| sys::fs::remove_tree(&layout.plugins(uid)));
        removed.map_err(|error| SideError(format!("remove {}: {error}", volumes.display())))
    }

    /// Nothing may be removed while a mount is left below: it might be someone's data.
    fn unmount_all(&self, root: &Path) -> Result<(), SideError> {
        for _ in 0..MAX_STACKED {
            let gone = self.mounts().unmount_below(root, Unmount::IfUnused);
            match gone.or_else(|_| self.mounts().unmount_below(root, Unmount::Lazy)) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(told(&error)),
            }
        }
        Err(SideError(format!("{} is still mounted", root.display())))
    }
}

/// At which step a volume failed.
enum Problem {
    /// Finding out what to mount.
    Process(SideError),
    /// Mounting it.
    SetUp(SideError),
}

fn fs_group(pod: &Pod) -> Option<u32> {
    pod.spec.security_context.as_ref()?.fs_group.and_then(|group| u32::try_from(group).ok())
}

fn give(path: &Path, group: u32, access: Access, when: When) -> Result<(), SideError> {
    give_to_group(path, group, access, when).map_err(|error| SideError(error.to_string()))
}

/// What the pod's events say about volumes that are not in place.
fn report(unprocessed: &BTreeMap<String, String>, failed: &BTreeMap<String, String>) -> Result<(), MountError> {
    if unprocessed.is_empty() && failed.is_empty() {
        return Ok(());
    }
    let set_up = failed.iter().map(|(name, text)| format!("MountVolume.SetUp failed for volume {name:?} : {text}"));
    let mut messages: Vec<String> = set_up.collect();
    if !unprocessed.is_empty() {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        let mut unmounted = names(unprocessed);
        unmounted.extend(names(failed));
        let causes: Vec<String> = unprocessed.values().cloned().collect();
        messages.push(format!(
            "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], failed to process \
             volumes=[{}]: {}",
            unmounted.join(" "),
            names(unprocessed).join(" "),
            causes.join(", ")
        ));
    }
    Err(MountError::Volumes(messages))
}

#[async_trait]
impl Volumes for VolumeSet {
    async fn mount(&self, pod: &Pod) -> Result<(), MountError> {
        self.directories(&pod.metadata.uid).map_err(|error| MountError::Directories(error.0))?;
        let (mut unprocessed, mut failed) = (BTreeMap::new(), BTreeMap::new());
        let mut places = BTreeMap::new();
        for volume in used(pod) {
            match self.set_up(pod, volume).await {
                Ok(Some(place)) => drop(places.insert(volume.name.clone(), place)),
                Ok(None) => {}
                Err(Problem::Process(error)) => drop(unprocessed.insert(volume.name.clone(), error.0)),
                Err(Problem::SetUp(error)) => drop(failed.insert(volume.name.clone(), error.0)),
            }
        }
        let mut all = self.places.lock();
        let before = all.insert(pod.metadata.uid.clone(), places.clone()).unwrap_or_default();
        let Err(error) = report(&unprocessed, &failed) else { return Ok(()) };
        // What was in place before still is, whatever has become of the object it was made from.
        let kept: BTreeMap<_, _> = before
            .into_iter()
            .filter(|(name, _)| unprocessed.contains_key(name) || failed.contains_key(name))
            .collect();
        let stale = kept.len() == unprocessed.len() + failed.len();
        places.extend(kept);
        all.insert(pod.metadata.uid.clone(), places);
        match error {
            MountError::Volumes(messages) if stale => Err(MountError::Stale(messages)),
            error => Err(error),
        }
    }

    async fn unmount(&self, uid: &str) -> Result<(), SideError> {
        self.tear_down(uid)?;
        self.places.lock().remove(uid);
        if let Some(tokens) = &self.tokens {
            tokens.forget(uid);
        }
        Ok(())
    }

    async fn clean_orphans(&self, keep: &BTreeSet<String>) {
        let Ok(entries) = std::fs::read_dir(self.deps.layout.pods()) else { return };
        for entry in entries.flatten() {
            let uid = entry.file_name().to_string_lossy().into_owned();
            if keep.contains(&uid) {
                continue;
            }
            if let Err(error) = self.unmount(&uid).await {
                tracing::warn!(uid, %error, "Volumes of an orphaned pod could not be taken away");
                continue;
            }
            match self.unmount_all(&entry.path()).map_err(io::Error::other) {
                Ok(()) => match sys::fs::remove_tree(&entry.path()) {
                    Ok(()) => tracing::info!(uid, "Cleaned up orphaned pod volumes dir"),
                    Err(error) => tracing::warn!(uid, %error, "An orphaned pod's directory could not be removed"),
                },
                Err(error) => tracing::warn!(uid, %error, "An orphaned pod's directory could not be removed"),
            }
        }
    }

    fn supplemental_groups(&self, pod: &Pod) -> Vec<i64> {
        let places = self.places.lock();
        let groups = places.get(&pod.metadata.uid).into_iter().flat_map(|places| places.values());
        groups.filter_map(|place| place.group).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod conformance_tests;
#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
