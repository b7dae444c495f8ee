//! Which jobs are gangs, and what is made for them.

use api_machinery::value::Value;
use api_types::batch_v1::constants::job_condition_type::SUSPENDED;
use api_types::core_v1::PodSchedulingGroup;
use api_types::scheduling_v1alpha2::{PodGroup, PodGroupTemplate, Workload};
use component_base::Feature;
use component_base::shared_gates::{GENERIC_WORKLOAD, WORKLOAD_WITH_JOB};
use controller::controller_ref;

use super::super::fixtures::{Running, at, meta, pod, run_until_idle, selector, stored, template, with};
use super::gang_content::{pod_group_of, workload_of};
use super::*;

const JOBS_AT: &str = "batch/v1/jobs";
const PODS_AT: &str = "v1/pods";
const WORKLOADS_AT: &str = "scheduling.k8s.io/v1alpha2/workloads";
const GROUPS_AT: &str = "scheduling.k8s.io/v1alpha2/podgroups";
const ON: &[Feature] = &[GENERIC_WORKLOAD, WORKLOAD_WITH_JOB];
/// Of a job `j` with the uid `j-uid`.
const WORKLOAD: &str = "j-84bcdcf696";

fn gang() -> Job {
    let mut job = Job { metadata: meta("j"), ..Job::default() };
    job.metadata.generation = 1;
    (job.spec.parallelism, job.spec.completions, job.spec.backoff_limit) = (Some(2), Some(2), Some(6));
    job.spec.completion_mode = Some(INDEXED.into());
    job.spec.selector = selector();
    job.spec.template = template("v1");
    job
}

/// What somebody else made for the job, owned by it or not.
fn workload(name: &str, is_owned: bool) -> Workload {
    let mut workload = Workload { metadata: meta(name), ..workload_of(&gang()) };
    if is_owned {
        workload.metadata.owner_references = vec![controller_ref::<Job>(&gang().metadata)];
    }
    workload
}

/// The group that is made from a Workload.
fn made_of(workload: &Workload) -> PodGroup {
    pod_group_of(&gang(), workload, &workload.spec.pod_group_templates[0])
}

fn group(name: &str, is_owned: bool) -> PodGroup {
    let mut group = made_of(&workload("w", true));
    group.metadata.name = name.into();
    if !is_owned {
        group.metadata.owner_references.clear();
    }
    group
}

