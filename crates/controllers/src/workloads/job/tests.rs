//! Plans from tables, and the controller against the fake server.

use std::collections::BTreeSet;

use api_machinery::meta::ListOptions;
use api_types::batch_v1::constants::JOB_COMPLETION_INDEX_ANNOTATION as INDEX;
use api_types::batch_v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
    UncountedTerminatedPods,
};
use api_types::core_v1::{ContainerStateTerminated, ContainerStatus};
use component_helpers::conditions::is_true;

use super::super::fixtures::{Running, Swallow, at, dying, meta, pod, run_until_idle, selector, template};
use super::back_off::Failures;
use super::*;

const JOBS_AT: &str = "batch/v1/jobs";
const PODS_AT: &str = "v1/pods";

fn job(parallelism: i32, completions: Option<i32>) -> Job {
    let mut job = Job { metadata: meta("j"), ..Job::default() };
    job.metadata.generation = 1;
    (job.spec.parallelism, job.spec.completions, job.spec.backoff_limit) = (Some(parallelism), completions, Some(6));
    job.spec.selector = selector();
    job.spec.template = template("v1");
    job
}

fn indexed(parallelism: i32, completions: i32) -> Job {
    let mut job = job(parallelism, Some(completions));
    job.spec.completion_mode = Some(INDEXED.into());
    job
}

fn tracked(name: &str, phase: &str) -> Pod {
    let mut pod = pod(name, phase, None);
    pod.metadata.finalizers.push(JOB_TRACKING_FINALIZER.into());
    pod
}

fn at_index(name: &str, phase: &str, index: i32) -> Pod {
    let mut pod = tracked(name, phase);
    pod.metadata.annotations.insert(INDEX.into(), index.to_string());
    pod
}

fn look(job: Job, pods: Vec<Pod>) -> View {
    let pods = pods.into_iter().map(Arc::new).collect();
    // Long after the pods have failed, so that nothing waits.
    View::new(job, pods, BTreeSet::new(), Failures::default(), at(100_000))
}

fn summary(view: &View) -> String {
    let plan = view.manage();
    let names: Vec<_> = plan.remove.iter().map(|pod| pod.metadata.name.as_str()).collect();
    let waits = if plan.look_again.is_some() { " wait" } else { "" };
    format!("+{}{:?} -{}{waits}", plan.create, plan.indexes, names.join(","))
}

#[test]
fn as_many_pods_as_wanted() {
    let running = |name| tracked(name, "Running");
    let mut suspended = job(2, Some(3));
    suspended.spec.suspend = Some(true);
    let mut patient = job(2, Some(3));
    patient.spec.pod_replacement_policy = Some("Failed".into());
    for (name, job, pods, expected) in [
        ("create", job(2, Some(3)), vec![], "+2[] -"),
        ("steady state", job(2, Some(3)), vec![running("a"), running("b")], "+0[] -"),
        ("the last one", job(2, Some(3)), vec![tracked("a", "Succeeded"), tracked("b", "Succeeded")], "+1[] -"),
        ("fewer at a time", job(1, Some(3)), vec![running("a"), running("b")], "+0[] -a"),
        ("suspended", suspended, vec![running("a")], "+0[] -a"),
        ("a going one is replaced", job(1, Some(3)), vec![dying(running("a"))], "+1[] -"),
        ("unless only failed ones are", patient, vec![dying(running("a")), running("b")], "+0[] -"),
        ("a queue of work", job(2, None), vec![running("a")], "+1[] -"),
        ("a queue that is empty", job(2, None), vec![running("a"), tracked("b", "Succeeded")], "+0[] -"),
    ] {
        assert_eq!(summary(&look(job, pods)), expected, "{name}");
    }
}

#[test]
fn the_failure_policy_says_what_a_failed_pod_means() {
    let rule = |action: &str, code| PodFailurePolicyRule {
        action: action.into(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            operator: "In".into(),
            values: vec![code],
            ..PodFailurePolicyOnExitCodesRequirement::default()
        }),
        ..PodFailurePolicyRule::default()
    };
    let mut strict = job(1, Some(1));
    strict.spec.pod_failure_policy = Some(PodFailurePolicy { rules: vec![rule("Ignore", 42), rule("Count", 7)] });
    let exited = |name: &str, exit_code| {
        let mut pod = tracked(name, "Failed");
        let mut status = ContainerStatus { name: "c".into(), ..ContainerStatus::default() };
        status.state.terminated = Some(ContainerStateTerminated { exit_code, ..ContainerStateTerminated::default() });
        pod.status.container_statuses.push(status);
        pod
    };
    let mut view = look(strict, vec![exited("a", 42), exited("b", 7), exited("c", 1)]);
    let tracking = view.track(None);
    assert_eq!(tracking.actions, ["Ignore", "Count"], "no rule is about the third");
    assert_eq!(view.job.status.uncounted_terminated_pods.unwrap().failed, ["b-uid", "c-uid"]);
}

