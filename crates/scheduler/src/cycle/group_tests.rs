//! Groups of pods: all at once or not at all.

use std::time::Duration;

use api_machinery::meta::Condition;
use async_trait::async_trait;
use component_base::Feature;
use serde_json::json;

use super::tests::Fixture;
use super::*;
use crate::config::{add_gated, default_configuration};
use crate::plugins::build_cx;
use crate::preemption::execute::ASYNC_PREEMPTION;
use crate::test_objects::{PodBuilder, node, object, pod};
use crate::writer::WriteError;

/// Takes note of what groups are told.
#[derive(Default)]
struct GroupNotes(Mutex<Vec<String>>);

#[async_trait]
impl ObjectWriter for GroupNotes {
    async fn patch_group_status(&self, group: &PodGroup, condition: &Condition) -> Result<(), WriteError> {
        let Condition { type_, status, reason, message, .. } = condition;
        self.0.lock().push(format!("{}: {type_}={status} {reason} {message}", group.metadata.name));
        Ok(())
    }
}

/// A scheduler of gangs with a node that has room for four small pods.
pub(super) struct Gangs {
    pub(super) fixture: Fixture,
    groups: Lister<PodGroup>,
    told: Arc<GroupNotes>,
}

impl Gangs {
    fn new() -> Self {
        Self::evicting(false)
    }

    /// The same, where groups may evict others as one.
    fn evicting(as_one: bool) -> Self {
        Self::with(GROUP_PREEMPTION, as_one)
    }

    /// The same, with another feature switched.
    pub(super) fn with(feature: Feature, on: bool) -> Self {
        Self::switched(&[(feature, on)])
    }

    /// The same, with other features switched.
    fn switched(features: &[(Feature, bool)]) -> Self {
        let told = Arc::new(GroupNotes::default());
        let mut cx = BuildCx { objects: told.clone(), ..build_cx() };
        cx.gates = cx.gates.with(GENERIC_WORKLOAD, true).with(GANG_SCHEDULING, true);
        cx.gates = features.iter().fold(cx.gates, |gates, (feature, on)| gates.with(*feature, *on));
        let groups = cx.listers.of();
        let mut configuration = default_configuration();
        add_gated(&mut configuration, &cx.gates);
        let fixture = Fixture::of_cx(&configuration, cx, |_| {});
        fixture.scheduler.node_added(&node("a").build());
        Self { fixture, groups, told }
    }

    /// A group comes, and the scheduler hears of it.
    fn group(&self, name: &str, policy: serde_json::Value) {
        self.group_of(name, json!({"schedulingPolicy": policy}));
    }

    pub(super) fn group_of(&self, name: &str, mut spec: serde_json::Value) {
        spec["podGroupTemplateRef"] = serde_json::Value::Null;
        let metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}")});
        let group: PodGroup = object(json!({"metadata": metadata, "spec": spec}));
        let group = Arc::new(group);
        self.groups.put(Arc::clone(&group));
        let event = crate::framework::ClusterEvent::of_change(Resource::of::<PodGroup>(), false, true);
        let change = crate::framework::EventObject::Other { old: None, new: Some(group) };
        self.fixture.scheduler.other_changed(&event, &change);
    }

    fn gang(&self, name: &str, min_count: i32) {
        self.group(name, json!({"gang": {"minCount": min_count}}));
    }

    /// Tries the next pod and its group; the nodes that were chosen, and what was written.
    pub(super) async fn step(&self) -> Option<(usize, Vec<String>)> {
        let pod = self.fixture.scheduler.queue().try_pop()?;
        let results = self.fixture.scheduler.schedule_next(pod);
        let chosen = results.iter().filter(|result| result.node.is_some()).count();
        for result in results {
            result.finish().await;
        }
        Some((chosen, self.fixture.lines()))
    }

    pub(super) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.0.lock())
    }

    fn gated(&self) -> usize {
        self.fixture.scheduler.queue().size().gated
    }
}

pub(super) fn member(name: &str) -> PodBuilder {
    pod(name).request("cpu", "1").grouped("g")
}

pub(super) fn bound(lines: &[String]) -> Vec<&str> {
    let mut bound: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("bind ")).collect();
    bound.sort_unstable();
    bound
}

