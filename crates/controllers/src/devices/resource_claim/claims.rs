//! What a claim needs done: consumers that are gone let go of it, and it goes itself where it was made for a pod that has ended.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::Pod;
use api_types::resource_v1::{ResourceClaim, ResourceClaimConsumerReference};
use api_types::scheduling_v1alpha2::PodGroup;
use client::Informer;
use component_helpers::group_claims::is_group;
use controller::{Cx, ReconcileError, controller_of};

use super::naming::is_done;
use super::{Claims, FINALIZER};

/// What is to be written of a claim, in this order.
#[derive(Debug, PartialEq)]
struct Plan {
    /// The status, where it changes.
    status: Option<ResourceClaim>,
    /// Whether it may go: nothing is allocated any more.
    releases: bool,
}

/// What becomes of a claim whose consumers are these from now on.
fn plan(claim: &ResourceClaim, consumers: Vec<ResourceClaimConsumerReference>) -> Plan {
    let is_held = claim.metadata.finalizers.iter().any(|own| own == FINALIZER);
    let is_free = consumers.is_empty() && is_held;
    let has_dropped = consumers.len() < claim.status.reserved_for.len();
    let mut next = claim.clone();
    next.status.reserved_for = consumers;
    if is_free && (has_dropped || claim.metadata.deletion_timestamp.is_some()) {
        next.status.allocation = None;
    }
    let was_touched = has_dropped || (is_free && claim.metadata.deletion_timestamp.is_some());
    let releases = is_held && was_touched && next.status.allocation.is_none();
    Plan { status: (next.status != claim.status).then_some(next), releases }
}

impl Claims {
    pub(super) async fn sync_claim(&self, cx: &Cx, claim: &Arc<ResourceClaim>) -> Result<(), ReconcileError> {
        let mut consumers = Vec::with_capacity(claim.status.reserved_for.len());
        for consumer in &claim.status.reserved_for {
            if self.is_alive(cx, &claim.metadata.namespace, consumer).await? {
                consumers.push(consumer.clone());
            }
        }
        let is_unused = consumers.is_empty();
        let claims = cx.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        let Plan { status, releases } = plan(claim, consumers);
        let mut current = ResourceClaim::clone(claim);
        if let Some(next) = status {
            current = claims.update_status(&next).await?;
        }
        if releases {
            current.metadata.finalizers.retain(|own| own != FINALIZER);
            claims.update(&current).await?;
        }
        if is_unused && self.has_ended(claim) {
            claims.delete_this(&claim.metadata, DeleteOptions::default()).await?;
        }
        Ok(())
    }

    /// Whether a consumer may still use a claim. Others than pods, and groups that share claims, are somebody else's to judge.
    async fn is_alive(
        &self,
        cx: &Cx,
        namespace: &str,
        consumer: &ResourceClaimConsumerReference,
    ) -> Result<bool, ReconcileError> {
        if let Some(groups) = self.groups.as_ref().filter(|_| is_group(consumer)) {
            return self.is_group_there(cx, groups, namespace, consumer).await;
        }
        if !consumer.api_group.is_empty() || consumer.resource != "pods" {
            return Ok(true);
        }
        if self.gone.lock().holds(&consumer.uid) {
            return Ok(false);
        }
        if let Some(pod) = self.pods.find(namespace, &consumer.name) {
            return Ok(pod.metadata.uid == consumer.uid && !is_done(&pod));
        }
        // The cache may not have heard of a pod that was just made.
        let live = cx.client.namespaced::<Pod>(namespace).get_opt(&consumer.name).await?;
        Ok(live.is_some_and(|pod| pod.metadata.uid == consumer.uid))
    }

    /// Whether a group is still there, with pods or without.
    async fn is_group_there(
        &self,
        cx: &Cx,
        groups: &Informer<PodGroup>,
        namespace: &str,
        consumer: &ResourceClaimConsumerReference,
    ) -> Result<bool, ReconcileError> {
        if self.gone.lock().holds(&consumer.uid) {
            return Ok(false);
        }
        if let Some(group) = groups.find(namespace, &consumer.name) {
            return Ok(group.metadata.uid == consumer.uid);
        }
        // As with pods.
        let live = cx.client.namespaced::<PodGroup>(namespace).get_opt(&consumer.name).await?;
        Ok(live.is_some_and(|group| group.metadata.uid == consumer.uid))
    }

    /// Whether a claim was made for a pod that is there and has ended. What becomes of one whose pod is gone is known anyway.
    fn has_ended(&self, claim: &ResourceClaim) -> bool {
        let Some(owner) = controller_of(&claim.metadata).filter(|owner| owner.kind == "Pod") else { return false };
        let pod = self.pods.find(&claim.metadata.namespace, &owner.name);
        pod.is_some_and(|pod| pod.metadata.uid != owner.uid || is_done(&pod))
    }
}

#[cfg(test)]
mod tests {
    use api_types::resource_v1::AllocationResult;

    use super::*;
    use crate::workloads::fixtures::at;

    fn consumer(uid: &str) -> ResourceClaimConsumerReference {
        ResourceClaimConsumerReference { resource: "pods".into(), uid: uid.into(), ..Default::default() }
    }

    #[test]
    fn claims_are_let_go_of() {
        // Held, being deleted, allocated, consumers before and after; what they are to be told, and whether it is released.
        type Row<'r> = (&'r str, (bool, bool, bool), &'r [&'r str], &'r [&'r str], Option<(usize, bool)>, bool);
        let rows: &[Row<'_>] = &[
            ("used", (true, false, true), &["a"], &["a"], None, false),
            ("one of two is gone", (true, false, true), &["a", "b"], &["b"], Some((1, true)), false),
            ("the last is gone", (true, false, true), &["a"], &[], Some((0, false)), true),
            ("the last is gone, nobody holds it", (false, false, true), &["a"], &[], Some((0, true)), false),
            ("allocated ahead of its consumers", (true, false, true), &[], &[], None, false),
            ("going, unused", (true, true, true), &[], &[], Some((0, false)), true),
            ("going, unused, deallocated", (true, true, false), &[], &[], None, true),
            ("going, used", (true, true, true), &["a"], &["a"], None, false),
        ];
        for (case, (held, going, allocated), before, after, status, releases) in rows {
            let mut claim = ResourceClaim::default();
            claim.metadata.finalizers.extend(held.then(|| FINALIZER.to_owned()));
            claim.metadata.deletion_timestamp = going.then(|| at(1));
            claim.status.allocation = allocated.then(AllocationResult::default);
            claim.status.reserved_for = before.iter().map(|uid| consumer(uid)).collect();
            let plan = plan(&claim, after.iter().map(|uid| consumer(uid)).collect());
            let told = plan.status.map(|next| (next.status.reserved_for.len(), next.status.allocation.is_some()));
            assert_eq!((told, plan.releases), (*status, *releases), "{case}");
        }
    }
}
