//! ReplicationController of core/v1: its names, and its rules.

use api_types::core_v1::{
    Container, PodTemplateSpec, ReplicationController, ReplicationControllerSpec, ReplicationControllerStatus,
};

use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{Dependents, Lifecycle};
use crate::pod_spec::disabled;
use crate::pod_spec::validation::validate_template;
use crate::replicas::{self, Counts};
use crate::rules::{Endpoint, RuleContext, Scale, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::workload;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::core_v1::PodSpec;
use feature_gates::Gates;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["rc"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<ReplicationController>("controllers", "Jond2If31h0=")),
    unconditional_update: true,
    field_selectors: &["status.replicas"],
    subresources: &[SubresourceInfo::SCALE, SubresourceInfo::status("ReplicationController")],
    ..ResourceInfo::of::<ReplicationController>()
};

/// The rules of the kind.
pub(crate) struct ReplicationControllerRules;

impl TypedRules for ReplicationControllerRules {
    type Object = ReplicationController;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ReplicationController>] = &[
        Cell::NAME,
        Cell::number("Desired", |object, _| object.spec.replicas.unwrap_or_default().into()),
        Cell::number("Current", |object, _| object.status.replicas.into()),
        Cell::number("Ready", |object, _| object.status.ready_replicas.into()),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(containers(object))),
        Cell::wide("Images", |object, _| table::images(containers(object))),
        Cell::wide("Selector", |object, _| table::labels(&object.spec.selector)),
    ];
    const LIFECYCLE: Lifecycle = Lifecycle { dependents: Dependents::Orphan, ..Lifecycle::DEFAULT };
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        // The rule of the newer declarative form counts bytes where the older ones say characters.
        let problems = crate::object_name::dns_subdomain(name, prefix).into_iter();
        problems.map(|text| text.replace("253 characters", "253 bytes")).collect()
    }

    fn set_defaults(object: &mut ReplicationController) {
        let spec = &mut object.spec;
        spec.replicas.get_or_insert(1);
        let Some(template) = &mut spec.template else { return };
        crate::pod_spec::defaults::set_defaults(&mut template.spec);
        if spec.selector.is_empty() {
            spec.selector.clone_from(&template.metadata.labels);
        }
        if object.metadata.labels.is_empty() {
            object.metadata.labels.clone_from(&template.metadata.labels);
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut ReplicationController) {
        if let Some(template) = &mut object.spec.template {
            disabled::drop_fields(&mut template.spec, None, &cx.gates);
        }
    }

    fn validate(cx: &RuleContext, object: &ReplicationController) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, None, &cx.gates, &mut errors);
        errors
    }

    fn prepare_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &mut ReplicationController,
        old: &ReplicationController,
    ) {
        if endpoint == Endpoint::Status {
            return;
        }
        if let Some(template) = &mut object.spec.template {
            let stored = old.spec.template.as_ref().map(|template| &template.spec);
            disabled::drop_fields(&mut template.spec, stored, &cx.gates);
        }
    }

    fn validate_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &ReplicationController,
        old: &ReplicationController,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        match endpoint {
            Endpoint::Status => replicas::validate(&Path::new("status"), &counts(&object.status), &mut errors),
            _ => {
                validate_spec(&Path::new("spec"), &object.spec, old.spec.template.as_ref(), &cx.gates, &mut errors);
                validate_inconvertible(object, old, &mut errors);
            }
        }
        errors
    }

    fn warnings(object: &ReplicationController, old: Option<&ReplicationController>) -> Vec<String> {
        let mut texts = workload::name_warnings(&object.metadata, old.is_none());
        if old.is_some_and(|old| old.metadata.generation == object.metadata.generation) {
            return texts;
        }
        // Upstream looks at the stored template on updates.
        if let Some(template) = &old.unwrap_or(object).spec.template {
            let path = Path::new("spec").child("template");
            texts.extend(crate::pod_spec::warnings::of(&path, &template.metadata, &template.spec));
        }
        texts
    }

    fn field(object: &ReplicationController, path: &str) -> Option<String> {
        (path == "status.replicas").then(|| object.status.replicas.to_string())
    }

    fn scale(object: &ReplicationController) -> Option<Scale> {
        Some(Scale {
            spec_replicas: Ok(object.spec.replicas.unwrap_or(1)),
            status_replicas: object.status.replicas,
            selector: api_machinery::labels::format_labels(&object.spec.selector),
        })
    }

    fn set_replicas(object: &mut ReplicationController, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }

    fn pods(object: &ReplicationController) -> Option<(Path, &PodSpec)> {
        object.spec.template.as_ref().map(|template| (workload::pods_path(), &template.spec))
    }
}

fn containers(controller: &ReplicationController) -> &[Container] {
    controller.spec.template.as_ref().map_or(&[], |template| &template.spec.containers)
}

fn validate_spec(
    path: &Path,
    spec: &ReplicationControllerSpec,
    old: Option<&PodTemplateSpec>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    field_rules::not_negative(&path.child("minReadySeconds"), spec.min_ready_seconds.into(), errors);
    if spec.selector.is_empty() {
        errors.push(path.child("selector").required(""));
    }
    match spec.replicas {
        None => errors.push(path.child("replicas").required("")),
        Some(replicas) => field_rules::not_negative(&path.child("replicas"), replicas.into(), errors),
    }
    let path = path.child("template");
    let Some(template) = &spec.template else {
        errors.push(path.required(""));
        return;
    };
    let labels = &template.metadata.labels;
    if !spec.selector.is_empty() && spec.selector.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        let value = BadValue::texts(labels);
        let detail = "`selector` does not match template `labels`";
        errors.push(path.child("metadata").child("labels").invalid(value, detail));
    }
    errors.extend(validate_template(&path, template, old, gates));
    workload::validate_endless(&path, template, "ReplicationController", errors);
}

/// Marks fields of an object that came from another kind and could not be put into this one.
const INCONVERTIBLE: &str = "non-convertible.kubernetes.io/";

fn validate_inconvertible(object: &ReplicationController, old: &ReplicationController, errors: &mut ErrorList) {
    for (key, why) in &old.metadata.annotations {
        let Some(field) = key.strip_prefix(INCONVERTIBLE) else { continue };
        if !field.contains("selector") {
            let mut error = Path::new(field.to_owned()).not_found(why);
            error.detail = "unknown non-convertible field".to_owned();
            errors.push(error);
        } else if object.spec.selector != old.spec.selector {
            let value = BadValue::json(serde_json::json!(object.spec.selector).to_string());
            let at = Path::new("spec").child("selector");
            errors.push(at.invalid(value, "cannot update non-convertible selector"));
        }
    }
}

fn counts(status: &ReplicationControllerStatus) -> Counts {
    Counts {
        all: status.replicas,
        fully_labeled: status.fully_labeled_replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        terminating: None,
        observed_generation: status.observed_generation,
    }
}
