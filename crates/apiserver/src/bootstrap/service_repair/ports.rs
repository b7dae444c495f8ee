//! Node ports compared with the Services every few minutes.

use std::sync::Arc;

use api_machinery::status::ApiError;
use client::SeriesRecorder;

use super::super::retry;
use super::{PERIOD, RETRY_PERIOD, tell};
use crate::cx::ApiCx;
use crate::own_request::server_request;

pub(super) struct Keeper {
    cx: Arc<ApiCx>,
    recorder: SeriesRecorder,
}

impl Keeper {
    pub(super) fn new(cx: &Arc<ApiCx>) -> Self {
        let recorder = SeriesRecorder::new(cx.loopback(), "portallocator-repair-controller", "");
        Self { cx: Arc::clone(cx), recorder }
    }

    /// One comparison; what it finds is counted and told.
    pub(super) async fn pass(&self) -> Result<(), ApiError> {
        let (registry, metrics) = (self.cx.registry(), &self.cx.metrics.repair);
        let request = server_request(registry.rule_context(), "");
        let report = registry.repair_ports(&request).await.inspect_err(|_| metrics.ports_failed())?;
        metrics.ports(&report);
        if report.freed > 0 {
            tracing::info!(count = report.freed, "Freed node ports that no Service has");
        }
        for finding in report.findings {
            tell(&self.recorder, finding);
        }
        Ok(())
    }
}

/// Goes on comparing for as long as the server runs.
pub(super) fn spawn(keeper: Keeper, cx: &ApiCx) {
    cx.tasks().spawn_cancellable("node-port-repair", async move {
        tokio::time::sleep(PERIOD).await;
        retry::repeat("Comparing node ports with the Services", PERIOD, RETRY_PERIOD, || keeper.pass()).await;
    });
}
