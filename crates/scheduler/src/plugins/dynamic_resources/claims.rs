//! The claims of a pod.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::resource_v1::{AllocationResult, ResourceClaim, ResourceClaimConsumerReference};
use component_helpers::group_claims::{consumer, pod_alone};
use component_helpers::resource_claims::{ClaimNameError, NotOwner, check_owner, of_entry};

use super::groups::Groups;
use super::tracker::Tracker;
use crate::listers::NotFound;

/// Why a pod's claims are not there, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClaimError {
    #[error(transparent)]
    Unnamed(#[from] ClaimNameError),
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error("resourceclaim {0:?} is being deleted")]
    Deleting(String),
    #[error(transparent)]
    NotOwner(#[from] NotOwner),
}

/// A claim of a pod.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) claim: Arc<ResourceClaim>,
    /// Whom it is set aside for.
    pub(super) consumer: ResourceClaimConsumerReference,
    /// What it is about to get, as another pod of the group has chosen.
    pub(super) pending: Option<AllocationResult>,
}

impl Own {
    /// A claim that is set aside for the pod itself.
    pub(super) fn alone(claim: Arc<ResourceClaim>, pod: &Pod) -> Self {
        Self { claim, consumer: pod_alone(pod), pending: None }
    }

    /// What it has, or is about to get.
    pub(super) fn allocation(&self) -> Option<&AllocationResult> {
        self.claim.status.allocation.as_ref().or(self.pending.as_ref())
    }
}

impl Tracker {
    /// The claims of a pod, in its order.
    ///
    /// # Errors
    /// When one of them is not there, or not the pod's; or its group is not there, which may share them.
    pub(super) fn of_pod(&self, pod: &Pod, groups: &Groups) -> Result<Vec<Own>, ClaimError> {
        if pod.spec.resource_claims.is_empty() {
            return Ok(Vec::new());
        }
        let group = groups.sharing_with(pod)?;
        let mut claims = Vec::with_capacity(pod.spec.resource_claims.len());
        for own in &pod.spec.resource_claims {
            let Some(named) = of_entry(pod, own)? else { continue };
            let claim = self.get(&pod.metadata.namespace, named.name)?;
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(ClaimError::Deleting(named.name.to_owned()));
            }
            if named.is_made {
                check_owner(&claim, pod, groups.whose())?;
            }
            claims.push(Own { claim, consumer: consumer(pod, own, group.as_deref()), pending: None });
        }
        Ok(claims)
    }
}
