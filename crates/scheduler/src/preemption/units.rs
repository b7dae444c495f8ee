//! `WorkloadAwarePreemption`: which pods of the whole cluster go, so that a group of pods has room. Pods go one by one, or all
//! of a group that wants to be disrupted as one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::scheduling_v1alpha2::PodGroup;
use api_types::scheduling_v1alpha2::constants::disruption_mode::POD_GROUP;

use super::candidate::{by_importance, start_of};
use super::victims::Budgets;
use crate::cache::Snapshot;
use crate::framework::{Candidate, GroupKey, Status};
use crate::pod_info::PodInfo;

/// Where the victims of a group are, as people are told.
const EVERYWHERE: &str = "cluster";

/// The priority of a group as a whole.
pub(crate) fn priority_of(group: &PodGroup) -> i32 {
    group.spec.priority.unwrap_or(0)
}

/// Pods that stay or go together.
#[derive(Debug)]
pub(crate) struct Unit {
    priority: i32,
    is_group: bool,
    /// Each with the place of its node in the snapshot.
    pods: Vec<(usize, Arc<PodInfo>)>,
}

impl Unit {
    /// The most important first: by priority, groups before pods, the larger groups, and those who run for longer.
    fn rank(&self, now: Time) -> (Reverse<i32>, Reverse<bool>, Reverse<usize>, Time) {
        let earliest = self.pods.iter().map(|(_, pod)| start_of(pod, now)).min().unwrap_or(now);
        (Reverse(self.priority), Reverse(self.is_group), Reverse(self.pods.len()), earliest)
    }

    fn infos(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.pods.iter().map(|(_, pod)| pod)
    }
}

/// What is less important than a group and could go for it, the most important first. `find` knows the groups.
pub(crate) fn lower_units(
    snapshot: &Snapshot,
    preemptor: &PodGroup,
    find: impl Fn(&GroupKey) -> Option<Arc<PodGroup>>,
    now: Time,
) -> Vec<Unit> {
    let own = GroupKey::named(preemptor);
    let mut groups: BTreeMap<(String, String), Unit> = BTreeMap::new();
    let mut units = Vec::new();
    for view in snapshot.views() {
        for pod in &view.info.pods {
            let key = GroupKey::of(&pod.pod);
            if key.as_ref() == Some(&own) {
                continue;
            }
            let place = (view.index, Arc::clone(pod));
            let whole = key.and_then(|key| Some((find(&key)?, key)));
            match whole.filter(|(group, _)| group.spec.disruption_mode.as_deref() == Some(POD_GROUP)) {
                Some((group, key)) => {
                    let unit = || Unit { priority: priority_of(&group), is_group: true, pods: Vec::new() };
                    groups.entry((key.namespace, key.name)).or_insert_with(unit).pods.push(place);
                }
                None => units.push(Unit { priority: pod.priority, is_group: false, pods: vec![place] }),
            }
        }
    }
    units.extend(groups.into_values());
    units.retain(|unit| unit.priority < priority_of(preemptor));
    units.sort_by_cached_key(|unit| unit.rank(now));
    units
}

/// How often it is tried whether a group fits while it is found out who goes for it. A try costs what an attempt to schedule the
/// group costs. `n` victims that are among the least important of all take about two tries each; it is more where they
/// are scattered. Nobody goes for a group that a thousand pods would have to go for.
pub(crate) const MAX_TRIALS: usize = 2000;
const TOO_MANY_TRIALS: &str = "Preemption victims for incoming preemptor are too many to be found out";

/// The cluster as it would be, and who says whether a group fits there.
struct Trials<F> {
    cluster: Snapshot,
    left: usize,
    fits: F,
}

impl<F: FnMut(&Snapshot) -> Result<bool, Status>> Trials<F> {
    /// Has units leave the cluster, or come back.
    fn change(&mut self, units: &[&Unit], come: bool) {
        let mut of_nodes: BTreeMap<usize, Vec<&Arc<PodInfo>>> = BTreeMap::new();
        for (index, pod) in units.iter().flat_map(|unit| &unit.pods) {
            of_nodes.entry(*index).or_default().push(pod);
        }
        for (index, pods) in of_nodes {
            let Some(node) = self.cluster.nodes().get(index) else { continue };
            let mut node = (**node).clone();
            for pod in pods {
                if come {
                    node.add_pod(Arc::clone(pod));
                } else {
                    node.remove_pod(pod.uid());
                }
            }
            self.cluster.replace(&Arc::new(node));
        }
    }

