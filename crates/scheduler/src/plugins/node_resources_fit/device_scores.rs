//! How full a node gets with resources that it offers by devices only: they count as many as there are devices of the class.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::resource_v1::DeviceClass;
use dra::{CandidateNode, DeviceCounts, Features, Selectors};

use crate::extended_resources::ExtendedResources;
use crate::framework::BuildCx;
use crate::node_info::NodeView;
use crate::plugins::dynamic_resources::{Offered, Tracker};
use crate::pod_info::PodInfo;

/// What is known of devices.
pub(super) struct DeviceScores {
    claims: Arc<Tracker>,
    offered: Arc<Offered>,
    selectors: Arc<Selectors>,
}

/// What there is of the devices that a pod asks for as extended resources.
#[derive(Clone)]
pub(super) struct PodDevices {
    classes: HashMap<Arc<str>, Arc<DeviceClass>>,
    counts: Arc<DeviceCounts>,
}

impl DeviceScores {
    pub(super) fn of(cx: &BuildCx) -> Self {
        let shares = Features::of(&cx.gates).consumable_capacity;
        Self {
            claims: Tracker::of(cx.listers.of(), shares),
            offered: Offered::of(&cx.listers, &cx.gates),
            selectors: Arc::new(Selectors::new(shares)),
        }
    }

    /// The devices as they are now.
    pub(super) fn for_pod(&self, pod: &PodInfo, extended: &ExtendedResources) -> PodDevices {
        let class_of = |(name, _): &(Arc<str>, i64)| Some((Arc::clone(name), extended.class_of(name)?));
        let classes: HashMap<_, _> = pod.request.scalars.iter().filter_map(class_of).collect();
        let counts = DeviceCounts::new(self.offered.slices(), self.claims.allocated(), Arc::clone(&self.selectors));
        PodDevices { classes, counts: Arc::new(counts) }
    }
}

impl PodDevices {
    /// How many devices a resource stands for on a node, and how many of them are taken; none where that cannot be told.
    pub(super) fn of(&self, resource: &str, node: NodeView<'_>) -> Option<(i64, i64)> {
        let place = CandidateNode { name: &node.info.name, labels: &node.node.metadata.labels };
        self.counts.of(place, self.classes.get(resource)?).ok()
    }
}