#[tokio::test(start_paused = true)]
async fn a_gang_waits_until_there_are_enough_and_is_bound_at_once() {
    let gangs = Gangs::new();
    gangs.fixture.pod(member("p"));
    assert_eq!((gangs.gated(), gangs.step().await), (1, None), "its group is not there");
    gangs.gang("g", 3);
    assert_eq!(gangs.gated(), 1, "there are too few of them");
    gangs.fixture.pod(member("q"));
    gangs.fixture.pod(pod("alone").request("cpu", "1").priority(-1));
    assert_eq!(gangs.gated(), 2);
    gangs.fixture.pod(member("r"));
    assert_eq!(gangs.gated(), 0);
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines)), (3, vec!["p a", "q a", "r a"]));
    assert_eq!(gangs.told(), ["g: PodGroupScheduled=True Scheduled "]);
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines)), (1, vec!["alone a"]));
    // One that comes later finds the others there.
    gangs.fixture.scheduler.node_added(&node("b").build());
    gangs.fixture.pod(member("s"));
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines)), (1, vec!["s b"]));
    let text = gangs.fixture.shown.text();
    let line = "scheduler_podgroup_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 2\n";
    assert!(text.contains(line), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_gang_that_does_not_fit_keeps_nothing() {
    let gangs = Gangs::new();
    gangs.gang("g", 5);
    for name in ["p", "q", "r", "s", "t"] {
        gangs.fixture.pod(member(name));
    }
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines).len()), (0, 0));
    let waits = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled";
    let told: Vec<_> = lines.iter().filter(|line| line.ends_with(waits)).collect();
    assert_eq!(told.len(), 4, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("1 Insufficient cpu.")), "{lines:?}");
    assert_eq!(gangs.told(), ["g: PodGroupScheduled=False Unschedulable pod group is unschedulable"]);
    // All room is there for others.
    gangs.fixture.pod(pod("alone").request("cpu", "4").priority(9));
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines)), (1, vec!["alone a"]));
    // They come back by themselves, whatever happens.
    assert_eq!(gangs.fixture.scheduler.queue().size().unschedulable, 0);
    gangs.fixture.scheduler.node_added(&node("b").capacity("cpu", "5").build());
    tokio::time::sleep(Duration::from_secs(5)).await;
    gangs.fixture.scheduler.queue().flush_backoff();
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines).len()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn room_is_made_only_where_that_is_enough() {
    for (low, evicted, why) in [(4, true, "enough can go"), (1, false, "too little can go")] {
        let gangs = Gangs::new();
        gangs.gang("g", 2);
        for number in 0..4 {
            let priority = if number < low { 0 } else { 100 };
            gangs.fixture.pod(pod(&format!("old{number}")).request("cpu", "1").priority(priority).on("a"));
        }
        let large = |name: &str| pod(name).request("cpu", "2").priority(10).grouped("g");
        gangs.fixture.pod(large("p"));
        gangs.fixture.pod(large("q"));
        let (chosen, lines) = gangs.step().await.unwrap();
        assert_eq!(chosen, 0);
        let has_evicted = lines.iter().any(|line| line.starts_with("delete old"));
        assert_eq!(has_evicted, evicted, "{why}: {lines:?}");
    }
}

fn gang_of_ten(min_count: i32) -> serde_json::Value {
    json!({"schedulingPolicy": {"gang": {"minCount": min_count}}, "priority": 10})
}

