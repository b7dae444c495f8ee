//! How well the volumes of a node suit a pod: by how full they, or the room that they are made in, would get (KEP-4049).

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::core_v1::ResourceList;
use api_types::scheduler_config_v1::UtilizationShapePoint;
use component_helpers::volumes::classes::{class_of_claim, class_of_volume};
use component_helpers::volumes::matching::storage;

use super::super::resource_scores::{Weighed, by_utilization, points};
use super::node_volumes::NodeVolumes;

/// A scoring function.
pub(super) struct Scorer {
    points: Vec<(i64, i64)>,
}

/// Without a shape the emptier is the better.
const DEFAULT_SHAPE: [(i64, i64); 2] = [(0, 100), (100, 0)];

fn bytes(list: &ResourceList) -> i64 {
    storage(list).value()
}

impl Scorer {
    /// The function that a shape describes.
    pub(super) fn of(shape: &[UtilizationShapePoint]) -> Self {
        Self { points: if shape.is_empty() { DEFAULT_SHAPE.to_vec() } else { points(shape) } }
    }

    /// The mean over the classes of the node's volumes; of those that are there, or else of those that are made.
    pub(super) fn score(&self, volumes: &NodeVolumes) -> i64 {
        let mut classes: BTreeMap<&str, Weighed> = BTreeMap::new();
        let nothing = || Weighed { allocatable: 0, requested: 0 };
        for (volume, claim) in &volumes.matched {
            let sum = classes.entry(class_of_volume(volume)).or_insert_with(nothing);
            sum.requested = sum.requested.saturating_add(bytes(&claim.spec.resources.requests));
            sum.allocatable = sum.allocatable.saturating_add(bytes(&volume.spec.capacity));
        }
        let made = volumes.provisioned.iter().filter(|_| volumes.matched.is_empty());
        for provision in made {
            let Some(room) = &provision.room else { continue };
            let sum = classes.entry(class_of_claim(&provision.claim)).or_insert_with(nothing);
            sum.requested = sum.requested.saturating_add(bytes(&provision.claim.spec.resources.requests));
            sum.allocatable = room.capacity.as_ref().map_or(0, Quantity::value);
        }
        let count = i64::try_from(classes.len()).unwrap_or(i64::MAX);
        let total: i64 = classes.values().map(|class| self.score_of(*class)).sum();
        // Rounded, and halves up: neither is negative.
        if count == 0 { 0 } else { (2 * total + count) / (2 * count) }
    }

    /// What has no room at all is full.
    fn score_of(&self, class: Weighed) -> i64 {
        let requested = if class.allocatable == 0 { 1 } else { class.requested };
        by_utilization(&self.points, Weighed { requested, ..class })
    }
}
