//! The kinds of autoscaling/v2.

mod behavior;
mod horizontal_pod_autoscaler;
mod metrics;
mod targets;

pub(crate) use horizontal_pod_autoscaler::{HorizontalPodAutoscalerRules, default_metric, processor_time};

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<HorizontalPodAutoscalerRules>::new()];
