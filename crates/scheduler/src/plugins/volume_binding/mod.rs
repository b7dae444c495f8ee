//! `VolumeBinding`: a pod runs where its volumes are, or can be made; and once a node is chosen, its claims are bound.

mod binder;
mod capacity;
mod claims;
mod hints;
mod node_volumes;
mod scoring;
#[cfg(test)]
mod tests;
mod waiters;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::{CSIDriver, CSIStorageCapacity, StorageClass};
use async_trait::async_trait;
use base::CancellationToken;
use client::ObjectKey;
use component_base::Feature;
use component_helpers::volumes::classes::class_of_volume;
use parking_lot::Mutex;

use crate::assume_cache::AssumeCache;
use crate::framework::{
    BuildCx, CycleCx, CycleState, Filter, Plugin, PluginError, PreBind, PreFilter, PreFiltered, PreScore, PreScored,
    Reserve, Score, Status, StatusResult, by_volumes,
};
use crate::listers::Lister;
use crate::metrics::{SchedulerMetrics, VolumeStage};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;
use crate::writer::ObjectWriter;
use claims::Claims;
use node_volumes::NodeVolumes;
use scoring::Scorer;
use waiters::Waiters;

pub(super) const NAME: &str = "VolumeBinding";
/// Nodes with more room are better (KEP-4049).
pub(crate) const CAPACITY_SCORING: Feature = Feature::named("StorageCapacityScoring");
/// Capacities, and volumes that nobody has or waits for, by class.
const BY_CLASS: &str = "class";
/// Volumes by the claim that they name.
const BY_CLAIM: &str = "claim";

/// How a pod's claims and nodes come together.
struct VolumeBinding {
    pods: Lister<Pod>,
    nodes: Lister<Node>,
    claims: AssumeCache<PersistentVolumeClaim>,
    volumes: AssumeCache<PersistentVolume>,
    classes: Lister<StorageClass>,
    drivers: Lister<CSIDriver>,
    capacities: Lister<CSIStorageCapacity>,
    objects: Arc<dyn ObjectWriter>,
    metrics: Arc<SchedulerMetrics>,
    waiters: Arc<Waiters>,
    timeout: Duration,
    scorer: Option<Scorer>,
}

/// What would be bound for claims of the pod.
#[derive(Clone)]
enum Found {
    /// The same on whichever node.
    Everywhere(NodeVolumes),
    /// What the filter found for each node.
    ByNode(Arc<Mutex<HashMap<Arc<str>, NodeVolumes>>>),
}

impl Found {
    /// What looks at it on a node, if the node can have the pod.
    fn on<T>(&self, node: &str, look: impl FnOnce(&NodeVolumes) -> T) -> Option<T> {
        match self {
            Self::Everywhere(volumes) => Some(look(volumes)),
            Self::ByNode(found) => found.lock().get(node).map(look),
        }
    }
}

