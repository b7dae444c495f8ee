//! What is written to claims: that they have devices and for whom; and that they have none, or are nobody's any more.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::Pod;
use api_types::resource_v1::{AllocationResult, ResourceClaim};
use base::CancellationToken;
use component_helpers::resource_claims::is_reserved_for;

use super::claims::Own;
use super::{DynamicResources, Promised};
use crate::pod_info::PodInfo;
use crate::writer::{ObjectWriter, WriteError};

/// Keeps a claim that has devices from going before they are given back.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// How often a claim is written that others write, too, and how long to wait between.
const TRIES: usize = 5;
const DELAY: Duration = Duration::from_millis(10);
/// How long the watch may take to show a claim that was made.
const LONGEST_UNSEEN: Duration = Duration::from_secs(120);

/// Why a claim was not written, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimWriteError {
    #[error("claim {0} got deleted in the meantime")]
    Deleted(String),
    #[error("claim {0} got allocated elsewhere in the meantime")]
    AllocatedElsewhere(String),
    #[error("claim {0} got deallocated elsewhere in the meantime")]
    DeallocatedElsewhere(String),
    #[error("get updated claim {claim} after conflict: {source}")]
    Read { claim: String, source: WriteError },
    #[error("add finalizer to claim {claim}: {source}")]
    Finalizer { claim: String, source: WriteError },
    #[error("create claim for extended resources {claim}: {source}")]
    Create { claim: String, source: WriteError },
    #[error("claim {0} was made and does not show")]
    Unseen(String),
    #[error("update pod {pod} ExtendedResourceClaimStatus: {source}")]
    PodStatus { pod: String, source: WriteError },
    #[error("updating pod {pod} NodeAllocatableResourceClaimStatuses: {source}")]
    NodeAllocatable { pod: String, source: WriteError },
    #[error("add {what} to claim {claim}: {source}")]
    Status { claim: String, what: &'static str, source: WriteError },
}

impl ClaimWriteError {
    /// Whether somebody else has written the claim, so that it makes sense to look at it again.
    fn is_conflict(&self) -> bool {
        let (Self::Finalizer { source, .. } | Self::Status { source, .. }) = self else { return false };
        matches!(source, WriteError::Conflict(_))
    }
}

fn full_name(claim: &ResourceClaim) -> String {
    format!("{}/{}", claim.metadata.namespace, claim.metadata.name)
}

