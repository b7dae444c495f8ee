//! Pods that are alike, one after the other: which node each takes, and whether it looked at the others.

use std::time::Duration;

use serde_json::json;

use super::tests::Fixture;
use super::*;
use crate::config::decode;
use crate::plugins::default_profile;
use crate::test_objects::{PodBuilder, node, pod};

/// A scheduler without default constraints, with three nodes: `c` is the best for a pod that fills any of them, `a` the last.
fn fixture() -> Fixture {
    let spread = json!({"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}});
    let file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [spread]}]});
    let fixture = Fixture::of(&decode(&file).unwrap(), Parallelism::default(), |_| {});
    for (name, cpu) in [("a", "4"), ("b", "4500m"), ("c", "5")] {
        fixture.scheduler.node_added(&node(name).capacity("cpu", cpu).build());
    }
    fixture
}

fn large(name: &str) -> PodBuilder {
    pod(name).request("cpu", "3")
}

fn counts(fixture: &Fixture, family: &str) -> Vec<String> {
    let text = fixture.shown.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(family));
    lines.map(|line| line.replace("{profile=\"default-scheduler\",", "{")).collect()
}

const ATTEMPTS: &str = "scheduler_batch_attempts_total";
const FLUSHED: &str = "scheduler_batch_cache_flushed_total";

#[tokio::test(start_paused = true)]
async fn the_next_best_node_is_taken_without_another_look() {
    let fixture = fixture();
    for name in ["p", "q", "r"] {
        fixture.pod(large(name));
    }
    let looks = |fixture: &Fixture| {
        counts(fixture, "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Score\",")
            .join("")
    };
    assert_eq!(fixture.step().await.as_deref(), Some("c"));
    let once = looks(&fixture);
    assert_eq!(fixture.step().await.as_deref(), Some("b"));
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    assert_eq!(looks(&fixture), once);
    assert_eq!(counts(&fixture, ATTEMPTS), ["{result=\"hint_used\"} 2", "{result=\"no_hint\"} 1"]);
    assert_eq!(counts(&fixture, FLUSHED), ["{reason=\"empty_list\"} 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_ranking_holds_for_its_like_and_for_a_moment() {
    type Between = fn(&Fixture);
    let cases: [(&str, PodBuilder, Between); 6] = [
        ("pod_incompatible", large("q").label("app", "other"), |_| {}),
        ("pod_incompatible", large("q").tolerates("k"), |_| {}),
        ("node_missing", large("q"), |fixture| fixture.scheduler.node_deleted(&node("c").build())),
        ("node_not_full", large("q"), |fixture| {
            let (old, new) = (node("c").capacity("cpu", "5").build(), node("c").capacity("cpu", "9").build());
            fixture.scheduler.node_updated(&old, &new);
        }),
        ("pod_incompatible", large("q").near("web", "zone"), |_| {}),
        ("", large("q"), |_| {}),
    ];
    for (reason, next, between) in cases {
        let fixture = fixture();
        fixture.pod(large("p"));
        assert_eq!(fixture.step().await.as_deref(), Some("c"));
        between(&fixture);
        fixture.pod(next);
        fixture.step().await;
        let flushed = counts(&fixture, FLUSHED);
        let expected: Vec<String> =
            Some(format!("{{reason=\"{reason}\"}} 1")).filter(|_| !reason.is_empty()).into_iter().collect();
        assert_eq!(flushed, expected);
    }
    let late = fixture();
    for name in ["p", "q"] {
        late.pod(large(name));
    }
    late.step().await;
    tokio::time::sleep(Duration::from_millis(501)).await;
    assert_eq!(late.step().await.as_deref(), Some("b"));
    assert_eq!(counts(&late, FLUSHED), ["{reason=\"expired\"} 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_ends_a_ranking() {
    let fixture = fixture();
    fixture.pod(large("p"));
    fixture.step().await;
    fixture.pod(pod("huge").request("cpu", "99"));
    assert_eq!(fixture.step().await, None);
    fixture.pod(large("q"));
    assert_eq!(fixture.step().await.as_deref(), Some("b"));
    assert_eq!(counts(&fixture, FLUSHED), ["{reason=\"pod_incompatible\"} 1"]);
}

#[test]
fn profiles_say_of_which_pods_they_can_tell() {
    let signature = |builder: PodBuilder| {
        fixture().scheduler.profiles["default-scheduler"].signature(&builder.info(&Default::default()))
    };
    let plain = signature(pod("p"));
    assert!(plain.is_some() && plain == signature(pod("q")));
    let mut claiming = pod("p");
    claiming.0.spec.resource_claims.push(Default::default());
    for (name, other) in [
        ("spread", pod("p").spread("web", "zone", 1, "DoNotSchedule")),
        ("affinity", pod("p").far("web", "zone")),
        ("device", claiming),
    ] {
        assert_eq!(signature(other), None, "{name}");
    }
    let mut image = pod("p");
    image.0.spec.containers[0].image = "other".into();
    for (name, other) in [
        ("label", pod("p").label("a", "b")),
        ("request", pod("p").request("cpu", "1")),
        ("port", pod("p").host_port(80)),
        ("selector", pod("p").selector("a", "b")),
        ("volume", pod("p").claim("c")),
        ("image", image),
    ] {
        let other = signature(other);
        assert!(other.is_some() && other != plain, "{name}");
    }
    // Defaults of the system may apply to any pod.
    assert_eq!(default_profile().signature(&pod("p").info(&Default::default())), None);
}
