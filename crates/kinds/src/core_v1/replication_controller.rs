//! ReplicationController of core/v1: its names, and its rules.

use api_types::core_v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerSpec, ReplicationControllerStatus,
};

use crate::field_rules;
use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::pod_spec::disabled;
use crate::pod_spec::validation::validate_template;
use crate::rules::{Endpoint, RuleContext, Scale, TypedRules};
use crate::strategy::Strategy;
use crate::table;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "ReplicationController",
    resource: "replicationcontrollers",
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "controllers", group: "", version: "v1", hash: "Jond2If31h0=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.replicas"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Desired", type_: "integer", format: "", priority: 0 },
        Column { name: "Current", type_: "integer", format: "", priority: 0 },
        Column { name: "Ready", type_: "integer", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "scale",
            kind: "Scale",
            group: "autoscaling",
            version: "v1",
            verbs: &["get", "patch", "update"],
        },
        SubresourceInfo {
            name: "status",
            kind: "ReplicationController",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct ReplicationControllerRules;

impl TypedRules for ReplicationControllerRules {
    type Object = ReplicationController;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
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

    fn prepare_create(_: &RuleContext, object: &mut ReplicationController) {
        if let Some(template) = &mut object.spec.template {
            disabled::drop_fields(&mut template.spec, None);
        }
    }

    fn validate(_: &RuleContext, object: &ReplicationController) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, None, &mut errors);
        errors
    }

    fn prepare_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &mut ReplicationController,
        old: &ReplicationController,
    ) {
        if endpoint == Endpoint::Status {
            return;
        }
        if let Some(template) = &mut object.spec.template {
            let stored = old.spec.template.as_ref().map(|template| &template.spec);
            disabled::drop_fields(&mut template.spec, stored);
        }
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &ReplicationController,
        old: &ReplicationController,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        match endpoint {
            Endpoint::Status => validate_status(&Path::new("status"), &object.status, &mut errors),
            _ => validate_spec(&Path::new("spec"), &object.spec, old.spec.template.as_ref(), &mut errors),
        }
        errors
    }

    fn field(object: &ReplicationController, path: &str) -> Option<String> {
        (path == "status.replicas").then(|| object.status.replicas.to_string())
    }

    fn scale(object: &ReplicationController) -> Option<Scale> {
        Some(Scale {
            spec_replicas: object.spec.replicas.unwrap_or(1),
            status_replicas: object.status.replicas,
            selector: api_machinery::labels::format_labels(&object.spec.selector),
        })
    }

    fn set_replicas(object: &mut ReplicationController, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }

    fn cells(object: &ReplicationController, now: Time) -> Vec<Value> {
        let containers = object.spec.template.as_ref().map_or(&[][..], |template| &template.spec.containers);
        vec![
            object.metadata.name.clone().into(),
            object.spec.replicas.unwrap_or_default().into(),
            object.status.replicas.into(),
            object.status.ready_replicas.into(),
            table::age(&object.metadata, now),
            table::names(containers),
            table::images(containers),
            table::labels(&object.spec.selector),
        ]
    }
}

fn validate_spec(path: &Path, spec: &ReplicationControllerSpec, old: Option<&PodTemplateSpec>, errors: &mut ErrorList) {
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
        let value = BadValue::json(serde_json::json!(labels).to_string());
        let detail = "`selector` does not match template `labels`";
        errors.push(path.child("metadata").child("labels").invalid(value, detail));
    }
    errors.extend(validate_template(&path, template, old));
    let at = path.child("spec");
    field_rules::one_of(&at.child("restartPolicy"), &template.spec.restart_policy, &["Always"], errors);
    if template.spec.active_deadline_seconds.is_some() {
        let detail = "activeDeadlineSeconds in ReplicationController is not Supported";
        errors.push(at.child("activeDeadlineSeconds").forbidden(detail));
    }
}

fn validate_status(path: &Path, status: &ReplicationControllerStatus, errors: &mut ErrorList) {
    for (field, value) in [
        ("replicas", i64::from(status.replicas)),
        ("fullyLabeledReplicas", status.fully_labeled_replicas.into()),
        ("readyReplicas", status.ready_replicas.into()),
        ("availableReplicas", status.available_replicas.into()),
        ("observedGeneration", status.observed_generation),
    ] {
        field_rules::not_negative(&path.child(field), value, errors);
    }
    for (field, value) in [
        ("fullyLabeledReplicas", status.fully_labeled_replicas),
        ("readyReplicas", status.ready_replicas),
        ("availableReplicas", status.available_replicas),
    ] {
        if value > status.replicas {
            errors.push(path.child(field).invalid(value, "cannot be greater than status.replicas"));
        }
    }
    if status.available_replicas > status.ready_replicas {
        let detail = "cannot be greater than readyReplicas";
        errors.push(path.child("availableReplicas").invalid(status.available_replicas, detail));
    }
}
