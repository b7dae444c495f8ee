//! The allocators of Services set right from time to time: what a crash left behind is found and freed, and what only the
//! owner of a Service can set right is told by an event on it.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use client::{EventType, SeriesEvent, SeriesRecorder};
use registry::{RepairAction, RepairFinding};

use super::retry;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::own_request::server_request;

const WHAT: &str = "Comparing the allocated addresses and ports with the Services";
/// How often the allocators are compared with the Services.
const PERIOD: Duration = Duration::from_secs(3 * 60);
/// Pause after a comparison that failed.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// How long the first comparison may take; then the server ends.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// The hook `start-service-ip-repair-controllers`.
pub(super) struct ServiceRepair;

#[async_trait]
impl PostStartHook for ServiceRepair {
    fn name(&self) -> &'static str {
        "start-service-ip-repair-controllers"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let recorders = Recorders::new(cx);
        let first = async {
            while let Err(error) = pass(cx, &recorders).await {
                tracing::warn!(%error, "{WHAT} failed");
                tokio::time::sleep(RETRY_PERIOD).await;
            }
        };
        if tokio::time::timeout(FIRST_LIMIT, first).await.is_err() {
            return Err(HookError::Late("unable to perform initial IP and Port allocation check"));
        }
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("service-repair", async move {
            tokio::time::sleep(PERIOD).await;
            retry::repeat(WHAT, PERIOD, RETRY_PERIOD, || pass(&context, &recorders)).await;
        });
        Ok(())
    }
}

/// Who tells of addresses, and who of ports.
struct Recorders {
    addresses: SeriesRecorder,
    ports: SeriesRecorder,
}

impl Recorders {
    fn new(cx: &ApiCx) -> Self {
        let recorder = |component: &str| SeriesRecorder::new(cx.loopback(), component, "");
        Self {
            addresses: recorder("ipallocator-repair-controller"),
            ports: recorder("portallocator-repair-controller"),
        }
    }

    fn tell(&self, finding: RepairFinding) {
        let recorder = if finding.action == RepairAction::PortAllocation { &self.ports } else { &self.addresses };
        recorder.event(SeriesEvent {
            regarding: finding.regarding,
            related: None,
            kind: EventType::Warning,
            reason: finding.reason.to_owned(),
            action: finding.action.as_str().to_owned(),
            note: finding.message,
        });
    }
}

/// One comparison; what it finds is logged and told.
async fn pass(cx: &Arc<ApiCx>, recorders: &Recorders) -> Result<(), ApiError> {
    let report = cx.registry().repair_services(&server_request(cx.registry().rule_context(), "")).await?;
    if report.freed > 0 {
        tracing::info!(count = report.freed, "Freed addresses and ports that no Service has");
    }
    for finding in report.findings {
        tracing::warn!(
            namespace = finding.regarding.namespace,
            name = finding.regarding.name,
            reason = finding.reason,
            message = finding.message,
            "A Service and the allocators disagree"
        );
        recorders.tell(finding);
    }
    Ok(())
}
