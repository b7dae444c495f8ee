//! Volumes that nobody uses yet, by the controllers of volumes and a driver in memory: claims of nothing, of another claim, of a
//! snapshot, and snapshots. They are written to, copied and deleted. What is made of something starts with what that had in it
//! between the time it was asked for and the time it was there; nothing is made twice, lost, or left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, Object};
use api_machinery::yaml;
use api_types::apiextensions_v1::CustomResourceDefinition;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding};
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;
use base::{Rng, SharedRng};
use client::{Client, ClientConfig, ClientError, ContentType};
use node_api::csi::{CsiController, Entry, MemoryDriver};
use serde_json::json;
use testing::Cluster;

use super::{NAMESPACE, Workload, create, delete, pick};
use crate::observer::Observer;
use crate::volumes::gate::Door;

const DRIVER: &str = "copies.csi.test";
const CLASS: &str = "copies";
/// What the addons bring: the kinds, and the roles of who works on them.
const ADDONS: [&str; 2] = [
    include_str!("../../../../manifests/addons/volume-snapshots.yaml"),
    include_str!("../../../../manifests/addons/csi-local.yaml"),
];
/// How long a call of the driver may take, as the flag has it.
const CALL_LIMIT: Duration = Duration::from_secs(15);
/// So many claims and snapshots are declared at most.
const MOST: usize = 8;
/// What is done in one change.
const AT_ONCE: usize = 3;
const POLL: Duration = Duration::from_secs(1);
/// Finalizers that hold a claim while it is copied.
const WHILE_COPIED: [&str; 2] =
    ["provisioner.storage.kubernetes.io/cloning-protection", "snapshot.storage.kubernetes.io/pvc-as-source-protection"];

/// What something is made of, with what was in it.
#[derive(Debug, Clone)]
struct Origin {
    /// The claim that it comes from in the end.
    claim: String,
    /// The snapshot on the way.
    snapshot: Option<String>,
    /// How much the claim had in it when this was asked for.
    least: usize,
    /// How much it had in it when this was there, once that is known.
    most: Option<usize>,
}

pub(super) struct Copies {
    driver: MemoryDriver,
    door: Arc<Door>,
    /// Of what was made or written last.
    number: u64,
    /// The claims that are declared, with what they are made of.
    claims: BTreeMap<String, Option<Origin>>,
    snapshots: BTreeMap<String, Origin>,
    /// What was in the volumes of claims that were deleted.
    past: BTreeMap<String, Vec<u64>>,
}

impl Default for Copies {
    fn default() -> Self {
        let (driver, door) = (MemoryDriver::new(DRIVER), Door::shared());
        driver.set_gate(Arc::clone(&door) as _);
        let (claims, snapshots, past) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { driver, door, number: 0, claims, snapshots, past }
    }
}

/// What the API and the driver have.
struct Told {
    claims: BTreeMap<String, PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    snapshots: BTreeMap<String, VolumeSnapshot>,
    contents: Vec<VolumeSnapshotContent>,
    /// By name.
    made: BTreeMap<String, Entry>,
    /// By name.
    taken: BTreeSet<String>,
}

fn by_name<T: Object>(items: Vec<T>) -> BTreeMap<String, T> {
    items.into_iter().map(|own| (own.meta().name.clone(), own)).collect()
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.phase == "Bound"
}

fn is_ready(snapshot: &VolumeSnapshot) -> bool {
    snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true))
}

impl Told {
    async fn look(admin: &Client, driver: &MemoryDriver) -> Result<Self, ClientError> {
        let all = ListOptions::default();
        Ok(Self {
            claims: by_name(admin.namespaced::<PersistentVolumeClaim>(NAMESPACE).list_all(&all).await?.items),
            volumes: admin.all::<PersistentVolume>().list_all(&all).await?.items,
            snapshots: by_name(admin.namespaced::<VolumeSnapshot>(NAMESPACE).list_all(&all).await?.items),
            contents: admin.all::<VolumeSnapshotContent>().list_all(&all).await?.items,
            made: driver.volumes().into_values().map(|own| (own.name.clone(), own)).collect(),
            taken: driver.snapshots().into_iter().collect(),
        })
    }

    fn is_bound(&self, claim: &str) -> bool {
        self.claims.get(claim).is_some_and(is_bound)
    }

    fn is_ready(&self, snapshot: &str) -> bool {
        self.snapshots.get(snapshot).is_some_and(is_ready)
    }

    /// The volume of a claim, as the driver has it.
    fn volume_of(&self, claim: &str) -> Option<&Entry> {
        self.made.get(&self.claims.get(claim)?.spec.volume_name)
    }

