//! Deployment of apps/v1: its names, and its rules.

use api_types::apps_v1::{Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy};

use crate::field_rules;
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::pod_spec::disabled;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, Scale, TypedRules};
use crate::strategy::{Strategy, next_generation};
use crate::table::{self, Cell};
use crate::versions::Former;
use crate::workload;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::intstr::IntOrString;
use api_machinery::object::Object;
use api_types::apps_v1::constants::{DEPRECATED_ROLLBACK_TO, deployment_strategy_type};
use api_types::apps_v1beta1;
use api_types::core_v1::PodSpec;
use component_helpers::integers;
use feature_gates::Gates;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["deploy"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<Deployment>("deployments", "8aSe+NMegvE=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::SCALE, SubresourceInfo::status("Deployment")],
    ..ResourceInfo::of::<Deployment>()
};

/// The rules of the kind.
pub(crate) struct DeploymentRules;

impl TypedRules for DeploymentRules {
    type Object = Deployment;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Deployment>] = &[
        Cell::NAME,
        Cell::text("Ready", |object, _| {
            format!("{}/{}", object.status.ready_replicas, object.spec.replicas.unwrap_or_default()).into()
        }),
        Cell::text("Up-to-date", |object, _| object.status.updated_replicas.into()),
        Cell::text("Available", |object, _| object.status.available_replicas.into()),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.template.spec.containers)),
        Cell::wide("Selector", |object, _| table::selector(object.spec.selector.as_ref(), "<invalid>")),
    ];
    const FORMER: &'static [Former] = &[
        Former::same("apps/v1beta2"),
        Former::own::<apps_v1beta1::Deployment>("apps/v1beta1", first_form),
        Former::own::<apps_v1beta1::Deployment>("extensions/v1beta1", first_form),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const GATED: &'static [Gated<Deployment>] = &[Gated {
        features: &[gates::TERMINATING_REPLICAS],
        used: |own| own.status.terminating_replicas.is_some(),
        drop: |own| own.status.terminating_replicas = None,
    }];

    fn reset_fields(subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" => &["status"],
            "status" => &["spec", "metadata.labels"],
            _ => &[],
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn misread(object: &Deployment) -> Option<String> {
        let revision = object.metadata.annotations.get(DEPRECATED_ROLLBACK_TO).filter(|text| !text.is_empty())?;
        let error = integers::parse(revision).err()?;
        Some(format!("failed to parse annotation[{DEPRECATED_ROLLBACK_TO}]={revision} as int64: {error}"))
    }

    fn set_defaults(object: &mut Deployment) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        let strategy = &mut object.spec.strategy;
        if strategy.type_ == "RollingUpdate" {
            let quarter = || Some(IntOrString::Str("25%".into()));
            let rolling = strategy.rolling_update.get_or_insert_default();
            rolling.max_unavailable = rolling.max_unavailable.take().or_else(quarter);
            rolling.max_surge = rolling.max_surge.take().or_else(quarter);
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut Deployment) {
        disabled::drop_fields(&mut object.spec.template.spec, None, &cx.gates);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut Deployment, old: &Deployment) {
        if endpoint == Endpoint::Status {
            object.metadata.labels.clone_from(&old.metadata.labels);
            return;
        }
        disabled::drop_fields(&mut object.spec.template.spec, Some(&old.spec.template.spec), &cx.gates);
        // A new annotation is a new generation too, as rollouts read them.
        let counted = object.metadata.generation != old.metadata.generation;
        if !counted && object.metadata.annotations != old.metadata.annotations {
            next_generation(&mut object.metadata);
        }
    }

    fn validate(cx: &RuleContext, object: &Deployment) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, None, &cx.gates, &mut errors);
        validate_rollback(object, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Deployment, old: &Deployment) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validate_status(&Path::new("status"), &object.status, &old.status, &mut errors);
            return errors;
        }
        validate_spec(&Path::new("spec"), &object.spec, Some(&old.spec), &cx.gates, &mut errors);
        validate_rollback(object, &mut errors);
        workload::selector_stays(object.spec.selector.as_ref(), old.spec.selector.as_ref(), &mut errors);
        errors
    }

    fn warnings(object: &Deployment, old: Option<&Deployment>) -> Vec<String> {
        workload::warnings(&object.metadata, old.map(|old| &old.metadata), &object.spec.template)
    }

    fn pods(object: &Deployment) -> Option<(Path, &PodSpec)> {
        Some((workload::pods_path(), &object.spec.template.spec))
    }

    fn scale(object: &Deployment) -> Option<Scale> {
        let (spec, status) = (&object.spec, &object.status);
        Some(crate::workload::scale(spec.replicas, status.replicas, spec.selector.as_ref()))
    }

    fn set_replicas(object: &mut Deployment, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }
}

