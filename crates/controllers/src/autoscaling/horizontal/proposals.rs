//! What each metric of an autoscaler proposes, and what they propose together.

use std::sync::Arc;

use api_machinery::quantity::{Format, Quantity};
use api_machinery::time::Time;
use api_types::autoscaling_v2::constants::{metric_source_type, metric_target_type};
use api_types::autoscaling_v2::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus,
    MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource, ObjectMetricStatus,
    PodsMetricSource, PodsMetricStatus, ResourceMetricSource, ResourceMetricStatus,
};
use api_types::core_v1::Pod;

use super::formula::{self, FormulaError, Goal, Tolerance};
use super::groups::{CpuRules, Groups, Samples, ready_pods, requests};
use super::monitor::Fault;
use super::readings::{ReadError, selector_text};

const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// What is known of the workload while its metrics are looked at.
pub(super) struct Workload<'a> {
    pub(super) namespace: &'a str,
    /// How many replicas it is to have.
    pub(super) wanted: i32,
    /// How many it has.
    pub(super) present: i32,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) tolerance: Tolerance,
    pub(super) cpu: CpuRules,
    pub(super) now: Time,
}

/// What was read for a metric.
pub(super) enum Reading {
    Pods(Result<Samples, ReadError>),
    Value(Result<i64, ReadError>),
    /// Nothing is known of metrics of this type.
    Nothing,
}

/// How many replicas a metric wants.
#[derive(Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The metric, as people are told of it.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why a metric wants nothing.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    /// What the condition and the event say.
    pub(super) why: String,
    /// What comes before that where all metrics are told of together.
    context: String,
    pub(super) fault: Fault,
}

impl Failure {
    fn whole(&self) -> String {
        format!("{}{}", self.context, self.why)
    }
}

/// What goes wrong within one metric, with upstream's words around it.
struct Trouble {
    why: String,
    fault: Fault,
}

impl Trouble {
    fn new(why: String) -> Self {
        Self { why, fault: Fault::Internal }
    }

    fn of_spec(why: &str) -> Self {
        Self { why: why.to_owned(), fault: Fault::Spec }
    }
}

/// What one metric proposes.
pub(super) fn propose(spec: &MetricSpec, reading: Reading, workload: &Workload<'_>) -> Result<Proposal, Failure> {
    let (outcome, reason, context) = match (spec.type_.as_str(), reading) {
        (metric_source_type::RESOURCE, Reading::Pods(samples)) => {
            let source = spec.resource.clone().unwrap_or_default();
            let context = format!("failed to get {} resource metric value: ", source.name);
            (resource(&source, samples, workload), "FailedGetResourceMetric", context)
        }
        (metric_source_type::CONTAINER_RESOURCE, Reading::Pods(samples)) => {
            let source = spec.container_resource.clone().unwrap_or_default();
            let context = format!("failed to get {} container metric value: ", source.container);
            (container(&source, samples, workload), "FailedGetContainerResourceMetric", context)
        }
        (metric_source_type::PODS, Reading::Pods(samples)) => {
            let source = spec.pods.clone().unwrap_or_default();
            let context = "failed to get pods metric value: ".to_owned();
            (pods(&source, samples, workload), "FailedGetPodsMetric", context)
        }
        (metric_source_type::OBJECT, Reading::Value(value)) => {
            let source = spec.object.clone().unwrap_or_default();
            let context = "failed to get object metric value: ".to_owned();
            (object(&source, value, workload), "FailedGetObjectMetric", context)
        }
        (metric_source_type::EXTERNAL, Reading::Value(value)) => {
            let source = spec.external.clone().unwrap_or_default();
            let context = format!("failed to get {} external metric value: ", source.metric.name);
            (external(&source, value, workload), "FailedGetExternalMetric", context)
        }
        (other, _) => {
            let why = format!("unknown metric source type {other:?}");
            return Err(Failure { reason: "InvalidMetricSourceType", why, context: String::new(), fault: Fault::Spec });
        }
    };
    outcome.map_err(|Trouble { why, fault }| Failure { reason, why, context, fault })
}

