//! Jobs whose pods are to run all at once: they are made a gang for the scheduler, by a Workload and a `PodGroup` that pods
//! name. Only behind the gate `WorkloadWithJob` (KEP-5547).
//!
//! Only jobs that have not begun get a Workload, so that those from before the gate was on stay as they are. What others
//! have made for a job is left alone: its pods are scheduled one by one then. Neither object is ever changed or deleted here;
//! they go with the job.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_types::batch_v1::Job;
use api_types::batch_v1::constants::job_condition_type::SUSPENDED;
use api_types::core_v1::{Pod, PodSchedulingGroup};
use api_types::scheduling_v1alpha2::{PodGroup, Workload};
use client::{ClientError, EventType, Informer, ObjectKey};
use component_base::shared_gates::WORKLOAD_WITH_JOB;
use component_helpers::conditions::find;
use controller::{Build, Cx, ReconcileError, is_controlled_by};

use super::super::owners::key;
use super::gang_content::{pod_group_of, workload_of};
use super::view::is_indexed;

/// Index of Workloads by the jobs that they are of, `{namespace}/{name}`.
const BY_JOB: &str = "workload-jobs";
/// Index of groups by the Workloads that they were made from, `{namespace}/{name}`.
const BY_WORKLOAD: &str = "pod-group-workloads";
/// How often the cache is asked for what turns out to be there already, or it is made.
const TRIES: usize = 5;
/// The delay in between, lengthened by up to a tenth.
const PAUSE: Duration = Duration::from_millis(10);

/// Workloads and groups, as they are known.
pub(super) struct Gangs {
    workloads: Informer<Workload>,
    groups: Informer<PodGroup>,
}

impl Gangs {
    /// Watches for them, where jobs may be gangs.
    pub(super) fn watch(build: &mut Build<'_>) -> Option<Self> {
        if !build.gates().enabled(WORKLOAD_WITH_JOB) {
            return None;
        }
        let workloads = build.watch::<Workload>().index(BY_JOB, |own| job_of(own).into_iter().collect()).informer();
        let groups =
            build.watch::<PodGroup>().index(BY_WORKLOAD, |own| source_of(own).into_iter().collect()).informer();
        Some(Self { workloads, groups })
    }

    /// The name of the group that new pods of the job join, which is there then; none where they are scheduled one by one.
    pub(super) async fn group_for(
        &self,
        cx: &Cx,
        job: &Job,
        pods: &[Arc<Pod>],
    ) -> Result<Option<String>, ReconcileError> {
        // A job on its way out gets no more pods; what it owns is being deleted with it.
        if !is_gang(job) || job.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let failed = |error: ClientError| {
            ReconcileError::failed(format!("ensuring Workload and PodGroup for Job {}: {error}", key(job)))
        };
        let workload = retried(cx, || self.workload(cx, job, pods)).await.map_err(failed)?;
        let Some(workload) = workload else { return Ok(None) };
        let group = retried(cx, || self.group(cx, job, &workload)).await.map_err(failed)?;
        Ok(group.map(|group| group.metadata.name.clone()))
    }

    async fn workload(&self, cx: &Cx, job: &Job, pods: &[Arc<Pod>]) -> Result<Option<Arc<Workload>>, ClientError> {
        let found = self.workloads.by_index(BY_JOB, &key(job).to_string());
        if !found.is_empty() {
            let own = only_own(job, found);
            return Ok(own.filter(|workload| workload.spec.pod_group_templates.len() == 1));
        }
        if !is_new(job, pods) {
            return Ok(None);
        }
        let made = cx.client.namespaced::<Workload>(&job.metadata.namespace).create(&workload_of(job)).await?;
        let message = format!("Created Workload {} for Job {}", made.metadata.name, job.metadata.name);
        cx.events.event(job, EventType::Normal, "WorkloadCreated", message);
        Ok(Some(Arc::new(made)))
    }

    async fn group(&self, cx: &Cx, job: &Job, workload: &Workload) -> Result<Option<Arc<PodGroup>>, ClientError> {
        let found = self.groups.by_index(BY_WORKLOAD, &key(workload).to_string());
        if !found.is_empty() {
            return Ok(only_own(job, found));
        }
        let Some(template) = workload.spec.pod_group_templates.first() else { return Ok(None) };
        let group = pod_group_of(job, workload, template);
        let made = cx.client.namespaced::<PodGroup>(&job.metadata.namespace).create(&group).await?;
        Ok(Some(Arc::new(made)))
    }
}

/// Has a new pod join a group. It is no owner of the pod: upstream's reference does not get beyond its template.
pub(super) fn join(pod: &mut Pod, group: &str) {
    pod.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some(group.to_owned()) });
}

/// Whether all pods of the job are to run at once, and nobody else has seen to it.
fn is_gang(job: &Job) -> bool {
    let parallelism = job.spec.parallelism.filter(|parallelism| *parallelism > 1);
    let is_all = parallelism.is_some() && parallelism == job.spec.completions;
    is_all && is_indexed(job) && job.spec.template.spec.scheduling_group.is_none()
}

/// Whether the job has never begun. No single sign is enough: pods may be gone, and a job that is held has no start.
fn is_new(job: &Job, pods: &[Arc<Pod>]) -> bool {
    let status = &job.status;
    pods.is_empty()
        && status.start_time.is_none()
        && (status.succeeded, status.failed) == (0, 0)
        && find(&status.conditions, SUSPENDED).is_none()
}

/// What was found, if it is one object and the job controls it.
fn only_own<T: Kind + Object>(job: &Job, found: Vec<Arc<T>>) -> Option<Arc<T>> {
    let count = found.len();
    if count > 1 {
        let (kind, namespace, name) = (T::TYPE.kind, &job.metadata.namespace, &job.metadata.name);
        tracing::warn!(count, kind, namespace, name, "Several are of one job, whose pods are scheduled one by one");
        return None;
    }
    found.into_iter().next().filter(|own| is_controlled_by(own.meta(), &job.metadata))
}

/// The job that a Workload is of.
fn job_of(workload: &Workload) -> Option<String> {
    let job = workload.spec.controller_ref.as_ref()?;
    let is_job = job.api_group == "batch" && job.kind == "Job" && !job.name.is_empty();
    is_job.then(|| ObjectKey::new(workload.metadata.namespace.clone(), job.name.clone()).to_string())
}

/// The Workload that a group was made from.
fn source_of(group: &PodGroup) -> Option<String> {
    let workload = &group.spec.pod_group_template_ref.as_ref()?.workload.as_ref()?.workload_name;
    (!workload.is_empty()).then(|| ObjectKey::new(group.metadata.namespace.clone(), workload.clone()).to_string())
}

/// Tries again while what is made is there already: the cache is about to tell of it.
async fn retried<T, F>(cx: &Cx, mut attempt: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    for _ in 1..TRIES {
        match attempt().await {
            Err(error) if error.is_already_exists() => {}
            outcome => return outcome,
        }
        tokio::time::sleep(PAUSE.mul_f64(1.0 + 0.1 * cx.rng.unit())).await;
    }
    attempt().await
}
