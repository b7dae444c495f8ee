//! Making the audit log: its policy, and where events go.

use std::sync::Arc;

use async_trait::async_trait;
use audit::{AuditMetrics, Auditor, Backend, Finished, LogFile, LogSink, Policy, Sink, SinkError, event_list};
use client::{ClientCx, Webhook, WebhookRetry};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use egress::EgressSelector;

use crate::build_error::BuildError;
use crate::config::{AuditConfig, AuditWebhookConfig};

/// Batches that are on their way to the webhook at a time, tries included. Upstream has no such bound: a webhook that is
/// down for a minute would hold more than half a million events.
const CONCURRENT_BATCHES: u32 = 32;

/// The audit log, where there is to be one.
pub(super) fn auditor(
    config: Option<&AuditConfig>,
    lifecycle: &Lifecycle,
    egress: &EgressSelector,
    metrics: &Metrics,
) -> Result<Option<Arc<Auditor>>, BuildError> {
    let metrics = AuditMetrics::new(metrics);
    let Some(AuditConfig { policy, log, webhook }) = config else { return Ok(None) };
    let policy = Policy::load(policy)?;
    let (clock, tasks) = (lifecycle.clock(), lifecycle.tasks());
    let mut backends = Vec::new();
    if let Some(log) = log {
        let file = LogFile::new(&log.path, log.rotation);
        let sink = Arc::new(LogSink::new(file, log.format, Arc::clone(clock), tasks.clone()));
        backends.push(Backend::start(sink, log.delivery, &metrics, clock, tasks));
    }
    if let Some(webhook) = webhook {
        let sink = Arc::new(WebhookSink::new(webhook, lifecycle, egress)?);
        backends.push(Backend::start(sink, webhook.delivery, &metrics, clock, tasks));
    }
    Ok(Some(Auditor::new(policy, backends, metrics, Arc::clone(clock))))
}

/// A service that takes lists of events.
struct WebhookSink(Webhook);

impl WebhookSink {
    fn new(own: &AuditWebhookConfig, lifecycle: &Lifecycle, egress: &EgressSelector) -> Result<Self, BuildError> {
        let failed = |error: client::ConfigError| {
            let why = error.to_string();
            BuildError::Webhook { what: "initializing audit webhook", why }
        };
        let config = Webhook::config(&own.kubeconfig, "kube-apiserver").map_err(failed)?;
        let tasks = lifecycle.tasks().child("audit-webhook");
        let cx = ClientCx::of(lifecycle, tasks).through(Arc::clone(egress.control_plane()));
        Webhook::new(config, None, own.first_delay, WebhookRetry::Any, cx).map(Self).map_err(failed)
    }
}

#[async_trait]
impl Sink for WebhookSink {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn concurrency(&self) -> u32 {
        CONCURRENT_BATCHES
    }

    fn keeps_batches(&self) -> bool {
        true
    }

    async fn send(&self, events: &[Arc<Finished>]) -> Result<(), SinkError> {
        let sent = self.0.ask(event_list(events).into(), |_, _| {}).await;
        sent.map(drop).map_err(|error| SinkError::Remote(error.into()))
    }
}
