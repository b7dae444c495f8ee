//! The claims of a pod that has a node: assumed to be bound, written, and waited for.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use base::CancellationToken;
use client::object_reference;
use component_helpers::volumes::matching::{is_accessible_from, is_fully_bound, names_claim};
use component_helpers::volumes::names::{BOUND_BY_CONTROLLER, SELECTED_NODE, YES};
use tokio::time::Instant;

use super::node_volumes::NodeVolumes;
use super::{Assumed, VolumeBinding};
use crate::assume_cache::AssumeError;
use crate::listers::NotFound;
use crate::writer::WriteError;

/// How long it may take until a check is made again though nobody has heard of a change.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Why claims were not bound, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum BindError {
    /// They could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// They were written in vain.
    #[error("binding volumes: {0}")]
    Check(#[from] CheckError),
}

/// Why it makes no sense to wait for claims any longer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckError {
    #[error("context deadline exceeded")]
    Timeout,
    #[error("context canceled")]
    Stopped,
    #[error("pod does not exist any more: {0}")]
    PodGone(NotFound),
    #[error("failed to get node {0:?}: {1}")]
    NodeGone(String, NotFound),
    #[error("failed to check binding: {0}")]
    BindingGone(NotFound),
    #[error("failed to check provisioning pvc: {0}")]
    ClaimGone(NotFound),
    #[error("pv {volume:?} node affinity doesn't match node {node:?}: no matching NodeSelectorTerms")]
    OutOfReach { volume: String, node: String },
    #[error("ClaimRef got reset for pv {0:?}")]
    ClaimReset(String),
    #[error("selectedNode annotation reset for PVC {0:?}")]
    NodeReset(String),
    #[error("provisioning failed for PVC {0:?}")]
    Failed(String),
}

/// Whether the API server wrote one object after another; versions that cannot be read are not compared.
fn is_newer(one: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    number(one).zip(number(other)).is_some_and(|(one, other)| one > other)
}

