//! JobValidation: the number of pods of a job does not change while they are scheduled all or none. The groups that say so
//! are only served behind the gate `GenericWorkload`.

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::batch_v1::Job;
use api_types::scheduling_v1alpha2::PodGroup;
use async_trait::async_trait;
use component_helpers::owners;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "JobValidation",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&PodGroup::TYPE],
    configuration: None,
    build: |_| Box::new(JobValidation),
};

struct JobValidation;

/// The group of the job's pods: the one that their template names, or one that the job made.
fn group_of(cx: &Context, job: &Job) -> Option<Arc<PodGroup>> {
    let namespace = &job.metadata.namespace;
    let named = job.spec.template.spec.scheduling_group.as_ref();
    match named.and_then(|group| group.pod_group_name.as_deref()) {
        Some(name) => cx.lookup.get(namespace, name),
        None => {
            let mut all = cx.lookup.list::<PodGroup>(namespace).into_iter();
            all.find(|group| owners::is_controlled_by(&group.metadata, &job.metadata.uid))
        }
    }
}

#[async_trait]
impl Plugin for JobValidation {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.is("batch", "jobs")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (Some(object), Some(old)) = (object, old) else { return Ok(()) };
        let (Some(job), Some(old)) = (object.downcast_ref::<Job>(), old.downcast_ref::<Job>()) else { return Ok(()) };
        if job.spec.parallelism == old.spec.parallelism {
            return Ok(());
        }
        match group_of(cx, job) {
            Some(group) if group.spec.scheduling_policy.gang.is_some() => {
                let name = &group.metadata.name;
                Err(attributes.forbidden(format_args!(
                    "cannot change parallelism for a Job referencing gang-scheduled PodGroup {name:?}"
                )))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::OwnerReference;
    use api_types::core_v1::PodSchedulingGroup;
    use api_types::scheduling_v1alpha2::GangSchedulingPolicy;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn group(name: &str, gang: bool, owner: &str) -> PodGroup {
        let mut group = PodGroup::default();
        group.metadata.name = name.into();
        group.metadata.namespace = "n".into();
        group.metadata.owner_references =
            vec![OwnerReference { uid: owner.into(), controller: Some(true), ..OwnerReference::default() }];
        group.spec.scheduling_policy.gang = gang.then(GangSchedulingPolicy::default);
        group
    }

    fn job(uid: &str, group: Option<&str>, parallelism: i32) -> Job {
        let mut job = Job::default();
        job.metadata.uid = uid.into();
        job.metadata.namespace = "n".into();
        job.spec.parallelism = Some(parallelism);
        job.spec.template.spec.scheduling_group =
            group.map(|name| PodSchedulingGroup { pod_group_name: Some(name.into()) });
        job
    }

    #[tokio::test]
    async fn gangs_keep_their_size() {
        let groups = vec![group("gang", true, "a"), group("basic", false, "b")];
        let fixture = Fixture::default().with(groups);
        let update = Attributes { operation: Operation::Update, ..create("batch", "jobs") };
        for (uid, named, parallelism, refused) in [
            ("a", None, 2, true),
            ("a", None, 1, false),
            ("b", None, 2, false),
            ("c", None, 2, false),
            ("c", Some("gang"), 2, true),
            ("a", Some("basic"), 2, false),
            ("a", Some("missing"), 2, false),
        ] {
            let (new, old) = (job(uid, named, parallelism), job(uid, named, 1));
            let outcome = fixture.validate_update(&ENTRY, &update, &new, &old).await;
            let expected = refused.then_some(
                "jobs.batch \"x\" is forbidden: cannot change parallelism for a Job referencing gang-scheduled \
                 PodGroup \"gang\"",
            );
            assert_eq!(outcome.err().map(|error| error.message).as_deref(), expected, "{uid} {named:?} {parallelism}");
        }
    }
}
