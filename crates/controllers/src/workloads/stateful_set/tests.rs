//! Plans from tables, and the controller against the fake server.

use api_machinery::intstr::IntOrString;
use api_machinery::meta::{ListOptions, ObjectMeta, OwnerReference};
use api_types::apps_v1::{RollingUpdateStatefulSetStrategy, StatefulSetPersistentVolumeClaimRetentionPolicy};
use client::fake::FakeServer;
use component_base::Gates;
use controller::controller_ref;

use super::super::fixtures::{OverQuota, Running, at, dying, meta, pod, ready, run_until_idle, selector, template};
use super::super::template_hash::fnv1_name;
use super::*;

const SETS_AT: &str = "apps/v1/statefulsets";
const CLAIMS_AT: &str = "v1/persistentvolumeclaims";

fn set(replicas: i32, policy: &str) -> StatefulSet {
    let mut set = StatefulSet { metadata: meta("db"), ..StatefulSet::default() };
    set.metadata.labels.clear();
    set.metadata.generation = 1;
    set.spec.replicas = Some(replicas);
    set.spec.selector = selector();
    set.spec.template = template("v1");
    set.spec.service_name = "db".into();
    set.spec.pod_management_policy = policy.into();
    set.spec.update_strategy.type_ = "RollingUpdate".into();
    set.spec.update_strategy.rolling_update =
        Some(RollingUpdateStatefulSetStrategy { partition: Some(0), ..Default::default() });
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = "data".into();
    set.spec.volume_claim_templates.push(claim);
    set
}

fn replica(ordinal: i32, revision: &str, is_ready: bool) -> Pod {
    let mut pod = pod(&format!("db-{ordinal}"), "Running", None);
    pod.metadata.labels.insert("controller-revision-hash".into(), revision.into());
    if is_ready { ready(pod, 1) } else { pod }
}

fn summary(set: &StatefulSet, pods: Vec<Pod>) -> String {
    summary_where(false, set, pods)
}

