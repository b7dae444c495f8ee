//! Which pods of a node would have to go.

use std::sync::Arc;

use api_machinery::labels::Selector;
use api_types::policy_v1::PodDisruptionBudget;
use component_helpers::selectors::selector_of;

use super::candidate::by_importance;
use crate::framework::{Candidate, CycleState, PostFilterCx, Status, StatusResult};
use crate::node_info::{NodeInfo, NodeView};
use crate::pod_info::PodInfo;

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// Disruption budgets with their selectors. Those that select nothing, everything or cannot be read protect nobody.
pub(crate) struct Budgets(Vec<(Arc<PodDisruptionBudget>, Selector)>);

impl Budgets {
    pub(crate) fn parse(budgets: &[Arc<PodDisruptionBudget>]) -> Self {
        let usable = |budget: &Arc<PodDisruptionBudget>| {
            let selector = selector_of(budget.spec.selector.as_ref()).ok()?;
            (!selector.is_everything() && !selector.is_nothing()).then(|| (Arc::clone(budget), selector))
        };
        Self(budgets.iter().filter_map(usable).collect())
    }

    /// Splits pods into those whose eviction breaks a budget and the others, both in the same order as before.
    pub(super) fn split(&self, pods: &[Arc<PodInfo>]) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
        let mut allowed: Vec<i32> = self.0.iter().map(|(budget, _)| budget.status.disruptions_allowed).collect();
        pods.iter().cloned().partition(|pod| {
            let meta = &pod.pod.metadata;
            let mut violates = false;
            for ((budget, selector), allowed) in self.0.iter().zip(&mut allowed) {
                let protects = budget.metadata.namespace == meta.namespace
                    && !meta.labels.is_empty()
                    && selector.matches(&meta.labels)
                    && !budget.status.disrupted_pods.contains_key(&meta.name);
                if protects {
                    *allowed -= 1;
                    violates |= *allowed < 0;
                }
            }
            violates
        })
    }
}

/// A node as it would be, with the state that belongs to it.
struct Trial<'a> {
    cx: PostFilterCx<'a>,
    pod: &'a PodInfo,
    node: NodeView<'a>,
    info: NodeInfo,
    state: CycleState,
}

impl Trial<'_> {
    fn remove(&mut self, victim: &PodInfo) -> StatusResult {
        self.info.remove_pod(victim.uid());
        let view = NodeView { info: &self.info, ..self.node };
        self.cx.profile.run_remove_pod(&mut self.state, self.pod, victim, view)
    }

    fn add(&mut self, pod: &Arc<PodInfo>) -> StatusResult {
        self.info.add_pod(Arc::clone(pod));
        let view = NodeView { info: &self.info, ..self.node };
        self.cx.profile.run_add_pod(&mut self.state, self.pod, pod, view)
    }

    fn fits(&self) -> StatusResult {
        let nominated = self.cx.nominated.get(&*self.node.name).map(Vec::as_slice).unwrap_or_default();
        let view = NodeView { info: &self.info, ..self.node };
        self.cx.profile.run_filters_with_nominated(&self.state, self.pod, view, nominated)
    }

    /// Lets a pod stay if that still leaves room; otherwise it is a victim.
    fn spare(&mut self, pod: &Arc<PodInfo>) -> Result<bool, Status> {
        self.add(pod)?;
        if self.fits().is_ok() {
            return Ok(true);
        }
        self.remove(pod)?;
        Ok(false)
    }
}

/// The fewest and least important pods whose eviction makes room on a node.
pub(super) fn select(
    cx: PostFilterCx<'_>,
    state: &CycleState,
    pod: &PodInfo,
    node: NodeView<'_>,
    budgets: &Budgets,
) -> Result<Candidate, Status> {
    let mut lower: Vec<Arc<PodInfo>> =
        node.pods.iter().filter(|other| other.priority < pod.priority).cloned().collect();
    if lower.is_empty() {
        return Err(Status::unresolvable(NO_VICTIMS));
    }
    let mut trial = Trial { cx, pod, node, info: node.info.clone(), state: state.clone() };
    for victim in &lower {
        trial.remove(victim)?;
    }
    trial.fits()?;
    by_importance(&mut lower, cx.now);
    let (protected, others) = budgets.split(&lower);
    let (mut victims, mut violations) = (Vec::new(), 0);
    for pod in &protected {
        if !trial.spare(pod)? {
            victims.push(Arc::clone(pod));
            violations += 1;
        }
    }
    for pod in &others {
        if !trial.spare(pod)? {
            victims.push(Arc::clone(pod));
        }
    }
    if victims.is_empty() {
        return Err(Status::error(format!("expected at least one victim pod on node {:?}", &*node.name)));
    }
    by_importance(&mut victims, cx.now);
    Ok(Candidate { node: Arc::clone(&node.name), victims, violations })
}
