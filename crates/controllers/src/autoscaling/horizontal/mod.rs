//! Sets the size of workloads by what they use (autoscaling/v2).
//!
//! Every autoscaler is looked at once in each period, never sooner: its scale is read, then its metrics, and what they
//! propose is limited by what was recommended and done lately. What is remembered for that is lost with the process. A
//! scale that an informer has is believed as long as nothing is to be done: the server is asked before something is.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>

mod anchors;
mod conditions;
mod formula;
mod groups;
mod limits;
mod listed;
#[cfg(test)]
mod metrics_tests;
mod monitor;
mod pods;
mod proposals;
mod readings;
mod target;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::labels::Selector;
use api_machinery::time::Time;
use api_types::autoscaling_v2::constants::metric_source_type;
use api_types::autoscaling_v2::{
    HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, MetricSpec,
    MetricStatus,
};
use api_types::core_v1::Pod;
use client::{Change, ContentType, EventType, Informer, ObjectKey};
use component_base::Feature;
use component_base::shared_gates::POD_LEVEL_RESOURCES;
use component_helpers::pod_requests::without_pod_level;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use kinds::gates::{SCALE_TO_ZERO, SCALING_TOLERANCE};
use parking_lot::Mutex;

use self::conditions::{ABLE, ACTIVE, AT_ZERO, Conditions, FOUND, LIMITED};
use self::formula::Tolerance;
use self::groups::CpuRules;
use self::limits::{History, Range};
use self::monitor::{Action, Fault, Monitor};
use self::pods::Pods;
use self::proposals::{Combined, Invalid, Reading, Workload, combine, propose};
use self::readings::{Asking, Readings};
use self::target::{AtHand, Kinds, Size, Target, TargetError, Targets};
use crate::Settings;
use crate::settings::AutoscalerSettings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "horizontal-pod-autoscaler-controller",
    aliases: &["horizontalpodautoscaling"],
    gates: &[],
    identity: "horizontal-pod-autoscaler",
    event_component: "horizontal-pod-autoscaler",
    disabled_by_default: false,
    build,
};

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[SCALING_TOLERANCE, SCALE_TO_ZERO, POD_LEVEL_RESOURCES];

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.autoscaler;
    let queue = build.queue("horizontalpodautoscaler");
    let monitor = Arc::new(Monitor::new(build.metrics()));
    let counting = Arc::clone(&monitor);
    let period = settings.sync_period;
    let due = move |change: &Change<HorizontalPodAutoscaler>| [(change.key(), period)];
    let scalers = build.watch::<HorizontalPodAutoscaler>().observe(move |change| counting.observe(change));
    let scalers = scalers.enqueue_after(&queue, due).informer();
    let pods = Arc::new(Pods::default());
    let followed = Arc::clone(&pods);
    drop(build.watch::<Pod>().observe(move |change| followed.observe(change)));
    let json = build.client().derive(|mut config| {
        config.content = ContentType::Json;
        config
    })?;
    let kinds = Kinds::new(build.mapper().clone(), json.clone());
    let autoscaling = Autoscaling {
        scalers,
        pods,
        targets: Targets { at_hand: AtHand::of(build.informers()), kinds, client: json.clone() },
        readings: Readings::new(json, period),
        histories: Mutex::default(),
        settings,
        own_tolerance: build.gates().enabled(SCALING_TOLERANCE),
        to_zero: build.gates().enabled(SCALE_TO_ZERO),
        pod_level_resources: build.gates().enabled(POD_LEVEL_RESOURCES),
        monitor,
    };
    build.run(&queue, settings.syncs, Arc::new(autoscaling));
    Ok(())
}

struct Autoscaling {
    scalers: Informer<HorizontalPodAutoscaler>,
    pods: Arc<Pods>,
    targets: Targets,
    readings: Readings,
    histories: Mutex<HashMap<ObjectKey, History>>,
    settings: AutoscalerSettings,
    own_tolerance: bool,
    to_zero: bool,
    pod_level_resources: bool,
    monitor: Arc<Monitor>,
}

/// Why a look did not lead to what it should.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("invalid API version in scale target reference: {0}")]
    Version(TargetError),
    #[error("failed to query scale subresource for {target}: {why}")]
    Scale { target: String, why: TargetError },
    #[error("failed to compute desired number of replicas based on listed metrics for {target}: {why}")]
    Metrics { target: String, why: String, fault: Fault },
    #[error("failed to rescale {target}: {why}")]
    Rescale { target: String, why: client::ClientError },
    #[error("{why}")]
    Partly { why: String, fault: Fault },
    #[error("failed to update status for {name}: {why}")]
    Status { name: String, why: client::ClientError },
}

