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

/// The cluster as it would be.
struct Trial(Snapshot);

impl Trial {
    fn change(&mut self, unit: &Unit, stays: bool) {
        for (index, pod) in &unit.pods {
            let Some(node) = self.0.nodes().get(*index) else { continue };
            let mut node = (**node).clone();
            if stays {
                node.add_pod(Arc::clone(pod));
            } else {
                node.remove_pod(pod.uid());
            }
            self.0.replace(&Arc::new(node));
        }
    }
}

/// The fewest and least important of these, the most important first, whose eviction makes room; none where all of them are
/// not enough. `fits` says whether a cluster has the room.
///
/// # Errors
/// When that cannot be told.
pub(crate) fn select(
    snapshot: &Snapshot,
    units: &[Unit],
    budgets: &Budgets,
    now: Time,
    mut fits: impl FnMut(&Snapshot) -> Result<bool, Status>,
) -> Result<Option<Candidate>, Status> {
    let mut trial = Trial(snapshot.clone());
    units.iter().for_each(|unit| trial.change(unit, false));
    if !fits(&trial.0)? {
        return Ok(None);
    }
    let pods: Vec<Arc<PodInfo>> = units.iter().flat_map(Unit::infos).cloned().collect();
    let (protected, _) = budgets.split(&pods);
    let protected: HashSet<&str> = protected.iter().map(|pod| pod.uid()).collect();
    let is_protected = |unit: &&Unit| unit.infos().any(|pod| protected.contains(pod.uid()));
    let (violating, others): (Vec<&Unit>, Vec<&Unit>) = units.iter().partition(is_protected);
    let (mut victims, mut violations) = (Vec::new(), 0);
    for (unit, violates) in violating.iter().map(|unit| (unit, 1)).chain(others.iter().map(|unit| (unit, 0))) {
        trial.change(unit, true);
        if !fits(&trial.0)? {
            trial.change(unit, false);
            victims.extend(unit.infos().cloned());
            violations += violates;
        }
    }
    by_importance(&mut victims, now);
    Ok(Some(Candidate { node: EVERYWHERE.into(), victims, violations }))
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
    fn victims(cores: i64, budgets: &Budgets) -> Option<(Vec<String>, usize)> {
        let snapshot = cluster();
        let left = |snapshot: &Snapshot| {
            let node = &snapshot.nodes()[0];
            Ok((node.allocatable.milli_cpu - node.requested.milli_cpu) >= cores * 1000)
        };
        let found = select(&snapshot, &units(&snapshot), budgets, Time::from_unix_seconds(100), left).unwrap()?;
        assert_eq!(&*found.node, "cluster");
        Some((names(found.victims.into_iter()), found.violations))
    }

    #[test]
    fn as_few_and_as_unimportant_as_possible() {
        let none = Budgets::parse(&[]);
        assert_eq!(victims(2, &none), Some((vec!["young".into()], 0)));
        assert_eq!(victims(3, &none), Some((vec!["old".into(), "young".into()], 0)));
        assert_eq!(victims(4, &none), Some((vec!["w1".into(), "w2".into(), "young".into()], 0)));
        assert_eq!(victims(7, &none), None, "who is as important stays");
    }

    #[test]
    fn whom_a_budget_protects_goes_last() {
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
        let found = select(&snapshot, &units, &budgets, now, room).unwrap().unwrap();
        assert_eq!((names(found.victims.into_iter()), found.violations), (vec!["web".into()], 0));
    }
}
