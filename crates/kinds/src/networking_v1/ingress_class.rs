//! IngressClass of networking.k8s.io/v1: its names, and its rules.

use api_types::networking_v1::{IngressClass, IngressClassParametersReference, IngressClassSpec};

use crate::field_rules::{self as rules, IMMUTABLE};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;

/// What marks the class that Ingresses without one get.
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<IngressClass>("ingressclasses", "l/iqIbDgFyQ=")),
    unconditional_update: true,
    ..ResourceInfo::of::<IngressClass>()
};

/// The rules of the kind.
pub(crate) struct IngressClassRules;

impl TypedRules for IngressClassRules {
    type Object = IngressClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<IngressClass>] = &[
        Cell::name(|object, _| table::default_name(&object.metadata, &[DEFAULT_ANNOTATION])),
        Cell::text("Controller", |object, _| object.spec.controller.clone().into()),
        Cell::text("Parameters", |object, _| parameters(object).into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("networking.k8s.io/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut IngressClass) {
        if let Some(parameters) = &mut object.spec.parameters {
            parameters.scope.get_or_insert_with(|| "Cluster".into());
        }
    }

    fn validate(_: &RuleContext, object: &IngressClass) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&Path::new("spec"), &object.spec, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &IngressClass, old: &IngressClass) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("spec");
        let controller = &object.spec.controller;
        if *controller != old.spec.controller {
            errors.push(path.child("controller").invalid(controller, IMMUTABLE));
        }
        validate_spec(&path, &object.spec, &mut errors);
        errors
    }
}

fn parameters(class: &IngressClass) -> String {
    let Some(of) = &class.spec.parameters else { return "<none>".to_owned() };
    let group = of.api_group.as_ref().map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", of.kind, of.name)
}

const CONTROLLER_MAX_BYTES: usize = 250;

fn validate_spec(path: &Path, spec: &IngressClassSpec, errors: &mut ErrorList) {
    let at = path.child("controller");
    if spec.controller.len() > CONTROLLER_MAX_BYTES {
        errors.push(at.too_long(CONTROLLER_MAX_BYTES));
    }
    errors.extend(names::domain_prefixed_path(&at, &spec.controller));
    if let Some(parameters) = &spec.parameters {
        validate_parameters(&path.child("parameters"), parameters, errors);
    }
}

fn validate_parameters(path: &Path, of: &IngressClassParametersReference, errors: &mut ErrorList) {
    if let Some(group) = &of.api_group {
        errors.push_invalid(&path.child("apiGroup"), group, names::dns1123_subdomain(group));
    }
    rules::named(&path.child("kind"), &of.kind, names::path_segment_name, errors);
    rules::named(&path.child("name"), &of.name, names::path_segment_name, errors);
    let Some(scope) = &of.scope else {
        errors.push(path.child("scope").required(""));
        return;
    };
    let at = path.child("namespace");
    match (scope.as_str(), of.namespace.as_deref()) {
        ("Namespace", None) => errors.push(at.required("`parameters.scope` is set to 'Namespace'")),
        ("Namespace", Some(namespace)) => errors.push_invalid(&at, namespace, names::dns1123_label(namespace)),
        ("Cluster", Some(_)) => errors.push(at.forbidden("`parameters.scope` is set to 'Cluster'")),
        ("Cluster", None) => {}
        _ => {
            let known = ["Cluster", "Namespace"];
            errors.push(path.child("scope").not_supported_in_order(BadValue::named(scope), &known));
        }
    }
}