/// `several` where several pods may be updated at a time.
fn summary_where(several: bool, set: &StatefulSet, pods: Vec<Pod>) -> String {
    let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
    let slots = plan::Slots::new(set, &pods);
    let unavailable = several.then(|| plan::Unavailable::of(set, &slots, at(100)));
    let plan = plan::plan(set, &slots, "new", at(100), unavailable, |_| true);
    let words = plan.replicas.iter().chain(&plan.then).filter_map(|action| match action {
        plan::Action::Create(ordinal) => Some(format!("+{ordinal}")),
        plan::Action::Delete(pod) => Some(format!("-{}", pod.metadata.name)),
        plan::Action::Mend(pod) => Some(format!("~{}", pod.metadata.name)),
        plan::Action::Provide(_) | plan::Action::Bequeath(_) => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn pods_come_and_go_in_order() {
    let (new, old) = (|ordinal| replica(ordinal, "new", true), |ordinal| replica(ordinal, "old", true));
    let failed = |mut pod: Pod| {
        pod.status.phase = "Failed".into();
        pod
    };
    for (name, ordered, parallel, replicas, pods) in [
        ("create", "+0", "+0 +1 +2", 3, vec![]),
        ("steady state", "", "", 2, vec![new(0), new(1)]),
        ("the next one", "+1", "+1 +2", 3, vec![new(0)]),
        ("wait for the one before", "", "+1", 2, vec![replica(0, "new", false)]),
        ("a gap", "+1", "+1", 3, vec![new(0), new(2)]),
        ("failed", "-db-0", "-db-0", 1, vec![failed(new(0))]),
        ("surplus, highest first", "-db-2", "-db-2 -db-1", 1, vec![new(0), new(1), new(2)]),
        ("surplus waits for the replicas", "", "-db-1", 1, vec![replica(0, "new", false), new(1)]),
        ("surplus on its way", "", "-db-1", 1, vec![new(0), new(1), dying(new(2))]),
        ("update, highest first", "-db-1", "-db-1", 2, vec![old(0), old(1)]),
        ("update waits", "", "", 2, vec![old(0), dying(new(1))]),
        ("update goes on", "-db-0", "-db-0", 2, vec![old(0), new(1)]),
    ] {
        assert_eq!(summary(&set(replicas, "OrderedReady"), pods.clone()), ordered, "{name}, ordered");
        assert_eq!(summary(&set(replicas, "Parallel"), pods), parallel, "{name}, parallel");
    }
}

#[test]
fn a_set_of_billions_takes_what_its_pods_take() {
    let new = |ordinal| replica(ordinal, "new", true);
    let huge = set(i32::MAX, "OrderedReady");
    assert_eq!(summary(&huge, vec![]), "+0");
    assert_eq!(summary(&huge, vec![new(0), new(1)]), "+2");
    let mut parallel = set(i32::MAX, "Parallel");
    let pods: Vec<_> = [new(1), new(i32::MAX - 1)].into_iter().map(Arc::new).collect();
    let slots = plan::Slots::new(&parallel, &pods);
    let plan = plan::plan(&parallel, &slots, "new", at(100), None, |_| true);
    assert_eq!((plan.replicas.len(), plan.cut, slots.pods().count()), (500, true, 2));
    parallel.spec.ordinals = Some(api_types::apps_v1::StatefulSetOrdinals { start: 7 });
    assert!(summary(&parallel, vec![]).starts_with("+7 +8 "));
    parallel.spec.update_strategy.rolling_update.as_mut().unwrap().partition = Some(i32::MAX);
    assert!(summary(&parallel, vec![]).starts_with("+7 +8 "));
}

#[test]
fn updates_stop_at_the_partition_and_start_at_an_ordinal() {
    let mut set = set(2, "OrderedReady");
    let old = |ordinal| replica(ordinal, "old", true);
    set.spec.update_strategy.rolling_update.as_mut().unwrap().partition = Some(1);
    assert_eq!(summary(&set, vec![old(0), replica(1, "new", true)]), "");
    let mut later = set.clone();
    later.spec.replicas = Some(3);
    later.spec.ordinals = Some(api_types::apps_v1::StatefulSetOrdinals { start: 5 });
    let new = |ordinal| replica(ordinal, "new", true);
    assert_eq!(
        summary(&later, vec![old(5), old(6), new(7)]),
        "-db-6",
        "the partition counts from where the set starts"
    );
    assert_eq!(summary(&later, vec![old(5), new(6), new(7)]), "");
    set.spec.update_strategy.type_ = "OnDelete".into();
    assert_eq!(summary(&set, vec![old(0), old(1)]), "");
    set.spec.ordinals = Some(api_types::apps_v1::StatefulSetOrdinals { start: 5 });
    assert_eq!(summary(&set, vec![old(0), replica(5, "new", true)]), "+6");
}

#[test]
fn several_pods_are_updated_at_a_time() {
    let (new, old) = (|ordinal| replica(ordinal, "new", true), |ordinal| replica(ordinal, "old", true));
    let unready = |ordinal| replica(ordinal, "new", false);
    let all_old = || (0..5).map(old).collect::<Vec<_>>();
    for (name, most, partition, pods, expected) in [
        ("two", IntOrString::from(2), 0, all_old(), "-db-4 -db-3"),
        ("a share, rounded down", IntOrString::from("59%"), 0, all_old(), "-db-4 -db-3"),
        ("one at least", IntOrString::from("1%"), 0, all_old(), "-db-4"),
        ("down to the partition", IntOrString::from(3), 4, all_old(), "-db-4"),
        (
            "as many as are not unavailable yet",
            IntOrString::from(2),
            0,
            vec![old(0), old(1), old(2), new(3), unready(4)],
            "-db-2",
        ),
        ("no room", IntOrString::from(2), 0, vec![old(0), old(1), old(2), unready(3), dying(old(4))], ""),
        ("what is missing is unavailable", IntOrString::from(2), 0, vec![old(0), old(1), old(2), new(3)], "+4 -db-2"),
    ] {
        let mut set = set(5, "Parallel");
        let rolling = set.spec.update_strategy.rolling_update.as_mut().unwrap();
        (rolling.max_unavailable, rolling.partition) = (Some(most), Some(partition));
        assert_eq!(summary_where(true, &set, pods), expected, "{name}");
    }
    let mut ordered = set(3, "OrderedReady");
    ordered.spec.update_strategy.rolling_update.as_mut().unwrap().max_unavailable = Some(IntOrString::from(2));
    assert_eq!(summary_where(true, &ordered, vec![old(0), old(1), old(2)]), "-db-2 -db-1");
    assert_eq!(
        summary_where(true, &ordered, vec![old(0), old(1), unready(2)]),
        "",
        "nobody goes beside one that is broken"
    );
    ordered.spec.update_strategy.rolling_update.as_mut().unwrap().max_unavailable = None;
    assert_eq!(summary_where(true, &ordered, vec![old(0), old(1), old(2)]), "-db-2", "one, where nothing is said");
}

#[test]
fn the_next_one_waits_until_the_one_before_was_ready_for_long_enough() {
    let mut set = set(2, "OrderedReady");
    for (seconds, expected) in [(0, "+1"), (98, "+1"), (100, ""), (1000, "")] {
        set.spec.min_ready_seconds = seconds;
        // Ready since the first second; it is the hundredth.
        assert_eq!(summary(&set, vec![replica(0, "new", true)]), expected, "{seconds} s");
    }
}

#[test]
fn revisions_are_named_as_upstream_names_them() {
    let data = br#"{"spec":{"template":{"$patch":"replace"}}}"#;
    for (parts, expected) in
        [(vec![&data[..], b"0"], "589f85db5b"), (vec![&data[..], b"1"], "589f85db5c"), (vec![], "65bb57b6b5")]
    {
        assert_eq!(fnv1_name(&parts), expected);
    }
    let set = set(1, "OrderedReady");
    assert!(revisions::template(&revisions::revision(&set, 1, 0)).unwrap() == set.spec.template);
}

#[test]
fn claims_belong_to_whom_the_policy_says() {
    for (deleted, scaled, ordinal, expected) in [
        ("Retain", "Retain", 5, (false, false)),
        ("Delete", "Retain", 5, (true, false)),
        ("Retain", "Delete", 0, (false, false)),
        ("Retain", "Delete", 5, (false, true)),
        ("Delete", "Delete", 0, (true, false)),
        ("Delete", "Delete", 5, (false, true)),
    ] {
        let mut set = set(1, "OrderedReady");
        set.spec.persistent_volume_claim_retention_policy = policy(deleted, scaled);
        let owners = claims::owners(&set, ordinal);
        assert_eq!((owners.set, owners.pod), expected, "{deleted} {scaled} {ordinal}");
        let pod = replica(ordinal, "new", true);
        let mut claim = meta("data");
        let wanted = match claims::judge(&set, &pod, ordinal, &claim) {
            claims::OwnersUpdate::Write(owners) => owners.len(),
            verdict => usize::from(verdict != claims::OwnersUpdate::Fine),
        };
        assert_eq!(wanted, usize::from(expected.0) + usize::from(expected.1));
        let other = controller_ref::<StatefulSet>(&meta("other"));
        claim.owner_references = vec![other.clone()];
        let foreign = claims::judge(&set, &pod, ordinal, &claim);
        let is_conflict = deleted != "Retain" || scaled != "Retain";
        assert_eq!(foreign == claims::OwnersUpdate::Conflict(None), is_conflict);
        assert!(foreign.is_settled(), "nothing of ours is on it");
        let own = |uid: &str| OwnerReference { uid: uid.into(), ..controller_ref::<StatefulSet>(&set.metadata) };
        claim.owner_references = vec![other.clone(), own(&set.metadata.uid)];
        let shared = claims::judge(&set, &pod, ordinal, &claim);
        assert_eq!(shared == claims::OwnersUpdate::Conflict(Some(vec![other])), is_conflict);
        assert!(!shared.is_settled(), "ours is taken off it");
        claim.owner_references = vec![own("former")];
        let former = claims::judge(&set, &pod, ordinal, &claim);
        assert!(former.is_settled() && (former == claims::OwnersUpdate::Fine) != is_conflict, "{former:?}");
    }
}

/// What is told of the set, each text with how often.
fn told(running: &Running) -> Vec<(String, i64)> {
    let of = |event: &api_machinery::value::Value| {
        let count = event["count"].as_i64().unwrap_or(1);
        (format!("{} {}", event["reason"].as_str().unwrap(), event["message"].as_str().unwrap()), count)
    };
    running.server.objects("v1/events").iter().map(of).collect()
}

fn policy(deleted: &str, scaled: &str) -> Option<StatefulSetPersistentVolumeClaimRetentionPolicy> {
    Some(StatefulSetPersistentVolumeClaimRetentionPolicy { when_deleted: deleted.into(), when_scaled: scaled.into() })
}

#[tokio::test(start_paused = true)]
async fn what_is_done_is_told_in_upstreams_words() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(SETS_AT, &set(1, "OrderedReady"));
    run_until_idle().await;
    running.make_pods_ready().await;
    run_until_idle().await;
    // Of what happens in one and the same instant only the first is told here, until another one takes its place.
    let first = told(&running);
    let sets = running.client.namespaced::<StatefulSet>("ns");
    let change = async |change: &dyn Fn(&mut StatefulSet)| {
        let mut live = sets.get("db").await.unwrap();
        change(&mut live);
        sets.update(&live).await.unwrap();
        run_until_idle().await;
    };
    change(&|set| set.spec.persistent_volume_claim_retention_policy = policy("Delete", "Retain")).await;
    change(&|set| set.spec.replicas = Some(0)).await;
    change(&|set| set.spec.replicas = Some(1)).await;
    let all = first.into_iter().chain(told(&running));
    let told: std::collections::BTreeSet<String> = all.map(|(text, _)| text).collect();
    let expected = [
        "SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate create Pod db-0 in StatefulSet db successful",
        "SuccessfulDelete delete Pod db-0 in StatefulSet db successful",
        "SuccessfulUpdate update Pod db-0 in StatefulSet db successful",
    ];
    assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_on_its_way_out_is_told_of() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut claim = PersistentVolumeClaim { metadata: meta("data-db-0"), ..PersistentVolumeClaim::default() };
    claim.metadata.deletion_timestamp = Some(at(1));
    running.put(CLAIMS_AT, &claim);
    running.put(SETS_AT, &set(1, "OrderedReady"));
    run_until_idle().await;
    let (text, _) = told(&running).remove(0);
    assert_eq!(text, "FailedCreate create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted");
}

#[tokio::test(start_paused = true)]
async fn claims_of_a_pod_that_is_refused_go_with_the_set_all_the_same() {
    let running = Running::start_over(&[DESCRIPTOR], Settings::default(), OverQuota::over);
    let quota = serde_json::json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "ns", "uid": "q"},
        "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}});
    running.server.put("v1/resourcequotas", quota);
    let mut set = set(1, "OrderedReady");
    set.spec.persistent_volume_claim_retention_policy = policy("Delete", "Retain");
    running.put(SETS_AT, &set);
    run_until_idle().await;
    assert_eq!(running.count("v1/pods"), 0);
    let claim: PersistentVolumeClaim = running.client.namespaced("ns").get("data-db-0").await.unwrap();
    assert!(is_controlled_by(&claim.metadata, &set.metadata), "{:?}", claim.metadata.owner_references);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_somebody_else_has_is_not_told_of_with_every_look() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut claim = PersistentVolumeClaim { metadata: meta("data-db-0"), ..PersistentVolumeClaim::default() };
    claim.metadata.owner_references.push(controller_ref::<StatefulSet>(&meta("other")));
    running.put(CLAIMS_AT, &claim);
    let mut set = set(1, "OrderedReady");
    set.spec.persistent_volume_claim_retention_policy = policy("Delete", "Retain");
    running.put(SETS_AT, &set);
    run_until_idle().await;
    running.make_pods_ready().await;
    run_until_idle().await;
    let conflicts = || {
        let all = told(&running).into_iter();
        all.filter(|(text, _)| text.starts_with("ConflictingController ")).map(|(_, count)| count).sum::<i64>()
    };
    let before = conflicts();
    assert!(before > 0);
    let sets = running.client.namespaced::<StatefulSet>("ns");
    for _ in 0..3 {
        let mut live = sets.get("db").await.unwrap();
        live.metadata.generation += 1;
        sets.update(&live).await.unwrap();
        run_until_idle().await;
    }
    assert_eq!(conflicts(), before);
}

#[tokio::test(start_paused = true)]
async fn many_replicas_come_in_bursts() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut many = set(1200, "Parallel");
    many.spec.volume_claim_templates.clear();
    running.put(SETS_AT, &many);
    run_until_idle().await;
    assert_eq!(running.count("v1/pods"), 1200);
}

