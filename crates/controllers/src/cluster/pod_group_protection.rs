//! Keeps groups of pods from going while pods of them run: a finalizer, which admission sets, is taken away after that.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::scheduling_v1alpha2::PodGroup;
use client::{Change, Informer, ObjectKey};
use component_helpers::pod_state;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use kinds::gates::GENERIC_WORKLOAD;

use crate::volumes::storage_protection::{Plan, plan, unless_gone};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "podgroup-protection-controller",
    aliases: &[],
    gates: &[GENERIC_WORKLOAD],
    identity: "podgroup-protection-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";
/// Index of pods by the groups that they are of, `{namespace}/{name}`.
const BY_GROUP: &str = "pod-groups";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("podgroupprotection");
    let going = |change: &Change<PodGroup>| (!change.is_deleted() && is_going(change.object())).then(|| change.key());
    let groups = build.watch::<PodGroup>().enqueue_keys(&queue, going).informer();
    let released = |change: &Change<Pod>| {
        let pod = change.object();
        (change.is_deleted() || pod_state::is_terminal(pod)).then(|| group_of(pod)).flatten()
    };
    let by_group = |pod: &Pod| group_of(pod).map(|group| group.to_string()).into_iter().collect();
    let pods = build.watch::<Pod>().index(BY_GROUP, by_group).enqueue_keys(&queue, released).informer();
    build.run(&queue, 1, Arc::new(Protection { groups, pods }));
    Ok(())
}

fn is_going(group: &PodGroup) -> bool {
    plan(&group.metadata, FINALIZER) == Plan::Remove
}

fn group_of(pod: &Pod) -> Option<ObjectKey> {
    let name = pod.spec.scheduling_group.as_ref()?.pod_group_name.clone()?;
    Some(ObjectKey::new(pod.metadata.namespace.clone(), name))
}

struct Protection {
    groups: Informer<PodGroup>,
    pods: Informer<Pod>,
}

#[async_trait::async_trait]
impl Controller for Protection {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(group) = self.groups.get(key).filter(|group| is_going(group)) else { return Ok(Next::Done) };
        // No live list: nobody may join a group that is going.
        let pods = self.pods.by_index(BY_GROUP, &key.to_string());
        if pods.iter().any(|pod| !pod_state::is_terminal(pod)) {
            return Ok(Next::Done);
        }
        let mut next = PodGroup::clone(&group);
        next.metadata.finalizers.retain(|own| own != FINALIZER);
        unless_gone(cx.client.namespaced::<PodGroup>(&key.namespace).update(&next).await)
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PodSchedulingGroup;

    use super::*;
    use crate::workloads::fixtures::{Running, at, meta, pod, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];
    const GROUPS: &str = "scheduling.k8s.io/v1alpha2/podgroups";

    #[tokio::test(start_paused = true)]
    async fn a_group_goes_once_its_pods_have_ended() {
        let running = Running::start_gated(KNOWN, &[GENERIC_WORKLOAD]);
        let mut group = PodGroup { metadata: meta("g"), ..PodGroup::default() };
        group.metadata.finalizers.push(FINALIZER.into());
        running.put(GROUPS, &group);
        let mut member = pod("p", "Running", None);
        member.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some("g".into()) });
        running.put("v1/pods", &member);
        running.put("v1/pods", &pod("q", "Running", None));
        run_until_idle().await;
        assert_eq!(running.requests("PUT", "/podgroups"), 0, "nobody wants it to go");
        group.metadata.deletion_timestamp = Some(at(1));
        running.put(GROUPS, &group);
        run_until_idle().await;
        assert_eq!(running.count(GROUPS), 1, "a pod of it runs");
        member.status.phase = "Succeeded".into();
        running.put("v1/pods", &member);
        run_until_idle().await;
        assert_eq!(running.count(GROUPS), 0);
        running.assert_steady().await;
    }
}