#[test]
fn every_index_gets_its_pod() {
    let running = |name, index| at_index(name, "Running", index);
    let mut strict = indexed(3, 5);
    strict.spec.backoff_limit_per_index = Some(0);
    for (name, job, pods, expected) in [
        ("create", indexed(3, 5), vec![], "+3[0, 1, 2] -"),
        ("gaps", indexed(3, 5), vec![running("a", 1), at_index("b", "Succeeded", 0)], "+2[2, 3] -"),
        ("failed ones again", indexed(3, 5), vec![at_index("a", "Failed", 0)], "+3[0, 1, 2] -"),
        ("given up ones not", strict, vec![at_index("a", "Failed", 0)], "+3[1, 2, 3] -"),
        ("doubles", indexed(3, 5), vec![running("a", 1), at_index("b", "Pending", 1)], "+0[] -b"),
        ("out of range", indexed(2, 2), vec![running("a", 7)], "+0[] -a"),
    ] {
        assert_eq!(summary(&look(job, pods)), expected, "{name}");
    }
}

#[test]
fn metrics_tell_what_a_look_led_to() {
    let running = || vec![tracked("a", "Running")];
    let mut held = job(1, Some(3));
    held.spec.suspend = Some(true);
    let mut failed = tracked("a", "Failed");
    failed.metadata.creation_timestamp = at(99_999);
    for (name, job, pods, expected) in [
        ("steady state", job(1, Some(3)), running(), Action::Tracking),
        ("one is made", job(2, Some(3)), running(), Action::PodsCreated),
        ("one is to be made later", job(1, Some(3)), vec![failed], Action::PodsCreated),
        ("one is removed", job(0, Some(3)), running(), Action::PodsDeleted),
        ("none is to be there", held, vec![], Action::PodsDeleted),
    ] {
        assert_eq!(look(job, pods).manage().action, expected, "{name}");
    }
}

#[test]
fn failures_delay_replacements() {
    let mut failed = tracked("a", "Failed");
    failed.metadata.creation_timestamp = at(99_999);
    assert_eq!(summary(&look(job(1, Some(1)), vec![failed.clone()])), "+0[] - wait");
    let mut per_index = indexed(2, 2);
    per_index.spec.backoff_limit_per_index = Some(3);
    failed.metadata.annotations.insert(INDEX.into(), "0".into());
    assert_eq!(summary(&look(per_index, vec![failed])), "+1[1] - wait", "only the index that failed waits");
}

#[test]
fn fates() {
    let pods = |failed: usize| (0..failed).map(|it| tracked(&format!("f{it}"), "Failed")).collect::<Vec<_>>();
    let mut late = job(1, Some(1));
    late.spec.active_deadline_seconds = Some(10);
    late.status.start_time = Some(at(99_990));
    let mut per_index = indexed(2, 2);
    per_index.spec.backoff_limit_per_index = Some(0);
    let mut at_most = per_index.clone();
    at_most.spec.max_failed_indexes = Some(0);
    let mut enough = indexed(2, 4);
    let rule = SuccessPolicyRule { succeeded_indexes: Some("0-2".into()), succeeded_count: Some(1) };
    enough.spec.success_policy = Some(SuccessPolicy { rules: vec![rule] });
    for (name, job, pods, expected) in [
        ("young", job(1, Some(1)), vec![], ""),
        ("failures within the limit", job(1, Some(1)), pods(6), ""),
        ("too many failures", job(1, Some(1)), pods(7), "FailureTarget BackoffLimitExceeded"),
        ("too late", late, vec![], "FailureTarget DeadlineExceeded"),
        (
            "all indexes ended, one badly",
            per_index.clone(),
            vec![at_index("a", "Failed", 0), at_index("b", "Succeeded", 1)],
            "FailureTarget FailedIndexes",
        ),
        ("one index is still to do", per_index, vec![at_index("a", "Failed", 0)], ""),
        ("too many indexes", at_most, vec![at_index("a", "Failed", 0)], "FailureTarget MaxFailedIndexesExceeded"),
        ("success by policy", enough, vec![at_index("a", "Succeeded", 1)], "SuccessCriteriaMet SuccessPolicy"),
    ] {
        let fate = look(job, pods).fate().map(|fate| format!("{} {}", fate.type_, fate.reason));
        assert_eq!(fate.unwrap_or_default(), expected, "{name}");
    }
}

