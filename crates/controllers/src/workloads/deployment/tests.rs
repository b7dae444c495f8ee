//! Plans from tables, and the controller together with replica sets on the fake server.

use std::time::Duration;

use api_machinery::intstr::IntOrString;
use api_machinery::meta::ListOptions;
use api_types::apps_v1::constants::DEFAULT_DEPLOYMENT_UNIQUE_LABEL_KEY as HASH_LABEL;
use api_types::apps_v1::constants::DEPRECATED_ROLLBACK_TO;
use api_types::apps_v1::constants::deployment_strategy_type::ROLLING_UPDATE;
use api_types::apps_v1::{DeploymentCondition, RollingUpdateDeployment};
use component_helpers::conditions;
use controller::controller_ref;

use super::super::fixtures::{Running, at, meta, pod, run_until_idle, selector, template};
use super::super::replica_set;
use super::plan::Actions;
use super::*;

fn deployment(replicas: i32) -> Deployment {
    let mut deployment = Deployment { metadata: meta("web"), ..Deployment::default() };
    deployment.metadata.labels.clear();
    deployment.metadata.generation = 1;
    deployment.spec.replicas = Some(replicas);
    deployment.spec.selector = selector();
    deployment.spec.template = template("v2");
    deployment.spec.strategy.type_ = ROLLING_UPDATE.into();
    deployment.spec.strategy.rolling_update = Some(RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(1)),
        max_unavailable: Some(IntOrString::Int(1)),
    });
    deployment.spec.progress_deadline_seconds = Some(600);
    deployment.spec.revision_history_limit = Some(1);
    deployment
}

/// A replica set of an image with so many pods, all of them available or none.
fn set(image: &str, revision: i32, size: i32, available: i32) -> ReplicaSet {
    let mut set = ReplicaSet { metadata: meta(&format!("web-{image}")), ..ReplicaSet::default() };
    set.metadata.owner_references = vec![controller_ref::<Deployment>(&meta("web"))];
    set.metadata.creation_timestamp = at(i64::from(revision));
    set.metadata.annotations.insert(revisions::REVISION.into(), revision.to_string());
    set.spec.replicas = Some(size);
    set.spec.selector = selector();
    set.spec.template = template(image);
    set.spec.template.metadata.labels.insert(HASH_LABEL.into(), image.into());
    set.status.replicas = size;
    set.status.ready_replicas = available;
    set.status.available_replicas = available;
    set
}

fn observed(deployment: Deployment, sets: Vec<ReplicaSet>) -> Observed {
    let stored = Arc::new(deployment.clone());
    Observed { stored, deployment, sets, pods: BTreeMap::new(), tells_terminating: true, now: at(1000) }
}

/// What a plan says, in a line: creations, sizes, deletions.
fn summary(observed: &Observed) -> String {
    match plan::plan(observed).unwrap() {
        Step::Create(set) => format!("create {}", set.spec.replicas.unwrap_or(0)),
        Step::Act(actions) => {
            let sized = actions.updates.iter().filter_map(|update| {
                let (from, to) = update.scaled?;
                Some(format!("{} {from}>{to}", update.set.metadata.name))
            });
            let deleted = actions.deletes.iter().map(|set| format!("delete {}", set.name));
            sized.chain(deleted).collect::<Vec<_>>().join(", ")
        }
    }
}

fn actions(observed: &Observed) -> Actions {
    match plan::plan(observed).unwrap() {
        Step::Act(actions) => *actions,
        Step::Create(_) => panic!("creates"),
    }
}

#[test]
fn rolling_updates() {
    for (name, sets, expected) in [
        ("create", vec![], "create 3"),
        ("create beside a full old one", vec![set("v1", 1, 3, 3)], "create 1"),
        ("steady state", vec![set("v2", 2, 3, 3)], ""),
        ("old shrinks as far as may be missing", vec![set("v1", 1, 3, 3), set("v2", 2, 1, 0)], "web-v1 3>2"),
        ("pods that are about to go no longer count", vec![set("v1", 1, 2, 3), set("v2", 2, 2, 1)], "web-v1 2>1"),
        ("nothing can move", vec![set("v1", 1, 2, 2), set("v2", 2, 2, 0)], ""),
        ("new grows first", vec![set("v1", 1, 2, 2), set("v2", 2, 1, 1)], "web-v2 1>2"),
        ("old goes when new is there", vec![set("v1", 1, 1, 1), set("v2", 2, 3, 3)], "web-v1 1>0"),
        ("unhealthy old ones go first", vec![set("v0", 1, 1, 1), set("v1", 2, 2, 0), set("v2", 3, 1, 1)], "web-v1 2>0"),
        ("too many new ones", vec![set("v2", 2, 5, 5)], "web-v2 5>3"),
    ] {
        assert_eq!(summary(&observed(deployment(3), sets)), expected, "{name}");
    }
}