impl LookError {
    fn fault(&self) -> Fault {
        match self {
            Self::Version(_) => Fault::Spec,
            Self::Metrics { fault, .. } | Self::Partly { fault, .. } => *fault,
            Self::Scale { .. } | Self::Rescale { .. } | Self::Status { .. } => Fault::Internal,
        }
    }
}

/// Where an autoscaler goes before its metrics are looked at.
#[derive(Debug, PartialEq, Eq)]
enum Course {
    /// Nowhere: somebody scaled the workload to nothing.
    Suspended,
    /// Into its range.
    Into(i32, &'static str),
    /// Where the metrics say.
    Compute,
}

fn least(spec: &HorizontalPodAutoscalerSpec) -> i32 {
    spec.min_replicas.unwrap_or(1)
}

/// Whether a metric can be there without pods.
fn outlives_pods(spec: &HorizontalPodAutoscalerSpec) -> bool {
    let outlives = |type_: &str| matches!(type_, metric_source_type::OBJECT | metric_source_type::EXTERNAL);
    spec.metrics.iter().any(|metric| outlives(&metric.type_))
}

/// Pods as they count where nothing is asked for as a whole.
fn plain(pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(|pod| without_pod_level(&pod).map_or(pod, Arc::new)).collect()
}

/// Where to go. `scaled_to_zero` is whether it was the autoscaler who left nothing, and may bring something back.
fn course(spec: &HorizontalPodAutoscalerSpec, current: i32, scaled_to_zero: bool) -> Course {
    let least = least(spec);
    if current == 0 && !(scaled_to_zero && (least != 0 || outlives_pods(spec))) {
        Course::Suspended
    } else if current > spec.max_replicas {
        Course::Into(spec.max_replicas, "Current number of replicas above Spec.MaxReplicas")
    } else if current < least {
        Course::Into(least, "Current number of replicas below Spec.MinReplicas")
    } else {
        Course::Compute
    }
}

/// Where the workload is to go.
struct Wanted {
    replicas: i32,
    reason: String,
    statuses: Vec<MetricStatus>,
    partly: Option<Invalid>,
}

impl Wanted {
    fn plainly(replicas: i32, reason: &str) -> Self {
        Self { replicas, reason: reason.to_owned(), statuses: Vec::new(), partly: None }
    }
}

/// One look at one autoscaler.
struct Look<'a> {
    cx: &'a Cx,
    key: &'a ObjectKey,
    scaler: &'a HorizontalPodAutoscaler,
    conditions: Conditions,
    history: History,
    /// What the workload is, as errors name it.
    target: String,
    action: Action,
}

