//! A volume from its making to its end, with everybody in turn crashing in each step: nothing is lost, attached or formatted
//! twice, or left behind. The matrix has a story for each victim, each moment of a step, and steps that end while the victim is
//! away or only after; the victim crashes in every step of it. Some more are of two crashes in each step, the second while the
//! first is recovered from; of a volume that grows while nobody uses it; and of a node that is lost with the volume, and back.

mod crashes;
pub(crate) mod disks;
pub(crate) mod driver;
pub(crate) mod gate;
mod growth;
mod lost_node;
mod on_nodes;
pub(crate) mod steps;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ListOptions, ObjectMeta};
use api_types::apps_v1::StatefulSet;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::{StorageClass, VolumeAttachment};
use base::TaskGroup;
use client::{ClientError, Patch};
use serde_json::{Value, json};
use testing::{Cluster, NodeDriver};
use tokio::time::Instant;

use crate::observer::Observer;
use crate::simulate;
use crate::workloads::{NAMESPACE, create, delete, is_ready, template};
use crashes::Crash;
use disks::{Disks, Step};
use driver::DRIVER;

const NAME: &str = "store";
const CLAIM: &str = "data-store-0";
const POD: &str = "store-0";
/// How long each step may take with a crash in it; a volume whose node does not answer is detached by force after six minutes.
const LIMIT: Duration = Duration::from_secs(420);
/// How long it takes until all have heard of a change: API servers that crash again and again have informers wait up to 30 s
/// before they ask anew, and up to as long once more at random.
const UNTIL_HEARD: Duration = Duration::from_secs(90);
/// Often enough to see each moment of a step.
const LOOK: Duration = Duration::from_millis(200);

/// A class whose volumes are made once it is known where they are needed, and can grow.
pub(crate) fn class() -> Value {
    json!({"metadata": {"name": "disks"}, "provisioner": DRIVER, "allowVolumeExpansion": true,
        "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"})
}

/// A StatefulSet whose pods have a volume each.
pub(crate) fn set(name: &str, replicas: u8, cpu: &str) -> Value {
    let mut template = template(name, "Always", "main:1", cpu);
    template["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "serviceName": name,
        "selector": {"matchLabels": {"app": name}}, "template": template, "volumeClaimTemplates": [claim]}})
}

struct Story {
    cluster: Cluster,
    observer: Observer,
    disks: Disks,
    driver: TaskGroup,
    left: Vec<String>,
}

/// What is there of the volume.
struct Seen {
    claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    attachments: Vec<VolumeAttachment>,
    pods: Vec<Pod>,
}

impl Seen {
    /// The node on which the pod runs.
    fn runs_on(&self) -> Option<&str> {
        let pod = self.pods.iter().find(|pod| pod.metadata.name == POD)?;
        (is_ready(pod) && pod.metadata.deletion_timestamp.is_none()).then_some(pod.spec.node_name.as_str())
    }

    /// Whether the pod runs on a node, or on another, where its disk is and nowhere else.
    fn runs_with_its_disk(&self, disks: &Disks, is_right: impl Fn(&str) -> bool) -> bool {
        let on: Vec<String> = disks.all().into_values().flat_map(|disk| disk.on.into_keys()).collect();
        self.runs_on().is_some_and(|now| is_right(now) && on == [now])
    }

    /// Whether the pod's claim has gone before the pod. Pods are listed last: one that has run by then was there before.
    fn lacks_its_claim(&self) -> bool {
        self.claims.is_empty() && self.pods.iter().any(|pod| pod.metadata.name == POD && is_ready(pod))
    }

    /// What is there, with its state and what holds it.
    fn summary(&self) -> Vec<String> {
        let line = |meta: &ObjectMeta, state: &str| {
            let ending = if meta.deletion_timestamp.is_some() { ", ending" } else { "" };
            format!("{} ({state}{ending}, held by {:?})", meta.name, meta.finalizers)
        };
        let claims = self.claims.iter().map(|own| line(&own.metadata, &own.status.phase));
        let volumes = self.volumes.iter().map(|own| line(&own.metadata, &own.status.phase));
        let attachments = self.attachments.iter().map(|own| line(&own.metadata, &own.spec.node_name));
        let pods = self.pods.iter().map(|own| line(&own.metadata, &own.status.phase));
        claims.chain(volumes).chain(attachments).chain(pods).collect()
    }

    fn is_nothing(&self) -> bool {
        self.claims.is_empty() && self.volumes.is_empty() && self.attachments.is_empty()
    }
}