#[test]
fn history_is_kept_to_its_limit() {
    let mut done = deployment(3);
    done.status.observed_generation = 1;
    (done.status.replicas, done.status.updated_replicas, done.status.available_replicas) = (3, 3, 3);
    let sets = vec![set("a", 1, 0, 0), set("b", 2, 0, 0), set("c", 3, 0, 0), set("v2", 4, 3, 3)];
    assert_eq!(summary(&observed(done.clone(), sets.clone())), "delete web-a, delete web-b");
    done.spec.revision_history_limit = Some(i32::MAX);
    assert_eq!(summary(&observed(done.clone(), sets.clone())), "");
    done.spec.revision_history_limit = Some(0);
    let mut busy = sets;
    busy[1].status.replicas = 1;
    assert_eq!(summary(&observed(done.clone(), busy.clone())), "delete web-a, delete web-c");
    (busy[0].metadata.generation, busy[0].status.observed_generation) = (2, 1);
    assert_eq!(
        summary(&observed(done, busy)),
        "delete web-c",
        "one that was just sized may have pods that nobody counted"
    );
}

#[test]
fn recreation_waits_for_the_last_old_pod() {
    let mut deployment = deployment(3);
    deployment.spec.strategy.type_ = RECREATE.into();
    let sees = |sets| observed(deployment.clone(), sets);
    assert_eq!(summary(&sees(vec![set("v1", 1, 3, 3)])), "web-v1 3>0");
    let mut empty = set("v1", 1, 0, 0);
    empty.status.replicas = 1;
    assert_eq!(summary(&sees(vec![empty])), "");
    let mut lingering = sees(vec![set("v1", 1, 0, 0)]);
    lingering.pods.insert("web-v1-uid".into(), vec![Arc::new(pod("p", "Running", None))]);
    assert_eq!(summary(&lingering), "");
    lingering.pods.insert("web-v1-uid".into(), vec![Arc::new(pod("p", "Failed", None))]);
    assert_eq!(summary(&lingering), "create 3");
}

#[test]
fn sizes_are_shared_out_in_proportion() {
    let sized = |image, revision, size, before: &str| {
        let mut set = set(image, revision, size, size);
        let annotations = &mut set.metadata.annotations;
        annotations.insert("deployment.kubernetes.io/desired-replicas".into(), before.into());
        annotations.insert("deployment.kubernetes.io/max-replicas".into(), before.into());
        set
    };
    for (name, wanted, sets, expected) in [
        ("up, rolling", 20, vec![sized("v1", 1, 5, "10"), sized("v2", 2, 5, "10")], "web-v1 5>10, web-v2 5>11"),
        ("down, rolling", 4, vec![sized("v1", 1, 6, "10"), sized("v2", 2, 4, "10")], "web-v1 6>3, web-v2 4>2"),
        ("to nothing", 0, vec![sized("v1", 1, 6, "10"), sized("v2", 2, 4, "10")], "web-v1 6>0, web-v2 4>0"),
        ("the only one", 7, vec![sized("v1", 1, 0, "3"), sized("v2", 2, 3, "3")], "web-v2 3>7"),
    ] {
        assert_eq!(summary(&observed(deployment(wanted), sets)), expected, "{name}");
    }
    let mut full = sized("v2", 2, 5, "5");
    assert_eq!(summary(&observed(deployment(5), vec![sized("v1", 1, 2, "10"), full.clone()])), "web-v1 2>0");
    full.status.available_replicas = 3;
    let shared = summary(&observed(deployment(5), vec![sized("v1", 1, 2, "10"), full]));
    assert_eq!(shared, "web-v1 2>1", "what is not available yet takes nobody's place");
}

