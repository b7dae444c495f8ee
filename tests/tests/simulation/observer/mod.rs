//! What must hold at every moment of a story, faults or not, checked on a watch of each kind.

mod across;
mod assigned;
mod history;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_types::apps_v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use api_types::batch_v1::{CronJob, Job};
use api_types::core_v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota,
    Service, ServiceAccount,
};
use api_types::discovery_v1::EndpointSlice;
use api_types::networking_v1::IPAddress;
use api_types::policy_v1::PodDisruptionBudget;
use api_types::resource_v1::ResourceClaim;
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotContent};
use api_types::storage_v1::VolumeAttachment;
use async_trait::async_trait;
use client::{Client, ClientError, WatchEvent};
use parking_lot::Mutex;
use testing::Trace;

use history::{Happened, History, version};
use rules::Watched;

/// How long to wait before asking a server again that did not answer.
const RETRY: Duration = Duration::from_millis(500);

/// Watches all kinds that stories are about until its client's tasks end.
pub(crate) struct Observer {
    pods: Shared<Pod>,
    slices: Shared<EndpointSlice>,
    jobs: Shared<Job>,
    budgets: Shared<PodDisruptionBudget>,
    quotas: Shared<ResourceQuota>,
    all: Vec<Arc<dyn Observed>>,
}

type Shared<T> = Arc<Mutex<History<T>>>;

impl Observer {
    pub(crate) fn start(admin: &Client) -> Self {
        let (pods, slices, jobs) = (watch(admin), watch(admin), watch(admin));
        let (budgets, quotas) = (watch(admin), watch(admin));
        let mut all: Vec<Arc<dyn Observed>> = vec![
            watch::<ConfigMap>(admin),
            watch::<ControllerRevision>(admin),
            watch::<CronJob>(admin),
            watch::<DaemonSet>(admin),
            watch::<Deployment>(admin),
            watch::<IPAddress>(admin),
            watch::<Namespace>(admin),
            watch::<Node>(admin),
            watch::<PersistentVolume>(admin),
            watch::<PersistentVolumeClaim>(admin),
            watch::<ReplicaSet>(admin),
            watch::<ReplicationController>(admin),
            watch::<ResourceClaim>(admin),
            watch::<Service>(admin),
            watch::<ServiceAccount>(admin),
            watch::<StatefulSet>(admin),
        ];
        all.push(Arc::clone(&pods) as _);
        all.push(Arc::clone(&slices) as _);
        all.push(Arc::clone(&jobs) as _);
        all.push(Arc::clone(&budgets) as _);
        all.push(Arc::clone(&quotas) as _);
        Self { pods, slices, jobs, budgets, quotas, all }
    }

    /// Watches where volumes are attached, too, which only stories with volumes need.
    pub(crate) fn follow_attachments(&mut self, admin: &Client) {
        self.all.push(watch::<VolumeAttachment>(admin));
    }

    /// Watches snapshots, too, which only stories with copies have.
    pub(crate) fn follow_snapshots(&mut self, admin: &Client) {
        self.all.push(watch::<VolumeSnapshot>(admin));
        self.all.push(watch::<VolumeSnapshotContent>(admin));
    }