#[test]
fn what_has_finished_is_counted_once() {
    let mut view =
        look(job(2, Some(3)), vec![tracked("a", "Succeeded"), tracked("b", "Failed"), tracked("c", "Running")]);
    let tracking = view.track(None);
    assert_eq!(tracking.release.len(), 2);
    let uncounted = view.job.status.uncounted_terminated_pods.clone().unwrap();
    assert_eq!((uncounted.succeeded, uncounted.failed), (vec!["a-uid".to_owned()], vec!["b-uid".to_owned()]));
    // The next look, with a stale cache: still there, but known to be released.
    let pods = vec![Arc::new(tracked("a", "Succeeded")), Arc::new(tracked("b", "Failed"))];
    let removed = BTreeSet::from(["a-uid".to_owned()]);
    let mut again = View::new(view.job, pods, removed, Failures::default(), at(100_000));
    assert_eq!((again.success_count(), again.failure_count()), (1, 1));
    let tracking = again.track(None);
    assert_eq!((tracking.release.len(), again.job.status.succeeded, again.job.status.failed), (1, 1, 0));
    assert_eq!(again.job.status.uncounted_terminated_pods.unwrap().failed, ["b-uid"]);
}

#[test]
fn the_end_waits_for_everything() {
    let fate = conditions::condition("SuccessCriteriaMet", "CompletionsReached", "", at(1));
    let mut counted = look(job(1, Some(1)), vec![]);
    let tracking = counted.track(Some(&fate));
    counted.job.status.uncounted_terminated_pods =
        Some(UncountedTerminatedPods { succeeded: vec!["x".into()], ..Default::default() });
    assert!(!counted.finish(Some(&fate), &tracking), "one is not counted");
    counted.job.status.uncounted_terminated_pods = Some(UncountedTerminatedPods::default());
    counted.terminating = 1;
    assert!(!counted.finish(Some(&fate), &tracking), "one is on its way out");
    counted.terminating = 0;
    assert!(counted.finish(Some(&fate), &tracking));
    assert!(is_true(&counted.job.status.conditions, "Complete") && counted.job.status.completion_time.is_some());
}

#[test]
fn an_end_is_not_before_the_start() {
    let fate = conditions::condition("SuccessCriteriaMet", "CompletionsReached", "", at(1));
    for (start, expected) in [(99_990, 100_000), (200_000, 200_000)] {
        let mut job = job(1, Some(1));
        job.status.start_time = Some(at(start));
        let mut counted = look(job, vec![]);
        let tracking = counted.track(Some(&fate));
        assert!(counted.finish(Some(&fate), &tracking));
        assert_eq!(counted.job.status.completion_time, Some(at(expected)), "started at {start}");
    }
}

/// Ends all pods, as kubelets would.
async fn end_pods(running: &Running, phase: &str) {
    let pods = running.client.namespaced::<Pod>("ns");
    for mut pod in pods.list(&ListOptions::default()).await.unwrap().items {
        if pod.status.phase.is_empty() {
            pod.status.phase = phase.into();
            pods.update_status(&pod).await.unwrap();
        }
    }
}

async fn live(running: &Running) -> Job {
    running.client.namespaced::<Job>("ns").get("j").await.unwrap()
}

async fn tracked_pods(running: &Running) -> usize {
    let pods = running.client.namespaced::<Pod>("ns").list(&ListOptions::default()).await.unwrap().items;
    pods.iter().filter(|pod| view::is_tracked(pod)).count()
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(JOBS_AT, &job(2, Some(3)));
    for _ in 0..3 {
        run_until_idle().await;
        end_pods(&running, "Succeeded").await;
    }
    run_until_idle().await;
    let job = live(&running).await;
    assert!(is_true(&job.status.conditions, "Complete"), "{:?}", job.status);
    assert_eq!((job.status.succeeded, job.status.failed, job.status.active), (3, 0, 0));
    assert_eq!((running.count(PODS_AT), tracked_pods(&running).await), (3, 0));
    for line in [
        "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",reason=\"CompletionsReached\",result=\"succeeded\"} 1",
        "job_controller_job_pods_finished_total{completion_mode=\"NonIndexed\",result=\"succeeded\"} 3",
        "job_controller_job_pods_creation_total{reason=\"new\",status=\"succeeded\"} 3",
        "job_controller_terminated_pods_tracking_finalizer_total{event=\"add\"} 3",
        "job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"} 3",
    ] {
        running.assert_shows(line);
    }
    assert!(running.shows("job_controller_job_syncs_total{action=\"tracking\","), "nothing was to be done");
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_does_every_index() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(JOBS_AT, &indexed(2, 3));
    for _ in 0..3 {
        run_until_idle().await;
        end_pods(&running, "Succeeded").await;
    }
    run_until_idle().await;
    let job = live(&running).await;
    assert_eq!((job.status.completed_indexes.as_str(), job.status.succeeded), ("0-2", 3));
    running.assert_shows("job_controller_job_finished_indexes_total{backoffLimit=\"global\",status=\"succeeded\"} 3");
    assert!(is_true(&job.status.conditions, "Complete"));
    assert_eq!(tracked_pods(&running).await, 0);
}

