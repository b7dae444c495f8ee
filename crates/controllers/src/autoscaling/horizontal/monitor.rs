//! The `horizontal_pod_autoscaler_controller_*` metrics, with upstream's names, labels and buckets.

use std::time::Duration;

use api_types::autoscaling_v2::HorizontalPodAutoscaler;
use client::Change;
use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};

const LABELS: &[&str] = &["action", "error"];
const METRIC_LABELS: &[&str] = &["action", "error", "metric_type"];
const SECONDS: &[f64] = &exponential::<15>(0.001, 2.0);

const RECONCILIATIONS: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_reconciliations_total",
    "Looks at autoscalers, by what they led to.",
    Stability::Beta,
)
.labels(LABELS);
const RECONCILIATION_SECONDS: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
    "How long looking at an autoscaler took, by what it led to.",
    Stability::Beta,
)
.labels(LABELS)
.buckets(SECONDS);
const COMPUTATIONS: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_metric_computation_total",
    "Metrics of autoscalers that were computed, by what they wanted.",
    Stability::Beta,
)
.labels(METRIC_LABELS);
const COMPUTATION_SECONDS: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
    "How long computing a metric took, by what it wanted.",
    Stability::Beta,
)
.labels(METRIC_LABELS)
.buckets(SECONDS);
const SCALERS: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
    "Autoscalers that are looked after.",
    Stability::Alpha,
);
const DESIRED: Desc = Desc::new(
    "horizontal_pod_autoscaler_controller_desired_replicas",
    "How many replicas an autoscaler wants.",
    Stability::Alpha,
)
.labels(&["namespace", "hpa_name"]);

/// What a look led to, or a metric wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Up,
    Down,
    None,
}

impl Action {
    /// The way from one number of replicas to another.
    pub(super) fn between(from: i32, to: i32) -> Self {
        match to.cmp(&from) {
            std::cmp::Ordering::Greater => Self::Up,
            std::cmp::Ordering::Less => Self::Down,
            std::cmp::Ordering::Equal => Self::None,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Up => "scale_up",
            Self::Down => "scale_down",
            Self::None => "none",
        }
    }
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The autoscaler asks for what cannot be.
    Spec,
    Internal,
}

impl Fault {
    const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Spec => "spec",
            Self::Internal => "internal",
        }
    }
}

pub(super) struct Monitor {
    reconciliations: Counters,
    reconciliation_seconds: Histograms,
    computations: Counters,
    computation_seconds: Histograms,
    scalers: Gauges,
    desired: Gauges,
}

impl Monitor {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            reconciliations: metrics.counters(&RECONCILIATIONS),
            reconciliation_seconds: metrics.histograms(&RECONCILIATION_SECONDS),
            computations: metrics.counters(&COMPUTATIONS),
            computation_seconds: metrics.histograms(&COMPUTATION_SECONDS),
            scalers: metrics.gauges(&SCALERS),
            desired: metrics.gauges(&DESIRED),
        }
    }

    pub(super) fn reconciled(&self, action: Action, fault: Fault, took: Duration) {
        let labels = [action.label(), fault.label()];
        self.reconciliations.with(&labels).inc();
        self.reconciliation_seconds.with(&labels).observe(took.as_secs_f64());
    }

    pub(super) fn computed(&self, metric_type: &str, action: Action, fault: Fault, took: Duration) {
        let labels = [action.label(), fault.label(), metric_type];
        self.computations.with(&labels).inc();
        self.computation_seconds.with(&labels).observe(took.as_secs_f64());
    }

    /// Counts the autoscalers.
    pub(super) fn observe(&self, change: &Change<HorizontalPodAutoscaler>) {
        match change {
            Change::Added { .. } => self.scalers.with(&[]).inc(),
            Change::Updated { .. } => {}
            Change::Deleted { .. } => self.scalers.with(&[]).dec(),
        }
    }

    pub(super) fn desires(&self, namespace: &str, name: &str, replicas: i32) {
        self.desired.with(&[namespace, name]).set(f64::from(replicas));
    }
}
