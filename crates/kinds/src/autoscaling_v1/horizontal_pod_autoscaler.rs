//! HorizontalPodAutoscaler of autoscaling/v1: its names, and the way to the stored form and back.

use api_machinery::object::Kind;
use api_types::autoscaling_v1::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus};
use api_types::autoscaling_v2::constants::metric_source_type::RESOURCE;
use api_types::autoscaling_v2::{self as stored, MetricSpec, MetricStatus, MetricValueStatus, ResourceMetricStatus};

use super::{annotations, metrics};
use feature_gates::MinorVersion;

use crate::autoscaling_v2::{HorizontalPodAutoscalerRules, default_metric, processor_time};
use crate::info::ResourceInfo;
use crate::other_form::OtherForm;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo {
    version: HorizontalPodAutoscaler::TYPE.version,
    introduced: MinorVersion::one(2),
    ..*HorizontalPodAutoscalerRules::INFO
};

/// The version by processor time alone.
pub(super) struct FirstForm;

impl OtherForm for FirstForm {
    type Served = HorizontalPodAutoscaler;
    type Stored = HorizontalPodAutoscalerRules;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn to_stored(served: &HorizontalPodAutoscaler) -> stored::HorizontalPodAutoscaler {
        let (metadata, spec, status) = (served.metadata.clone(), served.spec.clone(), &served.status);
        let mut to = stored::HorizontalPodAutoscaler {
            metadata,
            spec: stored::HorizontalPodAutoscalerSpec {
                scale_target_ref: metrics::stored_reference(spec.scale_target_ref),
                min_replicas: spec.min_replicas,
                max_replicas: spec.max_replicas,
                metrics: spec.target_cpu_utilization_percentage.map(processor_time).into_iter().collect(),
                behavior: None,
            },
            status: stored::HorizontalPodAutoscalerStatus {
                observed_generation: status.observed_generation,
                last_scale_time: status.last_scale_time,
                current_replicas: status.current_replicas,
                desired_replicas: status.desired_replicas,
                current_metrics: status.current_cpu_utilization_percentage.map(used_time).into_iter().collect(),
                conditions: Vec::new(),
            },
        };
        annotations::read(&served.metadata, &mut to);
        annotations::strip(&mut to.metadata);
        default_metric(&mut to.spec);
        to
    }

    fn to_served(from: &stored::HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
        let (spec, status) = (&from.spec, &from.status);
        let (of_time, others): (Vec<_>, Vec<_>) = spec.metrics.iter().partition(|metric| wanted_time(metric).is_some());
        let mut to = HorizontalPodAutoscaler {
            metadata: from.metadata.clone(),
            spec: HorizontalPodAutoscalerSpec {
                scale_target_ref: metrics::first_reference(spec.scale_target_ref.clone()),
                min_replicas: spec.min_replicas,
                max_replicas: spec.max_replicas,
                target_cpu_utilization_percentage: of_time.first().and_then(|metric| wanted_time(metric)),
            },
            status: HorizontalPodAutoscalerStatus {
                observed_generation: status.observed_generation,
                last_scale_time: status.last_scale_time,
                current_replicas: status.current_replicas,
                desired_replicas: status.desired_replicas,
                current_cpu_utilization_percentage: status.current_metrics.iter().rev().find_map(seen_time),
            },
        };
        annotations::strip(&mut to.metadata);
        annotations::write(&mut to.metadata, &others, from);
        to
    }
}

/// The share of processor time that a metric asks for, where it is that one.
fn wanted_time(metric: &MetricSpec) -> Option<i32> {
    let resource = metric.resource.as_ref().filter(|own| metric.type_ == RESOURCE && own.name == "cpu")?;
    resource.target.average_utilization
}

fn seen_time(metric: &MetricStatus) -> Option<i32> {
    let resource = metric.resource.as_ref().filter(|own| metric.type_ == RESOURCE && own.name == "cpu")?;
    resource.current.average_utilization
}

fn used_time(percent: i32) -> MetricStatus {
    let current = MetricValueStatus { average_utilization: Some(percent), ..MetricValueStatus::default() };
    let resource = ResourceMetricStatus { name: "cpu".to_owned(), current };
    MetricStatus { type_: RESOURCE.to_owned(), resource: Some(resource), ..MetricStatus::default() }
}