#[tokio::test(start_paused = true)]
async fn failures_end_a_job_after_their_delays() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut job = job(1, Some(1));
    job.spec.backoff_limit = Some(1);
    running.put(JOBS_AT, &job);
    run_until_idle().await;
    end_pods(&running, "Failed").await;
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 1, "the replacement waits");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(running.count(PODS_AT), 2);
    end_pods(&running, "Failed").await;
    run_until_idle().await;
    let job = live(&running).await;
    assert!(is_true(&job.status.conditions, "Failed") && is_true(&job.status.conditions, "FailureTarget"));
    assert_eq!((job.status.failed, tracked_pods(&running).await), (2, 0));
    running.assert_shows(
        "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",reason=\"BackoffLimitExceeded\",result=\"failed\"} 1",
    );
}

/// Lets all pods go that something else than the job holds on to, as kubelets do once containers have ended.
async fn let_pods_go(running: &Running) {
    let pods = running.client.namespaced::<Pod>("ns");
    for mut pod in pods.list(&ListOptions::default()).await.unwrap().items {
        pod.metadata.finalizers.retain(|own| own != HELD);
        pods.update(&pod).await.unwrap();
    }
}

const HELD: &str = "test/containers";

#[tokio::test(start_paused = true)]
async fn a_job_ends_after_the_pods_that_its_end_deletes() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut late = job(2, Some(2));
    late.spec.active_deadline_seconds = Some(10);
    late.spec.template.metadata.finalizers.push(HELD.into());
    running.put(JOBS_AT, &late);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let job = live(&running).await;
    assert!(is_true(&job.status.conditions, "FailureTarget"), "{:?}", job.status);
    assert!(!is_true(&job.status.conditions, "Failed"), "the pods still run: {:?}", job.status);
    assert_eq!((job.status.active, job.status.terminating, job.status.failed), (0, Some(2), 2));
    let_pods_go(&running).await;
    run_until_idle().await;
    let job = live(&running).await;
    assert!(is_true(&job.status.conditions, "Failed"), "{:?}", job.status);
    assert_eq!((job.status.active, job.status.terminating, job.status.failed), (0, Some(0), 2));
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_removed_are_terminating_until_they_are_gone() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut held = job(2, Some(3));
    held.spec.template.metadata.finalizers.push(HELD.into());
    running.put(JOBS_AT, &held);
    run_until_idle().await;
    let mut job = live(&running).await;
    (job.spec.suspend, job.metadata.generation) = (Some(true), 2);
    running.client.namespaced::<Job>("ns").update(&job).await.unwrap();
    run_until_idle().await;
    let job = live(&running).await;
    assert_eq!((job.status.active, job.status.terminating), (0, Some(2)));
    let_pods_go(&running).await;
    run_until_idle().await;
    let job = live(&running).await;
    assert_eq!((job.status.active, job.status.terminating, job.status.failed), (0, Some(0), 0));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_keeps_no_pods_and_resumes() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(JOBS_AT, &job(2, Some(3)));
    run_until_idle().await;
    let jobs = running.client.namespaced::<Job>("ns");
    for (suspend, count, status) in [(true, 0, "True"), (false, 2, "False")] {
        let mut job = live(&running).await;
        job.spec.suspend = Some(suspend);
        job.metadata.generation += 1;
        jobs.update(&job).await.unwrap();
        run_until_idle().await;
        let job = live(&running).await;
        assert_eq!((running.count(PODS_AT), job.status.failed), (count, 0));
        assert_eq!(find(&job.status.conditions, "Suspended").unwrap().status, status);
        assert_eq!(job.status.start_time.is_some(), !suspend);
    }
}

