//! Deployments: replica sets rolled out one after the other.
//!
//! `plan` decides one step from what was observed; its parts are `rollout` (rolling update and recreate), `scaling`
//! (changed sizes, paused deployments), `revisions` (annotations and history), `status` and `progress` (conditions).
//! This file fetches and acts. See <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/>.

mod act;
mod arithmetic;
mod plan;
mod progress;
mod revisions;
mod rollback;
mod rollout;
mod scaling;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::apps_v1::constants::deployment_strategy_type::RECREATE;
use api_types::apps_v1::{Deployment, ReplicaSet};
use api_types::core_v1::Pod;
use client::{Change, EventType, Informer, ObjectKey};
use component_base::shared_gates::TERMINATING_REPLICAS;
use component_helpers::selectors::selector_of;
use controller::{
    Build, BuildError, CONTROLLER_UID, Controller, Cx, Descriptor, Next, ReconcileError, controller_uid,
    owned_and_orphans,
};

use super::adoption::Claims;
use super::owners::{concerned, key, resolve, selects_all};
use crate::Settings;
use plan::{Observed, Step};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "deployment-controller",
    aliases: &["deployment"],
    gates: &[],
    identity: "deployment-controller",
    event_component: "deployment-controller",
    disabled_by_default: false,
    build,
};

/// Failures of one deployment in a row before it waits for its next change, as upstream.
const MAX_RETRIES: u32 = 15;
/// How often one reconciliation looks again after creating a replica set; the second look always suffices.
const MAX_LOOKS: usize = 2;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.deployment_syncs;
    let queue = build.queue("deployment");
    let deployments = build.watch::<Deployment>().enqueue_self(&queue).informer();
    let owners = deployments.clone();
    let sets = build
        .watch::<ReplicaSet>()
        .index(CONTROLLER_UID, |set| controller_uid(&set.metadata))
        .enqueue_keys(&queue, move |change| concerned(&owners, change))
        .informer();
    let pods = build.watch::<Pod>().index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata));
    let tells_terminating = build.gates().enabled(TERMINATING_REPLICAS);
    let controller = DeploymentController { deployments, sets, pods: pods.informer(), tells_terminating };
    let controller = Arc::new(controller);
    let watcher = Arc::clone(&controller);
    drop(build.watch::<Pod>().enqueue_keys(&queue, move |change| watcher.waiting_for(change)));
    build.run(&queue, workers, controller).drop_after(MAX_RETRIES);
    Ok(())
}

struct DeploymentController {
    deployments: Informer<Deployment>,
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    /// Whether statuses tell how many pods are on their way out.
    tells_terminating: bool,
}

#[async_trait::async_trait]
impl Controller for DeploymentController {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(stored) = self.deployments.get(key) else { return Ok(Next::Done) };
        if selects_all(stored.spec.selector.as_ref()) {
            refuse_to_select_all(cx, &stored).await;
            return Ok(Next::Done);
        }
        let mut observed = self.observe(cx, stored).await?;
        for _ in 0..MAX_LOOKS {
            observed.now = Time::from(cx.clock.wall());
            match plan::plan(&observed)? {
                Step::Create(set) => self.create(cx, &mut observed, *set).await?,
                Step::Act(actions) => return act::act(cx, &observed, *actions).await,
            }
        }
        Err(ReconcileError::failed("the new replica set is not found after it was created"))
    }
}

/// Says that the deployment means everything, and that its generation was seen.
async fn refuse_to_select_all(cx: &Cx, stored: &Deployment) {
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    cx.events.event(stored, EventType::Warning, "SelectingAll", message);
    if stored.status.observed_generation < stored.metadata.generation {
        let mut seen = stored.clone();
        seen.status.observed_generation = stored.metadata.generation;
        let deployments = cx.client.namespaced::<Deployment>(&stored.metadata.namespace);
        if let Err(error) = deployments.update_status(&seen).await {
            tracing::debug!(%error, "Observed generation not written");
        }
    }
}

impl DeploymentController {
    /// The deployment whose recreation waited for this pod to go: it was the last one of all its replica sets.
    fn waiting_for(&self, change: &Change<Pod>) -> Option<ObjectKey> {
        let Change::Deleted { object: pod, .. } = change else { return None };
        let set = resolve(&self.sets, &pod.metadata)?;
        let deployment = resolve(&self.deployments, &set.metadata)?;
        if deployment.spec.strategy.type_ != RECREATE {
            return None;
        }
        let sets = self.sets.by_index(CONTROLLER_UID, &deployment.metadata.uid);
        let empty = sets.iter().all(|set| self.pods.by_index(CONTROLLER_UID, &set.metadata.uid).is_empty());
        empty.then(|| key(&*deployment))
    }

    async fn observe(&self, cx: &Cx, stored: Arc<Deployment>) -> Result<Observed, ReconcileError> {
        let selector =
            selector_of(stored.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let candidates = owned_and_orphans(&self.sets, &stored.metadata);
        let claimed = Claims::new(&cx.client, &*stored, &selector, &[]).run(candidates).await?;
        let pods_of =
            |set: &Arc<ReplicaSet>| (set.metadata.uid.clone(), self.pods.by_index(CONTROLLER_UID, &set.metadata.uid));
        let pods: BTreeMap<_, _> = claimed.iter().map(pods_of).collect();
        let sets = claimed.iter().map(|set| ReplicaSet::clone(set)).collect();
        let tells_terminating = self.tells_terminating;
        let deployment = Deployment::clone(&stored);
        Ok(Observed { deployment, stored, sets, pods, tells_terminating, now: Time::default() })
    }

    /// Creates the new replica set and adds it to what was observed, or finds that it is there already.
    async fn create(&self, cx: &Cx, observed: &mut Observed, set: ReplicaSet) -> Result<(), ReconcileError> {
        let sets = cx.client.namespaced::<ReplicaSet>(&set.metadata.namespace);
        match sets.create(&set).await {
            Ok(made) => {
                let (name, count) = (&made.metadata.name, made.spec.replicas.unwrap_or(0));
                if count > 0 {
                    let message = format!("Scaled up replica set {name} from 0 to {count}");
                    cx.events.event(&observed.deployment, EventType::Normal, "ScalingReplicaSet", message);
                }
                observed.created(made);
                Ok(())
            }
            Err(error) if error.is_already_exists() => {
                let there = self.sets.get(&key(&set)).ok_or_else(|| {
                    ReconcileError::failed(format!("replicaset.apps \"{}\" not found", set.metadata.name))
                })?;
                if observed.is_new_set(&there) {
                    observed.sets.push(ReplicaSet::clone(&there));
                    return Ok(());
                }
                // Another template has this hash. The count makes the next hash another one.
                act::count_collision(cx, observed).await?;
                Err(error.into())
            }
            Err(error) if error.is_namespace_terminating() => Err(error.into()),
            Err(error) => {
                act::report_creation_failure(cx, observed, &set.metadata.name, &error).await;
                Err(error.into())
            }
        }
    }
}
