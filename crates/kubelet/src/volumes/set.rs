//! All volumes of a node's pods: what they are made from is found out here, the machine's part is [`super::disk`]'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Pod, Volume};
use async_trait::async_trait;
use base::{SharedClock, SharedRng};
use client::Client;
use parking_lot::Mutex;
use sys::mounts::Mounts;

use super::claims::{self, Resolved};
use super::disk::{Disk, Outcome, Place, Wanted};
use super::layout::Layout;
use super::payload::Maker;
use super::plan::{Kind, kind_of, used};
use super::tokens::Tokens;
use super::writer::Payload;
use crate::border::{MountError, NodeView, SideError, Volumes};
use crate::env::fields::Surroundings;
use crate::file_calls::FileCalls;
use crate::objects::Objects;

/// How long the removal of what pods left behind may hold up the sync loop; the rest is left to the next time.
const ORPHANS_LIMIT: Duration = Duration::from_secs(5);

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

/// The volumes of the pods of a node.
pub(crate) struct VolumeSet {
    disk: Arc<Disk>,
    calls: FileCalls,
    objects: Arc<dyn Objects>,
    client: Option<Client>,
    tokens: Option<Tokens>,
    places: Mutex<BTreeMap<String, BTreeMap<String, Place>>>,
}

/// What calls about the list of all pods take turns by; no uid.
const ALL_PODS: &str = "/pods";

impl VolumeSet {
    pub(crate) fn new(deps: VolumeDeps) -> Arc<Self> {
        let VolumeDeps { layout, mounts, objects, client, node, clock, rng } = deps;
        let tokens = client.as_ref().map(Tokens::new);
        let disk = Arc::new(Disk { layout, mounts, node, clock, rng });
        Arc::new(Self { disk, calls: FileCalls::default(), objects, client, tokens, places: Mutex::default() })
    }

    /// Where a pod's volume is, once it is in place.
    pub(crate) fn place(&self, uid: &str, volume: &str) -> Option<Place> {
        self.places.lock().get(uid)?.get(volume).cloned()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.disk.layout
    }

    pub(crate) fn mounts(&self) -> &dyn Mounts {
        self.disk.mounts.as_ref()
    }

    fn forget(&self, uid: &str) {
        self.places.lock().remove(uid);
        if let Some(tokens) = &self.tokens {
            tokens.forget(uid);
        }
    }

    /// For calls that go into volumes and may hang there.
    pub(crate) fn calls(&self) -> &FileCalls {
        &self.calls
    }

    /// What a volume is made from; `None` for what only the runtime mounts.
    async fn find_out(&self, pod: &Pod, volume: &Volume) -> Result<Option<Wanted>, Problem> {
        match kind_of(volume) {
            Kind::Image => Ok(None),
            Kind::Unsupported(text) => Err(Problem::SetUp(SideError::new(text))),
            Kind::HostPath(_) | Kind::EmptyDir(_) => Ok(Some(Wanted::AsSpecified)),
            Kind::Claim { name, ephemeral, read_only } => {
                let resolved = self.claim(pod, volume, name, ephemeral).await?;
                Ok(Some(Wanted::Claim { resolved, read_only }))
            }
            kind @ (Kind::ConfigMap(_) | Kind::Secret(_) | Kind::Downward(_) | Kind::Projected(_)) => {
                self.payload(pod, kind).await.map(|files| Some(Wanted::Files(files))).map_err(Problem::SetUp)
            }
        }
    }

    async fn claim(&self, pod: &Pod, volume: &Volume, name: &str, ephemeral: bool) -> Result<Resolved, Problem> {
        let Some(client) = &self.client else {
            return Err(Problem::Process(SideError::new("kube client is not configured")));
        };
        let name = claims::claim_name(pod, &volume.name, ephemeral, name);
        let node = self.disk.node.node();
        claims::resolve(client, pod, &name, ephemeral, node.as_deref()).await.map_err(Problem::Process)
    }

