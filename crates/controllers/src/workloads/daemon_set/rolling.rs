//! Replacing pods of an older template: by deleting some first, or by starting new ones beside them.

use std::sync::Arc;

use api_machinery::intstr::{IntOrString, Rounding};
use api_machinery::time::Time;
use api_types::apps_v1::DaemonSet;
use api_types::apps_v1::constants::daemon_set_update_strategy_type::ROLLING_UPDATE;
use api_types::core_v1::Pod;
use component_helpers::pod_state;

use super::manage::min_ready;
use super::placement::Placement;
use super::pod_content::is_updated;

/// One step of an update.
#[derive(Default)]
pub(super) struct Step {
    /// Nodes that need a new pod.
    pub create: Vec<String>,
    /// Pods to delete.
    pub delete: Vec<Arc<Pod>>,
}

fn share(value: Option<&IntOrString>, desired: i32) -> i32 {
    // Validation keeps other texts out; they count as nothing.
    value.and_then(|value| value.scaled(desired, Rounding::Up).ok()).unwrap_or(0)
}

/// Pods beyond the wanted ones, and wanted ones that may be missing. Both round up.
fn fenceposts(set: &DaemonSet, desired: i32) -> (i32, i32) {
    if set.spec.update_strategy.type_ != ROLLING_UPDATE {
        return (0, 0);
    }
    let settings = set.spec.update_strategy.rolling_update.clone().unwrap_or_default();
    let surge = share(settings.max_surge.as_ref(), desired);
    let unavailable = share(settings.max_unavailable.as_ref(), desired);
    if surge == 0 && unavailable == 0 && desired > 0 { (0, 1) } else { (surge, unavailable) }
}

/// Whether new pods may start beside old ones.
pub(super) fn surges(set: &DaemonSet) -> bool {
    fenceposts(set, 1).0 > 0
}

/// The next step.
pub(super) fn plan(set: &DaemonSet, placement: &Placement, hash: &str, now: Time) -> Step {
    let rollout = Rollout { set, placement, hash, now };
    let (surge, unavailable) = fenceposts(set, placement.desired());
    if surge > 0 { rollout.with_surge(surge) } else { rollout.without_surge(unavailable) }
}

struct Rollout<'a> {
    set: &'a DaemonSet,
    placement: &'a Placement,
    hash: &'a str,
    now: Time,
}

/// The pods of a node that count: at most one of each template.
enum Pair<'a> {
    /// More than one of a kind; managing will tidy up first.
    Ambiguous,
    /// The new and the old one.
    Known(Option<&'a Arc<Pod>>, Option<&'a Arc<Pod>>),
}

impl<'a> Rollout<'a> {
    fn is_available(&self, pod: &Pod) -> bool {
        pod_state::is_available(pod, min_ready(self.set), self.now)
    }

    fn pair(&self, pods: &'a [Arc<Pod>]) -> Pair<'a> {
        let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let (new, old): (Vec<_>, Vec<_>) = staying.partition(|pod| is_updated(self.set, pod, self.hash));
        if new.len() > 1 || old.len() > 1 {
            return Pair::Ambiguous;
        }
        Pair::Known(new.first().copied(), old.first().copied())
    }

    /// Nodes with pods, and those that should have one.
    fn nodes(&self) -> impl Iterator<Item = (&'a str, &'a [Arc<Pod>])> {
        let with = self.placement.pods.iter().map(|(node, pods)| (node.as_str(), pods.as_slice()));
        let without = self
            .placement
            .nodes
            .iter()
            .filter(|(node, verdict)| verdict.run && !self.placement.pods.contains_key(*node));
        with.chain(without.map(|(node, _)| (node.as_str(), [].as_slice())))
    }

    /// Deletes old pods as far as enough stay available; managing creates the new ones.
    fn without_surge(&self, max_unavailable: i32) -> Step {
        let (mut delete, mut candidates, mut unavailable) = (Vec::new(), Vec::new(), 0);
        for (_, pods) in self.nodes() {
            match self.pair(pods) {
                Pair::Known(Some(new), None) => unavailable += i32::from(!self.is_available(new)),
                Pair::Known(None, Some(old)) if !self.is_available(old) => {
                    delete.push(Arc::clone(old));
                    unavailable += 1;
                }
                Pair::Known(None, Some(old)) => candidates.push(Arc::clone(old)),
                Pair::Ambiguous | Pair::Known(..) => unavailable += 1,
            }
        }
        let room = usize::try_from(max_unavailable - unavailable).unwrap_or(0);
        delete.extend(candidates.into_iter().take(room));
        Step { create: Vec::new(), delete }
    }

    /// Starts new pods beside old ones, and deletes old ones whose successor is available.
    fn with_surge(&self, max_surge: i32) -> Step {
        let mut step = Step::default();
        let (mut surge, mut available) = (0, 0);
        let (mut may_start, mut may_go) = (Vec::new(), Vec::new());
        for (node, pods) in self.nodes() {
            let Pair::Known(new, old) = self.pair(pods) else {
                surge += 1;
                continue;
            };
            available += i32::from(old.or(new).is_some_and(|pod| self.is_available(pod)));
            let Some(old) = old else { continue };
            let run = self.placement.verdict(node).run;
            match new {
                Some(new) if self.is_available(new) => step.delete.push(Arc::clone(old)),
                Some(_) => surge += 1,
                None if !run && !self.is_available(old) => step.delete.push(Arc::clone(old)),
                None if !run => may_go.push(Arc::clone(old)),
                None if !self.is_available(old) => step.create.push(node.to_owned()),
                None => may_start.push(node.to_owned()),
            }
        }
        let room = |number: i32| usize::try_from(number).unwrap_or(0);
        step.create.extend(may_start.into_iter().take(room(max_surge - surge)));
        step.delete.extend(may_go.into_iter().take(room(available - self.placement.desired())));
        step
    }
}
