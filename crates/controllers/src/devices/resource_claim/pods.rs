//! What a pod needs done: claims made from its templates and told of in its status, and, once it has a node, set aside for it.

use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::ResourceClaim;
use api_types::scheduling_v1alpha2::PodGroup;
use component_helpers::group_claims::{consumer, is_shared};
use controller::{Cx, ReconcileError};

use super::Claims;
use super::holder::Holder;
use super::making::telling;
use super::naming::Named;

impl Claims {
    /// Whether a pod that is not going may need something done.
    pub(super) fn may_need_work(&self, pod: &Pod) -> bool {
        pod.metadata.deletion_timestamp.is_none()
            && pod.spec.resource_claims.iter().any(|entry| match Named::of(pod, entry) {
                Named::Unknown | Named::ToMake { .. } => true,
                Named::Nothing => false,
                Named::Claim { name, is_made } => match self.claims.find(&pod.metadata.namespace, name) {
                    None => is_made,
                    Some(claim) if is_made && !self.whose.is_made_for(&claim, pod) => false,
                    Some(claim) => {
                        !pod.spec.node_name.is_empty()
                            && claim.status.allocation.is_some()
                            && !self.whose.is_reserved_for(&claim, pod)
                    }
                },
            })
    }

    pub(super) async fn sync_pod(&self, cx: &Cx, pod: &Pod) -> Result<(), ReconcileError> {
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        // When its group comes, the pod is looked at again.
        let Ok(group) = self.group_of(pod) else { return Ok(()) };
        let mut made = Vec::new();
        for entry in &pod.spec.resource_claims {
            let ensured = match group.as_deref().filter(|group| is_shared(entry, group)) {
                Some(group) => Ok(self.shared(pod, entry, group)),
                None => self.ensure(cx, Holder::Pod(pod), entry.into()).await,
            };
            match ensured {
                Ok(claim) => made.extend(claim.map(|claim| (entry.name.clone(), claim))),
                Err(error) => return Err(Holder::Pod(pod).not_made(cx, &entry.name, &error)),
            }
        }
        if !made.is_empty() {
            let (patch, options) = telling(Holder::Pod(pod), &made);
            let pods = cx.client.namespaced::<Pod>(&pod.metadata.namespace);
            pods.patch_subresource(&pod.metadata.name, "status", &patch, &options).await?;
        }
        if pod.spec.node_name.is_empty() { Ok(()) } else { self.reserve_all(cx, pod, group.as_deref(), &made).await }
    }

    /// The claim of the group that an entry stands for, where it was made and the pod's status does not tell of it. Where it was
    /// not, the pod waits for it.
    fn shared(&self, pod: &Pod, entry: &PodResourceClaim, group: &PodGroup) -> Option<String> {
        match Named::of(pod, entry) {
            Named::ToMake { .. } => {}
            Named::Claim { name, is_made: true } => {
                let known = self.claims.find(&pod.metadata.namespace, name);
                if known.is_some_and(|claim| self.whose.is_made_for(&claim, pod)) {
                    return None;
                }
            }
            _ => return None,
        }
        self.made_for(Holder::Group(group), &entry.name).map(|claim| claim.metadata.name.clone())
    }

    /// Sets the claims of a pod that has a node aside for it, or for its group: whoever gave it the node did not.
    async fn reserve_all(
        &self,
        cx: &Cx,
        pod: &Pod,
        group: Option<&PodGroup>,
        made: &[(String, String)],
    ) -> Result<(), ReconcileError> {
        for entry in &pod.spec.resource_claims {
            let new = made.iter().find(|(own, _)| *own == entry.name).map(|(_, claim)| (claim.as_str(), true));
            let (name, is_made) = match (new, Named::of(pod, entry)) {
                (Some(new), _) => new,
                (None, Named::Claim { name, is_made }) => (name, is_made),
                _ => continue,
            };
            let Some(claim) = self.claims.find(&pod.metadata.namespace, name) else { return Ok(()) };
            if is_made && !self.whose.is_made_for(&claim, pod) {
                let text = format!("ResourceClaim {name:?} was not created for pod {:?}", pod.metadata.name);
                return Err(ReconcileError::failed(text));
            }
            if claim.status.allocation.is_none() || self.whose.is_reserved_for(&claim, pod) {
                continue;
            }
            let mut next = ResourceClaim::clone(&claim);
            next.status.reserved_for.push(consumer(pod, entry, group));
            cx.client.namespaced::<ResourceClaim>(&pod.metadata.namespace).update_status(&next).await?;
        }
        Ok(())
    }
}
