//! Groups of pods that go to one domain.

use serde_json::json;

use super::group_tests::{Gangs, bound, member};
use super::*;
use crate::test_objects::{node, pod};

const FULL: &str = "pod group is unschedulable";

/// Nodes: name, zone, and how many small pods have room there.
fn gangs(nodes: &[(&str, &str, &str)]) -> Gangs {
    let gangs = Gangs::with(TOPOLOGY_AWARE_GROUPS, true);
    for (name, zone, cpu) in nodes {
        let builder = node(name).capacity("cpu", cpu);
        let builder = if zone.is_empty() { builder } else { builder.label("zone", zone) };
        gangs.fixture.scheduler.node_added(&builder.build());
    }
    gangs
}

fn by_zone(min_count: i32) -> serde_json::Value {
    json!({"schedulingPolicy": {"gang": {"minCount": min_count}}, "schedulingConstraints": {"topology": [{"key": "zone"}]}})
}

fn add(gangs: &Gangs, names: &[&str]) {
    for name in names {
        gangs.fixture.pod(member(name));
    }
}

/// The nodes that were bound to, in the order of the pods' names.
fn nodes(lines: &[String]) -> String {
    bound(lines).iter().filter_map(|line| line.split(' ').nth(1)).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_group_goes_to_the_best_of_the_domains_that_have_room() {
    type Nodes = [(&'static str, &'static str, &'static str)];
    let cases: [(&Nodes, i32, &str, &str); 4] = [
        (&[("b", "x", "2"), ("c", "y", "3")], 3, "c c c", "only one has room"),
        (&[("b", "x", "2"), ("c", "y", "1"), ("d", "y", "2")], 3, "c d d", "a domain of two nodes"),
        (&[("b", "x", "2"), ("c", "y", "3")], 2, "c c c", "more of them fit"),
        (&[("b", "x", "30"), ("c", "y", "3")], 3, "c c c", "it is fuller then"),
    ];
    for (given, min_count, expected, why) in cases {
        let gangs = gangs(given);
        gangs.group_of("g", by_zone(min_count));
        add(&gangs, &["p", "q", "r"]);
        let (_, lines) = gangs.step().await.unwrap();
        let mut found: Vec<_> = nodes(&lines).split(' ').map(str::to_owned).collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), expected, "{why}: {lines:?}");
        assert_eq!(gangs.told(), ["g: PodGroupScheduled=True Scheduled "], "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_come_later_go_where_the_others_are() {
    // The other domain would be the fuller one.
    let gangs = gangs(&[("b", "x", "9"), ("c", "y", "3")]);
    gangs.group_of("g", by_zone(1));
    gangs.fixture.pod(pod("old").request("cpu", "1").grouped("g").on("b"));
    add(&gangs, &["p", "q"]);
    let (_, lines) = gangs.step().await.unwrap();
    assert_eq!(nodes(&lines), "b b", "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_fits_into_no_domain_is_told_so() {
    type Nodes = [(&'static str, &'static str, &'static str)];
    let none = "no feasible placements found";
    let of = |count: usize| format!("0/{count} placements are available, first placement status: {FULL}");
    let cases: [(&Nodes, &str, &str); 3] = [
        (&[("b", "x", "2"), ("c", "y", "2")], &of(2), "1 Insufficient cpu."),
        (&[("b", "x", "2")], &of(1), "0/1 nodes are available: 1 Insufficient cpu."),
        (&[("b", "", "9")], none, none),
    ];
    for (given, message, of_pod) in cases {
        let gangs = gangs(given);
        gangs.group_of("g", by_zone(3));
        add(&gangs, &["p", "q", "r"]);
        let (chosen, lines) = gangs.step().await.unwrap();
        assert_eq!((chosen, bound(&lines).len()), (0, 0), "{given:?}");
        assert_eq!(gangs.told(), [format!("g: PodGroupScheduled=False Unschedulable {message}")]);
        assert!(lines.iter().any(|line| line.contains(of_pod)), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_in_two_domains_is_an_error() {
    let gangs = gangs(&[("b", "x", "3"), ("c", "y", "9")]);
    gangs.group_of("g", by_zone(1));
    for (name, on) in [("old", "b"), ("older", "c")] {
        gangs.fixture.pod(pod(name).request("cpu", "1").grouped("g").on(on));
    }
    add(&gangs, &["p"]);
    let (chosen, _) = gangs.step().await.unwrap();
    assert_eq!(chosen, 0);
    let told = gangs.told().join(" ");
    assert!(told.contains("SchedulerError cannot determine domain for already scheduled pods: more than 1"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_evicted_for_a_pod_that_is_bound_to_a_domain() {
    let gangs = gangs(&[("b", "x", "2")]);
    gangs.group_of("g", by_zone(2));
    gangs.fixture.pod(pod("low").request("cpu", "1").priority(-5).on("b"));
    add(&gangs, &["p", "q"]);
    let (_, lines) = gangs.step().await.unwrap();
    let refused = "preemption: not eligible due to placement-based pod group scheduling limitation";
    assert!(lines.iter().any(|line| line.contains(refused)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("delete")), "{lines:?}");
}