impl Look<'_> {
    fn warn(&self, reason: &str, message: impl Into<String>) {
        self.cx.events.event(self.scaler, EventType::Warning, reason, message);
    }

    /// Tells why there is no scaling.
    fn refuse(&mut self, reason: &str, why: String) -> String {
        self.warn(reason, why.clone());
        self.conditions.say(ACTIVE, false, reason, why.clone());
        why
    }

    /// Writes the status where it changed.
    async fn write(
        &mut self,
        current: i32,
        desired: i32,
        statuses: Vec<MetricStatus>,
        is_rescaled: bool,
    ) -> Result<(), LookError> {
        let former = &self.scaler.status;
        let status = HorizontalPodAutoscalerStatus {
            current_replicas: current,
            desired_replicas: desired,
            last_scale_time: if is_rescaled { Some(self.conditions.now) } else { former.last_scale_time },
            current_metrics: statuses,
            conditions: std::mem::take(&mut self.conditions.all),
            observed_generation: None,
        };
        self.put(status).await
    }

    /// Writes the conditions alone, where they changed.
    async fn write_conditions(&mut self) -> Result<(), LookError> {
        let conditions = std::mem::take(&mut self.conditions.all);
        self.put(HorizontalPodAutoscalerStatus { conditions, ..self.scaler.status.clone() }).await
    }

    /// Something else has failed before that is told of: that its status could not be written either must not hide it.
    fn pass_over(&self, written: Result<(), LookError>) {
        if let Err(error) = written {
            tracing::warn!(key = %self.key, %error, "Autoscaling failed");
        }
    }

    async fn put(&self, status: HorizontalPodAutoscalerStatus) -> Result<(), LookError> {
        if status == self.scaler.status {
            return Ok(());
        }
        let (metadata, spec) = (self.scaler.metadata.clone(), self.scaler.spec.clone());
        let changed = HorizontalPodAutoscaler { metadata, spec, status };
        let scalers = self.cx.client.namespaced::<HorizontalPodAutoscaler>(&self.key.namespace);
        if let Err(why) = scalers.write_status(&changed).await {
            self.warn("FailedUpdateStatus", why.to_string());
            return Err(LookError::Status { name: self.key.name.clone(), why });
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Controller for Autoscaling {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(scaler) = self.scalers.get(key) else {
            self.histories.lock().remove(key);
            self.pods.forget(key);
            if !self.pods.are_looked_at(&key.namespace) {
                self.readings.forget(&key.namespace);
            }
            return Ok(Next::Done);
        };
        let started = cx.clock.monotonic();
        let mut look = self.begin(cx, key, &scaler);
        let outcome = self.look(&mut look).await;
        self.histories.lock().insert(key.clone(), look.history);
        let fault = outcome.as_ref().err().map_or(Fault::None, LookError::fault);
        self.monitor.reconciled(look.action, fault, cx.clock.monotonic().saturating_duration_since(started));
        if let Err(error) = outcome {
            tracing::warn!(%key, %error, "Autoscaling failed");
        }
        // A failure waits for the next period, as everything does.
        Ok(Next::After(self.settings.sync_period))
    }
}

impl Autoscaling {
    fn begin<'a>(&self, cx: &'a Cx, key: &'a ObjectKey, scaler: &'a HorizontalPodAutoscaler) -> Look<'a> {
        let target = &scaler.spec.scale_target_ref;
        let target = format!("{}/{}/{}", target.kind, key.namespace, target.name);
        let conditions = Conditions { all: scaler.status.conditions.clone(), now: Time::from(cx.clock.wall()) };
        let history = self.histories.lock().get(key).cloned().unwrap_or_default();
        Look { cx, key, scaler, conditions, history, target, action: Action::None }
    }

    async fn look(&self, look: &mut Look<'_>) -> Result<(), LookError> {
        let Some(size) = self.targets.at_hand(&look.key.namespace, &look.scaler.spec.scale_target_ref) else {
            let target = self.read_scale(look).await?;
            let wanted = self.decide(look, &target.size).await?;
            return self.act(look, &target, wanted).await;
        };
        look.conditions.say(ABLE, true, FOUND.reason, FOUND.message);
        let mut wanted = self.decide(look, &size).await?;
        if wanted.replicas == size.spec_replicas {
            return self.tell(look, &size, wanted, false).await;
        }
        // What is at hand may be older than what the server has, and only that may be overwritten.
        let afresh = self.begin(look.cx, look.key, look.scaler);
        let decided = std::mem::replace(look, afresh);
        let target = self.read_scale(look).await?;
        if target.size == size {
            *look = decided;
        } else {
            wanted = self.decide(look, &target.size).await?;
        }
        self.act(look, &target, wanted).await
    }

    /// Where a workload of this size is to go.
    async fn decide(&self, look: &mut Look<'_>, size: &Size) -> Result<Wanted, LookError> {
        let current = size.spec_replicas;
        look.history.begin(current, look.cx.clock.monotonic());
        if !self.to_zero {
            look.conditions.all.retain(|condition| condition.type_ != AT_ZERO);
        }
        let scaled_to_zero = self.to_zero && look.conditions.holds(AT_ZERO);
        match course(&look.scaler.spec, current, scaled_to_zero) {
            Course::Suspended => {
                let message = "scaling is disabled since the replica count of the target is zero";
                look.conditions.say(ACTIVE, false, "ScalingDisabled", message);
                Ok(Wanted::plainly(current, ""))
            }
            Course::Into(replicas, reason) => Ok(Wanted::plainly(replicas, reason)),
            Course::Compute => match self.compute(look, size).await {
                Ok(combined) => Ok(self.limit(look, current, combined)),
                Err((why, statuses, fault)) => {
                    let written = look.write(current, look.scaler.status.desired_replicas, statuses, false).await;
                    look.pass_over(written);
                    look.warn("FailedComputeMetricsReplicas", why.clone());
                    Err(LookError::Metrics { target: look.target.clone(), why, fault })
                }
            },
        }
    }

    async fn read_scale(&self, look: &mut Look<'_>) -> Result<Target, LookError> {
        let reference = &look.scaler.spec.scale_target_ref;
        match self.targets.read(&look.key.namespace, reference).await {
            Ok(target) => {
                look.conditions.say(ABLE, true, FOUND.reason, FOUND.message);
                Ok(target)
            }
            Err(why) => {
                look.warn("FailedGetScale", why.to_string());
                let message = format!("the HPA controller was unable to get the target's current scale: {why}");
                look.conditions.say(ABLE, false, "FailedGetScale", message);
                let written = look.write_conditions().await;
                look.pass_over(written);
                match why {
                    TargetError::Version(_) => Err(LookError::Version(why)),
                    why => Err(LookError::Scale { target: look.target.clone(), why }),
                }
            }
        }
    }

    /// What the metrics want. Where they fail, the error, what is known of them, and whose fault it is.
    async fn compute(&self, look: &mut Look<'_>, size: &Size) -> Result<Combined, (String, Vec<MetricStatus>, Fault)> {
        let (selector, pods) =
            self.select(look, &size.selector).map_err(|error| (error, Vec::new(), Fault::Internal))?;
        let workload = Workload {
            namespace: &look.key.namespace,
            wanted: size.spec_replicas,
            present: size.status_replicas,
            pods: &pods,
            tolerance: self.tolerance(&look.scaler.spec),
            cpu: CpuRules {
                initialization: self.settings.cpu_initialization_period,
                readiness_delay: self.settings.initial_readiness_delay,
            },
            now: look.conditions.now,
        };
        let asking = Asking {
            namespace: &look.key.namespace,
            selector: &selector,
            pods: &pods,
            is_shared: self.pods.are_shared(&look.key.namespace, pods.len()),
        };
        let mut outcomes = Vec::with_capacity(look.scaler.spec.metrics.len());
        for spec in &look.scaler.spec.metrics {
            let clock = &look.cx.clock;
            let started = clock.monotonic();
            let outcome = propose(spec, self.read(spec, &asking).await, &workload);
            let (action, fault) = match &outcome {
                Ok(proposal) => (Action::between(look.scaler.status.current_replicas, proposal.replicas), Fault::None),
                Err(failure) => {
                    look.warn(failure.reason, failure.why.clone());
                    (Action::None, failure.fault)
                }
            };
            self.monitor.computed(&spec.type_, action, fault, clock.monotonic().saturating_duration_since(started));
            outcomes.push(outcome);
        }
        let combined = combine(outcomes, size.spec_replicas).map_err(|(Invalid { error, first }, statuses)| {
            let message = format!("the HPA was unable to compute the replica count: {}", first.why);
            look.conditions.say(ACTIVE, false, first.reason, message);
            (error, statuses, first.fault)
        })?;
        let message = format!("the HPA was able to successfully calculate a replica count from {}", combined.name);
        look.conditions.say(ACTIVE, true, "ValidMetricFound", message);
        Ok(combined)
    }

    /// The pods of the workload, unless another autoscaler has some of them, too.
    fn select(&self, look: &mut Look<'_>, text: &str) -> Result<(Selector, Vec<Arc<Pod>>), String> {
        if text.is_empty() {
            look.warn("SelectorRequired", "selector is required");
            let message = "the HPA target's scale is missing a selector";
            look.conditions.say(ACTIVE, false, "InvalidSelector", message);
            return Err("selector is required".to_owned());
        }
        let selector = Selector::parse(text).map_err(|error| {
            let why = format!("couldn't convert selector into a corresponding internal selector object: {error}");
            look.refuse("InvalidSelector", why)
        })?;
        self.pods.register(look.key, &selector);
        let pods = self.pods.selected(&look.key.namespace, &selector);
        let scalers = self.pods.selecting(&pods);
        if scalers.len() > 1 {
            let names = scalers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let why = format!("pods by selector {text} are controlled by multiple HPAs: [{names}]");
            return Err(look.refuse("AmbiguousSelector", why));
        }
        Ok((selector, if self.pod_level_resources { pods } else { plain(pods) }))
    }

    fn tolerance(&self, spec: &HorizontalPodAutoscalerSpec) -> Tolerance {
        let behavior = spec.behavior.as_ref().filter(|_| self.own_tolerance);
        let own = |rules: Option<&HPAScalingRules>| {
            let tolerance = rules.and_then(|rules| rules.tolerance.as_ref());
            tolerance.map_or(self.settings.tolerance, api_machinery::quantity::Quantity::as_f64)
        };
        Tolerance {
            up: own(behavior.and_then(|behavior| behavior.scale_up.as_ref())),
            down: own(behavior.and_then(|behavior| behavior.scale_down.as_ref())),
        }
    }

    async fn read(&self, spec: &MetricSpec, asking: &Asking<'_>) -> Reading {
        let (readings, Asking { namespace, selector, .. }) = (&self.readings, asking);
        if let Some(source) = spec.resource.as_ref().filter(|_| spec.type_ == metric_source_type::RESOURCE) {
            return Reading::Pods(readings.resource(asking, &source.name, None).await);
        }
        match (&spec.container_resource, &spec.pods, &spec.object, &spec.external) {
            (Some(source), ..) if spec.type_ == metric_source_type::CONTAINER_RESOURCE => {
                let container = Some(source.container.as_str());
                Reading::Pods(readings.resource(asking, &source.name, container).await)
            }
            (_, Some(source), ..) if spec.type_ == metric_source_type::PODS => {
                Reading::Pods(readings.pods(namespace, &source.metric, selector).await)
            }
            (_, _, Some(source), _) if spec.type_ == metric_source_type::OBJECT => {
                let (object, kinds) = (&source.described_object, &self.targets.kinds);
                Reading::Value(readings.object(kinds, namespace, object, &source.metric).await)
            }
            (.., Some(source)) if spec.type_ == metric_source_type::EXTERNAL => {
                Reading::Value(readings.external(namespace, &source.metric).await)
            }
            _ => Reading::Nothing,
        }
    }

    /// What becomes of what the metrics want.
    fn limit(&self, look: &mut Look<'_>, current: i32, combined: Combined) -> Wanted {
        let (spec, now) = (&look.scaler.spec, look.cx.clock.monotonic());
        let range = Range { current, min: least(spec), max: spec.max_replicas };
        let window = self.settings.downscale_stabilization;
        let limited = look.history.limit(combined.replicas, range, spec.behavior.as_ref(), window, now);
        look.conditions.say(ABLE, true, limited.able.reason, limited.able.message);
        look.conditions.say(LIMITED, limited.is_limited, limited.limited.reason, limited.limited.message);
        let reason = match Action::between(current, combined.replicas) {
            Action::Up => format!("{} above target", combined.name),
            Action::Down => "All metrics below target".to_owned(),
            Action::None => String::new(),
        };
        Wanted { replicas: limited.replicas, reason, statuses: combined.statuses, partly: combined.partly }
    }

    async fn act(&self, look: &mut Look<'_>, target: &Target, wanted: Wanted) -> Result<(), LookError> {
        let is_rescaled = wanted.replicas != target.size.spec_replicas;
        if is_rescaled {
            self.rescale(look, target, &wanted).await?;
        }
        self.tell(look, &target.size, wanted, is_rescaled).await
    }

    async fn tell(&self, look: &mut Look<'_>, size: &Size, wanted: Wanted, is_rescaled: bool) -> Result<(), LookError> {
        self.monitor.desires(&look.key.namespace, &look.key.name, wanted.replicas);
        look.write(size.spec_replicas, wanted.replicas, wanted.statuses, is_rescaled).await?;
        wanted
            .partly
            .map_or(Ok(()), |invalid| Err(LookError::Partly { why: invalid.error, fault: invalid.first.fault }))
    }

    async fn rescale(&self, look: &mut Look<'_>, target: &Target, wanted: &Wanted) -> Result<(), LookError> {
        let (from, to, reason) = (target.size.spec_replicas, wanted.replicas, &wanted.reason);
        if let Err(why) = self.targets.set(&look.key.namespace, target, to).await {
            look.warn("FailedRescale", format!("New size: {to}; reason: {reason}; error: {why}"));
            let message = format!("the HPA controller was unable to update the target scale: {why}");
            look.conditions.say(ABLE, false, "FailedUpdateScale", message);
            let written = look.write(from, look.scaler.status.desired_replicas, wanted.statuses.clone(), false).await;
            look.pass_over(written);
            return Err(LookError::Rescale { target: look.target.clone(), why });
        }
        let message = format!("the HPA controller was able to update the target scale to {to}");
        look.conditions.say(ABLE, true, "SucceededRescale", message);
        if self.to_zero {
            let spec = &look.scaler.spec;
            let (holds, reason, message) = if to == 0 && least(spec) == 0 && outlives_pods(spec) {
                (true, "ScaledToZero", "the HPA controller scaled the workload to zero")
            } else {
                (false, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
            };
            look.conditions.say(AT_ZERO, holds, reason, message);
        }
        let message = format!("New size: {to}; reason: {reason}");
        look.cx.events.event(look.scaler, EventType::Normal, "SuccessfulRescale", message);
        look.action = Action::between(from, to);
        let (behavior, now) = (look.scaler.spec.behavior.as_ref(), look.cx.clock.monotonic());
        look.history.scaled(from, to, behavior, now);
        Ok(())
    }
}
