//! RuntimeClass of node.k8s.io/v1: its names, and its rules.

use std::collections::BTreeSet;

use api_types::node_v1::RuntimeClass;
use api_types::node_v1alpha1;

use crate::info::{ResourceInfo, StorageInfo};
use crate::pod_spec::defaults::round_up;
use crate::pod_spec::validation::{validate_overhead_amounts, validate_tolerations};
use crate::pod_spec::warnings::deprecated_label;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;
use crate::{field_rules, internal_json};
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::Path;
use api_machinery::names;
use api_machinery::object::Object;
use component_helpers::taints::Comparing;
use component_helpers::tolerations::compare_numbers;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<RuntimeClass>("runtimeclasses", "WQTu1GL3T2Q=")),
    create_on_update: true,
    ..ResourceInfo::of::<RuntimeClass>()
};

/// The rules of the kind.
pub(crate) struct RuntimeClassRules;

impl TypedRules for RuntimeClassRules {
    type Object = RuntimeClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<RuntimeClass>] =
        &[Cell::NAME, Cell::text("Handler", |object, _| object.handler.clone().into()), Cell::AGE];
    const FORMER: &'static [Former] = &[
        Former::own::<node_v1alpha1::RuntimeClass>("node.k8s.io/v1alpha1", first_form),
        Former::same("node.k8s.io/v1beta1"),
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut RuntimeClass) {
        round_up(object.overhead.iter_mut().map(|overhead| &mut overhead.pod_fixed));
    }

    fn validate(cx: &RuleContext, object: &RuntimeClass) -> ErrorList {
        checked(object, Comparing::by(&cx.gates))
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &RuntimeClass, old: &RuntimeClass) -> ErrorList {
        let compared = old.scheduling.as_ref().is_some_and(|stored| compare_numbers(&stored.tolerations));
        let mut errors = checked(object, if compared { Comparing::Numbers } else { Comparing::by(&cx.gates) });
        if object.handler != old.handler {
            errors.push(Path::new("handler").invalid(&object.handler, field_rules::IMMUTABLE));
        }
        errors
    }

    fn warnings(object: &RuntimeClass, _: Option<&RuntimeClass>) -> Vec<String> {
        let keys = object.scheduling.iter().flat_map(|scheduling| scheduling.node_selector.keys());
        let texts = keys.filter_map(|key| deprecated_label(key));
        texts.map(|text| format!("scheduling.nodeSelector: {text}")).collect()
    }
}

fn checked(object: &RuntimeClass, comparing: Comparing) -> ErrorList {
    let mut errors = ErrorList::new();
    field_rules::named(&Path::new("handler"), &object.handler, names::dns1123_label, &mut errors);
    if let Some(overhead) = &object.overhead {
        validate_overhead_amounts(&Path::new("overhead"), &overhead.pod_fixed, &mut errors);
    }
    let Some(scheduling) = &object.scheduling else { return errors };
    let path = Path::new("scheduling");
    errors.extend(names::labels(&path.child("nodeSelector"), &scheduling.node_selector));
    let path = path.child("tolerations");
    validate_tolerations(&path, &scheduling.tolerations, comparing, &mut errors);
    let mut seen = BTreeSet::new();
    for (index, toleration) in scheduling.tolerations.iter().enumerate() {
        if !seen.insert((&toleration.key, &toleration.operator, &toleration.value, &toleration.effect)) {
            errors.push(path.index(index).duplicate(internal_json::bad_value(toleration)));
        }
    }
    errors
}

/// What a class is stood in a spec at first.
fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: node_v1alpha1::RuntimeClass = object.downcast_ref().cloned()?;
    Some(Box::new(RuntimeClass {
        metadata: first.metadata,
        handler: first.spec.runtime_handler,
        overhead: first.spec.overhead,
        scheduling: first.spec.scheduling,
    }))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Toleration;

    use super::*;

    #[test]
    fn tolerations_differ() {
        let toleration = Toleration { key: "a".into(), operator: "Exists".into(), ..Toleration::default() };
        let other = Toleration { key: "b".into(), ..toleration.clone() };
        let longer = Toleration { toleration_seconds: Some(1), ..toleration.clone() };
        let tolerations = vec![toleration, other, longer];
        let mut class = RuntimeClass { handler: "h".into(), ..RuntimeClass::default() };
        class.scheduling = Some(api_types::node_v1::Scheduling { tolerations, ..Default::default() });
        let cx = RuleContext::default();
        let texts: Vec<String> = RuntimeClassRules::validate(&cx, &class).iter().map(ToString::to_string).collect();
        let duplicates: Vec<&String> = texts.iter().filter(|text| text.contains("Duplicate")).collect();
        let [duplicate] = &duplicates[..] else { panic!("{texts:?}") };
        assert!(duplicate.starts_with(r#"scheduling.tolerations[2]: Duplicate value: {"Key":"a""#), "{duplicate}");
    }
}