/// What is to be written, as it was assumed.
#[derive(Clone)]
struct Assumed {
    volumes: Vec<Arc<PersistentVolume>>,
    claims: Vec<Arc<PersistentVolumeClaim>>,
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::VolumeBinding(args) = args else { return Err(PluginError::NoArguments) };
    let seconds = args.bind_timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let waiters = Arc::new(Waiters::default());
    let (claims, volumes) = (cx.listers.of::<PersistentVolumeClaim>(), cx.listers.of::<PersistentVolume>());
    let capacities = cx.listers.of::<CSIStorageCapacity>();
    volumes.add_index(BY_CLASS, |volume| match &volume.spec.claim_ref {
        None => vec![class_of_volume(volume).to_owned()],
        Some(_) => Vec::new(),
    });
    volumes.add_index(BY_CLAIM, |volume| {
        let claims = volume.spec.claim_ref.iter();
        claims.map(|claim| ObjectKey::new(claim.namespace.as_str(), claim.name.as_str()).to_string()).collect()
    });
    capacities.add_index(BY_CLASS, |capacity| vec![capacity.storage_class_name.clone()]);
    waiters::listen(&waiters, &claims, &volumes);
    let plugin = Arc::new(VolumeBinding {
        pods: cx.listers.of(),
        nodes: cx.listers.of(),
        claims: AssumeCache::new(claims),
        volumes: AssumeCache::new(volumes),
        classes: cx.listers.of(),
        drivers: cx.listers.of(),
        capacities,
        objects: Arc::clone(&cx.objects),
        metrics: Arc::clone(&cx.metrics),
        waiters,
        timeout: Duration::from_secs(seconds.unwrap_or(600)),
        scorer: cx.gates.enabled(CAPACITY_SCORING).then(|| Scorer::of(&args.shape)),
    });
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone());
    let points = points.pre_score(plugin.clone()).score(plugin.clone());
    let points = points.reserve(plugin.clone()).pre_bind(plugin).wakes_on(hints::registrations());
    Ok(points.signed_by(by_volumes))
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, _: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if !pod.has_volumes() || !self.check_claims(&pod.pod)? {
            return Ok(PreFiltered::Skip);
        }
        let claims = self.claims_of(&pod.pod)?;
        let everywhere = claims.everywhere();
        state.put(claims);
        if let Some(volumes) = everywhere {
            state.put(Found::Everywhere(volumes));
            return Ok(PreFiltered::Skip);
        }
        state.put(Found::ByNode(Arc::default()));
        Ok(PreFiltered::All)
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(claims) = state.get::<Claims>() else { return Ok(()) };
        let volumes = NodeVolumes::of(claims, node.node).inspect_err(|status| {
            if !status.code.is_rejection() {
                self.metrics.volume_error(VolumeStage::Predicate);
            }
        })?;
        if let Some(Found::ByNode(found)) = state.get::<Found>()
            && !claims.delayed.is_empty()
        {
            found.lock().insert(Arc::clone(&node.info.name), volumes);
        }
        Ok(())
    }
}

impl PreScore for VolumeBinding {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        state: &mut CycleState,
        _: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let is_there = self.scorer.is_some() && state.get::<Claims>().is_some_and(|claims| !claims.delayed.is_empty());
        Ok(if is_there { PreScored::Ready } else { PreScored::Skip })
    }
}

impl Score for VolumeBinding {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let (Some(scorer), Some(found)) = (&self.scorer, state.get::<Found>()) else { return Ok(0) };
        Ok(found.on(&node.info.name, |volumes| scorer.score(volumes)).unwrap_or(0))
    }
}

/// What is to be written for a pod; none where all its claims are bound.
fn assumed(state: &CycleState) -> Option<&Assumed> {
    state.get::<Assumed>().filter(|assumed| !assumed.volumes.is_empty() || !assumed.claims.is_empty())
}

impl Reserve for VolumeBinding {
    fn reserve(&self, state: &mut CycleState, _: &PodInfo, node: &str) -> StatusResult {
        if state.get::<Claims>().is_none_or(|claims| claims.delayed.is_empty()) {
            return Ok(());
        }
        let found = state.get::<Found>().and_then(|found| found.on(node, NodeVolumes::clone));
        let found = found.ok_or_else(|| Status::error(format!("no pod volumes found for node {node:?}")))?;
        let assumed = self.assume(&found, node).map_err(|error| {
            self.metrics.volume_error(VolumeStage::Assume);
            Status::error(error.to_string())
        })?;
        state.put(assumed);
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, _: &PodInfo, _: &str) {
        if let Some(assumed) = assumed(state) {
            self.restore(assumed);
        }
    }
}

#[async_trait]
impl PreBind for VolumeBinding {
    fn has_work(&self, state: &CycleState, _: &PodInfo, _: &str) -> Result<bool, Status> {
        Ok(assumed(state).is_some())
    }

    fn runs_beside_others(&self) -> bool {
        true
    }

    async fn pre_bind(&self, state: &CycleState, pod: &PodInfo, node: &str, stop: &CancellationToken) -> StatusResult {
        let Some(assumed) = assumed(state) else { return Ok(()) };
        self.bind(assumed, &pod.pod, node, stop).await.map_err(|error| {
            self.metrics.volume_error(VolumeStage::Bind);
            Status::error(error.to_string())
        })
    }
}
