//! Pods that wait for `Permit` plugins between decision and binding.

use std::time::Duration;

use super::tests::Fixture;
use super::*;
use crate::framework::{At, Permit, Permitted};
use crate::test_objects::{node, pod};

const NAME: &str = "Guard";

/// Lets pods wait by their names, rejects one, fails for another.
struct Guard;

impl Permit for Guard {
    fn permit(&self, _: &CycleState, pod: &PodInfo, _: &str) -> Result<Permitted, Status> {
        match pod.pod.metadata.name.as_str() {
            "refused" => Err(Status::unschedulable("not you")),
            "broken" => Err(Status::error("no idea")),
            name if name.starts_with("waits") => Ok(Permitted::Wait(Duration::from_secs(60))),
            _ => Ok(Permitted::Now),
        }
    }
}

/// A scheduler with room for one pod, whose loop runs in the group.
fn guarded() -> (Fixture, TaskGroup) {
    let fixture = Fixture::with(Parallelism::default(), |profile| {
        profile.permit.push(At { place: 40, name: NAME, weight: 1, plugin: Arc::new(Guard) });
        // As a registered plugin: freed room may help.
        profile
            .registrations
            .push((NAME, crate::framework::Registration::always(Resource::Pod, crate::framework::Action::ALL)));
    });
    fixture.scheduler.node_added(&node("a").build());
    let tasks = TaskGroup::new("test");
    tasks.spawn("scheduler", Arc::clone(&fixture.scheduler).run(tasks.clone(), tasks.token()));
    (fixture, tasks)
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// The waiting pod of a name.
fn waiting(fixture: &Fixture, name: &str) -> Option<Arc<crate::framework::WaitingPod>> {
    fixture.waiting.get(&format!("uid-{name}"))
}

fn count(fixture: &Fixture, line: &str) -> bool {
    fixture.shown.text().contains(line)
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_waits_is_bound_once_it_is_allowed() {
    let (fixture, tasks) = guarded();
    fixture.pod(pod("waits").request("cpu", "3"));
    a_moment().await;
    assert_eq!(fixture.lines(), ["patch waits \"\" [a]"], "others see where it is going");
    // It holds its room, and nobody up.
    fixture.pod(pod("small").request("cpu", "1"));
    a_moment().await;
    assert_eq!(fixture.lines()[0], "bind small a");
    let pod = waiting(&fixture, "waits").unwrap();
    assert_eq!((pod.pending_plugins(), &*pod.node), (vec![NAME], "a"));
    pod.allow(NAME);
    a_moment().await;
    assert_eq!(fixture.lines(), ["bind waits a", "Scheduled waits: Successfully assigned default/waits to a"]);
    assert!(waiting(&fixture, "waits").is_none());
    assert!(count(&fixture, "scheduler_permit_wait_duration_seconds_count{result=\"Success\"} 1\n"));
    let point = "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Permit\",profile=\"default-scheduler\",status=";
    assert!(
        count(&fixture, &format!("{point}\"Wait\"}} 1\n")) && count(&fixture, &format!("{point}\"Success\"}} 1\n"))
    );
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_is_told_as_if_the_node_were_the_only_one() {
    let (fixture, tasks) = guarded();
    let told = |fixture: &Fixture| fixture.lines().into_iter().find(|line| line.starts_with("FailedScheduling"));
    for (name, message) in
        [("refused", "0/1 nodes are available: 1 not you."), ("broken", "running Permit plugin \"Guard\": no idea")]
    {
        fixture.pod(pod(name));
        a_moment().await;
        assert_eq!(told(&fixture).unwrap(), format!("FailedScheduling {name}: {message}"));
        assert_eq!(fixture.scheduler.cache().size().pods, 0);
    }
    fixture.pod(pod("waits").request("cpu", "3"));
    a_moment().await;
    waiting(&fixture, "waits").unwrap().reject(NAME, "changed my mind");
    a_moment().await;
    assert_eq!(told(&fixture).unwrap(), "FailedScheduling waits: 0/1 nodes are available: 1 changed my mind.");
    // Its own room coming back is no reason to try it again.
    assert_eq!(fixture.scheduler.queue().size().unschedulable, 2);
    assert!(count(&fixture, "scheduler_permit_wait_duration_seconds_count{result=\"Unschedulable\"} 1\n"));
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_is_over_after_as_long_as_the_plugin_said() {
    let (fixture, tasks) = guarded();
    fixture.pod(pod("waits"));
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(waiting(&fixture, "waits").is_some());
    fixture.lines();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let expected = "FailedScheduling waits: 0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Guard.";
    assert_eq!(fixture.lines()[0], expected);
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_waits_no_more() {
    let (fixture, tasks) = guarded();
    let gone = fixture.pod(pod("waits").request("cpu", "4"));
    a_moment().await;
    fixture.pod(pod("next").request("cpu", "4"));
    a_moment().await;
    fixture.pods.remove("default", "waits");
    fixture.scheduler.pod_deleted(&gone);
    a_moment().await;
    assert!(fixture.waiting.all().is_empty());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let lines = fixture.lines();
    assert!(lines.contains(&"bind next a".to_owned()), "{lines:?}");
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_waits_makes_room_without_being_deleted() {
    let (fixture, tasks) = guarded();
    fixture.pod(pod("waits").request("cpu", "4").priority(1));
    a_moment().await;
    fixture.lines();
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let lines = fixture.lines();
    let told = "Preempted waits: Preempted by pod uid-high on node a (in kube-scheduler memory).";
    let failed = "FailedScheduling waits: waiting on permit for pod: preempted";
    for line in [told, failed, "bind high a"] {
        assert!(lines.contains(&line.to_owned()), "{line} in {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("delete") || line.contains("DisruptionTarget")), "{lines:?}");
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_scheduler_ends_all_waits() {
    let (fixture, tasks) = guarded();
    for number in 0..MAX_WRITES + 10 {
        fixture.pod(pod(&format!("waits-{number}")));
        fixture.scheduler.node_added(&node(&format!("n{number}")).build());
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(fixture.waiting.all().len(), MAX_WRITES + 10, "those who wait do not count as writers");
    assert_eq!(tasks.shutdown(Duration::from_secs(5)).await, base::Drained::All);
    assert!(fixture.waiting.all().is_empty());
}
