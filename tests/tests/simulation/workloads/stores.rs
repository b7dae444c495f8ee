//! A StatefulSet whose pods have a volume each, of the hollow driver. It is scaled, with its claims or without, drawn to another
//! node, and claims are grown, or deleted in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::quantity::Quantity;
use api_types::apps_v1::StatefulSet;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, ResourceList};
use api_types::storage_v1::{StorageClass, VolumeAttachment};
use async_trait::async_trait;
use base::{Rng, SharedRng};
use client::{Client, ClientError, Patch};
use serde_json::json;
use testing::{Cluster, NODES, NodeDriver, Part};

use super::{NAMESPACE, Workload, all_run, change, create, delete, is_ending, pick, pods_of};
use crate::observer::Observer;
use crate::volumes::disks::{Disk, Disks};
use crate::volumes::{class, driver, set};

const NAME: &str = "ledger";
const REPLICAS: u8 = 2;
/// So many are wanted at most.
const MOST: u64 = 4;
/// How often what runs writes to its volumes.
const PERIOD: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct Stores {
    disks: Disks,
    /// How large the next claim is to be that grows, less one, in gibibytes.
    grown: u64,
    is_over: bool,
}

/// What the API has of volumes.
struct Told {
    pods: Vec<Pod>,
    claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    attachments: Vec<VolumeAttachment>,
}

impl Told {
    async fn look(admin: &Client) -> Result<Self, ClientError> {
        let all = ListOptions::default();
        Ok(Self {
            pods: pods_of(admin, NAMESPACE, NAME).await?,
            claims: admin.namespaced::<PersistentVolumeClaim>(NAMESPACE).list_all(&all).await?.items,
            volumes: admin.all::<PersistentVolume>().list_all(&all).await?.items,
            attachments: admin.all::<VolumeAttachment>().list_all(&all).await?.items,
        })
    }

    /// What is there that is not declared, or not as it is.
    fn differences(&self, disks: &BTreeMap<String, Disk>) -> Vec<String> {
        let of_each = self.claims.iter().filter_map(|claim| self.difference_of(claim, disks));
        of_each.chain(self.difference_of_volumes(disks)).chain(self.difference_of_attachments(disks)).collect()
    }

    /// There are the volumes of claims, and no others.
    fn difference_of_volumes(&self, disks: &BTreeMap<String, Disk>) -> Option<String> {
        let of_claims = self.claims.iter().map(|claim| &claim.spec.volume_name);
        let of_claims: BTreeSet<&String> = of_claims.filter(|name| !name.is_empty()).collect();
        let told: BTreeSet<&String> = self.volumes.iter().map(|volume| &volume.metadata.name).collect();
        let real: BTreeSet<&String> = disks.keys().collect();
        let is_well = of_claims == told && told == real;
        (!is_well).then(|| format!("claims have volumes {of_claims:?}, there are {told:?}, and disks {real:?}"))
    }

    /// Disks are where attachments say.
    fn difference_of_attachments(&self, disks: &BTreeMap<String, Disk>) -> Option<String> {
        let place = |own: &VolumeAttachment| {
            let is_attached = own.status.attached && own.metadata.deletion_timestamp.is_none();
            let volume = own.spec.source.persistent_volume_name.clone().unwrap_or_default();
            (volume, own.spec.node_name.clone(), is_attached)
        };
        let told: BTreeSet<(String, String, bool)> = self.attachments.iter().map(place).collect();
        let on = disks.iter().flat_map(|(name, disk)| disk.on.keys().map(move |node| (name, node)));
        let real: BTreeSet<(String, String, bool)> =
            on.map(|(name, node)| (name.clone(), node.clone(), true)).collect();
        (told != real).then(|| format!("attachments say {told:?}, the disks are on {real:?}"))
    }

    /// A claim is bound, its disk as large as it asks for, and where its pod is, if there is one. Where there is none, its disk
    /// may never have been used, nor made where no pod ever got a node. One that is to go stays as long as a pod has it.
    fn difference_of(&self, claim: &PersistentVolumeClaim, disks: &BTreeMap<String, Disk>) -> Option<String> {
        let (name, status) = (&claim.metadata.name, &claim.status);
        let pod = self.pods.iter().find(|pod| *name == format!("data-{}", pod.metadata.name));
        let Some(disk) = disks.get(&claim.spec.volume_name) else {
            let waits_for_a_pod = pod.is_none() && claim.spec.volume_name.is_empty();
            return (!waits_for_a_pod).then(|| format!("{name} has no disk"));
        };
        let users: BTreeSet<(String, String)> =
            pod.iter().map(|pod| (pod.spec.node_name.clone(), pod.metadata.uid.clone())).collect();
        let is_where_used = disk.on.keys().eq(users.iter().map(|(node, _)| node)) && disk.published == users;
        let asked = storage(&claim.spec.resources.requests);
        let was_never_used = pod.is_none() && disk.file_system.is_none();
        // What is on a volume grows only while a pod uses it; where that was for a moment only, nobody may have told of it.
        let has_grown = storage(&status.capacity) == asked && status.allocated_resource_statuses.is_empty();
        let is_untold = pod.is_none() && !has_grown && disk.file_system.as_ref() == Some(&disk.size);
        let is_as_told = disk.file_system.as_ref() == Some(&storage(&status.capacity)) || is_untold || was_never_used;
        let is_large = disk.size == asked && is_as_told && (has_grown || pod.is_none());
        let may_stay = claim.metadata.deletion_timestamp.is_none() || pod.is_some();
        let is_well = status.phase == "Bound" && may_stay && is_where_used && is_large;
        (!is_well).then(|| format!("{name} asks for {asked} and is {status:?}, users {users:?}, its disk is {disk:?}"))
    }
}

