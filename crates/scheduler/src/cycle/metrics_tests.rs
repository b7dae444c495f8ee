//! What whole cycles leave in the metrics of single plugins.

use crate::cycle::tests::Fixture;
use crate::parallel::Parallelism;
use crate::test_objects::{node, pod};

fn assert_shown(fixture: &Fixture, lines: &[&str]) {
    let text = fixture.shown.text();
    for line in lines {
        assert!(text.contains(&format!("scheduler_{line}\n")), "{line}\nin\n{text}");
    }
}

async fn schedule(fixture: &Fixture, name: &str) {
    fixture.pod(pod(name).request("cpu", "100m"));
    assert!(fixture.step().await.is_some(), "{name}");
}

#[tokio::test(start_paused = true)]
async fn plugins_are_counted_in_every_cycle() {
    let fixture = Fixture::with(Parallelism::default(), |_| {});
    for name in ["a", "b", "c"] {
        fixture.scheduler.node_added(&node(name).build());
    }
    let asked = |point: &str, plugin: &str, times: u32| {
        let labels = format!("extension_point=\"{point}\",plugin=\"{plugin}\",profile=\"default-scheduler\"");
        assert_shown(&fixture, &[&format!("plugin_evaluation_total{{{labels}}} {times}")]);
    };
    asked("Filter", "NodeResourcesFit", 0);
    schedule(&fixture, "p").await;
    for point in ["Filter", "Score"] {
        asked(point, "NodeResourcesFit", 3);
    }
    asked("PreFilter", "NodeResourcesFit", 1);
    asked("PreScore", "NodeResourcesFit", 1);
    // What has nothing to say about the pod is asked once, which does not count.
    asked("PreFilter", "NodeAffinity", 0);
    asked("Filter", "NodeAffinity", 0);
    // One filter rejects the pod everywhere, and those behind it are not asked.
    fixture.pod(pod("picky").selector("no", "where"));
    assert_eq!(fixture.step().await, None);
    asked("Filter", "NodeAffinity", 3);
    asked("Filter", "TaintToleration", 6);
    asked("Filter", "NodeResourcesFit", 3);
}

#[tokio::test(start_paused = true)]
async fn one_cycle_in_ten_tells_how_long_each_plugin_took() {
    let fixture = Fixture::with(Parallelism::default(), |_| {});
    fixture.scheduler.node_added(&node("a").build());
    fixture.scheduler.node_added(&node("b").build());
    let took = |point: &str, plugin: &str, status: &str, times: u32| {
        let labels = format!("extension_point=\"{point}\",plugin=\"{plugin}\",status=\"{status}\"");
        assert_shown(&fixture, &[&format!("plugin_execution_duration_seconds_count{{{labels}}} {times}")]);
    };
    for (number, samples) in (0..11).zip([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]) {
        schedule(&fixture, &format!("p{number}")).await;
        took("PreFilter", "NodeResourcesFit", "Success", samples);
    }
    for (point, plugin, status) in [
        ("PreEnqueue", "SchedulingGates", "Success"),
        ("PreFilter", "NodeAffinity", "Skip"),
        ("ScoreExtensionNormalize", "TaintToleration", "Success"),
        ("Reserve", "DynamicResources", "Success"),
        ("Bind", "DefaultBinder", "Success"),
    ] {
        took(point, plugin, status, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn points_hints_and_bindings_are_measured() {
    let fixture = Fixture::with(Parallelism::default(), |_| {});
    fixture.pod(pod("p").request("cpu", "100m"));
    fixture.scheduler.node_added(&node("small").capacity("cpu", "1m").build());
    assert_eq!(fixture.step().await, None);
    fixture.scheduler.node_added(&node("a").build());
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    fixture.scheduler.queue().flush_backoff();
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    let point = "framework_extension_point_duration_seconds_count{extension_point";
    let profile = "profile=\"default-scheduler\"";
    assert_shown(
        &fixture,
        &[
            "goroutines{operation=\"binding\"} 0",
            "queueing_hint_execution_duration_seconds_count{event=\"NodeAdd\",hint=\"Queue\",plugin=\"NodeResourcesFit\"} 1",
            &format!("get_node_hint_duration_seconds_count{{hinted=\"no_hint\",{profile}}} 2"),
            &format!("store_schedule_results_duration_seconds_count{{{profile}}} 1"),
            &format!("{point}=\"PreEnqueue\",{profile},status=\"Success\"}} 2"),
            &format!("{point}=\"PostBind\",{profile},status=\"Success\"}} 1"),
        ],
    );
}