#[test]
fn no_size_is_too_large_to_plan_with() {
    let sizes = [0, 1, 10, i32::MAX - 10, i32::MAX];
    let all = || sizes.into_iter().flat_map(|one| sizes.into_iter().map(move |two| (one, two)));
    for (wanted, surge) in all() {
        for (old, new) in all() {
            for (old_available, new_available) in all() {
                let mut deployment = deployment(wanted);
                deployment.spec.strategy.rolling_update.as_mut().unwrap().max_surge = Some(IntOrString::Int(surge));
                let mut sets = vec![set("v1", 1, old, old_available), set("v2", 2, new, new_available)];
                assert!(plan::plan(&observed(deployment.clone(), sets.clone())).is_ok());
                // Resized: both had their sizes for another number of pods.
                for set in &mut sets {
                    set.metadata.annotations.insert("deployment.kubernetes.io/desired-replicas".into(), "3".into());
                    set.metadata.annotations.insert("deployment.kubernetes.io/max-replicas".into(), "1".into());
                }
                sets[0].metadata.annotations.insert(revisions::REVISION.into(), i64::MAX.to_string());
                assert!(plan::plan(&observed(deployment, sets)).is_ok());
            }
        }
    }
}

#[test]
fn a_roll_goes_on_after_a_resize_that_changes_no_set() {
    let mut old = set("v1", 1, 3, 3);
    old.metadata.annotations.insert("deployment.kubernetes.io/desired-replicas".into(), "4".into());
    let sets = vec![old, set("v2", 2, 0, 0)];
    let first = actions(&observed(deployment(3), sets.clone()));
    let noted = |set: &ReplicaSet| first.updates.iter().find(|update| update.set.metadata.name == set.metadata.name);
    let sets = sets.into_iter().map(|set| noted(&set).map_or(set.clone(), |update| update.set.clone())).collect();
    assert_eq!(summary(&observed(deployment(3), sets)), "web-v2 0>1");
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut paused = deployment(5);
    paused.spec.paused = true;
    let seen = observed(paused.clone(), vec![set("v1", 1, 3, 3)]);
    assert_eq!(summary(&seen), "web-v1 3>5");
    let reason = |deployment: &Deployment| progress::find(deployment).unwrap().reason.clone();
    let after = actions(&seen).deployment;
    assert_eq!(reason(&after), "DeploymentPaused");
    let mut resumed = after;
    resumed.spec.paused = false;
    progress::note_pause(&mut resumed, at(2000));
    assert_eq!(reason(&resumed), "DeploymentResumed");
}

#[test]
fn a_deleted_deployment_only_reports() {
    let mut going = deployment(3);
    going.metadata.deletion_timestamp = Some(at(1));
    assert_eq!(summary(&observed(going, vec![set("v1", 1, 3, 3)])), "");
}

fn progressing(reason: &str, updated: i64) -> DeploymentCondition {
    let status = if reason == "ProgressDeadlineExceeded" { "False" } else { "True" };
    progress::progressing(status, reason, String::new(), at(updated))
}

#[test]
fn progress_is_judged() {
    let stuck = vec![set("v2", 2, 3, 1)];
    let mut more = vec![set("v2", 2, 3, 2)];
    more[0].status.ready_replicas = 3;
    for (name, condition, ready_before, sets, expected) in [
        ("progress", progressing("NewReplicaSetCreated", 900), 0, stuck.clone(), "ReplicaSetUpdated"),
        ("in time", progressing("ReplicaSetUpdated", 900), 1, stuck.clone(), "ReplicaSetUpdated"),
        ("at the last second", progressing("ReplicaSetUpdated", 400), 1, stuck.clone(), "ReplicaSetUpdated"),
        ("late", progressing("ReplicaSetUpdated", 399), 1, stuck.clone(), "ProgressDeadlineExceeded"),
        ("late, but ready ones became available", progressing("ReplicaSetUpdated", 399), 3, more, "ReplicaSetUpdated"),
        ("still late", progressing("ProgressDeadlineExceeded", 900), 1, stuck, "ProgressDeadlineExceeded"),
        ("done", progressing("ReplicaSetUpdated", 1), 3, vec![set("v2", 2, 3, 3)], "NewReplicaSetAvailable"),
    ] {
        let mut deployment = deployment(3);
        deployment.status.conditions.push(condition);
        (deployment.status.replicas, deployment.status.updated_replicas) = (3, 3);
        (deployment.status.ready_replicas, deployment.status.available_replicas) = (ready_before, ready_before.min(1));
        let after = actions(&observed(deployment, sets)).deployment;
        assert_eq!(progress::find(&after).unwrap().reason, expected, "{name}");
    }
}