impl Story {
    async fn begin() -> Self {
        let cluster = Cluster::new(7).await.expect("the cluster starts");
        let (observer, disks) = (Observer::start(cluster.admin()), Disks::default());
        cluster.set_node_driver(&(Arc::new(disks.clone()) as Arc<dyn NodeDriver>));
        let driver = driver::start(&disks, cluster.admin());
        Self { cluster, observer, disks, driver, left: Vec::new() }
    }

    /// What went wrong.
    async fn finish(self) -> Vec<String> {
        let Self { cluster, observer, disks, driver, mut left } = self;
        left.extend(observer.violations());
        left.extend(disks.faults());
        left.extend(disks.all().keys().map(|handle| format!("{handle} was left behind")));
        driver.cancel();
        cluster.shutdown().await;
        left
    }

    async fn of(crash: Option<Crash>) -> Vec<String> {
        let mut story = Self::begin().await;
        story.declare().await;
        for step in [Step::Provision, Step::Attach, Step::Stage, Step::Publish] {
            story.strike_in(step, crash).await;
        }
        story.until("the pod runs", |seen, disks| seen.runs_with_its_disk(disks, |_| true)).await;
        story.grow(crash).await;
        story.go_elsewhere(crash).await;
        story.end().await;
        let left = story.finish().await;
        left.into_iter().map(|line| format!("{crash:?}: {line}")).collect()
    }

    async fn declare(&self) {
        create::<StorageClass>(self.cluster.admin(), "", &class()).await;
        create::<StatefulSet>(self.cluster.admin(), NAMESPACE, &set(NAME, 1, "1")).await;
    }

    /// The pod goes elsewhere, and the disk with it.
    async fn go_elsewhere(&mut self, crash: Option<Crash>) {
        let before = self.disks.all();
        let node = self.node().await;
        self.cordon(&node, true).await;
        // A scheduler that has not heard of it would choose the same node once more.
        self.wait(UNTIL_HEARD).await;
        delete::<Pod>(self.cluster.admin(), NAMESPACE, POD, "Background").await;
        for step in [Step::Unpublish, Step::Unstage, Step::Detach] {
            self.strike_in(step, crash).await;
        }
        self.until("the pod runs elsewhere", |seen, disks| seen.runs_with_its_disk(disks, |now| now != node)).await;
        if before.keys().ne(self.disks.all().keys()) {
            self.left.push(format!("the disk is another: {before:?}, now {:?}", self.disks.all()));
        }
    }

    /// All goes.
    async fn end(&mut self) {
        delete::<StatefulSet>(self.cluster.admin(), NAMESPACE, NAME, "Background").await;
        // A controller that has not heard of it would make the pod and its claim anew.
        self.wait(UNTIL_HEARD).await;
        delete::<PersistentVolumeClaim>(self.cluster.admin(), NAMESPACE, CLAIM, "Background").await;
        self.until("nothing is left", |seen, disks| seen.is_nothing() && disks.all().is_empty()).await;
    }

    /// The node on which the pod runs.
    async fn node(&self) -> String {
        let seen = self.look().await.expect("all can be listed");
        seen.runs_on().unwrap_or_default().to_owned()
    }

    async fn cordon(&self, node: &str, is_closed: bool) {
        let cordon = Patch::Merge(json!({"spec": {"unschedulable": is_closed}}));
        self.cluster.admin().all::<Node>().patch(node, &cordon).await.expect("the node is there");
    }

    async fn look(&self) -> Result<Seen, ClientError> {
        let (admin, all) = (self.cluster.admin(), ListOptions::default());
        Ok(Seen {
            claims: admin.namespaced::<PersistentVolumeClaim>(NAMESPACE).list_all(&all).await?.items,
            volumes: admin.all::<PersistentVolume>().list_all(&all).await?.items,
            attachments: admin.all::<VolumeAttachment>().list_all(&all).await?.items,
            pods: admin.namespaced::<Pod>(NAMESPACE).list_all(&all).await?.items,
        })
    }

    /// Waits until something holds. All that runs writes meanwhile.
    async fn until(&mut self, what: &str, holds: impl Fn(&Seen, &Disks) -> bool) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let seen = self.look().await.expect("all can be listed");
            self.write();
            if seen.lacks_its_claim() {
                return self.left.push(format!("the claim has gone before its pod, until {what}"));
            }
            if holds(&seen, &self.disks) {
                return;
            }
            if Instant::now() > deadline {
                let there = seen.summary();
                return self.left.push(format!("it did not come about that {what}: there is {there:?}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Time passes. All that runs writes meanwhile.
    async fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.write();
            tokio::time::sleep(LOOK).await;
        }
    }

    fn write(&self) {
        self.disks.write_all(&self.cluster.containers());
    }
}

#[test]
fn a_volume_lives_and_ends() {
    let left = simulate(Story::of(None));
    assert!(left.is_empty(), "{}", left.join("\n"));
}