fn storage(of: &ResourceList) -> Quantity {
    of.get("storage").cloned().unwrap_or_default()
}

#[async_trait]
impl Workload for Stores {
    fn begin(&mut self, cluster: &Cluster, observer: &mut Observer) {
        observer.follow_attachments(cluster.admin());
        cluster.set_node_driver(&(Arc::new(self.disks.clone()) as Arc<dyn NodeDriver>));
        driver::start(&self.disks, cluster.admin());
        let (disks, containers) = (self.disks.clone(), cluster.container_source());
        cluster.admin().tasks().spawn_cancellable("writers", async move {
            loop {
                disks.write_all(&containers());
                tokio::time::sleep(PERIOD).await;
            }
        });
    }

    async fn declare(&mut self, admin: &Client) {
        create::<StorageClass>(admin, "", &class()).await;
        create::<StatefulSet>(admin, NAMESPACE, &set(NAME, REPLICAS, "100m")).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        match rng.below(4) {
            0 => scale(admin, rng).await,
            1 => draw_to_a_node(admin, rng).await,
            2 => self.grow(admin, rng).await,
            _ => replace(admin, rng).await,
        }
    }

    fn break_own(&mut self, rng: &SharedRng) -> Option<String> {
        let percent = rng.below(50);
        self.disks.steps.set_unreliable(percent, rng);
        Some(format!("the driver of {NAME} fails in {percent} of 100 steps"))
    }

    fn lose(&mut self, node: &str) {
        self.disks.set_lost(node, true);
    }

    async fn settle(&mut self, admin: &Client) {
        self.disks.steps.set_reliable();
        change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": {"replicas": REPLICAS}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let told = Told::look(admin).await?;
        let mut found = told.differences(&self.disks.all());
        if self.is_over {
            found.extend(told.claims.iter().map(|claim| format!("{} is left behind", claim.metadata.name)));
            return Ok(found);
        }
        found.extend(all_run(admin, NAMESPACE, NAME, i32::from(REPLICAS)).await?);
        let unclaimed = told.pods.iter().map(|pod| format!("data-{}", pod.metadata.name));
        let unclaimed = unclaimed.filter(|name| !told.claims.iter().any(|claim| claim.metadata.name == *name));
        found.extend(unclaimed.map(|name| format!("{name} is not there")));
        Ok(found)
    }

    /// All goes, and nothing of it is left behind.
    async fn try_out(&mut self, admin: &Client) -> Vec<String> {
        self.is_over = true;
        delete::<StatefulSet>(admin, NAMESPACE, NAME, "Background").await;
        for claim in claims(admin).await {
            delete::<PersistentVolumeClaim>(admin, NAMESPACE, &claim.metadata.name, "Background").await;
        }
        Vec::new()
    }

    fn violations(&self) -> Vec<String> {
        self.disks.faults()
    }
}

impl Stores {
    /// A claim asks for more, even while it still waits for what it asked for before.
    async fn grow(&mut self, admin: &Client, rng: &Rng) -> String {
        let mut claims = claims(admin).await;
        claims.retain(|claim| claim.status.phase == "Bound" && claim.metadata.deletion_timestamp.is_none());
        let Some(claim) = pick(&claims, rng) else { return format!("{NAME} had no claim to grow") };
        self.grown += 1;
        let (name, size) = (&claim.metadata.name, format!("{}Gi", self.grown + 1));
        let larger = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": size}}}}));
        match admin.namespaced::<PersistentVolumeClaim>(NAMESPACE).patch(name, &larger).await {
            Ok(_) => format!("{name} is to be {size}"),
            Err(error) if error.is_not_found() => format!("{name} was gone"),
            Err(error) => panic!("growing {name}: {error}"),
        }
    }
}

async fn claims(admin: &Client) -> Vec<PersistentVolumeClaim> {
    let claims = admin.namespaced::<PersistentVolumeClaim>(NAMESPACE);
    claims.list_all(&ListOptions::default()).await.expect("claims can be listed").items
}

async fn scale(admin: &Client, rng: &Rng) -> String {
    let (replicas, fate) = (rng.below(MOST + 1), *pick(&["Retain", "Delete"], rng).unwrap_or(&"Retain"));
    let policy = json!({"whenScaled": fate, "whenDeleted": "Retain"});
    let spec = json!({"replicas": replicas, "persistentVolumeClaimRetentionPolicy": policy});
    change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": spec})).await;
    format!("scaled {NAME} to {replicas}, claims: {fate}")
}

/// The pods are made anew, if there is room on one node.
async fn draw_to_a_node(admin: &Client, rng: &Rng) -> String {
    let nodes: Vec<String> = (0..NODES).map(|number| Part::Node(number).to_string()).collect();
    let node = pick(&nodes, rng).cloned().unwrap_or_default();
    let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let preferred = json!([{"weight": 100, "preference": {"matchExpressions": [here]}}]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    let template = json!({"spec": {"affinity": affinity}});
    change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": {"template": template}})).await;
    format!("{NAME} is drawn to {node}")
}

/// A claim is deleted in use, and then its pod: both come anew, with a new volume.
async fn replace(admin: &Client, rng: &Rng) -> String {
    let pods = pods_of(admin, NAMESPACE, NAME).await.expect("pods can be listed");
    let pods: Vec<Pod> = pods.into_iter().filter(|pod| !is_ending(pod)).collect();
    let Some(pod) = pick(&pods, rng) else { return format!("{NAME} had no pod to replace") };
    let name = &pod.metadata.name;
    delete::<PersistentVolumeClaim>(admin, NAMESPACE, &format!("data-{name}"), "Background").await;
    delete::<Pod>(admin, NAMESPACE, name, "Background").await;
    format!("replaced {name} with its claim")
}