#[test]
fn a_stuck_rollout_is_looked_at_when_its_time_is_up() {
    let mut deployment = deployment(3);
    deployment.status.conditions.push(progressing("ReplicaSetUpdated", 900));
    let first = actions(&observed(deployment.clone(), vec![set("v2", 2, 3, 1)]));
    deployment = first.deployment;
    let mut conditions = deployment.status.conditions.clone();
    conditions.retain(|condition| condition.type_ != "Progressing");
    conditions.push(progressing("ReplicaSetUpdated", 900));
    deployment.status.conditions = conditions;
    let again = actions(&observed(deployment.clone(), vec![set("v2", 2, 3, 1)]));
    assert_eq!(again.deployment, deployment, "nothing to write");
    assert_eq!(again.next, Some(Next::After(Duration::from_secs(501))));
}

#[test]
fn failures_of_replica_sets_show() {
    let mut failing = set("v2", 2, 3, 0);
    failing.status.conditions.push(api_types::apps_v1::ReplicaSetCondition {
        type_: "ReplicaFailure".into(),
        status: "True".into(),
        reason: "FailedCreate".into(),
        message: "quota".into(),
        last_transition_time: at(5),
    });
    let after = actions(&observed(deployment(3), vec![failing])).deployment;
    let condition = conditions::find(&after.status.conditions, "ReplicaFailure").unwrap();
    assert_eq!((condition.reason.as_str(), condition.last_update_time), ("FailedCreate", at(5)));
    let healed = actions(&observed(after, vec![set("v2", 2, 3, 0)])).deployment;
    assert!(conditions::find(&healed.status.conditions, "ReplicaFailure").is_none());
}

#[test]
fn rollback_takes_the_older_template() {
    let mut asking = deployment(3);
    asking.metadata.annotations.insert(DEPRECATED_ROLLBACK_TO.into(), "0".into());
    let sets = vec![set("v1", 1, 0, 0), set("v2", 2, 3, 3)];
    let outcome = actions(&observed(asking.clone(), sets.clone())).rollback.unwrap();
    assert!(outcome.done && outcome.deployment.spec.template == template("v1"));
    assert_eq!(outcome.event.1, "Rolled back deployment \"web\" to revision 1");
    assert!(!outcome.deployment.metadata.annotations.contains_key(DEPRECATED_ROLLBACK_TO));
    for (revision, reason) in
        [("2", "DeploymentRollbackTemplateUnchanged"), ("7", "DeploymentRollbackRevisionNotFound")]
    {
        asking.metadata.annotations.insert(DEPRECATED_ROLLBACK_TO.into(), revision.into());
        let outcome = actions(&observed(asking.clone(), sets.clone())).rollback.unwrap();
        assert_eq!((outcome.done, outcome.event.0), (false, reason));
    }
}

#[test]
fn the_new_set_carries_hash_owner_and_sizes() {
    let Step::Create(set) = plan::plan(&observed(deployment(3), vec![set("v1", 4, 0, 0)])).unwrap() else { panic!() };
    let hash = &set.spec.template.metadata.labels[HASH_LABEL];
    assert_eq!(set.metadata.name, format!("web-{hash}"));
    assert_eq!(set.spec.selector.as_ref().unwrap().match_labels[HASH_LABEL], *hash);
    assert_eq!(set.metadata.labels[HASH_LABEL], *hash);
    assert_eq!(set.metadata.annotations[revisions::REVISION], "5");
    assert_eq!(set.metadata.annotations["deployment.kubernetes.io/max-replicas"], "4");
    assert!(controller::is_controlled_by(&set.metadata, &meta("web")));
}

const KNOWN: &[Descriptor] = &[DESCRIPTOR, replica_set::DESCRIPTOR];

async fn sets_of(running: &Running) -> Vec<ReplicaSet> {
    let mut sets = running.client.namespaced::<ReplicaSet>("ns").list(&ListOptions::default()).await.unwrap().items;
    sets.sort_by_key(|set| revisions::revision(&set.metadata.annotations).unwrap());
    sets
}

