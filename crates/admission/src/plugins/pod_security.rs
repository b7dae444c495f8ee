//! PodSecurity: the Pod Security Standards, by the labels of a namespace. Pods that break what a namespace enforces are
//! refused; what it warns of is told in warnings, for pods and for what makes them.
//! What was decided by which policy is told to the audit log in annotations.
//!
//! See <https://kubernetes.io/docs/concepts/security/pod-security-standards/>.

mod baseline;
mod config;
mod policy;
mod restricted;
mod subject;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::field_path::ErrorList;
use api_machinery::gvk::GroupKind;
use api_machinery::meta::ObjectMeta;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use api_types::apps_v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use api_types::batch_v1::{CronJob, Job};
use api_types::core_v1::{Namespace, Pod, PodSpec, PodTemplate, PodTemplateSpec, ReplicationController};
use async_trait::async_trait;

use crate::{
    Attributes, Context, Operation, Passes, Plugin, PluginEntry, PodSecurityEvaluation, PodSecurityFailure,
    PodSecurityRequest,
};
use config::PodSecurityConfig;
use policy::{Level, LevelVersion, Policy};
use subject::Subject;

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodSecurity",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&Namespace::TYPE, &Pod::TYPE],
    configuration: Some(|stated| Ok(Arc::new(PodSecurityConfig::read(stated.value.unwrap_or(&Value::Null))?))),
    build: |settings| Box::new(PodSecurity(settings.configured.get().unwrap_or_default())),
};

/// Subresources of pods that change nothing that counts.
const IGNORED_SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

struct PodSecurity(Arc<PodSecurityConfig>);

/// One failed check: why, and in what.
struct Violation {
    reason: String,
    detail: String,
}

/// What is wrong with a pod by a level; nothing where it fits.
fn violations(level: &LevelVersion, metadata: &ObjectMeta, spec: &PodSpec) -> Option<String> {
    let subject = Subject::new(metadata, spec, level.minor());
    let found = match level.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline::check(&subject, baseline::Overridden::None),
        Level::Restricted => {
            let mut found = baseline::check(&subject, baseline::Overridden::ByRestricted);
            found.extend(restricted::check(&subject));
            found
        }
    };
    if found.is_empty() {
        return None;
    }
    let shown = |own: &Violation| match own.detail.as_str() {
        "" => own.reason.clone(),
        detail => format!("{} ({detail})", own.reason),
    };
    Some(found.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// The template of what makes pods.
fn template(object: &dyn Object) -> Option<&PodTemplateSpec> {
    if let Some(own) = object.downcast_ref::<ReplicationController>() {
        return own.spec.template.as_ref();
    }
    object
        .downcast_ref::<Deployment>()
        .map(|own| &own.spec.template)
        .or_else(|| object.downcast_ref::<ReplicaSet>().map(|own| &own.spec.template))
        .or_else(|| object.downcast_ref::<StatefulSet>().map(|own| &own.spec.template))
        .or_else(|| object.downcast_ref::<DaemonSet>().map(|own| &own.spec.template))
        .or_else(|| object.downcast_ref::<Job>().map(|own| &own.spec.template))
        .or_else(|| object.downcast_ref::<CronJob>().map(|own| &own.spec.job_template.spec.template))
        .or_else(|| object.downcast_ref::<PodTemplate>().map(|own| &own.template))
}

fn is_controller(attributes: &Attributes) -> bool {
    matches!(
        (attributes.group.as_str(), attributes.resource.as_str()),
        ("", "replicationcontrollers" | "podtemplates")
            | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
            | ("batch", "jobs" | "cronjobs")
    )
}

#[async_trait]
impl Plugin for PodSecurity {
    fn handles(&self, attributes: &Attributes) -> bool {
        if !matches!(attributes.operation, Operation::Create | Operation::Update) {
            return false;
        }
        match (attributes.group.as_str(), attributes.resource.as_str()) {
            ("", "pods") => !IGNORED_SUBRESOURCES.contains(&attributes.subresource.as_str()),
            ("", "namespaces") => attributes.subresource.is_empty(),
            _ => attributes.subresource.is_empty() && is_controller(attributes),
        }
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (Some(object), config) = (object, &self.0) else { return Ok(()) };
        if let Some(namespace) = object.downcast_ref::<Namespace>() {
            return check_namespace(config, cx, attributes, namespace, old.and_then(|old| old.downcast_ref()));
        }
        if config.exempts_namespace(&attributes.namespace) {
            return exempt(cx, attributes, "namespace");
        }
        if config.exempts_user(&attributes.user.username) {
            return exempt(cx, attributes, "user");
        }
        if let Some(pod) = object.downcast_ref::<Pod>() {
            return check_pod(config, cx, attributes, pod, old.and_then(|old| old.downcast_ref())).await;
        }
        check_controller(config, cx, attributes, object).await
    }
}

/// The policy of the request's namespace, and what is wrong with the labels that say it.
///
/// # Errors
/// Fails where the namespace cannot be had, which is told in the metrics.
async fn policy_of(
    config: &PodSecurityConfig,
    cx: &Context,
    attributes: &Attributes,
) -> Result<(Policy, ErrorList), ApiError> {
    let found = cx.lookup.namespace(&attributes.namespace).await;
    let namespace = found.inspect_err(|_| {
        cx.recorder.pod_security_failed(&request(attributes), PodSecurityFailure::Fatal);
    })?;
    let mut errors = ErrorList::new();
    let policy = Policy::of(&namespace.metadata.labels, &config.defaults, &mut errors);
    Ok((policy, errors))
}

/// Labels that make no sense count as the strictest or as none; that they do is for the audit log.
fn note_misread(cx: &Context, attributes: &Attributes, errors: &ErrorList) {
    if !errors.is_empty() {
        annotate(attributes, "error", format!("Failed to parse policy: {errors}"));
        cx.recorder.pod_security_failed(&request(attributes), PodSecurityFailure::Misread);
    }
}

/// The request as metrics know it.
fn request(attributes: &Attributes) -> PodSecurityRequest<'_> {
    let resource = match attributes.resource.as_str() {
        "pods" => "pod",
        "namespaces" => "namespace",
        _ => "controller",
    };
    PodSecurityRequest { operation: attributes.operation, resource, subresource: &attributes.subresource }
}