/// The volume as it is once the claim has it.
fn given(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> PersistentVolume {
    let mut given = volume.clone();
    if !names_claim(volume, claim) {
        given.metadata.annotations.insert(BOUND_BY_CONTROLLER.to_owned(), YES.to_owned());
    }
    if !names_claim(volume, claim) || given.spec.claim_ref.as_ref().is_none_or(|named| named.uid.is_empty()) {
        given.spec.claim_ref = Some(object_reference(claim));
    }
    given
}

impl VolumeBinding {
    /// Takes the claims for bound, or for about to be provisioned.
    ///
    /// # Errors
    /// When one of them has changed since; nothing is assumed then.
    pub(super) fn assume(&self, found: &NodeVolumes, node: &str) -> Result<Assumed, AssumeError> {
        let mut assumed = Assumed { volumes: Vec::new(), claims: Vec::new() };
        let outcome = self.assume_each(found, node, &mut assumed);
        if outcome.is_err() {
            self.restore(&assumed);
        }
        outcome.map(|()| assumed)
    }

    fn assume_each(&self, found: &NodeVolumes, node: &str, assumed: &mut Assumed) -> Result<(), AssumeError> {
        for (volume, claim) in &found.matched {
            let volume = Arc::new(given(volume, claim));
            self.volumes.assume(Arc::clone(&volume))?;
            assumed.volumes.push(volume);
        }
        for provision in &found.provisioned {
            let mut claim = (*provision.claim).clone();
            claim.metadata.annotations.insert(SELECTED_NODE.to_owned(), node.to_owned());
            let claim = Arc::new(claim);
            self.claims.assume(Arc::clone(&claim))?;
            assumed.claims.push(claim);
        }
        Ok(())
    }

    /// Nothing of this is assumed any more.
    pub(super) fn restore(&self, assumed: &Assumed) {
        assumed.volumes.iter().for_each(|volume| self.volumes.restore(volume));
        assumed.claims.iter().for_each(|claim| self.claims.restore(claim));
    }

    /// Writes what was assumed, and waits until all claims are bound.
    ///
    /// # Errors
    /// When something cannot be written, or the claims are not bound before `stop` is cancelled or in time, or will not be.
    pub(super) async fn bind(
        &self,
        assumed: &Assumed,
        pod: &Pod,
        node: &str,
        stop: &CancellationToken,
    ) -> Result<(), BindError> {
        let waiter = self.waiters.enter(assumed);
        let written = self.write(assumed).await?;
        let deadline = Instant::now() + self.timeout;
        loop {
            if self.are_bound(&written, pod, node)? {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CheckError::Timeout.into());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(CheckError::Stopped.into()),
                () = waiter.told() => {}
                () = tokio::time::sleep(left.min(CHECK_PERIOD)) => {}
            }
        }
    }

    /// Writes volumes and then claims. What was not written when something went wrong is not assumed any more.
    async fn write(&self, assumed: &Assumed) -> Result<Assumed, WriteError> {
        let mut written = Assumed { volumes: Vec::new(), claims: Vec::new() };
        let outcome = self.write_each(assumed, &mut written).await;
        if outcome.is_err() {
            let Assumed { volumes, claims } = assumed;
            self.restore(&Assumed {
                volumes: volumes.iter().skip(written.volumes.len()).cloned().collect(),
                claims: claims.iter().skip(written.claims.len()).cloned().collect(),
            });
        }
        outcome.map(|()| written)
    }

    async fn write_each(&self, assumed: &Assumed, written: &mut Assumed) -> Result<(), WriteError> {
        for volume in &assumed.volumes {
            written.volumes.push(Arc::new(self.objects.update_volume(volume).await?));
        }
        for claim in &assumed.claims {
            written.claims.push(Arc::new(self.objects.update_claim(claim).await?));
        }
        Ok(())
    }

    /// Whether all claims are bound by now.
    fn are_bound(&self, written: &Assumed, pod: &Pod, node: &str) -> Result<bool, CheckError> {
        let meta = &pod.metadata;
        self.pods.get(&meta.namespace, &meta.name).map_err(CheckError::PodGone)?;
        let node = self.nodes.get("", node).map_err(|error| CheckError::NodeGone(node.to_owned(), error))?;
        for volume in &written.volumes {
            if !self.is_given(volume, &node)? {
                return Ok(false);
            }
        }
        for claim in &written.claims {
            if !self.is_provisioned(claim, &node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the claim of a volume that was written is bound.
    fn is_given(&self, written: &PersistentVolume, node: &Node) -> Result<bool, CheckError> {
        let name = &written.metadata.name;
        let volume = self.volumes.watched().get("", name).map_err(CheckError::BindingGone)?;
        let claim = written.spec.claim_ref.as_ref().map(|named| (named.namespace.as_str(), named.name.as_str()));
        let (namespace, claim) = claim.unwrap_or_default();
        let claim = self.claims.watched().get(namespace, claim).map_err(CheckError::BindingGone)?;
        if is_newer(&written.metadata.resource_version, &volume.metadata.resource_version) {
            return Ok(false);
        }
        check_reach(&volume, node)?;
        if volume.spec.claim_ref.as_ref().is_none_or(|named| named.uid.is_empty()) {
            return Err(CheckError::ClaimReset(name.clone()));
        }
        Ok(is_fully_bound(&claim))
    }

    /// Whether the volume of a claim was made and bound.
    fn is_provisioned(&self, written: &PersistentVolumeClaim, node: &Node) -> Result<bool, CheckError> {
        let meta = &written.metadata;
        let claim = self.claims.watched().get(&meta.namespace, &meta.name).map_err(CheckError::ClaimGone)?;
        if is_newer(&meta.resource_version, &claim.metadata.resource_version) {
            return Ok(false);
        }
        if claim.metadata.annotations.is_empty() {
            return Err(CheckError::NodeReset(meta.name.clone()));
        }
        if claim.metadata.annotations.get(SELECTED_NODE) != Some(&node.metadata.name) {
            return Err(CheckError::Failed(meta.name.clone()));
        }
        if !claim.spec.volume_name.is_empty() {
            match self.volumes.watched().find("", &claim.spec.volume_name) {
                Some(volume) => check_reach(&volume, node)?,
                None => return Ok(false),
            }
        }
        Ok(is_fully_bound(&claim))
    }
}

fn check_reach(volume: &PersistentVolume, node: &Node) -> Result<(), CheckError> {
    if is_accessible_from(volume, &node.metadata.labels) {
        return Ok(());
    }
    Err(CheckError::OutOfReach { volume: volume.metadata.name.clone(), node: node.metadata.name.clone() })
}