    async fn payload(&self, pod: &Pod, kind: Kind<'_>) -> Result<Payload, SideError> {
        let allocatable = self.disk.node.node().map(|node| node.status.allocatable.clone()).unwrap_or_default();
        let around = Surroundings { allocatable, ..Surroundings::default() };
        let maker = Maker { pod, objects: self.objects.as_ref(), tokens: self.tokens.as_ref(), around: &around };
        match kind {
            Kind::ConfigMap(source) => maker.config_map(source).await,
            Kind::Secret(source) => maker.secret(source).await,
            Kind::Downward(source) => maker.downward(source),
            Kind::Projected(source) => maker.projected(source).await,
            _ => Ok(Payload::new()),
        }
    }
}

/// At which step a volume failed.
enum Problem {
    /// Finding out what to mount.
    Process(SideError),
    /// Mounting it.
    SetUp(SideError),
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
        let uid = &pod.metadata.uid;
        let (mut unprocessed, mut failed, mut wanted) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for volume in used(pod) {
            match self.find_out(pod, volume).await {
                Ok(Some(found)) => drop(wanted.insert(volume.name.clone(), found)),
                Ok(None) => {}
                Err(Problem::Process(error)) => drop(unprocessed.insert(volume.name.clone(), error.0)),
                Err(Problem::SetUp(error)) => drop(failed.insert(volume.name.clone(), error.0)),
            }
        }
        let (disk, owned) = (Arc::clone(&self.disk), pod.clone());
        let done = self.calls.run(uid, move || disk.set_up_all(&owned, wanted)).await;
        let Outcome { mut places, failed: others } =
            done.and_then(|done| done).map_err(|error| MountError::Directories(error.0))?;
        failed.extend(others);
        let mut all = self.places.lock();
        let before = all.insert(uid.clone(), places.clone()).unwrap_or_default();
        let Err(error) = report(&unprocessed, &failed) else { return Ok(()) };
        // What was in place before still is, whatever has become of the object it was made from.
        let kept: BTreeMap<_, _> = before
            .into_iter()
            .filter(|(name, _)| unprocessed.contains_key(name) || failed.contains_key(name))
            .collect();
        let stale = kept.len() == unprocessed.len() + failed.len();
        places.extend(kept);
        all.insert(uid.clone(), places);
        match error {
            MountError::Volumes(messages) if stale => Err(MountError::Stale(messages)),
            error => Err(error),
        }
    }

    async fn unmount(&self, uid: &str) -> Result<(), SideError> {
        let (disk, owned) = (Arc::clone(&self.disk), uid.to_owned());
        self.calls.run(uid, move || disk.tear_down(&owned)).await??;
        self.forget(uid);
        Ok(())
    }

    async fn clean_orphans(&self, keep: &BTreeSet<String>) {
        let cleaned = async {
            let disk = Arc::clone(&self.disk);
            // Where the list itself hangs, so does everything else that is known of pods.
            let Some(Ok(Ok(found))) = self.calls.run_if_idle(ALL_PODS, move || disk.pods()).await else { return };
            for uid in found.into_iter().filter(|uid| !keep.contains(uid)) {
                let (disk, owned) = (Arc::clone(&self.disk), uid.clone());
                let Some(removed) = self.calls.run_if_idle(&uid, move || disk.remove_pod(&owned)).await else {
                    continue;
                };
                match removed.and_then(|removed| removed) {
                    Ok(()) => {
                        self.forget(&uid);
                        tracing::info!(uid, "Cleaned up orphaned pod volumes dir");
                    }
                    Err(error) => tracing::warn!(uid, %error, "An orphaned pod's directory could not be removed"),
                }
            }
        };
        if tokio::time::timeout(ORPHANS_LIMIT, cleaned).await.is_err() {
            tracing::warn!("Removing the directories of orphaned pods takes long; it goes on beside other work");
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
