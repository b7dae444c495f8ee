//! DaemonSet of apps/v1: its names, and its rules.

use api_types::apps_v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy};

use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::label_selector::{self, Values};
use crate::pod_spec::disabled;
use crate::pod_spec::validation::validate_template;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use crate::workload;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::intstr::IntOrString;
use api_machinery::object::Object;
use api_machinery::reflect::equal;
use api_types::apps_v1::constants::{DEPRECATED_TEMPLATE_GENERATION, daemon_set_update_strategy_type};
use api_types::core_v1::PodSpec;
use api_types::extensions_v1beta1;
use component_helpers::integers;
use feature_gates::Gates;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ds"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<DaemonSet>("daemonsets", "dd7pWHUlMKQ=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("DaemonSet")],
    ..ResourceInfo::of::<DaemonSet>()
};

/// The rules of the kind.
pub(crate) struct DaemonSetRules;

impl TypedRules for DaemonSetRules {
    type Object = DaemonSet;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<DaemonSet>] = &[
        Cell::NAME,
        Cell::number("Desired", |object, _| object.status.desired_number_scheduled.into()),
        Cell::number("Current", |object, _| object.status.current_number_scheduled.into()),
        Cell::number("Ready", |object, _| object.status.number_ready.into()),
        Cell::number("Up-to-date", |object, _| object.status.updated_number_scheduled.into()),
        Cell::number("Available", |object, _| object.status.number_available.into()),
        Cell::text("Node Selector", |object, _| table::labels(&object.spec.template.spec.node_selector)),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.template.spec.containers)),
        Cell::wide("Selector", |object, _| table::selector(object.spec.selector.as_ref(), "<error>")),
    ];
    const FORMER: &'static [Former] =
        &[Former::same("apps/v1beta2"), Former::own::<extensions_v1beta1::DaemonSet>("extensions/v1beta1", first_form)];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn misread(object: &DaemonSet) -> Option<String> {
        integers::parse(object.metadata.annotations.get(DEPRECATED_TEMPLATE_GENERATION)?).err()
    }

    fn set_defaults(object: &mut DaemonSet) {
        // Upstream's conversion always writes the annotation, before fields are tracked.
        set_template_generation(object, template_generation(object));
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        let strategy = &mut object.spec.update_strategy;
        if strategy.type_ == "RollingUpdate" {
            let rolling = strategy.rolling_update.get_or_insert_default();
            rolling.max_unavailable.get_or_insert(IntOrString::Int(1));
            rolling.max_surge.get_or_insert(IntOrString::Int(0));
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut DaemonSet) {
        disabled::drop_fields(&mut object.spec.template.spec, None, &cx.gates);
        let given = template_generation(object).max(1);
        set_template_generation(object, given);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut DaemonSet, old: &DaemonSet) {
        let mut generation = template_generation(old);
        if endpoint != Endpoint::Status {
            disabled::drop_fields(&mut object.spec.template.spec, Some(&old.spec.template.spec), &cx.gates);
            generation += i64::from(!equal(&object.spec.template, &old.spec.template));
        }
        set_template_generation(object, generation);
    }

    fn validate(cx: &RuleContext, object: &DaemonSet) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, None, &cx.gates, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &DaemonSet, old: &DaemonSet) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validate_status(&Path::new("status"), &object.status, &old.status, &mut errors);
            return errors;
        }
        workload::selector_stays(object.spec.selector.as_ref(), old.spec.selector.as_ref(), &mut errors);
        validate_spec(&Path::new("spec"), &object.spec, Some(&old.spec), &cx.gates, &mut errors);
        errors
    }

    fn warnings(object: &DaemonSet, old: Option<&DaemonSet>) -> Vec<String> {
        // A change elsewhere in the spec is no reason to repeat them.
        if old.is_some_and(|old| equal(&object.spec.template, &old.spec.template)) {
            return Vec::new();
        }
        let path = Path::new("spec").child("template");
        workload::template_warnings(&path, &object.metadata, None, &object.spec.template)
    }

    fn pods(object: &DaemonSet) -> Option<(Path, &PodSpec)> {
        Some((workload::pods_path(), &object.spec.template.spec))
    }
}

