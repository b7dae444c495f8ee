//! Namespace of core/v1: its names, and its rules.

use crate::rules::{Endpoint, RuleContext, TypedRules};
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::Namespace;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{DeleteAnswer, Lifecycle};
use crate::strategy::Strategy;
use crate::table::Cell;
use api_types::core_v1::constants::{LABEL_METADATA_NAME, namespace_phase};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ns"],
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo::of::<Namespace>("namespaces", "Q3oi5N2YM8M=")),
    unconditional_update: true,
    field_selectors: &["status.phase"],
    subresources: &[
        SubresourceInfo { name: "finalize", kind: "Namespace", group: "", version: "", verbs: &["update"] },
        SubresourceInfo::status("Namespace"),
    ],
    ..ResourceInfo::of::<Namespace>()
};

/// Holds the namespace until its content is gone.
const FINALIZER: &str = "kubernetes";

/// The rules of the kind.
pub(crate) struct NamespaceRules;

impl TypedRules for NamespaceRules {
    type Object = Namespace;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Namespace>] =
        &[Cell::NAME, Cell::text("Status", |object, _| object.status.phase.clone().into()), Cell::AGE];
    const LIFECYCLE: Lifecycle = Lifecycle { delete_answer: DeleteAnswer::UndocumentedObject, ..Lifecycle::DEFAULT };
    const STRATEGY: Strategy = Strategy::Status;

    fn reset_fields(subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" | "finalize" => &["status"],
            "status" => &["spec"],
            _ => &[],
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_label(name, prefix)
    }

    fn set_defaults(object: &mut Namespace) {
        label_with_name(object);
    }

    fn prepare_create(_: &RuleContext, object: &mut Namespace) {
        // The name may have been generated since the defaults were set.
        label_with_name(object);
        object.status.phase = namespace_phase::ACTIVE.into();
        if !object.spec.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            object.spec.finalizers.push(FINALIZER.into());
        }
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut Namespace, old: &Namespace) {
        label_with_name(object);
        match endpoint {
            Endpoint::Main => object.spec.finalizers.clone_from(&old.spec.finalizers),
            Endpoint::Status => {}
            Endpoint::Other(_) => object.status = old.status.clone(),
        }
    }

    fn validate(_: &RuleContext, object: &Namespace) -> ErrorList {
        let mut errors = ErrorList::new();
        for finalizer in &object.spec.finalizers {
            validate_finalizer(&Path::new("spec").child("finalizers"), finalizer, &mut errors);
        }
        errors
    }

    fn validate_update(_: &RuleContext, endpoint: Endpoint, object: &Namespace, _: &Namespace) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("spec").child("finalizers");
        match endpoint {
            Endpoint::Status => validate_phase(object, &mut errors),
            Endpoint::Main => {
                for finalizer in &object.spec.finalizers {
                    validate_finalizer(&path, finalizer, &mut errors);
                }
            }
            Endpoint::Other(_) => {
                for (index, finalizer) in object.spec.finalizers.iter().enumerate() {
                    validate_finalizer(&path.index(index), finalizer, &mut errors);
                }
            }
        }
        errors
    }

    fn field(object: &Namespace, path: &str) -> Option<String> {
        Some(match path {
            "status.phase" => object.status.phase.clone(),
            "name" => object.metadata.name.clone(),
            _ => return None,
        })
    }
}

/// Selectors can name every namespace by a label.
fn label_with_name(namespace: &mut Namespace) {
    let name = namespace.metadata.name.clone();
    if !name.is_empty() {
        namespace.metadata.labels.insert(LABEL_METADATA_NAME.into(), name);
    }
}

fn validate_finalizer(path: &Path, finalizer: &str, errors: &mut ErrorList) {
    let value = || BadValue::named(finalizer);
    let problems = names::qualified_name(finalizer);
    let standard = matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion");
    if problems.is_empty() && !finalizer.contains('/') && !standard {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(path.invalid(value(), detail));
    }
    errors.extend(problems.into_iter().map(|detail| path.invalid(value(), detail)));
}

fn validate_phase(object: &Namespace, errors: &mut ErrorList) {
    let (phase, at) = (object.status.phase.as_str(), Path::new("status").child("Phase"));
    let detail = match object.metadata.deletion_timestamp.is_some() {
        false if phase != namespace_phase::ACTIVE => "may only be 'Active' if `deletionTimestamp` is empty",
        true if phase != "Terminating" => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return,
    };
    errors.push(at.invalid(BadValue::named(phase), detail));
}

#[cfg(test)]
mod validation_tests {
    use super::*;

    #[test]
    fn generated_names_are_labels_too() {
        let mut namespace = Namespace::default();
        NamespaceRules::set_defaults(&mut namespace);
        namespace.metadata.name = "n-abcde".into();
        NamespaceRules::prepare_create(&RuleContext::default(), &mut namespace);
        assert_eq!(namespace.metadata.labels[LABEL_METADATA_NAME], "n-abcde");
        let old = namespace.clone();
        namespace.metadata.labels.clear();
        NamespaceRules::prepare_update(&RuleContext::default(), Endpoint::Status, &mut namespace, &old);
        assert_eq!(namespace.metadata.labels[LABEL_METADATA_NAME], "n-abcde");
    }

    #[test]
    fn phases_follow_deletion_and_finalizers_have_domains() {
        let mut errors = ErrorList::new();
        let mut namespace = Namespace::default();
        namespace.status.phase = "Terminating".into();
        validate_phase(&namespace, &mut errors);
        validate_finalizer(&Path::new("f"), "kubernetes", &mut errors);
        validate_finalizer(&Path::new("f"), "a.com/b", &mut errors);
        validate_finalizer(&Path::new("f"), "mine", &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
                "f: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified",
            ]
        );
    }
}