    /// Whether the group fits now. Others have their turn after each try.
    async fn fits(&mut self) -> Result<bool, Status> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Status::unschedulable(TOO_MANY_TRIALS))?;
        let fits = (self.fits)(&self.cluster)?;
        tokio::task::yield_now().await;
        Ok(fits)
    }

    /// Has as many of the units come back as can, the first of them first; returns those that cannot. What fits beside many
    /// pods fits beside fewer of them, so that they come back by halves: one by one there would be as many tries as pods.
    async fn take_back<'u>(&mut self, units: &[&'u Unit]) -> Result<Vec<&'u Unit>, Status> {
        let (mut parts, mut gone) = (vec![units], Vec::new());
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            self.change(part, true);
            if self.fits().await? {
                continue;
            }
            self.change(part, false);
            if let [unit] = part {
                gone.push(*unit);
            } else {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
        }
        Ok(gone)
    }
}

/// The fewest and least important of these, the most important first, whose eviction makes room; none where all of them are
/// not enough. `fits` says whether a cluster has the room, and is asked [`MAX_TRIALS`] times at most.
///
/// # Errors
/// When that cannot be told.
pub(crate) async fn select(
    snapshot: &Snapshot,
    units: &[Unit],
    budgets: &Budgets,
    now: Time,
    fits: impl FnMut(&Snapshot) -> Result<bool, Status>,
) -> Result<Option<Candidate>, Status> {
    let mut trials = Trials { cluster: snapshot.clone(), left: MAX_TRIALS, fits };
    trials.change(&units.iter().collect::<Vec<_>>(), false);
    if !trials.fits().await? {
        return Ok(None);
    }
    let pods: Vec<Arc<PodInfo>> = units.iter().flat_map(Unit::infos).cloned().collect();
    let (protected, _) = budgets.split(&pods);
    let protected: HashSet<&str> = protected.iter().map(|pod| pod.uid()).collect();
    let is_protected = |unit: &&Unit| unit.infos().any(|pod| protected.contains(pod.uid()));
    let (violating, others): (Vec<&Unit>, Vec<&Unit>) = units.iter().partition(is_protected);
    let mut gone = trials.take_back(&violating).await?;
    let violations = gone.len();
    gone.extend(trials.take_back(&others).await?);
    let mut victims: Vec<_> = gone.into_iter().flat_map(Unit::infos).cloned().collect();
    by_importance(&mut victims, now);
    Ok(Some(Candidate { node: EVERYWHERE.into(), victims, violations }))
}