/// Upstream keeps the count of the template's changes inside and shows it as an annotation.
fn template_generation(set: &DaemonSet) -> i64 {
    set.metadata.annotations.get(DEPRECATED_TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(set: &mut DaemonSet, generation: i64) {
    set.metadata.annotations.insert(DEPRECATED_TEMPLATE_GENERATION.to_owned(), generation.to_string());
}

/// The count of the template's changes was a field at first.
fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: extensions_v1beta1::DaemonSet = object.downcast_ref().cloned()?;
    let spec = first.spec;
    let mut set = DaemonSet {
        metadata: first.metadata,
        spec: DaemonSetSpec {
            selector: spec.selector,
            template: spec.template,
            update_strategy: spec.update_strategy,
            min_ready_seconds: spec.min_ready_seconds,
            revision_history_limit: spec.revision_history_limit,
        },
        status: first.status,
    };
    set_template_generation(&mut set, spec.template_generation);
    Some(Box::new(set))
}

fn validate_spec(
    path: &Path,
    spec: &DaemonSetSpec,
    old: Option<&DaemonSetSpec>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    let at = path.child("selector");
    if let Some(selector) = &spec.selector {
        let bad = old.and_then(|old| old.selector.as_ref()).is_some_and(label_selector::is_bad);
        let values = if bad { Values::AsStored } else { Values::Checked };
        label_selector::validate(&at, selector, values, errors);
    }
    let template = path.child("template");
    workload::validate_selects(&template, spec.selector.as_ref(), &spec.template, errors);
    if spec.selector.as_ref().is_some_and(|s| s.match_labels.is_empty() && s.match_expressions.is_empty()) {
        let value = workload::selector_value(spec.selector.as_ref());
        errors.push(at.invalid(value, "empty selector is invalid for daemonset"));
    }
    errors.extend(validate_template(&template, &spec.template, old.map(|old| &old.template), gates));
    workload::validate_endless(&template, &spec.template, "DaemonSet", errors);
    field_rules::not_negative(&path.child("minReadySeconds"), spec.min_ready_seconds.into(), errors);
    validate_strategy(&path.child("updateStrategy"), &spec.update_strategy, errors);
    if let Some(limit) = spec.revision_history_limit {
        field_rules::not_negative(&path.child("revisionHistoryLimit"), limit.into(), errors);
    }
}

fn validate_strategy(path: &Path, strategy: &DaemonSetUpdateStrategy, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    match (strategy.type_.as_str(), &strategy.rolling_update) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => errors.push(at.required("")),
        ("RollingUpdate", Some(rolling)) => {
            const NONE: IntOrString = IntOrString::Int(0);
            let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&NONE);
            let surge = rolling.max_surge.as_ref().unwrap_or(&NONE);
            let (unavailable_at, surge_at) = (at.child("maxUnavailable"), at.child("maxSurge"));
            workload::int_or_percent(&unavailable_at, unavailable, errors);
            workload::int_or_percent(&surge_at, surge, errors);
            workload::at_most_all(&unavailable_at, unavailable, errors);
            workload::at_most_all(&surge_at, surge, errors);
            match (workload::amount(unavailable) != 0, workload::amount(surge) != 0) {
                (true, true) => errors.push(surge_at.invalid(surge, "may not be set when maxUnavailable is non-zero")),
                (false, false) => errors.push(unavailable_at.required("cannot be 0 when maxSurge is 0")),
                _ => {}
            }
        }
        _ => {
            let known = daemon_set_update_strategy_type::ALL;
            errors.push(path.not_supported_in_order(internal_json::bad_value(strategy), known));
        }
    }
}

fn validate_status(path: &Path, status: &DaemonSetStatus, old: &DaemonSetStatus, errors: &mut ErrorList) {
    let counters = [
        ("currentNumberScheduled", status.current_number_scheduled.into()),
        ("numberMisscheduled", status.number_misscheduled.into()),
        ("desiredNumberScheduled", status.desired_number_scheduled.into()),
        ("numberReady", status.number_ready.into()),
        ("observedGeneration", status.observed_generation),
        ("updatedNumberScheduled", status.updated_number_scheduled.into()),
        ("numberAvailable", status.number_available.into()),
        ("numberUnavailable", status.number_unavailable.into()),
        ("collisionCount", status.collision_count.unwrap_or(0).into()),
    ];
    workload::not_negative(path, &counters, errors);
    workload::not_decremented(path, status.collision_count, old.collision_count, errors);
}
