//! Devices that are not ready at once: a pod is bound once the conditions of its devices hold (KEP-5007).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::Condition;
use api_machinery::time::Time;
use api_types::core_v1::Pod;
use api_types::resource_v1::{AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim};
use base::CancellationToken;
use tokio::time::Instant;

use super::DynamicResources;
use crate::listers::NotFound;
use crate::writer::{PodEvent, Severity};

/// How long it may take until a look is taken again though nobody has heard of a change.
const LOOK_PERIOD: Duration = Duration::from_secs(5);

/// Why a pod's devices are not ready, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotReady {
    #[error("device binding failed: claim={claim}, reason={reason}, message={message:?}")]
    Failed { claim: String, reason: String, message: String },
    #[error("device binding timeout: claim={0}")]
    Late(String),
    #[error("device binding timeout: context deadline exceeded")]
    Timeout,
    #[error("device binding timeout: context canceled")]
    Stopped,
    #[error(transparent)]
    Gone(#[from] NotFound),
}

/// The devices of a claim that wait for conditions, each with what its driver tells of it.
fn waiting(
    claim: &ResourceClaim,
) -> impl Iterator<Item = (&DeviceRequestAllocationResult, Option<&AllocatedDeviceStatus>)> {
    let results = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    results.filter(|result| !result.binding_conditions.is_empty()).map(|result| {
        let is_of = |status: &&AllocatedDeviceStatus| {
            status.driver == result.driver
                && status.pool == result.pool
                && status.device == result.device
                && status.share_id == result.share_id
        };
        (result, claim.status.devices.iter().find(is_of))
    })
}

/// Whether any device of the claim waits for conditions at all.
pub(super) fn has_conditions(claim: &ResourceClaim) -> bool {
    waiting(claim).next().is_some()
}

fn holding<'a>(status: Option<&'a AllocatedDeviceStatus>, name: &str) -> Option<&'a Condition> {
    status?.conditions.iter().find(|own| own.type_ == name && own.status == "True")
}

/// Whether all devices of a claim are ready. `is_late` tells whether a claim that was allocated at a time has waited too
/// long.
///
/// # Errors
/// When one has failed, or is not ready in time.
pub(super) fn are_ready(claim: &ResourceClaim, is_late: impl Fn(&Time) -> bool) -> Result<bool, NotReady> {
    let mut all = true;
    for (result, status) in waiting(claim) {
        let failed = result.binding_failure_conditions.iter().find_map(|name| holding(status, name));
        if let Some(failed) = failed {
            let (claim, reason) = (claim.metadata.name.clone(), failed.reason.clone());
            return Err(NotReady::Failed { claim, reason, message: failed.message.clone() });
        }
        all &= result.binding_conditions.iter().all(|name| holding(status, name).is_some());
    }
    let allocated = claim.status.allocation.as_ref().and_then(|own| own.allocation_timestamp.as_ref());
    if !all && allocated.is_some_and(is_late) {
        return Err(NotReady::Late(claim.metadata.name.clone()));
    }
    Ok(all)
}

impl DynamicResources {
    /// Whether the devices of a claim have failed, or are not ready after so long, so that the pod needs others.
    pub(super) fn is_lost(&self, claim: &ResourceClaim) -> bool {
        self.features.binding_conditions && are_ready(claim, |since| self.is_late(since)).is_err()
    }

    fn is_late(&self, since: &Time) -> bool {
        Time::from(self.clock.wall()).since(*since) >= self.binding_timeout
    }

    /// Waits until all devices of the claims are ready.
    ///
    /// # Errors
    /// When one of them has failed, or is not ready before `stop` is cancelled or in time.
    pub(super) async fn wait_ready(
        &self,
        claims: &[Arc<ResourceClaim>],
        pod: &Pod,
        node: &str,
        stop: &CancellationToken,
    ) -> Result<(), NotReady> {
        let current = |claim: &Arc<ResourceClaim>| self.claims.get(&claim.metadata.namespace, &claim.metadata.name);
        let known = claims.iter().map(current).collect::<Result<Vec<_>, _>>()?;
        if !self.features.binding_conditions || !known.iter().any(|claim| has_conditions(claim)) {
            return Ok(());
        }
        self.events.event(&PodEvent {
            scheduler: &pod.spec.scheduler_name,
            about: pod,
            related: None,
            severity: Severity::Normal,
            reason: "BindingConditionsPending",
            action: "Scheduling",
            note: format!("waiting for binding conditions for device on node {node}"),
        });
        let began = Instant::now();
        let outcome = self.wait_for_conditions(claims, stop).await;
        self.count_wait(&known, &pod.spec.scheduler_name, &outcome, began.elapsed());
        outcome
    }

    /// Counts for each driver how the wait for its devices ended.
    fn count_wait(&self, known: &[Arc<ResourceClaim>], profile: &str, outcome: &Result<(), NotReady>, took: Duration) {
        let status = match outcome {
            Ok(()) => "success",
            Err(NotReady::Timeout | NotReady::Late(_)) => "timeout",
            Err(_) => "failure",
        };
        let drivers: BTreeSet<&str> =
            known.iter().flat_map(|claim| waiting(claim)).map(|(result, _)| result.driver.as_str()).collect();
        for driver in drivers {
            self.metrics.conditions_awaited(profile, driver, status, took);
        }
    }

    /// Looks at the claims whenever one changes, until their devices are ready.
    async fn wait_for_conditions(
        &self,
        claims: &[Arc<ResourceClaim>],
        stop: &CancellationToken,
    ) -> Result<(), NotReady> {
        let current = |claim: &Arc<ResourceClaim>| self.claims.get(&claim.metadata.namespace, &claim.metadata.name);
        let mut news = self.claims.news();
        let deadline = Instant::now() + self.binding_timeout;
        loop {
            let mut all = true;
            for claim in claims {
                all &= are_ready(&*current(claim)?, |since| self.is_late(since))?;
            }
            if all {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NotReady::Timeout);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(NotReady::Stopped),
                _ = news.changed() => {}
                () = tokio::time::sleep(left.min(LOOK_PERIOD)) => {}
            }
        }
    }
}