fn record(cx: &Context, attributes: &Attributes, mode: &'static str, level: &LevelVersion, fits: bool) {
    let evaluation = PodSecurityEvaluation { fits, mode, level: level.level.name(), minor: level.named_minor() };
    cx.recorder.pod_security_evaluated(&request(attributes), &evaluation);
}

/// Nothing is looked at, for a reason that the audit log tells.
fn exempt(cx: &Context, attributes: &Attributes, why: &str) -> Result<(), ApiError> {
    cx.recorder.pod_security_exempted(&request(attributes));
    annotate(attributes, "exempt", why);
    Ok(())
}

fn annotate(attributes: &Attributes, key: &str, text: impl Into<String>) {
    attributes.annotations.add(format!("pod-security.kubernetes.io/{key}"), text);
}

fn audit(cx: &Context, attributes: &Attributes, level: &LevelVersion, metadata: &ObjectMeta, spec: &PodSpec) {
    if let Some(detail) = violations(level, metadata, spec) {
        record(cx, attributes, "audit", level, false);
        let text = format!("would violate PodSecurity {:?}: {detail}", level.to_string());
        annotate(attributes, "audit-violations", text);
    }
}

fn warn(cx: &Context, attributes: &Attributes, level: &LevelVersion, metadata: &ObjectMeta, spec: &PodSpec) {
    if let Some(detail) = violations(level, metadata, spec) {
        record(cx, attributes, "warn", level, false);
        attributes.warnings.add(format!("would violate PodSecurity {:?}: {detail}", level.to_string()));
    }
}

/// What makes pods is never refused, whatever goes wrong: its pods will be looked at.
async fn check_controller(
    config: &PodSecurityConfig,
    cx: &Context,
    attributes: &Attributes,
    object: &dyn Object,
) -> Result<(), ApiError> {
    let (policy, errors) = match policy_of(config, cx, attributes).await {
        Ok(read) => read,
        Err(error) => {
            let name = &attributes.namespace;
            annotate(attributes, "error", format!("failed to lookup namespace {name:?}: {error}"));
            return Ok(());
        }
    };
    let asks_nothing = [policy.audit, policy.warn].iter().all(|mode| mode.level == Level::Privileged);
    if errors.is_empty() && asks_nothing {
        return Ok(());
    }
    let Some(template) = template(object) else { return Ok(()) };
    if config.exempts_class(template.spec.runtime_class_name.as_deref()) {
        return exempt(cx, attributes, "runtimeClass");
    }
    note_misread(cx, attributes, &errors);
    audit(cx, attributes, &policy.audit, &template.metadata, &template.spec);
    warn(cx, attributes, &policy.warn, &template.metadata, &template.spec);
    Ok(())
}

async fn check_pod(
    config: &PodSecurityConfig,
    cx: &Context,
    attributes: &Attributes,
    pod: &Pod,
    old: Option<&Pod>,
) -> Result<(), ApiError> {
    let (policy, errors) = policy_of(config, cx, attributes).await.map_err(|error| {
        let failed = ApiError::internal(format_args!("failed to lookup namespace {:?}", attributes.namespace));
        annotate(attributes, "error", format!("{}: {error}", failed.message));
        failed
    })?;
    if errors.is_empty() && policy.is_privileged() {
        // Whichever versions the labels name.
        annotate(attributes, "enforce-policy", LevelVersion::default().to_string());
        record(cx, attributes, "enforce", &policy.enforce, true);
        return Ok(());
    }
    if old.is_some_and(|old| !matters(&pod.spec, &old.spec)) {
        return Ok(());
    }
    if config.exempts_class(pod.spec.runtime_class_name.as_deref()) {
        return exempt(cx, attributes, "runtimeClass");
    }
    note_misread(cx, attributes, &errors);
    annotate(attributes, "enforce-policy", policy.enforce.to_string());
    let violations_of_enforced = violations(&policy.enforce, &pod.metadata, &pod.spec);
    record(cx, attributes, "enforce", &policy.enforce, violations_of_enforced.is_none());
    audit(cx, attributes, &policy.audit, &pod.metadata, &pod.spec);
    if let Some(detail) = violations_of_enforced {
        let level = policy.enforce.to_string();
        return Err(attributes.forbidden(format_args!("violates PodSecurity {level:?}: {detail}")));
    }
    warn(cx, attributes, &policy.warn, &pod.metadata, &pod.spec);
    Ok(())
}