#[tokio::test(start_paused = true)]
async fn a_group_evicts_as_one() {
    let gangs = Gangs::evicting(true);
    gangs.fixture.scheduler.node_added(&node("b").build());
    gangs.group_of("g", gang_of_ten(3));
    for (name, on) in [("x", "a"), ("y", "b")] {
        gangs.fixture.pod(pod(name).request("cpu", "2").priority(1).on(on));
    }
    gangs.fixture.pod(pod("high").request("cpu", "1").priority(100).on("a"));
    // One of them fits beside those who are there, and another where one goes; a third needs both to go.
    let large = |name: &str| pod(name).request("cpu", "2").priority(10).grouped("g");
    ["p", "q", "r"].into_iter().for_each(|name| drop(gangs.fixture.pod(large(name))));
    let (chosen, lines) = gangs.step().await.unwrap();
    let evicted: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("delete ")).collect();
    assert_eq!((chosen, evicted.len()), (0, 2), "{lines:?}");
    assert!(lines.iter().any(|line| line == "Preempted x: Preempted by podgroup uid-g on node cluster"), "{lines:?}");
    let refused = "preemption: not eligible due to workload aware preemption enabled";
    assert!(lines.iter().any(|line| line.contains(refused)), "{lines:?}");
    let waits = "pod group is waiting for preemption to complete";
    assert_eq!(gangs.told(), [format!("g: PodGroupScheduled=False Unschedulable {waits}")]);
    for name in ["x", "y"] {
        let on = if name == "x" { "a" } else { "b" };
        let gone = pod(name).request("cpu", "2").priority(1).on(on).build();
        gangs.fixture.scheduler.pod_deleted(&gone);
    }
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines).len()), (3, 3), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_group_may_evict_before_its_pods_wait_again() {
    for beside in [true, false] {
        let gangs = Gangs::switched(&[(GROUP_PREEMPTION, true), (ASYNC_PREEMPTION, beside)]);
        gangs.group_of("g", gang_of_ten(2));
        gangs.fixture.pod(pod("x").request("cpu", "4").priority(1).on("a"));
        ["p", "q"].into_iter().for_each(|name| drop(gangs.fixture.pod(member_of_two(name))));
        let first = gangs.fixture.scheduler.queue().try_pop().unwrap();
        for result in gangs.fixture.scheduler.schedule_next(first) {
            result.finish().await;
        }
        let lines = gangs.fixture.lines();
        let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
        assert_eq!(at("FailedScheduling") < at("delete x"), beside, "{lines:?}");
        assert_eq!(gangs.fixture.scheduler.queue().size().gated, 0, "{beside}");
        let gone = pod("x").request("cpu", "4").priority(1).on("a").build();
        gangs.fixture.scheduler.pod_deleted(&gone);
        let (chosen, lines) = gangs.step().await.unwrap();
        assert_eq!((chosen, bound(&lines).len()), (2, 2), "{beside}: {lines:?}");
    }
}

/// A gang of two for which four pods would have to go, and what the attempt leaves to be done.
fn gang_without_room() -> (Gangs, Vec<ScheduleResult>) {
    let gangs = Gangs::evicting(true);
    gangs.group_of("g", gang_of_ten(2));
    for number in 0..4 {
        gangs.fixture.pod(pod(&format!("old{number}")).request("cpu", "1").priority(0).on("a"));
    }
    ["p", "q"].into_iter().for_each(|name| drop(gangs.fixture.pod(member_of_two(name))));
    let first = gangs.fixture.scheduler.queue().try_pop().unwrap();
    let results = gangs.fixture.scheduler.schedule_next(first);
    (gangs, results)
}

fn member_of_two(name: &str) -> PodBuilder {
    pod(name).request("cpu", "2").priority(10).grouped("g")
}

async fn evicted_by(gangs: &Gangs, results: Vec<ScheduleResult>) -> usize {
    for result in results {
        result.finish().await;
    }
    gangs.fixture.lines().iter().filter(|line| line.starts_with("delete old")).count()
}

