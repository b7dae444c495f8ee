//! Tells pods of volumes that are not well, by the word of their drivers (gate `CSIVolumeHealth`,
//! <https://kep.k8s.io/1432>).

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use client::object_reference;
use component_base::Gates;
use tokio::time::MissedTickBehavior;

use crate::config::gates;
use crate::engine::PodEngine;
use crate::interfaces::{Events, Level};
use crate::volumes::{ClaimRoom, VolumeSet};

/// Asks drivers each `period` until the caller drops the future.
pub(crate) async fn watch(engine: PodEngine, volumes: Arc<VolumeSet>, events: Arc<dyn Events>, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let pods = engine.active_pods();
        let rooms = volumes.claimed_rooms(&pods).await;
        for (pod, text) in abnormal(&pods, &rooms) {
            events.event(object_reference(pod), Level::Warning, "VolumeConditionAbnormal", &text);
        }
    }
}

/// The volumes that are not well: whose they are, and what is said of them.
fn abnormal<'a>(pods: &'a [Arc<Pod>], rooms: &'a [ClaimRoom]) -> impl Iterator<Item = (&'a Pod, String)> {
    rooms.iter().filter_map(|room| {
        let condition = room.condition.as_ref().filter(|condition| condition.is_abnormal)?;
        let pod = pods.iter().find(|pod| pod.metadata.uid == room.uid)?;
        Some((&**pod, format!("Volume {}: {}", room.volume, condition.message)))
    })
}

/// What is told of claims: how their volumes are only where the gate says so.
pub(crate) fn told(set: &Gates, mut rooms: Vec<ClaimRoom>) -> Vec<ClaimRoom> {
    if !set.enabled(gates::VOLUME_HEALTH) {
        rooms.iter_mut().for_each(|room| room.condition = None);
    }
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FileSystem;
    use crate::volumes::VolumeCondition;

    fn room(volume: &str, condition: Option<bool>) -> ClaimRoom {
        ClaimRoom {
            uid: "u".into(),
            volume: volume.into(),
            namespace: "ns".into(),
            claim: volume.into(),
            room: FileSystem::default(),
            condition: condition.map(|is_abnormal| VolumeCondition { is_abnormal, message: "bad".into() }),
        }
    }

    #[test]
    fn only_volumes_that_are_not_well_are_told_of() {
        let mut pod = Pod::default();
        pod.metadata.uid = "u".into();
        let rooms = [room("well", Some(false)), room("ill", Some(true)), room("unknown", None)];
        let pods = [Arc::new(pod)];
        let told: Vec<String> = abnormal(&pods, &rooms).map(|(_, text)| text).collect();
        assert_eq!(told, ["Volume ill: bad"]);
        assert_eq!(abnormal(&[], &rooms).count(), 0, "the pod has gone meanwhile");
    }

    #[test]
    fn nothing_is_said_of_it_without_the_gate() {
        let conditions = |is_on| {
            let set = Gates::default().with(gates::VOLUME_HEALTH, is_on);
            told(&set, vec![room("ill", Some(true))])[0].condition.is_some()
        };
        assert!(conditions(true) && !conditions(false));
    }
}
