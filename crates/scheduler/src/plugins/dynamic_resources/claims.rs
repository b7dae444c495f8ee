//! The claims of a pod.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::resource_v1::ResourceClaim;
use component_helpers::resource_claims::{ClaimNameError, NotOwner, check_owner, of_entry};

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

impl Tracker {
    /// The claims of a pod, in its order.
    ///
    /// # Errors
    /// When one of them is not there, or not the pod's.
    pub(super) fn of_pod(&self, pod: &Pod) -> Result<Vec<Arc<ResourceClaim>>, ClaimError> {
        let mut claims = Vec::with_capacity(pod.spec.resource_claims.len());
        for own in &pod.spec.resource_claims {
            let Some(named) = of_entry(pod, own)? else { continue };
            let claim = self.get(&pod.metadata.namespace, named.name)?;
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(ClaimError::Deleting(named.name.to_owned()));
            }
            if named.is_made {
                check_owner(&claim, pod)?;
            }
            claims.push(claim);
        }
        Ok(claims)
    }
}
