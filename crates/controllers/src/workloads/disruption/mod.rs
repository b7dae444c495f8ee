//! Keeps the status of pod disruption budgets: how many healthy pods there are and must be, and so how many may be
//! evicted. Also takes back the announcement of an eviction that never came.
//!
//! See <https://kubernetes.io/docs/tasks/run-application/configure-pdb/>.

mod expected;
mod plan;
mod stale;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::apps_v1::{Deployment, ReplicaSet, StatefulSet};
use api_types::core_v1::{Pod, ReplicationController};
use api_types::policy_v1::PodDisruptionBudget;
use client::{Change, EventType, Informer, ObjectKey};
use component_helpers::selectors::selector_of;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use expected::Scales;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "disruption-controller",
    aliases: &["disruption"],
    gates: &[],
    identity: "disruption-controller",
    event_component: "controllermanager",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("disruption");
    let budgets = build.watch::<PodDisruptionBudget>().enqueue_self(&queue).informer();
    let (lookup, events) = (budgets.clone(), build.events().clone());
    let of_pod = move |change: &Change<Pod>| {
        let pod = change.object();
        let mut matching = budgets_of(&lookup, pod).into_iter();
        let first = matching.next()?;
        if matching.next().is_some() {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            let message = format!(
                "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {:?} arbitrarily.",
                first.name
            );
            events.event(&**pod, EventType::Warning, "MultiplePodDisruptionBudgets", message);
        }
        Some(first)
    };
    let pods = build.watch::<Pod>().enqueue_keys(&queue, of_pod).informer();
    let scales = Scales {
        controllers: build.watch::<ReplicationController>().informer(),
        sets: build.watch::<ReplicaSet>().informer(),
        deployments: build.watch::<Deployment>().informer(),
        stateful_sets: build.watch::<StatefulSet>().informer(),
        mapper: build.mapper().clone(),
    };
    build.run(&queue, 1, Arc::new(Disruption { budgets, pods: pods.clone(), scales }));
    stale::build(build, pods);
    Ok(())
}

/// The budgets whose selectors match a pod.
fn budgets_of(budgets: &Informer<PodDisruptionBudget>, pod: &Pod) -> Vec<ObjectKey> {
    let matches = |budget: &Arc<PodDisruptionBudget>| {
        selector_of(budget.spec.selector.as_ref()).is_ok_and(|selector| selector.matches(&pod.metadata.labels))
    };
    let found = budgets.in_namespace(&pod.metadata.namespace).into_iter().filter(matches);
    found.map(|budget| ObjectKey::of(&budget.metadata)).collect()
}

struct Disruption {
    budgets: Informer<PodDisruptionBudget>,
    pods: Informer<Pod>,
    scales: Scales,
}

#[async_trait::async_trait]
impl Controller for Disruption {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(budget) = self.budgets.get(key) else { return Ok(Next::Done) };
        let now = Time::from(cx.clock.wall());
        let outcome = self.sync(cx, &budget, now).await;
        let Err(error) = outcome else { return outcome };
        if error.is_conflict() {
            return Err(error);
        }
        // Nobody may be evicted while it is not known how many there are. It is tried again: where this was told already,
        // nothing changes that would tell to.
        let failed = plan::failed(&budget, &error.to_string(), now);
        self.write(cx, &budget, failed).await?;
        Err(error)
    }
}

impl Disruption {
    async fn sync(&self, cx: &Cx, budget: &PodDisruptionBudget, now: Time) -> Result<Next, ReconcileError> {
        let event = |kind, reason, message| cx.events.event(budget, kind, reason, message);
        let selector = selector_of(budget.spec.selector.as_ref()).map_err(|error| {
            event(EventType::Warning, "NoPods", format!("Failed to get pods: {error}"));
            ReconcileError::failed(error.to_string())
        })?;
        let mut pods = self.pods.in_namespace(&budget.metadata.namespace);
        pods.retain(|pod| selector.matches(&pod.metadata.labels));
        if pods.is_empty() {
            event(EventType::Normal, "NoPods", "No matching pods found".to_owned());
        }
        let counted = self.scales.expected(cx, budget, &pods).await.map_err(|error| {
            let message = format!("Failed to calculate the number of expected pods: {error}");
            event(EventType::Warning, "CalculateExpectedPodCountFailed", message);
            error
        })?;
        if counted.unmanaged {
            event(EventType::Warning, "UnmanagedPods", plan::unmanaged(&selector.to_string()));
        }
        let plan = plan::plan(budget, &pods, counted, now);
        for pod in &plan.overdue {
            let namespace = &budget.metadata.namespace;
            let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            cx.events.event(&**pod, EventType::Warning, "NotDeleted", message);
        }
        self.write(cx, budget, plan.status).await?;
        Ok(plan.again.map_or(Next::Done, Next::After))
    }

    async fn write(
        &self,
        cx: &Cx,
        budget: &PodDisruptionBudget,
        status: api_types::policy_v1::PodDisruptionBudgetStatus,
    ) -> Result<(), ReconcileError> {
        if status == budget.status {
            return Ok(());
        }
        let next = PodDisruptionBudget { status, ..budget.clone() };
        cx.client.namespaced::<PodDisruptionBudget>(&budget.metadata.namespace).update_status(&next).await?;
        Ok(())
    }
}