/// The set's only revision, as a release wrote it that knew fewer defaults and printed times that are not set.
fn written_before(set: &StatefulSet) -> ControllerRevision {
    let mut revision = revisions::revision(set, 1, 0);
    let mut data = revision.data.value();
    data["spec"]["template"]["metadata"]["creationTimestamp"] = serde_json::Value::Null;
    data["spec"]["template"]["spec"].as_object_mut().unwrap().remove("terminationGracePeriodSeconds");
    revision.data = api_machinery::leaf::RawJson::from_value(&data);
    revision.metadata.name = "db-before".into();
    revision
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_means_the_same_is_kept() {
    for (by_meaning, grace, revisions, name) in
        [(true, 30, 1, "db-before"), (true, 31, 2, ""), (false, 30, 2, ""), (false, 31, 2, "")]
    {
        let gates = Gates::default().with(SEMANTIC_REVISIONS, by_meaning);
        let running = Running::start_all(&[DESCRIPTOR], gates, Settings::default(), FakeServer::transport);
        let mut adopted = set(1, "OrderedReady");
        kinds::set_defaults(&mut adopted);
        adopted.spec.template.spec.termination_grace_period_seconds = Some(grace);
        adopted.status.current_revision = "db-before".into();
        running.put("apps/v1/controllerrevisions", &written_before(&adopted));
        running.put(SETS_AT, &adopted);
        run_until_idle().await;
        assert_eq!(
            running.count("apps/v1/controllerrevisions"),
            revisions,
            "by meaning {by_meaning}, grace period {grace}"
        );
        let live = running.client.namespaced::<StatefulSet>("ns").get("db").await.unwrap();
        assert!(name.is_empty() || live.status.update_revision == name, "{:?}", live.status);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_is_started_updated_and_shrunk() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(SETS_AT, &set(2, "OrderedReady"));
    let sets = running.client.namespaced::<StatefulSet>("ns");
    for _ in 0..3 {
        run_until_idle().await;
        running.make_pods_ready().await;
    }
    run_until_idle().await;
    assert_eq!((running.count("v1/pods"), running.count("v1/persistentvolumeclaims")), (2, 2));
    running.assert_steady().await;

    let mut live = sets.get("db").await.unwrap();
    assert_eq!((live.status.ready_replicas, live.status.current_replicas), (2, 2));
    live.spec.template = template("v2");
    sets.update(&live).await.unwrap();
    for _ in 0..4 {
        run_until_idle().await;
        running.make_pods_ready().await;
    }
    run_until_idle().await;
    let pods = running.client.namespaced::<Pod>("ns").list(&ListOptions::default()).await.unwrap().items;
    assert!(pods.len() == 2 && pods.iter().all(|pod| pod.spec.containers[0].image == "v2"));
    let mut live = sets.get("db").await.unwrap();
    assert_eq!(live.status.current_revision, live.status.update_revision);
    live.spec.replicas = Some(0);
    sets.update(&live).await.unwrap();
    run_until_idle().await;
    run_until_idle().await;
    assert_eq!((running.count("v1/pods"), running.count("v1/persistentvolumeclaims")), (0, 2));
}

/// Nobody else looks at the set again.
#[tokio::test(start_paused = true)]
async fn a_pod_comes_once_the_claim_of_the_one_before_is_gone() {
    let run = Running::start(&[DESCRIPTOR]);
    let former = Pod { metadata: ObjectMeta { uid: "former".into(), ..meta("db-0") }, ..Pod::default() };
    let mut claim = PersistentVolumeClaim { metadata: meta("data-db-0"), ..PersistentVolumeClaim::default() };
    claim.metadata.owner_references.push(controller_ref::<Pod>(&former.metadata));
    run.put(CLAIMS_AT, &claim);
    let mut set = set(1, "OrderedReady");
    set.spec.persistent_volume_claim_retention_policy = policy("Retain", "Delete");
    run.put(SETS_AT, &set);
    run_until_idle().await;
    assert_eq!(run.count("v1/pods"), 0);
    run.server.remove(CLAIMS_AT, "ns", "data-db-0");
    run_until_idle().await;
    assert_eq!((run.count("v1/pods"), run.count(CLAIMS_AT)), (1, 1));
}

/// Whoever gave it the node knew of the claim before.
#[tokio::test(start_paused = true)]
async fn claims_that_came_after_their_pod_had_a_node_are_for_that_node() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(SETS_AT, &set(1, "OrderedReady"));
    run_until_idle().await;
    run.server.remove("v1/persistentvolumeclaims", "ns", "data-db-0");
    let mut pod: Pod = run.client.namespaced("ns").get("db-0").await.unwrap();
    pod.status.phase = "Pending".into();
    pod.spec.node_name = "n".into();
    run.put("v1/pods", &pod);
    run_until_idle().await;
    let claim: PersistentVolumeClaim = run.client.namespaced("ns").get("data-db-0").await.unwrap();
    let chosen = claim.metadata.annotations.get(component_helpers::volumes::names::SELECTED_NODE);
    assert_eq!(chosen.map(String::as_str), Some("n"));
    run.assert_steady().await;
}