fn validate_spec(
    path: &Path,
    spec: &DeploymentSpec,
    old: Option<&DeploymentSpec>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    field_rules::not_negative(&path.child("replicas"), spec.replicas.unwrap_or(0).into(), errors);
    let stored = old.map(|old| &old.template);
    workload::validate_replicated(path, spec.selector.as_ref(), (&spec.template, stored), gates, errors);
    validate_strategy(&path.child("strategy"), &spec.strategy, errors);
    field_rules::not_negative(&path.child("minReadySeconds"), spec.min_ready_seconds.into(), errors);
    if let Some(limit) = spec.revision_history_limit {
        field_rules::not_negative(&path.child("revisionHistoryLimit"), limit.into(), errors);
    }
    if let Some(seconds) = spec.progress_deadline_seconds {
        let path = path.child("progressDeadlineSeconds");
        field_rules::not_negative(&path, seconds.into(), errors);
        if seconds <= spec.min_ready_seconds {
            errors.push(path.invalid(seconds, "must be greater than minReadySeconds"));
        }
    }
}

/// Upstream keeps the revision to go back to inside and shows it as an annotation.
fn validate_rollback(object: &Deployment, errors: &mut ErrorList) {
    let revision = object.metadata.annotations.get(DEPRECATED_ROLLBACK_TO);
    let revision = revision.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    field_rules::not_negative(&Path::new("spec").child("rollback").child("version"), revision, errors);
}

/// The revision to go back to was a field at first.
fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: apps_v1beta1::Deployment = object.downcast_ref().cloned()?;
    let (mut metadata, spec) = (first.metadata, first.spec);
    if let Some(to) = spec.rollback_to {
        metadata.annotations.insert(DEPRECATED_ROLLBACK_TO.to_owned(), to.revision.to_string());
    }
    let spec = DeploymentSpec {
        replicas: spec.replicas,
        selector: spec.selector,
        template: spec.template,
        strategy: spec.strategy,
        min_ready_seconds: spec.min_ready_seconds,
        revision_history_limit: spec.revision_history_limit,
        paused: spec.paused,
        progress_deadline_seconds: spec.progress_deadline_seconds,
    };
    Some(Box::new(Deployment { metadata, spec, status: first.status }))
}

fn validate_strategy(path: &Path, strategy: &DeploymentStrategy, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    match (strategy.type_.as_str(), &strategy.rolling_update) {
        ("Recreate", None) => {}
        ("Recreate", Some(_)) => {
            errors.push(at.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        ("RollingUpdate", None) => errors.push(at.required("this should be defaulted and never be nil")),
        ("RollingUpdate", Some(rolling)) => {
            const NONE: IntOrString = IntOrString::Int(0);
            let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&NONE);
            let surge = rolling.max_surge.as_ref().unwrap_or(&NONE);
            let path = at.child("maxUnavailable");
            workload::int_or_percent(&path, unavailable, errors);
            workload::int_or_percent(&at.child("maxSurge"), surge, errors);
            if workload::amount(unavailable) == 0 && workload::amount(surge) == 0 {
                errors.push(path.invalid(unavailable, "may not be 0 when `maxSurge` is 0"));
            }
            workload::at_most_all(&path, unavailable, errors);
        }
        _ => errors.push(path.not_supported(internal_json::bad_value(strategy), deployment_strategy_type::ALL)),
    }
}

fn validate_status(path: &Path, status: &DeploymentStatus, old: &DeploymentStatus, errors: &mut ErrorList) {
    let counters = [
        ("observedGeneration", status.observed_generation),
        ("replicas", status.replicas.into()),
        ("updatedReplicas", status.updated_replicas.into()),
        ("readyReplicas", status.ready_replicas.into()),
        ("availableReplicas", status.available_replicas.into()),
        ("unavailableReplicas", status.unavailable_replicas.into()),
        ("terminatingReplicas", status.terminating_replicas.unwrap_or(0).into()),
        ("collisionCount", status.collision_count.unwrap_or(0).into()),
    ];
    workload::not_negative(path, &counters, errors);
    let parts = [
        ("updatedReplicas", status.updated_replicas),
        ("readyReplicas", status.ready_replicas),
        ("availableReplicas", status.available_replicas),
    ];
    workload::parts_of(path, status.replicas, &parts, errors);
    let ready = (status.available_replicas, status.ready_replicas);
    workload::available_are_ready(path, ready, "readyReplicas", errors);
    workload::not_decremented(path, status.collision_count, old.collision_count, errors);
}