/// The replicas for a resource that pods use, or one container of each, and what people are told of the metric.
fn usage(
    name: &str,
    container: Option<&str>,
    target: &MetricTarget,
    samples: Result<Samples, ReadError>,
    workload: &Workload<'_>,
) -> Result<(i32, MetricValueStatus, String), Trouble> {
    let source = if container.is_some() { "container resource" } else { "resource" };
    let what = if target.average_value.is_some() { "usage" } else { "utilization" };
    let wrong = |why: &dyn std::fmt::Display| Trouble::new(format!("failed to get {name} {what}: {why}"));
    let format = if name == MEMORY { Format::BinarySi } else { Format::DecimalSi };
    if target.average_value.is_none() && target.average_utilization.is_none() {
        return Err(Trouble::of_spec(&format!(
            "invalid {source} metric source: neither an average utilization target nor an average value (usage) \
             target was set"
        )));
    }
    let samples =
        samples.map_err(|error| wrong(&format_args!("unable to get metrics for resource {name}: {error}")))?;
    let cpu = (name == CPU).then_some(workload.cpu);
    let (groups, samples) = counted(samples, cpu, workload).map_err(|error| wrong(&error))?;
    let asked;
    let (goal, shown) = if let Some(goal) = &target.average_value {
        (Goal::Amount(goal.milli_value()), format!("{name} resource"))
    } else {
        asked = requests(workload.pods, name, container).map_err(|error| wrong(&error))?;
        let percent = target.average_utilization.unwrap_or_default();
        let shown = format!("{name} {source} utilization (percentage of request)");
        (Goal::Percent { percent, requests: &asked }, shown)
    };
    let outcome = formula::from_pods(&goal, &groups, samples, workload.wanted, workload.tolerance);
    let (replicas, used) = outcome.map_err(|error| wrong(&error))?;
    let average_value = Some(Quantity::from_milli(used.average, format));
    Ok((replicas, MetricValueStatus { average_utilization: used.percent, average_value, value: None }, shown))
}

/// How the pods count, and the samples that do.
fn counted(
    mut samples: Samples,
    cpu: Option<CpuRules>,
    workload: &Workload<'_>,
) -> Result<(Groups, Samples), FormulaError> {
    if workload.pods.is_empty() {
        return Err(FormulaError::NoPods);
    }
    let groups = Groups::of(workload.pods, &samples, cpu, workload.now);
    groups.filter(&mut samples);
    if samples.is_empty() { Err(FormulaError::NoSamples) } else { Ok((groups, samples)) }
}

fn status(type_: &str) -> MetricStatus {
    MetricStatus { type_: type_.to_owned(), ..MetricStatus::default() }
}

fn resource(
    source: &ResourceMetricSource,
    samples: Result<Samples, ReadError>,
    workload: &Workload<'_>,
) -> Result<Proposal, Trouble> {
    let (replicas, current, name) = usage(&source.name, None, &source.target, samples, workload)?;
    let own = ResourceMetricStatus { name: source.name.clone(), current };
    let status = MetricStatus { resource: Some(own), ..status(metric_source_type::RESOURCE) };
    Ok(Proposal { replicas, name, status })
}

fn container(
    source: &ContainerResourceMetricSource,
    samples: Result<Samples, ReadError>,
    workload: &Workload<'_>,
) -> Result<Proposal, Trouble> {
    let (replicas, current, name) = usage(&source.name, Some(&source.container), &source.target, samples, workload)?;
    let own = ContainerResourceMetricStatus { name: source.name.clone(), container: source.container.clone(), current };
    let status = MetricStatus { container_resource: Some(own), ..status(metric_source_type::CONTAINER_RESOURCE) };
    Ok(Proposal { replicas, name, status })
}

fn pods(
    source: &PodsMetricSource,
    samples: Result<Samples, ReadError>,
    workload: &Workload<'_>,
) -> Result<Proposal, Trouble> {
    let name = &source.metric.name;
    let samples = samples.map_err(|error| match error {
        ReadError::Selector(error) => Trouble::new(error.to_string()),
        error => Trouble::new(format!("unable to get metric {name}: {error}")),
    })?;
    let goal = Goal::Amount(milli(source.target.average_value.as_ref()));
    let wrong = |error: FormulaError| Trouble::new(error.to_string());
    let (groups, samples) = counted(samples, None, workload).map_err(wrong)?;
    let outcome = formula::from_pods(&goal, &groups, samples, workload.wanted, workload.tolerance);
    let (replicas, used) = outcome.map_err(wrong)?;
    let current = MetricValueStatus { average_value: Some(decimal(used.average)), ..MetricValueStatus::default() };
    let own = PodsMetricStatus { metric: source.metric.clone(), current };
    let status = MetricStatus { pods: Some(own), ..status(metric_source_type::PODS) };
    Ok(Proposal { replicas, name: format!("pods metric {name}"), status })
}

fn milli(goal: Option<&Quantity>) -> i64 {
    goal.map_or(0, Quantity::milli_value)
}

fn decimal(milli: i64) -> Quantity {
    Quantity::from_milli(milli, Format::DecimalSi)
}

/// The replicas for one value, as a whole or a share of it for each.
fn one_value(
    value: i64,
    target: &MetricTarget,
    workload: &Workload<'_>,
) -> Result<(i32, MetricValueStatus), FormulaError> {
    let (goal, tolerance) = (target.average_value.as_ref(), workload.tolerance);
    if let Some(goal) = goal {
        let (replicas, share) = formula::from_share(value, goal.milli_value(), workload.present, tolerance);
        return Ok((
            replicas,
            MetricValueStatus { average_value: Some(decimal(share)), ..MetricValueStatus::default() },
        ));
    }
    let ready = (!workload.pods.is_empty()).then(|| ready_pods(workload.pods));
    let replicas = formula::from_value(value, milli(target.value.as_ref()), workload.wanted, ready, tolerance)?;
    Ok((replicas, MetricValueStatus { value: Some(decimal(value)), ..MetricValueStatus::default() }))
}

