//! Work that is done before a pod is bound: by several plugins at once, and until somebody needs the room.

use std::time::Duration;

use async_trait::async_trait;

use super::tests::Fixture;
use super::*;
use crate::config::default_configuration;
use crate::framework::{At, PreBind, StatusResult};
use crate::plugins::build_cx;
use crate::test_objects::{node, pod};

/// Takes ten seconds for each pod of low priority, or fails after one.
struct Slow {
    beside: bool,
    fails: bool,
}

#[async_trait]
impl PreBind for Slow {
    fn has_work(&self, _: &CycleState, pod: &PodInfo, _: &str) -> Result<bool, Status> {
        Ok(pod.priority < 10)
    }
    fn runs_beside_others(&self) -> bool {
        self.beside
    }
    async fn pre_bind(&self, _: &CycleState, _: &PodInfo, _: &str, stop: &CancellationToken) -> StatusResult {
        tokio::select! {
            () = stop.cancelled() => return Err(Status::error("stopped")),
            () = tokio::time::sleep(Duration::from_secs(if self.fails { 1 } else { 10 })) => {}
        }
        if self.fails { Err(Status::error("broken")) } else { Ok(()) }
    }
}

/// A scheduler with such plugins, the last of which may fail, and room for one pod, whose loop runs in the group.
fn fixture(plugins: &[bool], fails: bool) -> (Fixture, TaskGroup) {
    fixture_with(plugins, fails, true)
}

/// The same, which may tell others of the nodes that it expects.
fn fixture_with(plugins: &[bool], fails: bool, tells: bool) -> (Fixture, TaskGroup) {
    let mut cx = build_cx();
    cx.gates = cx.gates.with(NODE_EXPECTATION, tells);
    let fixture = Fixture::of_cx(&default_configuration(), cx, |profile| {
        for (place, beside) in plugins.iter().enumerate() {
            let plugin = Arc::new(Slow { beside: *beside, fails: fails && place + 1 == plugins.len() });
            profile.pre_bind.push(At { place: 40 + place, name: "Slow", weight: 1, plugin });
        }
    });
    fixture.scheduler.node_added(&node("a").build());
    let tasks = TaskGroup::new("test");
    tasks.spawn("scheduler", Arc::clone(&fixture.scheduler).run(tasks.clone(), tasks.token()));
    (fixture, tasks)
}

#[tokio::test(start_paused = true)]
async fn plugins_beside_each_other_work_at_the_same_time() {
    for (plugins, seconds) in
        [(&[true, true][..], 10), (&[false, false], 20), (&[true, true, false, true], 30), (&[false, true, true], 20)]
    {
        let (fixture, tasks) = fixture(plugins, false);
        fixture.pod(pod("p"));
        let is_bound = || fixture.lines().iter().any(|line| line.starts_with("bind"));
        tokio::time::sleep(Duration::from_millis(seconds * 1000 - 100)).await;
        assert!(!is_bound(), "{plugins:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(is_bound(), "{plugins:?}");
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_expectations_all_work_one_after_the_other_and_nobody_is_told() {
    for (tells, seconds) in [(true, 0), (false, 20)] {
        let (fixture, tasks) = fixture_with(&[true, true], false, tells);
        // There is no work for it.
        fixture.pod(pod("p").priority(10));
        tokio::time::sleep(Duration::from_millis(seconds * 1000 + 200)).await;
        let lines = fixture.lines();
        assert!(lines[0].starts_with("bind p"), "{tells}: {lines:?}");
        tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_ends_the_work_of_all() {
    let (fixture, tasks) = fixture(&[true, true], true);
    fixture.pod(pod("p"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let lines = fixture.lines();
    assert!(lines.iter().any(|line| line.ends_with("p: running PreBind plugin \"Slow\": broken")), "{lines:?}");
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_more_important_ends_the_work() {
    let (fixture, tasks) = fixture(&[true], false);
    fixture.pod(pod("low").request("cpu", "4"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let lines = fixture.lines();
    let told = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(
        told("(in kube-scheduler memory)") && told("FailedScheduling low: preempted by DefaultPreemption"),
        "{lines:?}"
    );
    assert!(told("bind high a") && !told("delete low") && !told("bind low"), "{lines:?}");
    tasks.shutdown(Duration::from_secs(5)).await;
}
