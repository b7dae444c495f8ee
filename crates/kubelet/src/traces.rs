//! Traces of what the kubelet does (KEP-2831): where they go, by its configuration.
//!
//! Spans are made by whoever does the work: requests in `server::traced`, pods and collections in the engine, calls of the
//! runtime and of the API server in their clients.

use base::Direct;
use component_base::Lifecycle;
use component_base::metrics::{Desc, Metrics, Stability, Value};
use tracing_otlp::{EndpointError, Resource, Tracer, TracingSettings};

use crate::config::Plan;

const DROPPED_SPANS: Desc = Desc::new(
    "coxswain_kubelet_dropped_spans_total",
    "Spans of traces that never reached their collector.",
    Stability::Alpha,
);

/// Starts to record, where the configuration says so.
///
/// # Errors
/// The endpoint is none.
pub(crate) fn start(plan: &Plan, lifecycle: &Lifecycle, metrics: &Metrics) -> Result<Option<Tracer>, EndpointError> {
    let Some(tracing) = &plan.config.tracing else { return Ok(None) };
    let settings = settings(tracing);
    let resource =
        Resource { service: "kubelet".to_owned(), instance: String::new(), host: plan.node.hostname.clone() };
    let (clock, rng, tasks) = (lifecycle.clock(), lifecycle.rng(), lifecycle.tasks());
    let tracer = Tracer::start(&settings, resource, clock, rng, tasks, &Direct::shared())?;
    let counted = tracer.clone();
    #[expect(clippy::cast_precision_loss, reason = "a count for a metric")]
    let samples = move || vec![(Vec::new(), Value::Counter(counted.dropped() as f64))];
    metrics.computed_counters(&DROPPED_SPANS, Box::new(samples));
    Ok(Some(tracer))
}

/// What a configuration says of traces.
pub(crate) fn settings(stated: &api_types::kubelet_config_v1beta1::TracingConfiguration) -> TracingSettings {
    TracingSettings { endpoint: stated.endpoint.clone(), sampling_rate_per_million: stated.sampling_rate_per_million }
}