fn object(
    source: &ObjectMetricSource,
    value: Result<i64, ReadError>,
    workload: &Workload<'_>,
) -> Result<Proposal, Trouble> {
    let (metric, described) = (&source.metric, &source.described_object);
    let (is_whole, mut target) = (source.target.type_ == metric_target_type::VALUE, source.target.clone());
    // The type decides which of two that are set counts.
    if is_whole {
        target.average_value = None;
    } else {
        target.value = None;
    }
    let is_share = source.target.type_ == metric_target_type::AVERAGE_VALUE && target.average_value.is_some();
    if !is_share && target.value.is_none() {
        return Err(Trouble::of_spec(
            "invalid object metric source: neither a value target nor an average value target was set",
        ));
    }
    let around = if is_whole { String::new() } else { format!("failed to get {} object metric: ", metric.name) };
    let wrong = |why: &dyn std::fmt::Display| Trouble::new(format!("{around}{why}"));
    let value = value.map_err(|error| match error {
        ReadError::Selector(error) => Trouble::new(error.to_string()),
        error => wrong(&format_args!(
            "unable to get metric {}: {} on {} {}/{error}",
            metric.name, described.kind, workload.namespace, described.name
        )),
    })?;
    let (replicas, current) = one_value(value, &target, workload).map_err(|error| wrong(&error))?;
    let name = if is_whole {
        format!("{} metric {}", described.kind, metric.name)
    } else {
        format!("external metric {}({})", metric.name, selector_text(metric.selector.as_ref()))
    };
    let own = ObjectMetricStatus { metric: metric.clone(), current, described_object: described.clone() };
    let status = MetricStatus { object: Some(own), ..status(metric_source_type::OBJECT) };
    Ok(Proposal { replicas, name, status })
}

fn external(
    source: &ExternalMetricSource,
    value: Result<i64, ReadError>,
    workload: &Workload<'_>,
) -> Result<Proposal, Trouble> {
    let (metric, target) = (&source.metric, &source.target);
    if target.average_value.is_none() && target.value.is_none() {
        return Err(Trouble::of_spec(
            "invalid external metric source: neither a value target nor an average value target was set",
        ));
    }
    let (name, selector) = (&metric.name, selector_text(metric.selector.as_ref()));
    let around = if target.average_value.is_some() {
        format!("failed to get {name} external metric: ")
    } else {
        format!("failed to get external metric {name}: ")
    };
    let value = value.map_err(|error| {
        let path = format!("{}/{name}/{selector}", workload.namespace);
        Trouble::new(format!("{around}unable to get external metric {path}: {error}"))
    })?;
    let (replicas, current) =
        one_value(value, target, workload).map_err(|error| Trouble::new(format!("{around}{error}")))?;
    let own = ExternalMetricStatus { metric: metric.clone(), current };
    let status = MetricStatus { external: Some(own), ..status(metric_source_type::EXTERNAL) };
    Ok(Proposal { replicas, name: format!("external metric {name}({selector})"), status })
}

/// What the metrics of an autoscaler propose together.
#[derive(Debug, PartialEq)]
pub(super) struct Combined {
    pub(super) replicas: i32,
    /// The metric that wants the most.
    pub(super) name: String,
    pub(super) statuses: Vec<MetricStatus>,
    /// What failed among those that did not.
    pub(super) partly: Option<Invalid>,
}

/// That metrics failed.
#[derive(Debug, PartialEq)]
pub(super) struct Invalid {
    pub(super) error: String,
    pub(super) first: Failure,
}

/// The largest proposal. Where metrics failed it may be used to grow, never to shrink.
pub(super) fn combine(
    outcomes: Vec<Result<Proposal, Failure>>,
    current: i32,
) -> Result<Combined, (Invalid, Vec<MetricStatus>)> {
    let (all, mut failed, mut first) = (outcomes.len(), 0, None);
    let (mut replicas, mut name, mut statuses) = (0, String::new(), Vec::with_capacity(all));
    for outcome in outcomes {
        match outcome {
            Ok(proposal) => {
                if replicas == 0 || proposal.replicas > replicas {
                    (replicas, name) = (proposal.replicas, proposal.name);
                }
                statuses.push(proposal.status);
            }
            Err(failure) => {
                failed += 1;
                statuses.push(MetricStatus::default());
                first.get_or_insert(failure);
            }
        }
    }
    let invalid = first.map(|first| {
        let error = format!("invalid metrics ({failed} invalid out of {all}), first error is: {}", first.whole());
        Invalid { error, first }
    });
    match invalid {
        Some(invalid) if failed >= all || replicas < current => Err((invalid, statuses)),
        partly => Ok(Combined { replicas, name, statuses, partly }),
    }
}