    /// There is what is declared, and for each of it one thing of the driver.
    fn differences_of_sets(&self, claims: &BTreeSet<&String>, snapshots: &BTreeSet<&String>) -> Vec<String> {
        let (there, ready): (BTreeSet<_>, BTreeSet<_>) =
            (self.claims.keys().collect(), self.snapshots.keys().collect());
        let named = self.claims.values().map(|claim| claim.spec.volume_name.clone());
        let volumes = self.volumes.iter().map(|volume| volume.metadata.name.clone());
        let uids = self.snapshots.values().map(|own| own.metadata.uid.clone());
        let of_contents = self.contents.iter().map(|own| own.spec.volume_snapshot_ref.uid.clone());
        let taken = self.taken.iter().map(|name| name.trim_start_matches("snapshot-").to_owned());
        let sorted = |names: &mut dyn Iterator<Item = String>| {
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let [named, volumes, made] =
            [sorted(&mut { named }), sorted(&mut { volumes }), sorted(&mut self.made.keys().cloned())];
        let [uids, of_contents, taken] = [sorted(&mut { uids }), sorted(&mut { of_contents }), sorted(&mut { taken })];
        let checks = [
            (there != *claims).then(|| format!("claims {claims:?} are declared, there are {there:?}")),
            (ready != *snapshots).then(|| format!("snapshots {snapshots:?} are declared, there are {ready:?}")),
            (named != volumes || volumes != made)
                .then(|| format!("claims have volumes {named:?}, there are {volumes:?}, the driver has {made:?}")),
            (uids != of_contents || of_contents != taken)
                .then(|| format!("snapshots {uids:?} have contents {of_contents:?}, the driver has {taken:?}")),
        ];
        checks.into_iter().flatten().collect()
    }

    /// Claims are bound, snapshots ready, and nothing holds what is not copied any more.
    fn unready(&self) -> Vec<String> {
        let is_free = |claim: &PersistentVolumeClaim| {
            let held = claim.metadata.finalizers.iter().any(|own| WHILE_COPIED.contains(&own.as_str()));
            !held && claim.metadata.deletion_timestamp.is_none()
        };
        let claims = self.claims.values().filter(|claim| !is_bound(claim) || !is_free(claim));
        let claims =
            claims.map(|own| format!("{} is {:?}, {:?}", own.metadata.name, own.status, own.metadata.finalizers));
        let snapshots =
            self.snapshots.values().filter(|own| !is_ready(own) || own.metadata.deletion_timestamp.is_some());
        claims.chain(snapshots.map(|own| format!("{} is {:?}", own.metadata.name, own.status))).collect()
    }
}

/// Creates what an addon brings of a kind.
async fn apply<T: Kind + Object>(admin: &Client) {
    for document in ADDONS.iter().flat_map(|addon| yaml::documents(addon)) {
        let object = yaml::parse(document).expect("a manifest").value;
        if object["kind"] == T::TYPE.kind {
            create::<T>(admin, "", &object).await;
        }
    }
}

/// The administrator, as who writes what definitions bring: that is not taken as protobuf.
fn in_json(admin: &Client) -> Client {
    let json = |config| ClientConfig { content: ContentType::Json, ..config };
    admin.derive(json).expect("a client")
}

impl Copies {
    fn next(&mut self, what: &str) -> String {
        self.number += 1;
        format!("{what}-{}", self.number)
    }

    /// What is, or was, in the volume of a claim.
    fn content_of(&self, told: &Told, claim: &str) -> Vec<u64> {
        let now = told.volume_of(claim).map(|volume| volume.content.clone());
        now.or_else(|| self.past.get(claim).cloned()).unwrap_or_default()
    }

    async fn told(&self, admin: &Client) -> Told {
        Told::look(admin, &self.driver).await.expect("the administrator has no faults")
    }

