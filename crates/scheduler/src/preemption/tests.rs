//! Whom preemption evicts, through the post-filter of a default profile.

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::meta::LabelSelector;
use api_machinery::time::Time;
use api_types::policy_v1::PodDisruptionBudget;
use base::Rng;

use crate::framework::{BuildCx, CycleCx, CycleState, Diagnosis, Nomination, PostFilterCx, PostFiltered};
use crate::plugins::{build_cx, default_profile_in};
use crate::pod_class::ClassTable;
use crate::test_objects::{NodeBuilder, PodBuilder, node, pod, snapshot};

async fn run(incoming: PodBuilder, nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>, cx: &BuildCx) -> PostFiltered {
    let (profile, classes) = (default_profile_in(cx), ClassTable::default());
    let snapshot = snapshot(nodes, pods, &classes);
    let incoming = incoming.info(&classes);
    let cycle = CycleCx { snapshot: &snapshot };
    let mut state = CycleState::default();
    let mut diagnosis = Diagnosis { nodes: snapshot.len(), ..Diagnosis::default() };
    profile.run_pre_filter(cycle, &mut state, &incoming, &mut diagnosis).unwrap();
    for view in snapshot.views() {
        diagnosis.statuses.insert(view.index, profile.run_filters(&state, &incoming, view).unwrap_err());
    }
    let (nominated, rng) = (HashMap::new(), Rng::seeded(1));
    let now = Time::from_unix_seconds(1000);
    let cx = PostFilterCx { cycle, profile: &profile, diagnosis: &diagnosis, nominated: &nominated, rng: &rng, now };
    profile.run_post_filters(cx, &state, &incoming).await
}

fn victims(found: &PostFiltered) -> (String, Vec<String>) {
    let candidate = found.candidates.first().unwrap();
    let names = candidate.victims.iter().map(|victim| victim.pod.metadata.name.clone()).collect();
    (candidate.node.to_string(), names)
}

fn cpu(name: &str, amount: &str) -> PodBuilder {
    pod(name).request("cpu", amount)
}

#[tokio::test]
async fn as_few_and_as_unimportant_as_possible() {
    let pods = vec![
        cpu("low", "2").priority(1).on("a"),
        cpu("mid", "2").priority(5).on("a"),
        cpu("other", "4").priority(7).on("b"),
    ];
    let found = run(cpu("p", "2").priority(10), vec![node("a"), node("b")], pods, &build_cx()).await;
    assert_eq!(victims(&found), ("a".into(), vec!["low".into()]));
    assert_eq!(found.nomination, Nomination::Set("a".into()));
}

#[tokio::test]
async fn younger_pods_go_first() {
    let pods = vec![cpu("old", "4").on("a").started(10), cpu("young", "4").on("b").started(20)];
    let found = run(cpu("p", "4").priority(10), vec![node("a"), node("b")], pods, &build_cx()).await;
    assert_eq!(victims(&found), ("b".into(), vec!["young".into()]));
}

#[tokio::test]
async fn budgets_rank_but_do_not_forbid() {
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.namespace = "default".into();
    budget.spec.selector =
        Some(LabelSelector { match_labels: [("app".into(), "db".into())].into(), ..LabelSelector::default() });
    let cx = build_cx();
    cx.listers.of().put(Arc::new(budget));
    let protected = || cpu("db", "4").label("app", "db").on("a");
    let other = || cpu("web", "4").priority(5).on("b");
    let found = run(cpu("p", "4").priority(10), vec![node("a"), node("b")], vec![protected(), other()], &cx).await;
    assert_eq!(victims(&found), ("b".into(), vec!["web".into()]));
    let found = run(cpu("p", "4").priority(10), vec![node("a")], vec![protected()], &cx).await;
    assert_eq!(victims(&found), ("a".into(), vec!["db".into()]));
}

#[tokio::test]
async fn texts_of_what_does_not_help() {
    let cx = build_cx();
    let text = |found: PostFiltered| found.status.unwrap().message();
    let never = |mut pod: PodBuilder| {
        pod.0.spec.preemption_policy = Some("Never".into());
        pod
    };
    let full = || vec![cpu("x", "4").priority(10).on("a")];
    assert_eq!(
        text(run(cpu("p", "2").priority(10), vec![node("a"), node("b").taint("k", "NoSchedule")], full(), &cx).await),
        "no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, \
         1 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        text(run(cpu("p", "9").priority(10), vec![node("a")], full(), &cx).await),
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        text(run(never(cpu("p", "2").priority(20)), vec![node("a")], full(), &cx).await),
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    );
}
