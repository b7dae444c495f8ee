//! The allocators of Services set right: what a crash left behind is found and freed, and what only the owner of a Service
//! can set right is told by an event on it.

mod addresses;
mod ports;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client::{EventType, SeriesEvent, SeriesRecorder};
use registry::RepairFinding;

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// How often the allocators are compared with all Services.
const PERIOD: Duration = Duration::from_secs(3 * 60);
/// Pause after a comparison that failed.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// The same before the first that works, to begin with: the networks of Services may not be there yet.
const FIRST_RETRY_PERIOD: Duration = Duration::from_millis(50);
/// How long the first comparisons may take; then the server ends.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// The hook `start-service-ip-repair-controllers`.
pub(super) struct ServiceRepair;

#[async_trait]
impl PostStartHook for ServiceRepair {
    fn name(&self) -> &'static str {
        "start-service-ip-repair-controllers"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let (addresses, ports) = (Arc::new(addresses::Keeper::new(cx)), ports::Keeper::new(cx));
        let first = async { tokio::join!(until_it_works(|| addresses.pass()), until_it_works(|| ports.pass())) };
        if tokio::time::timeout(FIRST_LIMIT, first).await.is_err() {
            return Err(HookError::Late("unable to perform initial IP and Port allocation check"));
        }
        addresses::spawn(&addresses, cx);
        ports::spawn(ports, cx);
        Ok(())
    }
}

async fn until_it_works<F, A, E>(pass: F)
where
    F: Fn() -> A,
    A: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut pause = FIRST_RETRY_PERIOD;
    while let Err(error) = pass().await {
        tracing::debug!(%error, "Comparing the allocators with the Services failed");
        tokio::time::sleep(pause).await;
        pause = RETRY_PERIOD.min(pause * 2);
    }
}

/// Logs what was found, and tells it by an event.
fn tell(recorder: &SeriesRecorder, finding: RepairFinding) {
    tracing::warn!(
        namespace = finding.regarding.namespace,
        name = finding.regarding.name,
        reason = finding.reason.as_str(),
        message = finding.message,
        "A Service and the allocators disagree"
    );
    recorder.event(SeriesEvent {
        regarding: finding.regarding,
        related: None,
        kind: EventType::Warning,
        reason: finding.reason.as_str().to_owned(),
        action: finding.action.as_str().to_owned(),
        note: finding.message,
    });
}