/// Deletes a claim, which its finalizer does not hold up: nobody has its devices.
async fn delete(objects: &dyn ObjectWriter, claim: &ResourceClaim) -> Result<(), WriteError> {
    let mut free = claim.clone();
    free.metadata.finalizers.retain(|own| own != FINALIZER);
    let is_held = free.metadata.finalizers != claim.metadata.finalizers;
    let deleted = async {
        if is_held {
            free = objects.update_device_claim(&free).await?;
        }
        objects.delete_device_claim(&free).await
    };
    match deleted.await {
        Ok(()) | Err(WriteError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl DynamicResources {
    /// Gives a claim its devices, where it has none, and reserves it for the pod, or for its group.
    ///
    /// # Errors
    /// When it cannot be written, or is not what it was.
    pub(super) async fn bind(
        &self,
        own: &Own,
        allocation: Option<&AllocationResult>,
        pod: &Pod,
    ) -> Result<(), ClaimWriteError> {
        let claim = &own.claim;
        let mut newest = (**claim).clone();
        let mut tries = 1;
        let written = loop {
            match self.write(newest, own, allocation, pod).await {
                Ok(written) => break written,
                Err(error) if error.is_conflict() && tries < TRIES => {
                    tokio::time::sleep(DELAY).await;
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
            let read = self.objects.device_claim(&claim.metadata.namespace, &claim.metadata.name).await;
            newest = read.map_err(|source| ClaimWriteError::Read { claim: full_name(claim), source })?;
        };
        self.claims.put_written(written);
        Ok(())
    }

    /// Makes the claim for the extended resources of a pod, gives it what was promised, and tells of it in the pod's status.
    ///
    /// # Errors
    /// When one of these cannot be written, or `stop` is cancelled before the claim shows.
    pub(super) async fn make(
        &self,
        promised: &Promised,
        pod: &Pod,
        stop: &CancellationToken,
    ) -> Result<ResourceClaim, ClaimWriteError> {
        let claim = promised.special.to_be_made(pod);
        let made = self.objects.create_device_claim(&claim).await;
        self.metrics.claim_made(made.is_ok());
        let made = made.map_err(|source| ClaimWriteError::Create {
            claim: format!("{}/{}", claim.metadata.namespace, claim.metadata.generate_name),
            source,
        })?;
        *promised.made.lock() = Some(made.clone());
        let is_shown = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            is_shown = self.claims.wait_shown(&made, LONGEST_UNSEEN) => is_shown,
        };
        if !is_shown {
            return Err(ClaimWriteError::Unseen(full_name(&made)));
        }
        let own = Own::alone(Arc::new(made.clone()), pod);
        self.bind(&own, Some(&promised.allocation), pod).await?;
        self.claims.end_promise(&pod.metadata.uid);
        let mut status = pod.status.clone();
        status.extended_resource_claim_status = Some(promised.special.status(&made));
        let written = self.writer.patch_status(pod, &status).await;
        let pod = || format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        written.map_err(|source| ClaimWriteError::PodStatus { pod: pod(), source })?;
        Ok(made)
    }

    /// Deletes a claim that was made for extended resources.
    ///
    /// # Errors
    /// When it cannot be written. One that is gone is fine.
    pub(super) async fn delete(&self, claim: &ResourceClaim) -> Result<(), WriteError> {
        delete(&*self.objects, claim).await
    }

    /// The same, beside; what has become of the claim since it was made counts.
    pub(super) fn delete_beside(&self, made: ResourceClaim) {
        let (objects, claims) = (Arc::clone(&self.objects), Arc::clone(&self.claims));
        self.tasks.spawn_cancellable("delete-claim", async move {
            let newest = claims.get(&made.metadata.namespace, &made.metadata.name);
            let newest = newest.map(|claim| (*claim).clone()).unwrap_or(made);
            if let Err(error) = delete(&*objects, &newest).await {
                tracing::error!(%error, claim = full_name(&newest), "Deleting a claim for extended resources failed");
            }
        });
    }

    async fn write(
        &self,
        mut claim: ResourceClaim,
        own: &Own,
        allocation: Option<&AllocationResult>,
        pod: &Pod,
    ) -> Result<ResourceClaim, ClaimWriteError> {
        let name = full_name(&claim);
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(ClaimWriteError::Deleted(name));
        }
        let is_reserved = is_reserved_for(&claim, &own.consumer.uid);
        let is_shared = self.has_what_group_chose(&claim, allocation, pod);
        if is_shared && is_reserved {
            return Ok(claim);
        }
        match (allocation, &claim.status.allocation) {
            (Some(_), Some(_)) if !is_shared => return Err(ClaimWriteError::AllocatedElsewhere(name)),
            (None, None) => return Err(ClaimWriteError::DeallocatedElsewhere(name)),
            _ => {}
        }
        if allocation.is_some() && !claim.metadata.finalizers.iter().any(|own| own == FINALIZER) {
            claim.metadata.finalizers.push(FINALIZER.to_owned());
            let written = self.objects.update_device_claim(&claim).await;
            claim = written.map_err(|source| ClaimWriteError::Finalizer { claim: name.clone(), source })?;
        }
        if claim.status.allocation.is_none() {
            claim.status.allocation = allocation.cloned();
        }
        if self.features.binding_conditions
            && let Some(allocation) = &mut claim.status.allocation
        {
            // Since when its devices have been waited for.
            allocation.allocation_timestamp.get_or_insert_with(|| Time::from(self.clock.wall()));
        }
        if !is_reserved {
            claim.status.reserved_for.push(own.consumer.clone());
        }
        let what = if allocation.is_some() { "allocation and reservation" } else { "reservation" };
        let written = self.objects.update_device_claim_status(&claim).await;
        written.map_err(|source| ClaimWriteError::Status { claim: name, what, source })
    }

    /// Takes the devices of a claim away that nobody uses where they are.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) async fn deallocate(&self, claim: &ResourceClaim) -> Result<(), WriteError> {
        let mut free = claim.clone();
        free.status.allocation = None;
        free.status.reserved_for.clear();
        free.status.devices.clear();
        let written = self.objects.update_device_claim_status(&free).await?;
        self.claims.put_written(written);
        Ok(())
    }

    /// A claim that was reserved for a pod, or for a group that has no other pod, is so no more; its devices stay. That is
    /// written beside.
    pub(super) fn release(&self, own: &Own, pod: &PodInfo) {
        let known = self.claims.get(&own.claim.metadata.namespace, &own.claim.metadata.name).ok();
        let is_held =
            |claim: &Arc<ResourceClaim>| claim.status.allocation.is_some() && is_reserved_for(claim, &own.consumer.uid);
        let Some(claim) = known.filter(is_held).filter(|_| self.may_release(own, &pod.pod)) else { return };
        let (objects, claims, uid) = (Arc::clone(&self.objects), Arc::clone(&self.claims), own.consumer.uid.clone());
        self.tasks.spawn_cancellable("release-claim", async move {
            match objects.release_device_claim(&claim, &uid).await {
                Ok(written) => claims.put_written(written),
                Err(error) => tracing::error!(%error, claim = full_name(&claim), "Unreserving a claim failed"),
            }
        });
    }
}