/// Whether an update of a pod changes anything that checks look at.
fn matters(new: &PodSpec, old: &PodSpec) -> bool {
    let counts = |spec: &PodSpec| (spec.containers.len(), spec.init_containers.len());
    if counts(new) != counts(old) {
        return true;
    }
    let images = |spec: &PodSpec| -> Vec<String> {
        let all = spec.containers.iter().chain(&spec.init_containers);
        all.map(|container| container.image.clone()).collect()
    };
    let ephemeral = |spec: &PodSpec| -> BTreeMap<String, String> {
        let common = spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common);
        common.map(|own| (own.name.clone(), own.image.clone())).collect()
    };
    let before = ephemeral(old);
    images(new) != images(old) || ephemeral(new).iter().any(|(name, image)| before.get(name) != Some(image))
}

/// The labels must make sense; pods that are there already are only warned of.
fn check_namespace(
    config: &PodSecurityConfig,
    cx: &Context,
    attributes: &Attributes,
    namespace: &Namespace,
    old: Option<&Namespace>,
) -> Result<(), ApiError> {
    let mut errors = ErrorList::new();
    let (labels, name) = (&namespace.metadata.labels, &namespace.metadata.name);
    let policy = Policy::of(labels, &config.defaults, &mut errors);
    let mut former_errors = ErrorList::new();
    let former = old.map(|old| Policy::of(&old.metadata.labels, &config.defaults, &mut former_errors));
    if !errors.is_empty() && (old.is_none() || errors.to_string() != former_errors.to_string()) {
        return Err(ApiError::invalid(&GroupKind::new("", "Namespace"), name, &errors));
    }
    let is_exempt = config.exempts_namespace(name);
    let Some(former) = former else {
        if is_exempt {
            cx.recorder.pod_security_exempted(&request(attributes));
            note_exemption(config, attributes, &policy, namespace);
        }
        return Ok(());
    };
    let enforce = &policy.enforce;
    let eased = enforce.version == former.enforce.version && enforce.level <= former.enforce.level;
    if enforce.level == Level::Privileged || *enforce == former.enforce || eased {
        return Ok(());
    }
    if is_exempt {
        cx.recorder.pod_security_exempted(&request(attributes));
        note_exemption(config, attributes, &policy, namespace);
        return Ok(());
    }
    let mut pods = cx.lookup.list::<Pod>(&attributes.name);
    pods.retain(|pod| !config.exempts_class(pod.spec.runtime_class_name.as_deref()));
    for warning in existing(&pods, enforce, name) {
        attributes.warnings.add(warning);
    }
    Ok(())
}

/// Labels of a namespace that is exempt do nothing, which whoever sets them should know.
fn note_exemption(config: &PodSecurityConfig, attributes: &Attributes, policy: &Policy, namespace: &Namespace) {
    if policy.is_privileged() || *policy == config.defaults {
        return;
    }
    let (name, labelled) = (&namespace.metadata.name, policy.labelled(&namespace.metadata.labels));
    attributes
        .warnings
        .add(format!("namespace {name:?} is exempt from Pod Security, and the policy ({labelled}) will be ignored"));
}

/// The most pods that are looked at when a level is raised.
const MAX_EXISTING: usize = 3000;

/// What is to be said of pods that would be refused now.
fn existing(pods: &[std::sync::Arc<Pod>], enforce: &LevelVersion, namespace: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if pods.len() > MAX_EXISTING {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_EXISTING} of {} existing pods",
            pods.len()
        ));
    }
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods.iter().take(MAX_EXISTING) {
        let subject = Subject::new(&pod.metadata, &pod.spec, enforce.minor());
        let mut found = match enforce.level {
            Level::Restricted => baseline::check(&subject, baseline::Overridden::ByRestricted),
            _ => baseline::check(&subject, baseline::Overridden::None),
        };
        if enforce.level == Level::Restricted {
            found.extend(restricted::check(&subject));
        }
        if !found.is_empty() {
            let reasons = found.iter().map(|own| own.reason.as_str()).collect::<Vec<_>>().join(", ");
            by_reason.entry(reasons).or_default().push(&pod.metadata.name);
        }
    }
    if by_reason.is_empty() {
        return warnings;
    }
    warnings.push(format!(
        "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level {:?}",
        enforce.to_string()
    ));
    let mut lines: Vec<String> = by_reason
        .into_iter()
        .map(|(reasons, mut names)| {
            names.sort_unstable();
            let first = names.first().copied().unwrap_or_default();
            match names.len() {
                0 | 1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                many => format!("{first} (and {} other pods): {reasons}", many - 1),
            }
        })
        .collect();
    lines.sort();
    warnings.extend(lines);
    warnings
}
