//! A volume that grows: first the disk, then, on the node of a pod that uses it, what is on it; the claim is told of both.

use api_machinery::quantity::Quantity;
use api_types::apps_v1::StatefulSet;
use api_types::core_v1::PersistentVolumeClaim;
use serde_json::json;
use testing::Part;

use super::crashes::{Crash, Victim};
use super::disks::{Disks, Step};
use super::steps::Moment;
use super::{CLAIM, NAME, Seen, Story};
use crate::simulate;
use crate::workloads::{NAMESPACE, change};

const LARGER: &str = "2Gi";

impl Seen {
    /// Whether the claim, the volume, the disk and what is on it are as large as asked for, and nothing says otherwise.
    fn has_grown(&self, disks: &Disks) -> bool {
        let (Some(claim), Some(volume)) = (self.claims.first(), self.volumes.first()) else { return false };
        let status = &claim.status;
        let is_large = |size: Option<&Quantity>| size.map(ToString::to_string).as_deref() == Some(LARGER);
        let told = [&status.capacity, &status.allocated_resources, &volume.spec.capacity];
        let is_settled = status.allocated_resource_statuses.is_empty() && status.conditions.is_empty();
        let is_real =
            disks.all().values().all(|disk| is_large(Some(&disk.size)) && is_large(disk.file_system.as_ref()));
        is_settled && is_real && told.iter().all(|list| is_large(list.get("storage")))
    }

    fn waits_for_a_node(&self) -> bool {
        self.claims.iter().any(|claim| !claim.status.allocated_resource_statuses.is_empty())
    }
}

impl Story {
    /// The volume grows while the pod runs.
    pub(super) async fn grow(&mut self, crash: Option<Crash>) {
        self.ask_for_more().await;
        for step in [Step::Resize, Step::Expand] {
            self.strike_in(step, crash).await;
        }
        self.until("the volume has grown", |seen, disks| seen.has_grown(disks)).await;
    }

    async fn ask_for_more(&self) {
        let larger = json!({"spec": {"resources": {"requests": {"storage": LARGER}}}});
        change::<PersistentVolumeClaim>(self.cluster.admin(), NAMESPACE, CLAIM, larger).await;
    }

    async fn scale(&self, replicas: u8) {
        change::<StatefulSet>(self.cluster.admin(), NAMESPACE, NAME, json!({"spec": {"replicas": replicas}})).await;
    }

    /// The volume grows while nobody uses it: the node's part is done when somebody does.
    async fn of_growth_at_rest(crash: Option<Crash>) -> Vec<String> {
        let mut story = Self::begin().await;
        story.declare().await;
        story.until("the pod runs", |seen, disks| seen.runs_with_its_disk(disks, |_| true)).await;
        story.scale(0).await;
        story.until("the disk is nowhere", |_, disks| disks.all().values().all(|disk| disk.on.is_empty())).await;
        story.ask_for_more().await;
        story.strike_in(Step::Resize, crash).await;
        story.until("the claim waits for a node", |seen, _| seen.waits_for_a_node()).await;
        story.scale(1).await;
        story.strike_in(Step::Expand, crash).await;
        story.until("the volume has grown", |seen, disks| seen.has_grown(disks)).await;
        story.end().await;
        story.finish().await
    }
}

#[test]
fn a_volume_that_nobody_uses_grows_when_somebody_does() {
    let crashes = [Victim::Kubelets, Victim::Part(Part::Controllers(0))].map(|own| Crash::of(own, Moment::After));
    let of = |crash| simulate(Story::of_growth_at_rest(crash));
    let left: Vec<String> = std::iter::once(None).chain(crashes.map(Some)).flat_map(of).collect();
    assert!(left.is_empty(), "{}", left.join("\n"));
}