#[test]
fn a_suspended_job_starts_anew_where_more_of_it_may_change() {
    for (starts_anew, start) in [(true, None), (false, Some(at(99_000)))] {
        let mut held = job(2, Some(3));
        held.spec.suspend = Some(true);
        held.status.start_time = Some(at(99_000));
        let mut view = look(held, Vec::new());
        assert_eq!(note_suspension(&mut view, starts_anew), Some(("Suspended", "Job suspended")));
        assert_eq!(view.job.status.start_time, start);
    }
}

/// Ends all pods right before the first change of one: the controller that makes it has not seen that.
struct EndsFirst {
    server: client::fake::FakeServer,
    inner: Arc<dyn client::Transport>,
    is_done: std::sync::atomic::AtomicBool,
}

#[async_trait::async_trait]
impl client::Transport for EndsFirst {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<component_base::serving::Body>, client::TransportError> {
        let changes_pod = request.method() == http::Method::PATCH && request.uri().path().contains("/pods/");
        if changes_pod && !self.is_done.swap(true, std::sync::atomic::Ordering::SeqCst) {
            for mut pod in self.server.objects(PODS_AT) {
                pod["status"]["phase"] = "Succeeded".into();
                self.server.put(PODS_AT, pod);
            }
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ended_unseen_is_counted_when_its_job_is_suspended() {
    let running = Running::start_over(&[DESCRIPTOR], crate::Settings::default(), |server| {
        Arc::new(EndsFirst { server: server.clone(), inner: server.transport(), is_done: false.into() })
    });
    running.put(JOBS_AT, &job(2, Some(3)));
    run_until_idle().await;
    let mut job = live(&running).await;
    (job.spec.suspend, job.metadata.generation) = (Some(true), 2);
    running.client.namespaced::<Job>("ns").update(&job).await.unwrap();
    run_until_idle().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let job = live(&running).await;
    assert_eq!((job.status.succeeded, job.status.active, job.status.failed), (2, 0, 0), "{:?}", job.status);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_are_let_go() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(JOBS_AT, &job(2, Some(3)));
    run_until_idle().await;
    assert_eq!(tracked_pods(&running).await, 2);
    running.server.remove(JOBS_AT, "ns", "j");
    run_until_idle().await;
    assert_eq!(tracked_pods(&running).await, 0);
}

#[tokio::test(start_paused = true)]
async fn pods_on_their_way_out_are_let_go_where_no_job_counts_them() {
    let owned = |kind: &str| {
        let mut owner = controller::controller_ref::<Job>(&meta("j"));
        owner.kind = kind.to_owned();
        Some(owner)
    };
    let going = |owner| {
        let mut pod = dying(tracked("p", "Running"));
        pod.metadata.owner_references.extend(owner);
        pod
    };
    for (name, before, now, kept) in [
        ("nobody's when it was first seen", None, going(None), 0),
        ("nobody's since", Some(going(owned("Job"))), going(None), 0),
        ("of a job that is not there", None, going(owned("Job")), 0),
        ("of another kind", None, going(owned("Other")), 1),
    ] {
        let running = Running::start(&[DESCRIPTOR]);
        if let Some(before) = before {
            running.put(JOBS_AT, &job(1, Some(2)));
            running.put(PODS_AT, &before);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        running.put(PODS_AT, &now);
        run_until_idle().await;
        let pods = running.server.objects(PODS_AT);
        let is_it =
            |pod: &&serde_json::Value| pod["metadata"]["name"] == "p" && !pod["metadata"]["finalizers"].is_null();
        assert_eq!(pods.iter().filter(is_it).count(), kept, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again() {
    let running = Running::start(&[DESCRIPTOR]);
    run_until_idle().await;
    running.server.fail_next("POST", &[500]);
    running.server.fail_next("PUT", &[500]);
    running.put(JOBS_AT, &job(2, Some(2)));
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 2);
    running.server.fail_next("PATCH", &[500]);
    end_pods(&running, "Succeeded").await;
    run_until_idle().await;
    run_until_idle().await;
    let job = live(&running).await;
    assert_eq!((job.status.succeeded, tracked_pods(&running).await), (2, 0), "counted once each");
    assert!(is_true(&job.status.conditions, "Complete"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_and_went_between_two_lists_is_waited_for_no_longer() {
    let running = Running::start_over(&[DESCRIPTOR], Settings::default(), Swallow::over);
    running.put(JOBS_AT, &job(1, Some(1)));
    run_until_idle().await;
    assert_eq!((running.requests("POST", "pods"), running.count(PODS_AT)), (2, 1), "another was made in its place");
}
