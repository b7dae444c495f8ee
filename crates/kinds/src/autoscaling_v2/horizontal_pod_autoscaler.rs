//! HorizontalPodAutoscaler of autoscaling/v2: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupVersion;
use api_machinery::names;
use api_types::autoscaling_v2::constants::metric_source_type::RESOURCE;
use api_types::autoscaling_v2::constants::metric_target_type::UTILIZATION;
use api_types::autoscaling_v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricSpec, MetricTarget,
    ResourceMetricSource,
};
use feature_gates::MinorVersion;

use super::{behavior, metrics, targets};
use crate::autoscaling_v1;
use crate::field_rules::{self, NOT_NEGATIVE};
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;

/// The wanted processor time where nothing is said.
const DEFAULT_PERCENT: i32 = 80;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["hpa"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<HorizontalPodAutoscaler>("horizontalpodautoscalers", "qwQve8ut294=")),
    unconditional_update: true,
    introduced: MinorVersion::one(23),
    subresources: &[SubresourceInfo::status("HorizontalPodAutoscaler")],
    ..ResourceInfo::of::<HorizontalPodAutoscaler>()
};

/// The rules of the kind.
pub(crate) struct HorizontalPodAutoscalerRules;

impl TypedRules for HorizontalPodAutoscalerRules {
    type Object = HorizontalPodAutoscaler;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<HorizontalPodAutoscaler>] = &[
        Cell::NAME,
        Cell::text("Reference", |scaler, _| {
            let target = &scaler.spec.scale_target_ref;
            format!("{}/{}", target.kind, target.name).into()
        }),
        Cell::text("Targets", |scaler, _| targets::shown(&scaler.spec.metrics, &scaler.status.current_metrics).into()),
        Cell::text("MinPods", |scaler, _| {
            table::or_unset(scaler.spec.min_replicas.map(|replicas| replicas.to_string()).as_deref())
        }),
        Cell::text("MaxPods", |scaler, _| scaler.spec.max_replicas.into()),
        Cell::text("Replicas", |scaler, _| scaler.status.current_replicas.into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("autoscaling/v2beta2")];
    const STRATEGY: Strategy = Strategy::Status;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const GATED: &'static [Gated<HorizontalPodAutoscaler>] = &[TOLERANCE];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut HorizontalPodAutoscaler) {
        // What another version has in annotations is in fields here.
        autoscaling_v1::strip(&mut object.metadata);
        let spec = &mut object.spec;
        default_metric(spec);
        if let Some(behavior) = &mut spec.behavior {
            behavior::set_defaults(behavior);
        }
    }

    fn validate(cx: &RuleContext, object: &HorizontalPodAutoscaler) -> ErrorList {
        validate(cx, &object.spec, None)
    }

    fn validate_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &HorizontalPodAutoscaler,
        old: &HorizontalPodAutoscaler,
    ) -> ErrorList {
        if endpoint == Endpoint::Main {
            return validate(cx, &object.spec, Some(&old.spec));
        }
        let (mut errors, path, status) = (ErrorList::new(), Path::new("status"), &object.status);
        field_rules::not_negative(&path.child("currentReplicas"), status.current_replicas.into(), &mut errors);
        field_rules::not_negative(&path.child("desiredReplicas"), status.desired_replicas.into(), &mut errors);
        errors
    }
}

const TOLERANCE: Gated<HorizontalPodAutoscaler> = Gated {
    features: &[gates::SCALING_TOLERANCE],
    used: |scaler| scaler.spec.behavior.as_ref().is_some_and(behavior::has_tolerance),
    drop: |scaler| scaler.spec.behavior.iter_mut().for_each(behavior::drop_tolerance),
};

/// Where nothing else decides, it is processor time.
pub(crate) fn default_metric(spec: &mut HorizontalPodAutoscalerSpec) {
    if spec.metrics.is_empty() {
        spec.metrics.push(processor_time(DEFAULT_PERCENT));
    }
}

/// A metric of processor time, in percent of what the pods ask for.
pub(crate) fn processor_time(percent: i32) -> MetricSpec {
    let target =
        MetricTarget { type_: UTILIZATION.to_owned(), average_utilization: Some(percent), ..MetricTarget::default() };
    let resource = ResourceMetricSource { name: "cpu".to_owned(), target };
    MetricSpec { type_: RESOURCE.to_owned(), resource: Some(resource), ..MetricSpec::default() }
}

fn validate(
    cx: &RuleContext,
    spec: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
) -> ErrorList {
    let (mut errors, path) = (ErrorList::new(), Path::new("spec"));
    // While the feature is off, who has scaled to zero may go on.
    let has_scaled = old.is_some_and(|old| old.min_replicas == Some(0));
    let fewest = if has_scaled || cx.gates.enabled(gates::SCALE_TO_ZERO) { 0 } else { 1 };
    if let Some(replicas) = spec.min_replicas.filter(|replicas| *replicas < fewest) {
        let detail = if fewest == 0 { NOT_NEGATIVE } else { AT_LEAST_ONE };
        errors.push(path.child("minReplicas").invalid(replicas, detail));
    }
    validate_most(&path.child("maxReplicas"), spec, &mut errors);
    let target = &spec.scale_target_ref;
    let same = old.is_some_and(|old| {
        (&old.scale_target_ref.kind, &old.scale_target_ref.api_version) == (&target.kind, &target.api_version)
    });
    let group = if same { Group::Unchecked } else { Group::Required };
    validate_reference(&path.child("scaleTargetRef"), target, group, &mut errors);
    metrics::validate(&path.child("metrics"), spec, old, &mut errors);
    if let Some(behavior) = &spec.behavior {
        behavior::validate(&path.child("behavior"), behavior, &mut errors);
    }
    errors
}

const AT_LEAST_ONE: &str = "must be greater than or equal to 1";

fn validate_most(path: &Path, spec: &HorizontalPodAutoscalerSpec, errors: &mut ErrorList) {
    let most = spec.max_replicas;
    if most == 0 {
        errors.push(path.required("must be set and greater than 0"));
    } else if most < 0 {
        errors.push(path.invalid(most, AT_LEAST_ONE));
    }
    if spec.min_replicas.is_some_and(|fewest| most < fewest) {
        errors.push(path.invalid(most, "must be greater than or equal to `minReplicas`"));
    }
}

/// What is asked of the group in a reference's version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// It is there, but for the one core kind that has replicas.
    Required,
    /// It may be left out.
    Optional,
    /// The stored object has the version already, so nobody looks at it.
    Unchecked,
}

pub(super) fn validate_reference(
    path: &Path,
    reference: &CrossVersionObjectReference,
    group: Group,
    errors: &mut ErrorList,
) {
    field_rules::named(&path.child("kind"), &reference.kind, names::path_segment_name, errors);
    field_rules::named(&path.child("name"), &reference.name, names::path_segment_name, errors);
    if group == Group::Unchecked {
        return;
    }
    let (at, version) = (path.child("apiVersion"), &reference.api_version);
    match GroupVersion::parse(version) {
        Err(error) => errors.push(at.invalid(version, error.to_string())),
        Ok(parsed)
            if group == Group::Required && parsed.group.is_empty() && reference.kind != "ReplicationController" =>
        {
            errors.push(at.invalid(version, "apiVersion must specify API group"));
        }
        Ok(_) => {}
    }
}