/// A cluster without those of the pods that it has.
pub(crate) fn without(snapshot: &Snapshot, pods: &[Arc<PodInfo>]) -> Snapshot {
    let mut cluster = snapshot.clone();
    for view in snapshot.views() {
        let leaving = |pod: &&Arc<PodInfo>| pods.iter().any(|own| own.uid() == pod.uid());
        let mut node = None;
        for pod in view.info.pods.iter().filter(leaving) {
            node.get_or_insert_with(|| view.info.clone()).remove_pod(pod.uid());
        }
        if let Some(node) = node {
            cluster.replace(&Arc::new(node));
        }
    }
    cluster
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{PodBuilder, node, object, pod, snapshot};

    fn group(name: &str, spec: Value) -> Arc<PodGroup> {
        let mut manifest = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
        manifest["spec"]["schedulingPolicy"] = json!({"basic": {}});
        manifest["spec"]["podGroupTemplateRef"] = Value::Null;
        Arc::new(object(manifest))
    }

    fn on_a(name: &str, priority: i32, start: i64) -> PodBuilder {
        pod(name).request("cpu", "1").priority(priority).started(start).on("a")
    }

    fn cluster() -> Snapshot {
        let pods = vec![
            on_a("old", 1, 10),
            on_a("young", 1, 20),
            on_a("high", 50, 10),
            on_a("w1", 99, 10).grouped("whole"),
            on_a("w2", 0, 10).grouped("whole"),
            on_a("p1", 2, 10).grouped("parts"),
            on_a("own", 0, 10).grouped("preemptor"),
        ];
        snapshot(vec![node("a").capacity("cpu", "8")], pods, &ClassTable::default())
    }

    fn units(snapshot: &Snapshot) -> Vec<Unit> {
        let whole = group("whole", json!({"disruptionMode": "PodGroup", "priority": 1}));
        let parts = group("parts", json!({"disruptionMode": "Pod", "priority": 99}));
        let find = |key: &GroupKey| [&whole, &parts].into_iter().find(|own| own.metadata.name == key.name).cloned();
        lower_units(snapshot, &group("preemptor", json!({"priority": 10})), find, Time::from_unix_seconds(100))
    }

    fn names(pods: impl Iterator<Item = Arc<PodInfo>>) -> Vec<String> {
        let mut names: Vec<String> = pods.map(|pod| pod.pod.metadata.name.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_group_goes_as_one_where_it_wants_to() {
        let snapshot = cluster();
        let order: Vec<_> = units(&snapshot).iter().map(|unit| names(unit.infos().cloned())).collect();
        assert_eq!(order, [vec!["p1"], vec!["w1", "w2"], vec!["old"], vec!["young"]]);
    }

    /// Who goes so that a node has so many cores left.
    async fn victims(cores: i64, budgets: &Budgets) -> Option<(Vec<String>, usize)> {
        let snapshot = cluster();
        let left = |snapshot: &Snapshot| {
            let node = &snapshot.nodes()[0];
            Ok((node.allocatable.milli_cpu - node.requested.milli_cpu) >= cores * 1000)
        };
        let now = Time::from_unix_seconds(100);
        let found = select(&snapshot, &units(&snapshot), budgets, now, left).await.unwrap()?;
        assert_eq!(&*found.node, "cluster");
        Some((names(found.victims.into_iter()), found.violations))
    }

    #[tokio::test]
    async fn as_few_and_as_unimportant_as_possible() {
        let none = Budgets::parse(&[]);
        assert_eq!(victims(2, &none).await, Some((vec!["young".into()], 0)));
        assert_eq!(victims(3, &none).await, Some((vec!["old".into(), "young".into()], 0)));
        assert_eq!(victims(4, &none).await, Some((vec!["w1".into(), "w2".into(), "young".into()], 0)));
        assert_eq!(victims(7, &none).await, None, "who is as important stays");
    }

    #[tokio::test]
    async fn whom_a_budget_protects_goes_last() {
        let mut budget = api_types::policy_v1::PodDisruptionBudget::default();
        budget.metadata.namespace = "default".into();
        let labels = [("app".into(), "db".into())].into();
        budget.spec.selector = Some(api_machinery::meta::LabelSelector { match_labels: labels, ..Default::default() });
        let budgets = Budgets::parse(&[Arc::new(budget)]);
        let pods = vec![on_a("db", 0, 10).label("app", "db"), on_a("web", 5, 10)];
        let snapshot = snapshot(vec![node("a").capacity("cpu", "2")], pods, &ClassTable::default());
        let now = Time::from_unix_seconds(100);
        let units = lower_units(&snapshot, &group("preemptor", json!({"priority": 10})), |_| None, now);
        let room = |snapshot: &Snapshot| Ok(snapshot.nodes()[0].pods.len() < 2);
        let found = select(&snapshot, &units, &budgets, now, room).await.unwrap().unwrap();
        assert_eq!((names(found.victims.into_iter()), found.violations), (vec!["web".into()], 0));
    }

    /// A thousand nodes with ten pods each, of which the later ones run for a shorter time.
    fn thousand() -> Snapshot {
        let name = |index: usize| format!("n{index}");
        let nodes = (0..1000).map(|index| node(&name(index)).capacity("cpu", "10")).collect();
        let pods = (0..10_000).map(|index| {
            let start = i64::try_from(index).unwrap();
            pod(&format!("p{index}")).request("cpu", "1").priority(1).started(start).on(&name(index % 1000))
        });
        snapshot(nodes, pods.collect(), &ClassTable::default())
    }

    /// How often it was tried whether `wanted` says yes to the pods that are left, and what came of it.
    async fn tried(snapshot: &Snapshot, wanted: impl Fn(&Snapshot) -> bool) -> (usize, Result<Vec<String>, Status>) {
        let (mut trials, now) = (0, Time::from_unix_seconds(100_000));
        let units = lower_units(snapshot, &group("preemptor", json!({"priority": 10})), |_| None, now);
        assert_eq!(units.len(), 10_000);
        let fits = |cluster: &Snapshot| {
            trials += 1;
            Ok(wanted(cluster))
        };
        let found = select(snapshot, &units, &Budgets::parse(&[]), now, fits).await;
        (trials, found.map(|found| names(found.unwrap().victims.into_iter())))
    }

    #[tokio::test]
    async fn a_thousand_nodes_cost_no_more_than_so_many_trials() {
        let snapshot = thousand();
        let free = |cluster: &Snapshot| 10_000 - cluster.views().map(|view| view.info.pods.len()).sum::<usize>();
        // The least important go, wherever they are.
        let (trials, victims) = tried(&snapshot, |cluster| free(cluster) >= 100).await;
        let mut least: Vec<String> = (9_900..10_000).map(|index| format!("p{index}")).collect();
        least.sort();
        assert!(victims.unwrap() == least && trials < 300, "{trials}");
        // One node has to be free altogether: its pods are a tenth of a percent of all, far apart from each other.
        let is_free = |cluster: &Snapshot| cluster.views().any(|view| view.info.pods.is_empty());
        let (trials, victims) = tried(&snapshot, is_free).await;
        let mut own: Vec<String> = (0..10).map(|turn| format!("p{}", turn * 1000 + 999)).collect();
        own.sort();
        assert!(victims.unwrap() == own && trials < 300, "{trials}");
        let (trials, victims) = tried(&snapshot, |cluster| free(cluster) >= 2000).await;
        assert_eq!((trials, victims.unwrap_err().message()), (MAX_TRIALS, TOO_MANY_TRIALS.to_owned()));
    }
}
