//! The claims of a pod.

use std::sync::Arc;

use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::ResourceClaim;
use component_helpers::owners::is_controlled_by;

use super::tracker::Tracker;
use crate::listers::NotFound;

/// Why a pod's claims are not there, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClaimError {
    #[error("pod \"{0}\": ResourceClaim not created yet")]
    NotCreated(String),
    #[error("pod \"{pod}\", spec.resourceClaim {claim:?}: none of the supported fields are set")]
    Unsupported { pod: String, claim: String },
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error("resourceclaim {0:?} is being deleted")]
    Deleting(String),
    #[error("ResourceClaim {namespace}/{claim} was not created for Pod {namespace}/{pod} (Pod is not owner)")]
    NotOwner { namespace: String, claim: String, pod: String },
}

/// The name of a pod's claim, and whether the pod must own it; none where it needs none.
fn name_of<'a>(pod: &'a Pod, own: &'a PodResourceClaim) -> Result<Option<(&'a str, bool)>, ClaimError> {
    let full_name = || format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
    if let Some(name) = &own.resource_claim_name {
        return Ok(Some((name, false)));
    }
    if own.resource_claim_template_name.is_none() {
        return Err(ClaimError::Unsupported { pod: full_name(), claim: own.name.clone() });
    }
    let made = pod.status.resource_claim_statuses.iter().find(|status| status.name == own.name);
    let made = made.ok_or_else(|| ClaimError::NotCreated(full_name()))?;
    Ok(made.resource_claim_name.as_deref().map(|name| (name, true)))
}

/// Whether a claim is reserved for a pod.
pub(super) fn is_reserved_for(claim: &ResourceClaim, pod_uid: &str) -> bool {
    claim.status.reserved_for.iter().any(|consumer| consumer.uid == pod_uid)
}

impl Tracker {
    /// The claims of a pod, in its order.
    ///
    /// # Errors
    /// When one of them is not there, or not the pod's.
    pub(super) fn of_pod(&self, pod: &Pod) -> Result<Vec<Arc<ResourceClaim>>, ClaimError> {
        let mut claims = Vec::with_capacity(pod.spec.resource_claims.len());
        for own in &pod.spec.resource_claims {
            let Some((name, must_own)) = name_of(pod, own)? else { continue };
            let claim = self.get(&pod.metadata.namespace, name)?;
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(ClaimError::Deleting(name.to_owned()));
            }
            if must_own && !is_controlled_by(&claim.metadata, &pod.metadata.uid) {
                return Err(ClaimError::NotOwner {
                    namespace: pod.metadata.namespace.clone(),
                    claim: name.to_owned(),
                    pod: pod.metadata.name.clone(),
                });
            }
            claims.push(claim);
        }
        Ok(claims)
    }
}
