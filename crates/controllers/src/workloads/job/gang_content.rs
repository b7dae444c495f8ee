//! What the scheduling objects of a job are called, and what they have in them.

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::object::Kind as _;
use api_types::batch_v1::Job;
use api_types::scheduling_v1alpha2::{
    GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupTemplate, PodGroupTemplateReference,
    TypedLocalObjectReference, Workload, WorkloadPodGroupTemplateReference,
};
use component_helpers::fnv::Fnv32;
use controller::controller_ref;

use super::super::template_hash::{hashed_name, spelled};

/// Longest name of an object.
const NAME_LIMIT: usize = 253;
/// What Go's dump of a uid, which upstream hashes, has before the uid.
const UID_TYPE: &str = "(types.UID)";

/// The Workload of a job: its pods are one gang, all of it.
pub(super) fn workload_of(job: &Job) -> Workload {
    let ObjectMeta { name, namespace, .. } = &job.metadata;
    let gang = GangSchedulingPolicy { min_count: job.spec.parallelism.unwrap_or(1) };
    let template = PodGroupTemplate {
        name: format!("{name}-pgt-0"),
        scheduling_policy: PodGroupSchedulingPolicy { gang: Some(gang), ..PodGroupSchedulingPolicy::default() },
        ..PodGroupTemplate::default()
    };
    let mut workload = Workload::default();
    workload.metadata.name = workload_name(&job.metadata);
    workload.metadata.namespace.clone_from(namespace);
    workload.metadata.owner_references = vec![controller_ref::<Job>(&job.metadata)];
    workload.spec.controller_ref = Some(TypedLocalObjectReference {
        api_group: Job::TYPE.group.to_owned(),
        kind: Job::TYPE.kind.to_owned(),
        name: name.clone(),
    });
    workload.spec.pod_group_templates = vec![template];
    workload
}

/// The group of the job's pods, made from a template of its Workload. Only the policy is taken over.
pub(super) fn pod_group_of(job: &Job, workload: &Workload, template: &PodGroupTemplate) -> PodGroup {
    let workload = &workload.metadata;
    // The group does not hold up the deletion of the Workload.
    let also = OwnerReference { controller: None, block_owner_deletion: None, ..controller_ref::<Workload>(workload) };
    let reference = WorkloadPodGroupTemplateReference {
        workload_name: workload.name.clone(),
        pod_group_template_name: template.name.clone(),
    };
    let mut group = PodGroup::default();
    group.metadata.name = group_name(&workload.name, &template.name);
    group.metadata.namespace.clone_from(&job.metadata.namespace);
    group.metadata.owner_references = vec![controller_ref::<Job>(&job.metadata), also];
    group.spec.pod_group_template_ref = Some(PodGroupTemplateReference { workload: Some(reference) });
    group.spec.scheduling_policy = template.scheduling_policy.clone();
    group
}

/// The same each time for the same job, and another for one of the same name.
fn workload_name(job: &ObjectMeta) -> String {
    let hash = Fnv32::default().with(UID_TYPE.as_bytes()).with(job.uid.as_bytes());
    hashed_name(&job.name, &spelled(hash.value()))
}

/// `{workload}-{template}-{hash}`. Where that is too long, a name that takes no more than half of the room stays whole.
fn group_name(workload: &str, template: &str) -> String {
    let hash = Fnv32::default().with(workload.as_bytes()).with(template.as_bytes());
    let hash = spelled(hash.value());
    let room = NAME_LIMIT.saturating_sub(hash.len() + 2);
    let for_template = template.len().min((room / 2).max(room.saturating_sub(workload.len())));
    let cut = |name: &str, room| name.chars().take(room).collect::<String>();
    format!("{}-{}-{hash}", cut(workload, room - for_template), cut(template, for_template))
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::meta;
    use super::*;

    #[test]
    fn names_are_upstreams() {
        let job = ObjectMeta { uid: "8a4b7c1e-0000-4000-8000-000000000001".into(), ..meta("train") };
        assert_eq!(workload_name(&job), "train-588956486f");
        assert_eq!(group_name("train-x", "train-pgt-0"), "train-x-train-pgt-0-75f65687b9");
    }

    #[test]
    fn long_names_share_the_room() {
        let lengths = |workload: usize, template: usize| {
            let name = group_name(&"w".repeat(workload), &"t".repeat(template));
            let count = |letter| name.chars().take_while(|own| *own != '-').filter(|own| *own == letter).count();
            let (kept, rest) = (count('w'), name.split('-').nth(1).map_or(0, str::len));
            (kept, rest, name.len() <= NAME_LIMIT)
        };
        assert_eq!(lengths(10, 10), (10, 10, true));
        for (workload, template) in [(10, 250), (250, 10), (250, 250)] {
            let (kept, rest, fits) = lengths(workload, template);
            assert!(fits, "{workload} {template}");
            assert!(kept.min(rest) >= workload.min(template).min(120), "{kept} {rest}");
            assert!(kept + rest >= NAME_LIMIT - 12, "all of the room is used: {kept} {rest}");
        }
        let long = ObjectMeta { name: "j".repeat(300), ..meta("j") };
        assert_eq!(workload_name(&long).len(), NAME_LIMIT);
    }
}