#[tokio::test(start_paused = true)]
async fn others_are_decided_about_while_it_is_found_out_who_goes() {
    let (gangs, results) = gang_without_room();
    assert!(matches!(&results[..], [only] if only.search.is_some()), "nothing else is there before that is known");
    gangs.fixture.scheduler.node_added(&node("b").capacity("cpu", "1").build());
    gangs.fixture.pod(pod("alone").request("cpu", "1").priority(-1));
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines)), (1, vec!["alone b"]));
    assert_eq!(evicted_by(&gangs, results).await, 4);
    assert_eq!(
        gangs.told(),
        ["g: PodGroupScheduled=False Unschedulable pod group is waiting for preemption to complete"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_looked_at_again_in_the_present() {
    for (name, change, evicted) in [
        ("nothing has changed", (|_| {}) as fn(&Gangs), 4),
        ("there is room now", |gangs| gangs.fixture.scheduler.node_added(&node("b").build()), 0),
        (
            "one is gone already",
            |gangs| {
                let gone = pod("old0").request("cpu", "1").priority(0).on("a").build();
                gangs.fixture.scheduler.pod_deleted(&gone);
            },
            3,
        ),
        (
            "an important one has come",
            |gangs| drop(gangs.fixture.pod(pod("new").request("cpu", "1").priority(99).on("a"))),
            0,
        ),
        (
            "a pod of the group is gone",
            |gangs| {
                let gone = member_of_two("q").build();
                gangs.fixture.pods.remove(&gone.metadata.namespace, &gone.metadata.name);
            },
            0,
        ),
    ] {
        let (gangs, results) = gang_without_room();
        change(&gangs);
        assert_eq!(evicted_by(&gangs, results).await, evicted, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_goes_for_a_group_that_has_no_room_without_him() {
    let spec = |mut spec: serde_json::Value, key: &str, value: serde_json::Value| {
        spec[key] = value;
        spec
    };
    let topology = json!({"topology": [{"key": "zone"}]});
    for (name, group, low, never, why) in [
        ("too few can go", gang_of_ten(2), 1, false, "No preemption victims found for incoming preemptor"),
        ("nobody is less important", gang_of_ten(2), 0, false, "No preemption victims found for incoming preemptor"),
        ("one does not want it", gang_of_ten(2), 4, true, "not eligible due to preemptionPolicy=Never."),
        (
            "it is to be in one domain",
            spec(gang_of_ten(2), "schedulingConstraints", topology),
            4,
            false,
            "workload aware preemption is not supported for pod groups with scheduling constraints",
        ),
    ] {
        let gangs = Gangs::evicting(true);
        gangs.group_of("g", group);
        for number in 0..4 {
            let priority = if number < low { 0 } else { 100 };
            gangs.fixture.pod(pod(&format!("old{number}")).request("cpu", "1").priority(priority).on("a"));
        }
        for name in ["p", "q"] {
            let mut large = pod(name).request("cpu", "2").priority(10).grouped("g");
            large.0.spec.preemption_policy = never.then(|| "Never".to_owned());
            gangs.fixture.pod(large);
        }
        let (chosen, lines) = gangs.step().await.unwrap();
        assert_eq!(chosen, 0);
        assert!(!lines.iter().any(|line| line.starts_with("delete")), "{name}: {lines:?}");
        let told = format!("g: PodGroupScheduled=False Unschedulable pod group is unschedulable, {why}");
        assert_eq!(gangs.told(), [told], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_no_gang_takes_what_there_is() {
    let gangs = Gangs::new();
    gangs.group("g", json!({"basic": {}}));
    for name in ["p", "q", "r", "s", "t"] {
        gangs.fixture.pod(member(name));
    }
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines).len()), (4, 4));
    assert_eq!(gangs.told(), ["g: PodGroupScheduled=True Scheduled "]);
}

#[tokio::test(start_paused = true)]
async fn one_scheduler_decides_about_a_group() {
    let gangs = Gangs::new();
    gangs.gang("g", 2);
    let mut other = member("q");
    other.0.spec.scheduler_name = "other".into();
    gangs.fixture.pod(other);
    gangs.fixture.pod(member("p"));
    // The other scheduler's pod counts, but is not in this queue.
    let (chosen, lines) = gangs.step().await.unwrap();
    assert_eq!((chosen, bound(&lines).len()), (0, 0));
    assert!(lines[0].contains("waiting for minCount pods from a gang to be scheduled"), "{lines:?}");
}

#[test]
fn a_group_that_was_scheduled_stays_so() {
    let attempt = |result| super::group::PodGroupResult { result, message: "m".into() };
    let with = |status: &str, reason: &str| {
        object::<PodGroup>(json!({"metadata": {"name": "g", "namespace": "default", "generation": 3},
            "spec": {"schedulingPolicy": {"basic": {}}, "podGroupTemplateRef": null},
            "status": {"conditions": [{"type": "PodGroupScheduled", "status": status, "reason": reason, "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
    };
    use crate::metrics::AttemptResult::{Error, Scheduled, Unschedulable};
    let now = api_machinery::time::Time::from_unix_seconds(2_000_000_000);
    let told = |group: &PodGroup, result| super::group::condition(group, &attempt(result), now);
    assert_eq!(told(&with("True", "Scheduled"), Unschedulable), None);
    assert_eq!(told(&with("False", "Unschedulable"), Unschedulable), None);
    let changed = told(&with("False", "Unschedulable"), Error).unwrap();
    assert_eq!((changed.reason.as_str(), changed.observed_generation), ("SchedulerError", 3));
    assert!(changed.last_transition_time < now, "its status is what it was");
    assert_eq!(told(&with("False", "Unschedulable"), Scheduled).unwrap().last_transition_time, now);
}