    /// What was violated so far, of one kind or between kinds.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found: Vec<String> = self.all.iter().flat_map(|own| own.violations()).collect();
        let pods = self.pods.lock();
        found.extend(across::endpoints(&pods, &self.slices.lock()));
        found.extend(across::jobs(&pods, &self.jobs.lock()));
        found.extend(across::evictions(&pods, &self.budgets.lock()));
        found
    }

    /// How quotas were exceeded. In foul weather they are at times, as with upstream: usage is counted from a watch, and where
    /// that is late, pods that were let through are not in it yet.
    pub(crate) fn over_quota(&self) -> Vec<String> {
        let pods = self.pods.lock();
        let names = pods.memory().over_quota.iter();
        let mut found: Vec<String> = names.map(|name| format!("{name} is there, and the quota was used up")).collect();
        found.extend(self.quotas.lock().memory().exceeded.iter().cloned());
        found
    }

    /// The pods that were let in without being charged to a quota that had room for them, in whatever weather.
    pub(crate) fn unpaid(&self, trace: &Trace) -> Vec<String> {
        let quotas = self.quotas.lock();
        let counted = quotas.objects().flat_map(|quota| trace.versions_written(&quota.metadata.uid)).collect();
        across::quotas(&self.pods.lock(), &quotas, &counted)
    }

    /// When nodes were asked for more than they have.
    pub(crate) fn overcommitted(&self) -> Vec<String> {
        self.pods.lock().memory().overcommitted.clone()
    }

    /// Which objects the events do not have as new as a write was acknowledged, by uid.
    pub(crate) fn lost(&self, acknowledged: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        self.all.iter().flat_map(|own| own.lost(acknowledged)).collect()
    }

    /// Which objects were not in a list though they were there, of all that were not, by uid.
    pub(crate) fn hidden(&self, absent: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        self.all.iter().flat_map(|own| own.hidden(absent)).collect()
    }

    /// How many events were checked.
    pub(crate) fn events(&self) -> usize {
        self.all.iter().map(|own| own.events()).sum()
    }

    /// In what the objects that the events tell of differ from a list: nothing where no event was lost.
    pub(crate) async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = Vec::new();
        for own in &self.all {
            found.extend(own.difference(admin).await?);
        }
        Ok(found)
    }
}

/// The history of some kind.
#[async_trait]
trait Observed: Send + Sync {
    fn events(&self) -> usize;
    fn violations(&self) -> Vec<String>;
    fn lost(&self, acknowledged: &BTreeMap<String, (String, u64)>) -> Vec<String>;
    fn hidden(&self, absent: &BTreeMap<String, (String, u64)>) -> Vec<String>;
    async fn difference(&self, admin: &Client) -> Result<Option<String>, ClientError>;
}

#[async_trait]
impl<T: Watched> Observed for Mutex<History<T>> {
    fn events(&self) -> usize {
        self.lock().events()
    }

    fn violations(&self) -> Vec<String> {
        self.lock().violations().to_vec()
    }

    fn lost(&self, acknowledged: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        self.lock().lost(acknowledged)
    }

    fn hidden(&self, absent: &BTreeMap<String, (String, u64)>) -> Vec<String> {
        self.lock().hidden(absent)
    }

    async fn difference(&self, admin: &Client) -> Result<Option<String>, ClientError> {
        let listed = admin.all::<T>().list_all(&ListOptions::default()).await?.items;
        let listed: BTreeMap<String, u64> =
            listed.iter().map(|object| (object.meta().uid.clone(), version(object.meta()))).collect();
        let told = self.lock().versions();
        let differ = listed != told;
        Ok(differ.then(|| format!("{}: the events told of {told:?}, the list has {listed:?}", T::TYPE.kind)))
    }
}

fn watch<T: Watched>(admin: &Client) -> Shared<T> {
    let history = Shared::<T>::default();
    let (owned, shared) = (admin.clone(), Arc::clone(&history));
    admin.tasks().spawn_cancellable("observer", async move {
        loop {
            if let Err(error) = follow(&owned, &shared).await {
                tracing::info!(%error, "The observer's watch has ended");
            }
            tokio::time::sleep(RETRY).await;
        }
    });
    history
}

/// From a list, or from where the last watch ended, to the end of a watch.
async fn follow<T: Watched>(admin: &Client, history: &Mutex<History<T>>) -> Result<(), ClientError> {
    let objects = admin.all::<T>();
    if history.lock().version.is_none() {
        let list = objects.list_all(&ListOptions::default()).await?;
        history.lock().relist(&list.metadata.resource_version, list.items);
    }
    let from = history.lock().version.unwrap_or_default().to_string();
    let options = ListOptions { resource_version: from, ..ListOptions::default() };
    let opened = objects.watch(&options).await;
    if opened.as_ref().is_err_and(ClientError::is_gone) {
        history.lock().version = None;
    }
    let mut watch = opened?;
    while let Some(event) = watch.next().await {
        match event? {
            WatchEvent::Added(object) => history.lock().happened(Happened::Added, object),
            WatchEvent::Modified(object) => history.lock().happened(Happened::Modified, object),
            WatchEvent::Deleted(object) => history.lock().happened(Happened::Deleted, object),
            WatchEvent::Bookmark { .. } => {}
            // Too old: the server that came back does not know the events before its start.
            WatchEvent::Error(_) => history.lock().version = None,
        }
    }
    Ok(())
}