/// The groups that pods name, each once; an empty text for those without.
fn groups_of_pods(running: &Running) -> Vec<String> {
    let pods = running.server.objects(PODS_AT);
    let name = |pod: &Value| pod["spec"]["schedulingGroup"]["podGroupName"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<_> = pods.iter().map(name).collect();
    names.dedup();
    names
}

#[tokio::test(start_paused = true)]
async fn only_jobs_that_run_all_at_once_are_gangs() {
    let changed = |change: fn(&mut Job)| {
        let mut job = gang();
        change(&mut job);
        job
    };
    let condition = |job: &mut Job| job.status.conditions = vec![conditions::condition(SUSPENDED, "", "", at(1))];
    for (name, features, job, expected) in [
        ("a gang", ON, gang(), 1),
        ("the gate is off", &[GENERIC_WORKLOAD][..], gang(), 0),
        ("one pod", ON, changed(|job| (job.spec.parallelism, job.spec.completions) = (Some(1), Some(1))), 0),
        ("some pods at a time", ON, changed(|job| job.spec.completions = Some(3)), 0),
        ("a queue of work", ON, changed(|job| job.spec.completions = None), 0),
        ("no indexes", ON, changed(|job| job.spec.completion_mode = None), 0),
        (
            "a group of its own",
            ON,
            changed(|job| {
                let pod_group_name = Some("own".to_owned());
                job.spec.template.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name });
            }),
            0,
        ),
        ("held", ON, changed(|job| job.spec.suspend = Some(true)), 1),
        ("begun", ON, changed(|job| job.status.start_time = Some(at(1))), 0),
        ("some done", ON, changed(|job| job.status.succeeded = 1), 0),
        ("some failed", ON, changed(|job| job.status.failed = 1), 0),
        ("held before", ON, changed(condition), 0),
        ("on its way out", ON, changed(|job| job.metadata.deletion_timestamp = Some(at(1))), 0),
    ] {
        let running = Running::start_gated(&[DESCRIPTOR], features);
        running.put(JOBS_AT, &job);
        run_until_idle().await;
        assert_eq!((running.count(WORKLOADS_AT), running.count(GROUPS_AT)), (expected, expected), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_with_pods_stay_as_they_are() {
    let running = Running::start_gated(&[DESCRIPTOR], ON);
    let mut early = pod("early", "Running", Some(controller_ref::<Job>(&gang().metadata)));
    early.metadata.annotations.insert("batch.kubernetes.io/job-completion-index".into(), "0".into());
    running.put(PODS_AT, &early);
    run_until_idle().await;
    running.put(JOBS_AT, &gang());
    run_until_idle().await;
    assert_eq!((running.count(WORKLOADS_AT), groups_of_pods(&running)), (0, vec![String::new()]));
}

#[tokio::test(start_paused = true)]
async fn a_gang_has_its_objects_before_its_pods() {
    let running = Running::start_gated(&[DESCRIPTOR], ON);
    running.put(JOBS_AT, &gang());
    run_until_idle().await;
    let workload = running.client.namespaced::<Workload>("ns").get(WORKLOAD).await.unwrap();
    assert_eq!(workload.metadata.owner_references, [controller_ref::<Job>(&gang().metadata)]);
    let PodGroupTemplate { name, scheduling_policy, .. } = &workload.spec.pod_group_templates[0];
    assert_eq!((name.as_str(), scheduling_policy.gang.as_ref().unwrap().min_count), ("j-pgt-0", 2));
    let groups = running.server.objects(GROUPS_AT);
    let made = made_of(&workload);
    let live = running.client.namespaced::<PodGroup>("ns").get(&made.metadata.name).await.unwrap();
    assert_eq!((groups.len(), &live.spec), (1, &made.spec));
    let owners = &live.metadata.owner_references;
    assert_eq!(owners, &made.metadata.owner_references);
    let also = (owners[1].kind.as_str(), &owners[1].uid, owners[1].controller, owners[1].block_owner_deletion);
    assert_eq!(also, ("Workload", &workload.metadata.uid, None, None));
    assert_eq!((running.count(PODS_AT), groups_of_pods(&running)), (2, vec![live.metadata.name]));
    let events = running.server.objects("events.k8s.io/v1/events");
    let told = events.iter().chain(&running.server.objects("v1/events")).any(|event| {
        let message = event["note"].as_str().or(event["message"].as_str());
        event["reason"] == "WorkloadCreated" && message == Some(&format!("Created Workload {WORKLOAD} for Job j"))
    });
    assert!(told, "{events:?}");
    running.assert_steady().await;
    assert_eq!((running.requests("POST", "/workloads"), running.requests("POST", "/podgroups")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_there_is_taken_if_it_is_the_jobs() {
    let mut two = workload("w", true);
    two.spec.pod_group_templates.push(PodGroupTemplate { name: "other".into(), ..PodGroupTemplate::default() });
    let named = made_of(&workload("w", true)).metadata.name;
    let named = named.as_str();
    for (name, workloads, groups, expected) in [
        ("a Workload", vec![workload("w", true)], vec![], named),
        ("both", vec![workload("w", true)], vec![group("g", true)], "g"),
        ("somebody's Workload", vec![workload("w", false)], vec![], ""),
        ("two templates", vec![two], vec![], ""),
        ("two Workloads", vec![workload("w", true), workload("v", true)], vec![], ""),
        ("somebody's group", vec![workload("w", true)], vec![group("g", false)], ""),
        ("two groups", vec![workload("w", true)], vec![group("g", true), group("h", true)], ""),
    ] {
        let running = Running::start_gated(&[DESCRIPTOR], ON);
        workloads.iter().for_each(|own| running.put(WORKLOADS_AT, own));
        groups.iter().for_each(|own| running.put(GROUPS_AT, own));
        run_until_idle().await;
        running.put(JOBS_AT, &gang());
        run_until_idle().await;
        assert_eq!(running.count(WORKLOADS_AT), workloads.len(), "{name}");
        assert_eq!((running.count(PODS_AT), groups_of_pods(&running)), (2, vec![expected.to_owned()]), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gang_waits_for_its_objects() {
    let running = Running::start_gated(&[DESCRIPTOR], ON);
    let mut other = Workload { metadata: meta(WORKLOAD), ..Workload::default() };
    other.metadata.uid = "other".into();
    running.put(WORKLOADS_AT, &other);
    run_until_idle().await;
    running.put(JOBS_AT, &gang());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((running.requests("POST", "/workloads"), running.count(PODS_AT)), (5, 0), "the name is taken");
    running.server.remove(WORKLOADS_AT, "ns", WORKLOAD);
    running.server.fail_next("POST", &[500]);
    run_until_idle().await;
    assert!(groups_of_pods(&running)[0].starts_with(WORKLOAD));
    assert_eq!((running.count(GROUPS_AT), running.count(PODS_AT)), (1, 2));
}

/// Makes the Workload, and then the group, right before the first request for one of each: whoever asks has not seen that.
struct MadeFirst {
    server: client::fake::FakeServer,
    inner: Arc<dyn client::Transport>,
}

#[async_trait::async_trait]
impl client::Transport for MadeFirst {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<component_base::serving::Body>, client::TransportError> {
        let is_for =
            |resource: &str| request.method() == http::Method::POST && request.uri().path().ends_with(resource);
        if is_for("/workloads") {
            self.server.put(WORKLOADS_AT, stored(&workload(WORKLOAD, true)));
        }
        if is_for("/podgroups") {
            self.server.put(GROUPS_AT, stored(&made_of(&workload(WORKLOAD, true))));
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_made_meanwhile_is_found() {
    let running = Running::start_all(&[DESCRIPTOR], with(ON), Settings::default(), |server| {
        Arc::new(MadeFirst { server: server.clone(), inner: server.transport() })
    });
    run_until_idle().await;
    running.put(JOBS_AT, &gang());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((running.requests("POST", "/workloads"), running.requests("POST", "/podgroups")), (1, 1));
    assert_eq!(groups_of_pods(&running), [made_of(&workload(WORKLOAD, true)).metadata.name]);
}
