//! The allocators of Services set right from time to time: what a crash left behind is found and freed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::cx::{ApiCx, server_request};
use crate::hooks::PostStartHook;

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

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), String> {
        let first = async {
            while !pass(cx).await {
                tokio::time::sleep(RETRY_PERIOD).await;
            }
        };
        if tokio::time::timeout(FIRST_LIMIT, first).await.is_err() {
            return Err("unable to perform initial IP and Port allocation check".to_owned());
        }
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("service-repair", async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                pass(&context).await;
            }
        });
        Ok(())
    }
}

/// One comparison; what it finds is logged. Whether it could be made.
async fn pass(cx: &Arc<ApiCx>) -> bool {
    let report = match cx.registry().repair_services(&server_request(cx.clock(), "")).await {
        Ok(report) => report,
        Err(error) => {
            tracing::warn!(%error, "Comparing the allocated addresses and ports with the Services failed");
            return false;
        }
    };
    if report.freed > 0 {
        tracing::info!(count = report.freed, "Freed addresses and ports that no Service has");
    }
    for finding in report.findings {
        tracing::warn!(
            namespace = finding.namespace,
            name = finding.name,
            reason = finding.reason,
            message = finding.message,
            "A Service and the allocators disagree"
        );
    }
    true
}