#[tokio::test(start_paused = true)]
async fn a_rollout_reaches_its_end() {
    let running = Running::start(KNOWN);
    running.put("apps/v1/deployments", &deployment(3));
    let deployments = running.client.namespaced::<Deployment>("ns");
    for image in ["v2", "v3"] {
        let mut live = deployments.get("web").await.unwrap();
        live.spec.template = template(image);
        live.metadata.generation += 1;
        deployments.update(&live).await.unwrap();
        for _ in 0..6 {
            run_until_idle().await;
            running.make_pods_ready().await;
        }
    }
    run_until_idle().await;
    let sets = sets_of(&running).await;
    assert_eq!(sets.iter().map(arithmetic::size).collect::<Vec<_>>(), [0, 3]);
    assert!(sets[1].spec.template.spec.containers[0].image == "v3");
    let live = deployments.get("web").await.unwrap();
    assert!(status::is_complete(&live, &live.status), "{:?}", live.status);
    assert_eq!(live.metadata.annotations[revisions::REVISION], "2");
    assert_eq!(progress::find(&live).unwrap().reason, "NewReplicaSetAvailable");
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn replica_sets_of_others_are_left_alone() {
    let running = Running::start(KNOWN);
    let mut foreign = set("v2", 1, 2, 2);
    foreign.metadata.owner_references = vec![controller_ref::<Deployment>(&meta("other"))];
    let mut orphan = set("v1", 1, 2, 2);
    orphan.metadata.owner_references.clear();
    running.put("apps/v1/replicasets", &foreign);
    running.put("apps/v1/replicasets", &orphan);
    running.put("apps/v1/deployments", &deployment(3));
    run_until_idle().await;
    let sets = running.client.namespaced::<ReplicaSet>("ns").list(&ListOptions::default()).await.unwrap().items;
    let size = |name: &str| sets.iter().find(|set| set.metadata.name == name).map(arithmetic::size);
    assert_eq!((sets.len(), size("web-v2")), (3, Some(2)), "the foreign one stays, a new one is made");
    let adopted = sets.iter().find(|set| set.metadata.name == "web-v1").unwrap();
    assert!(controller::is_controlled_by(&adopted.metadata, &meta("web")));
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again() {
    let running = Running::start(KNOWN);
    run_until_idle().await;
    running.server.fail_next("POST", &[500, 403]);
    running.server.fail_next("PUT", &[409, 500]);
    running.put("apps/v1/deployments", &deployment(2));
    run_until_idle().await;
    assert_eq!((running.count("apps/v1/replicasets"), running.count("v1/pods")), (1, 2));
    let live = running.client.namespaced::<Deployment>("ns").get("web").await.unwrap();
    assert_eq!((live.status.replicas, live.status.observed_generation), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_gets_another_hash() {
    let running = Running::start(KNOWN);
    let Step::Create(first) = plan::plan(&observed(deployment(3), vec![])).unwrap() else { panic!() };
    let mut squatter = set("squatter", 1, 0, 0);
    squatter.metadata.name.clone_from(&first.metadata.name);
    squatter.metadata.owner_references.clear();
    squatter.metadata.labels.clear();
    running.put("apps/v1/replicasets", &squatter);
    running.put("apps/v1/deployments", &deployment(3));
    run_until_idle().await;
    let live = running.client.namespaced::<Deployment>("ns").get("web").await.unwrap();
    assert_eq!(live.status.collision_count, Some(1));
    assert_eq!(sets_of(&running).await.len(), 2);
}

/// Refuses what is to become of one replica set, as a webhook might.
struct Refusing(Arc<dyn client::Transport>);

#[async_trait::async_trait]
impl client::Transport for Refusing {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<component_base::serving::Body>, client::TransportError> {
        if request.method() == http::Method::PUT && request.uri().path().ends_with("/replicasets/web-v1") {
            let mut response = http::Response::new(component_base::serving::full("no"));
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            return Ok(response);
        }
        self.0.send(request).await
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_come_about_is_told_while_an_old_set_may_not_shrink() {
    let over =
        |server: &client::fake::FakeServer| -> Arc<dyn client::Transport> { Arc::new(Refusing(server.transport())) };
    let running = Running::start_over(KNOWN, Settings::default(), over);
    running.put("apps/v1/replicasets", &set("v1", 1, 3, 0));
    running.put("apps/v1/deployments", &deployment(3));
    for _ in 0..3 {
        run_until_idle().await;
        running.make_pods_ready().await;
    }
    run_until_idle().await;
    let status = running.client.namespaced::<Deployment>("ns").get("web").await.unwrap().status;
    assert_eq!((status.replicas, status.updated_replicas, status.available_replicas), (4, 1, 4));
}