    /// Declares a claim of something.
    async fn claim(&mut self, admin: &Client, what: &str, origin: Option<Origin>) -> String {
        let name = self.next(what);
        let source = origin.as_ref().map(|origin| match &origin.snapshot {
            Some(snapshot) => {
                json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": snapshot})
            }
            None => json!({"kind": "PersistentVolumeClaim", "name": origin.claim}),
        });
        let spec = json!({"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}}, "dataSource": source});
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        create::<PersistentVolumeClaim>(admin, NAMESPACE, &claim).await;
        self.claims.insert(name.clone(), origin);
        name
    }

    async fn snapshot(&mut self, admin: &Client, told: &Told, claim: &str) -> String {
        let name = self.next("snapshot");
        let spec = json!({"volumeSnapshotClassName": CLASS, "source": {"persistentVolumeClaimName": claim}});
        create::<VolumeSnapshot>(&in_json(admin), NAMESPACE, &json!({"metadata": {"name": name}, "spec": spec})).await;
        self.snapshots.insert(name.clone(), self.origin(told, claim));
        name
    }

    fn origin(&self, told: &Told, claim: &str) -> Origin {
        let least = self.content_of(told, claim).len();
        Origin { claim: claim.to_owned(), snapshot: None, least, most: None }
    }

    async fn clone_of(&mut self, admin: &Client, told: &Told, claim: &str) -> String {
        let origin = self.origin(told, claim);
        self.claim(admin, "clone", Some(origin)).await
    }

    /// A restored volume has what its snapshot has, whenever that is.
    async fn restore(&mut self, admin: &Client, snapshot: &str) -> Option<String> {
        let origin = self.snapshots.get(snapshot)?.clone();
        Some(self.claim(admin, "restored", Some(Origin { snapshot: Some(snapshot.to_owned()), ..origin })).await)
    }

    /// Writes to a claim's volume: what is there of it by now does not have that.
    fn write(&mut self, told: &Told, claim: &str) {
        let Some((id, length)) = self.driver.volumes().into_iter().find_map(|(id, volume)| {
            (told.claims.get(claim)?.spec.volume_name == volume.name).then_some((id, volume.content.len()))
        }) else {
            return;
        };
        for (name, snapshot) in &mut self.snapshots {
            if snapshot.claim == claim && told.is_ready(name) {
                snapshot.most.get_or_insert(length);
            }
        }
        for (name, origin) in &mut self.claims {
            let Some(origin) = origin.as_mut().filter(|own| own.claim == claim) else { continue };
            let of_snapshot = origin.snapshot.as_ref().and_then(|own| self.snapshots.get(own)?.most);
            let own = told.is_bound(name).then_some(length);
            origin.most = origin.most.or(of_snapshot).or(own);
        }
        self.number += 1;
        self.driver.write(&id, self.number);
    }

    /// What is wrong with what a claim's volume started with.
    fn difference_of(&self, told: &Told, claim: &str, origin: Option<&Origin>) -> Option<String> {
        let Some(volume) = told.volume_of(claim) else { return Some(format!("{claim} has no volume")) };
        let first = volume.content.get(..volume.copied).unwrap_or_default();
        let Some(Origin { claim: of, snapshot, least, most }) = origin else {
            let is_empty = volume.origin.is_empty() && first.is_empty();
            return (!is_empty).then(|| format!("{claim} was to be empty and is {volume:?}"));
        };
        let kind = if snapshot.is_some() { "snapshot/" } else { "volume/" };
        let all = self.content_of(told, of);
        let is_right = volume.origin.starts_with(kind)
            && all.starts_with(first)
            && first.len() >= *least
            && most.is_none_or(|most| first.len() <= most);
        (!is_right).then(|| format!("{claim} is {volume:?} and made of {origin:?}, which had {all:?}"))
    }

    /// The claims of which nothing is being made.
    fn free_claims(&self, told: &Told) -> Vec<String> {
        let is_source = |claim: &String| {
            let clones = self
                .claims
                .iter()
                .filter(|(_, origin)| origin.as_ref().is_some_and(|own| own.claim == *claim && own.snapshot.is_none()));
            let snapshots = self.snapshots.iter().filter(|(_, own)| own.claim == *claim);
            { clones }.any(|(name, _)| !told.is_bound(name)) || { snapshots }.any(|(name, _)| !told.is_ready(name))
        };
        self.claims.keys().filter(|claim| told.is_bound(claim) && !is_source(claim)).cloned().collect()
    }

    /// The snapshots of which nothing is being made, whether they are ready or not.
    fn free_snapshots(&self, told: &Told) -> Vec<String> {
        let is_source = |snapshot: &String| {
            let of_it =
                |origin: &Option<Origin>| origin.as_ref().is_some_and(|own| own.snapshot.as_ref() == Some(snapshot));
            self.claims.iter().any(|(name, origin)| of_it(origin) && !told.is_bound(name))
        };
        self.snapshots.keys().filter(|own| !is_source(own)).cloned().collect()
    }

    async fn delete_claim(&mut self, admin: &Client, told: &Told, claim: &str) {
        // Written to until now, and no more.
        self.past.insert(claim.to_owned(), self.content_of(told, claim));
        self.claims.remove(claim);
        delete::<PersistentVolumeClaim>(admin, NAMESPACE, claim, "Background").await;
    }

    async fn delete_snapshot(&mut self, admin: &Client, snapshot: &str) {
        self.snapshots.remove(snapshot);
        delete::<VolumeSnapshot>(admin, NAMESPACE, snapshot, "Background").await;
    }

    /// Does one thing, and says what; nothing where there is nothing to do it to.
    async fn do_one(&mut self, admin: &Client, rng: &Rng) -> Option<String> {
        let told = self.told(admin).await;
        let bound: Vec<String> = self.claims.keys().filter(|claim| told.is_bound(claim)).cloned().collect();
        let has_room = self.claims.len() + self.snapshots.len() < MOST;
        match rng.below(10) {
            0 if has_room => Some(self.claim(admin, "volume", None).await),
            1..3 if has_room => {
                let claim = pick(&bound, rng)?;
                Some(format!("{} of {claim}", self.snapshot(admin, &told, claim).await))
            }
            3..5 if has_room => {
                let claim = pick(&bound, rng)?;
                Some(format!("{} of {claim}", self.clone_of(admin, &told, claim).await))
            }
            5..7 if has_room => {
                let all: Vec<String> = self.snapshots.keys().cloned().collect();
                let snapshot = pick(&all, rng)?;
                Some(format!("{} of {snapshot}", self.restore(admin, snapshot).await?))
            }
            7 => {
                let claim = pick(&bound, rng)?;
                self.write(&told, claim);
                Some(format!("wrote to {claim}"))
            }
            8 => {
                let free = self.free_snapshots(&told);
                let snapshot = pick(&free, rng)?;
                self.delete_snapshot(admin, snapshot).await;
                Some(format!("deleted {snapshot}"))
            }
            _ => {
                let free = self.free_claims(&told);
                let claim = pick(&free, rng)?;
                self.delete_claim(admin, &told, claim).await;
                Some(format!("deleted {claim}"))
            }
        }
    }
}

#[async_trait]
impl Workload for Copies {
    fn begin(&mut self, cluster: &Cluster, observer: &mut Observer) {
        observer.follow_snapshots(cluster.admin());
        let driver = CsiController::in_process(self.driver.clone(), cluster.admin().tasks(), CALL_LIMIT);
        cluster.start_volumes(driver).expect("the controllers of volumes start");
    }

    /// A volume with something in it, of which a snapshot and a copy are asked for at once, and of the snapshot another.
    async fn declare(&mut self, admin: &Client) {
        apply::<CustomResourceDefinition>(admin).await;
        apply::<ClusterRole>(admin).await;
        apply::<ClusterRoleBinding>(admin).await;
        while admin.all::<VolumeSnapshotClass>().list_all(&ListOptions::default()).await.is_err()
            || Told::look(admin, &self.driver).await.is_err()
        {
            tokio::time::sleep(POLL).await;
        }
        let named = json!({"name": CLASS});
        let class = json!({"metadata": named, "provisioner": DRIVER, "reclaimPolicy": "Delete"});
        create::<StorageClass>(admin, "", &class).await;
        let class = json!({"metadata": named, "driver": DRIVER, "deletionPolicy": "Delete"});
        create::<VolumeSnapshotClass>(&in_json(admin), "", &class).await;
        let first = self.claim(admin, "volume", None).await;
        while !self.told(admin).await.is_bound(&first) {
            tokio::time::sleep(POLL).await;
        }
        self.write(&self.told(admin).await, &first);
        let told = self.told(admin).await;
        let snapshot = self.snapshot(admin, &told, &first).await;
        self.clone_of(admin, &told, &first).await;
        self.restore(admin, &snapshot).await;
        self.claim(admin, "volume", None).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let mut done = Vec::new();
        for _ in 0..AT_ONCE {
            done.extend(self.do_one(admin, rng).await);
        }
        format!("copies: {}", done.join(", "))
    }

    /// The driver ends wherever it is, or cannot be relied on until the end.
    fn break_own(&mut self, rng: &SharedRng) -> Option<String> {
        if rng.below(3) == 0 {
            [true, false].into_iter().for_each(|is_down| self.door.steps.set_down(is_down));
            return Some("the driver of copies crashed and is back".to_owned());
        }
        let percent = rng.below(50);
        self.door.steps.set_unreliable(percent, rng);
        Some(format!("the driver of copies fails in {percent} of 100 calls"))
    }

    async fn settle(&mut self, _admin: &Client) {
        self.door.steps.set_reliable();
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let told = Told::look(admin, &self.driver).await?;
        let mut found = told.differences_of_sets(&self.claims.keys().collect(), &self.snapshots.keys().collect());
        found.extend(told.unready());
        let of_each = self.claims.iter().filter(|(claim, _)| told.is_bound(claim));
        found.extend(of_each.filter_map(|(claim, origin)| self.difference_of(&told, claim, origin.as_ref())));
        Ok(found)
    }

    /// All goes, and nothing of it is left behind.
    async fn try_out(&mut self, admin: &Client) -> Vec<String> {
        let told = self.told(admin).await;
        for snapshot in self.snapshots.keys().cloned().collect::<Vec<_>>() {
            self.delete_snapshot(admin, &snapshot).await;
        }
        for claim in self.claims.keys().cloned().collect::<Vec<_>>() {
            self.delete_claim(admin, &told, &claim).await;
        }
        Vec::new()
    }
}
