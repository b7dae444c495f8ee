//! One look at a CronJob: its jobs are noted, the due one is started, the status is written.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_machinery::object::Kind as _;
use api_machinery::time::Time;
use api_types::batch_v1::{CronJob, Job};
use api_types::core_v1::ObjectReference;
use client::EventType;
use component_helpers::time_zone::TimeZone;
use controller::{Cx, ReconcileError, is_controlled_by};

use super::plan::Due;
use super::{history, job_content, plan};

/// One look.
pub(super) struct Run<'a> {
    cx: &'a Cx,
    stored: &'a CronJob,
    next: CronJob,
    jobs: Vec<Arc<Job>>,
    now: Time,
    own: &'a super::CronJobs,
}

fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Job::TYPE.api_version(),
        kind: "Job".to_owned(),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(cx: &'a Cx, stored: &'a CronJob, jobs: Vec<Arc<Job>>, own: &'a super::CronJobs) -> Self {
        let now = Time::from(cx.clock.wall());
        Self { cx, stored, next: stored.clone(), jobs, now, own }
    }

    fn event(&self, kind: EventType, reason: &str, message: String) {
        self.cx.events.event(self.stored, kind, reason, message);
    }

    fn is_active(&self, meta: &ObjectMeta) -> bool {
        self.next.status.active.iter().any(|active| active.uid == meta.uid)
    }

    fn forget(&mut self, uid: &str) {
        self.next.status.active.retain(|active| active.uid != uid);
    }

    /// Does all there is to do, and says when to look again.
    pub(super) async fn sync(&mut self) -> Result<Option<Duration>, ReconcileError> {
        self.clean_up().await;
        self.note_jobs().await?;
        self.note_missing().await?;
        if self.stored.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let spec = &self.stored.spec;
        if let Some(Err(error)) = spec.time_zone.as_deref().map(TimeZone::find) {
            let zone = spec.time_zone.as_deref().unwrap_or_default();
            self.event(EventType::Warning, "UnknownTimeZone", format!("invalid timeZone: {zone:?}: {error}"));
            return Ok(None);
        }
        if spec.suspend == Some(true) {
            return Ok(None);
        }
        if spec.schedule.contains("TZ") {
            let text = format!(
                "CRON_TZ or TZ used in schedule {:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                spec.schedule
            );
            self.event(EventType::Warning, "UnsupportedSchedule", text);
        }
        let schedule = match plan::schedule_of(spec, &self.own.local_zone) {
            Ok(schedule) => schedule,
            Err(error) => {
                let text = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                self.event(EventType::Warning, "UnparseableSchedule", text);
                return Ok(None);
            }
        };
        let due = match plan::due(&self.next, &schedule, self.now, true) {
            Ok(due) => due,
            Err(error) => {
                let text = format!("invalid schedule: {} : {error}", spec.schedule);
                self.event(EventType::Warning, "InvalidSchedule", text);
                return Ok(None);
            }
        };
        if let Some(due) = due {
            self.start(due).await?;
        }
        Ok(Some(plan::look_again(&self.next, &schedule, self.now)))
    }

    /// Deletes finished jobs beyond the limits; what cannot be deleted is for the next look.
    async fn clean_up(&mut self) {
        for job in history::surplus(self.stored, &self.jobs) {
            if self.delete(&job.metadata).await.is_ok() {
                self.jobs.retain(|other| other.metadata.uid != job.metadata.uid);
            }
        }
    }

    async fn delete(&mut self, job: &ObjectMeta) -> Result<(), ReconcileError> {
        let options = DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
        let outcome = self.cx.client.namespaced::<Job>(&job.namespace).delete_this(job, options).await;
        if let Err(error) = outcome {
            self.event(EventType::Warning, "FailedDelete", format!("Deleted job: {error}"));
            return Err(error.into());
        }
        self.forget(&job.uid);
        self.event(EventType::Normal, "SuccessfulDelete", format!("Deleted job {}", job.name));
        Ok(())
    }

    /// Takes note of jobs that have ended, and of those that are somebody else's doing.
    async fn note_jobs(&mut self) -> Result<(), ReconcileError> {
        for job in self.jobs.clone() {
            let (name, listed) = (&job.metadata.name, self.is_active(&job.metadata));
            match history::ending(&job) {
                None if !listed => {
                    let meta = &self.stored.metadata;
                    let live = self.cx.client.namespaced::<CronJob>(&meta.namespace).get(&meta.name).await?;
                    if live.status.active.iter().any(|active| active.uid == job.metadata.uid) {
                        self.next.status.active = live.status.active;
                    } else {
                        let text = format!("Saw a job that the controller did not create or forgot: {name}");
                        self.event(EventType::Warning, "UnexpectedJob", text);
                    }
                }
                Some(ending) if listed => {
                    self.forget(&job.metadata.uid);
                    let text = format!("Saw completed job: {name}, condition: {ending}");
                    self.event(EventType::Normal, "SawCompletedJob", text);
                }
                _ => {}
            }
            let last = &mut self.next.status.last_successful_time;
            if history::ending(&job) == Some("Complete") && job.status.completion_time > *last {
                *last = job.status.completion_time;
            }
        }
        Ok(())
    }

    /// Takes note of running jobs that are gone.
    async fn note_missing(&mut self) -> Result<(), ReconcileError> {
        for active in self.next.status.active.clone() {
            if self.jobs.iter().any(|job| job.metadata.uid == active.uid) {
                continue;
            }
            if self.cx.client.namespaced::<Job>(&active.namespace).get_opt(&active.name).await?.is_none() {
                self.forget(&active.uid);
                let text = format!("Active job went missing: {}", active.name);
                self.event(EventType::Normal, "MissingJob", text);
            }
        }
        Ok(())
    }

    /// Starts the job of a time, unless it has been, comes too late or has to wait for another.
    async fn start(&mut self, due: Due) -> Result<(), ReconcileError> {
        if due.many {
            let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.event(EventType::Warning, "TooManyMissedTimes", text.to_owned());
        }
        let spec = &self.stored.spec;
        let late = spec
            .starting_deadline_seconds
            .is_some_and(|limit| plan::seconds(due.at).saturating_add(limit) < plan::seconds(self.now));
        if late {
            let text = format!("Missed scheduled time to start a job: {}", due.at);
            self.event(EventType::Warning, "MissSchedule", text);
            return Ok(());
        }
        let name = job_content::name(self.stored, due.at);
        let active = &self.next.status.active;
        if active.iter().any(|active| active.name == name) || self.next.status.last_schedule_time == Some(due.at) {
            return Ok(());
        }
        match spec.concurrency_policy.as_str() {
            "Forbid" if !active.is_empty() => {
                let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.event(EventType::Normal, "JobAlreadyActive", text.to_owned());
                return Ok(());
            }
            "Replace" => self.make_room().await?,
            _ => {}
        }
        self.create(due.at).await
    }

    /// Deletes the running jobs.
    async fn make_room(&mut self) -> Result<(), ReconcileError> {
        for active in self.next.status.active.clone() {
            let job = match self.cx.client.namespaced::<Job>(&active.namespace).get(&active.name).await {
                Ok(job) => job,
                Err(error) => {
                    self.event(EventType::Warning, "FailedGet", format!("Get job: {error}"));
                    return Err(error.into());
                }
            };
            if self.delete(&job.metadata).await.is_err() {
                let text = format!("could not replace job {}/{}", active.namespace, active.name);
                return Err(ReconcileError::failed(text));
            }
        }
        Ok(())
    }

    async fn create(&mut self, at: Time) -> Result<(), ReconcileError> {
        let wanted = job_content::job(self.stored, at);
        let jobs = self.cx.client.namespaced::<Job>(&wanted.metadata.namespace);
        let job = match jobs.create(&wanted).await {
            Ok(job) => {
                let skew = job.metadata.creation_timestamp.since(at);
                self.own.skew.with(&[]).observe(skew.as_secs_f64());
                self.event(EventType::Normal, "SuccessfulCreate", format!("Created job {}", job.metadata.name));
                job
            }
            Err(error) if error.is_already_exists() => {
                let job = jobs.get(&wanted.metadata.name).await?;
                // Made by an earlier look whose status was not written; else it is not ours to count.
                if !is_controlled_by(&job.metadata, &self.stored.metadata) || self.is_active(&job.metadata) {
                    return Ok(());
                }
                job
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    self.event(EventType::Warning, "FailedCreate", format!("Error creating job: {error}"));
                }
                return Err(error.into());
            }
        };
        self.next.status.active.push(reference(&job));
        self.next.status.last_schedule_time = Some(at);
        Ok(())
    }

    /// Writes the status where it has changed.
    pub(super) async fn report(&self) -> Result<(), ReconcileError> {
        if self.next.status == self.stored.status {
            return Ok(());
        }
        let namespace = &self.stored.metadata.namespace;
        self.cx.client.namespaced::<CronJob>(namespace).update_status(&self.next).await?;
        Ok(())
    }
}
