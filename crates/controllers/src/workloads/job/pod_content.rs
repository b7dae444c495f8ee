//! What the pods of a job have on top of its template.

use api_types::batch_v1::Job;
use api_types::batch_v1::constants::{
    JOB_COMPLETION_INDEX_ANNOTATION as INDEX, JOB_INDEX_FAILURE_COUNT_ANNOTATION as FAILURES,
    JOB_INDEX_IGNORED_FAILURE_COUNT_ANNOTATION as IGNORED, JOB_TRACKING_FINALIZER,
};
use api_types::core_v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use controller::controller_ref;

use super::super::pod_control::pod_from_template;
use super::policy::{Meaning, meaning};
use super::view::former_failures;

/// What tells containers their index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Longest prefix of a generated name: five characters follow in a label of 63.
const PREFIX_LIMIT: usize = 58;

/// A pod of the job.
pub(super) fn pod_of(job: &Job) -> Pod {
    let mut pod = pod_from_template(&job.spec.template, &job.metadata, controller_ref::<Job>(&job.metadata));
    pod.metadata.finalizers.push(JOB_TRACKING_FINALIZER.to_owned());
    pod
}

/// A pod of the job for an index. `replaced` is the failed pod that it comes in the place of.
pub(super) fn pod_for_index(job: &Job, index: i32, replaced: Option<&Pod>) -> Pod {
    let mut pod = pod_of(job);
    pod.metadata.generate_name = name_prefix(&job.metadata.name, index);
    pod.spec.hostname = format!("{}-{index}", job.metadata.name);
    pod.metadata.annotations.insert(INDEX.to_owned(), index.to_string());
    pod.metadata.labels.insert(INDEX.to_owned(), index.to_string());
    for container in pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers) {
        tell_index(container);
    }
    if job.spec.backoff_limit_per_index.is_some() {
        let (counted, ignored) = replaced.map_or((0, 0), |replaced| failures_with(job, replaced));
        pod.metadata.annotations.insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            pod.metadata.annotations.insert(IGNORED.to_owned(), ignored.to_string());
        }
    }
    pod
}

/// The failures of an index up to and with this pod's.
fn failures_with(job: &Job, replaced: &Pod) -> (u32, u32) {
    let (counted, ignored) = former_failures(replaced);
    match meaning(job, replaced) {
        Meaning::Ignored => (counted, ignored.saturating_add(1)),
        _ => (counted.saturating_add(1), ignored),
    }
}

fn tell_index(container: &mut Container) {
    if container.env.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field_ref =
        ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), ..ObjectFieldSelector::default() };
    let source = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
    container.env.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(source.into()),
        ..EnvVar::default()
    });
}

fn name_prefix(job: &str, index: i32) -> String {
    let tail = format!("-{index}-");
    let kept: String = job.chars().take(PREFIX_LIMIT.saturating_sub(tail.len())).collect();
    kept + &tail
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{meta, template};
    use super::*;

    #[test]
    fn indexed_pods_know_their_index() {
        let mut job = Job { metadata: meta("j"), ..Job::default() };
        job.spec.template = template("v1");
        job.spec.backoff_limit_per_index = Some(2);
        let first = pod_for_index(&job, 3, None);
        assert_eq!(first.metadata.generate_name, "j-3-");
        assert_eq!((first.spec.hostname.as_str(), first.metadata.labels[INDEX].as_str()), ("j-3", "3"));
        assert_eq!(first.metadata.annotations[FAILURES], "0");
        assert_eq!(first.metadata.finalizers, [JOB_TRACKING_FINALIZER]);
        let variable = &first.spec.containers[0].env[0];
        assert_eq!(variable.name, INDEX_VARIABLE);
        let second = pod_for_index(&job, 3, Some(&first));
        assert_eq!(second.metadata.annotations[FAILURES], "1");
        assert_eq!(name_prefix(&"x".repeat(70), 12).len(), PREFIX_LIMIT);
    }
}
