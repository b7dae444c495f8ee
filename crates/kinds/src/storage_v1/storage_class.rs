//! StorageClass of storage.k8s.io/v1: its names, and its rules.

use api_types::storage_v1::StorageClass;

use super::parameters;
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::{BadValue, Path};
use api_machinery::names;
use api_types::core_v1::TopologySelectorTerm;
use api_types::core_v1::constants::persistent_volume_reclaim_policy;
use api_types::storage_v1::constants::volume_binding_mode;
use component_helpers::volumes::classes::DEFAULT_CLASS_ANNOTATIONS;
use std::collections::{BTreeMap, BTreeSet};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["sc"],
    storage: Some(StorageInfo::of::<StorageClass>("storageclasses", "K+m6uJwbjGY=")),
    unconditional_update: true,
    ..ResourceInfo::of::<StorageClass>()
};

/// The rules of the kind.
pub(crate) struct StorageClassRules;

impl TypedRules for StorageClassRules {
    type Object = StorageClass;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<StorageClass>] = &[
        Cell::name(|object, _| table::default_name(&object.metadata, DEFAULT_CLASS_ANNOTATIONS)),
        Cell::text("Provisioner", |object, _| object.provisioner.clone().into()),
        Cell::text("ReclaimPolicy", |object, _| {
            object.reclaim_policy.clone().unwrap_or_else(|| "Delete".into()).into()
        }),
        Cell::text("VolumeBindingMode", |object, _| {
            object.volume_binding_mode.clone().unwrap_or_else(|| "Immediate".into()).into()
        }),
        Cell::text("AllowVolumeExpansion", |object, _| object.allow_volume_expansion.unwrap_or_default().into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("storage.k8s.io/v1beta1")];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &StorageClass) -> ErrorList {
        let mut errors = ErrorList::new();
        let provisioner = object.provisioner.to_lowercase();
        field_rules::named(&Path::new("provisioner"), &provisioner, names::qualified_name, &mut errors);
        parameters::validate(&object.parameters, &mut errors);
        if let Some(policy) = object.reclaim_policy.as_ref().filter(|policy| !policy.is_empty()) {
            // Documents tell the values that volumes may have; a class may not ask for recycling.
            let known = [persistent_volume_reclaim_policy::DELETE, persistent_volume_reclaim_policy::RETAIN];
            field_rules::one_of(&Path::new("reclaimPolicy"), policy, &known, &mut errors);
        }
        let mode = object.volume_binding_mode.as_deref().unwrap_or_default();
        field_rules::choice(&Path::new("volumeBindingMode"), mode, volume_binding_mode::ALL, &mut errors);
        validate_topologies(&object.allowed_topologies, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &StorageClass, old: &StorageClass) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        let named = |value: &Option<String>| value.as_deref().map_or_else(BadValue::null, BadValue::named);
        let mut fixed = |field: &'static str, is_same: bool, value: BadValue| {
            if !is_same {
                errors.push(Path::new(field).invalid(value, field_rules::IMMUTABLE));
            }
        };
        let parameters = BadValue::json(serde_json::json!(object.parameters).to_string());
        fixed("parameters", object.parameters == old.parameters, parameters);
        fixed("provisioner", object.provisioner == old.provisioner, BadValue::from(&object.provisioner));
        fixed("reclaimPolicy", object.reclaim_policy == old.reclaim_policy, named(&object.reclaim_policy));
        let mode = &object.volume_binding_mode;
        fixed("volumeBindingMode", *mode == old.volume_binding_mode, named(mode));
        errors
    }

    fn warnings(object: &StorageClass, _: Option<&StorageClass>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (index, term) in object.allowed_topologies.iter().enumerate() {
            let path = Path::new("allowedTopologies").index(index).child("matchLabelExpressions");
            for (index, expression) in term.match_label_expressions.iter().enumerate() {
                let text = crate::pod_spec::warnings::deprecated_label(&expression.key);
                warnings.extend(text.map(|text| format!("{}: {text}", path.index(index).child("key"))));
            }
        }
        warnings
    }
}

fn validate_topologies(terms: &[TopologySelectorTerm], errors: &mut ErrorList) {
    let mut earlier: BTreeMap<BTreeMap<&str, BTreeSet<&str>>, usize> = BTreeMap::new();
    for (index, term) in terms.iter().enumerate() {
        let path = Path::new("allowedTopologies").index(index).child("matchLabelExpressions");
        let mut seen = BTreeMap::new();
        for (index, expression) in term.match_label_expressions.iter().enumerate() {
            let path = path.index(index);
            if expression.values.is_empty() {
                errors.push(path.child("values").required(""));
            }
            let mut values = BTreeSet::new();
            for (index, value) in expression.values.iter().enumerate() {
                if !values.insert(value.as_str()) {
                    errors.push(path.child("values").index(index).duplicate(value));
                }
            }
            let key = &expression.key;
            errors.push_invalid(&path.child("key"), key, names::qualified_name(key));
            if seen.insert(key.as_str(), values).is_some() {
                errors.push(path.child("key").duplicate(key));
            }
        }
        // Upstream compares with as many empty terms as there are terms, too.
        let empty = if seen.is_empty() { terms.len() } else { 0 };
        let same = earlier.entry(seen).or_default();
        for _ in 0..empty + *same {
            if errors.is_full() {
                return;
            }
            errors.push(path.duplicate(""));
        }
        *same += 1;
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::TopologySelectorLabelRequirement;

    use super::*;

    #[test]
    fn topologies_name_each_place_once() {
        let expression = TopologySelectorLabelRequirement { key: "zone".into(), values: vec!["a".into(), "a".into()] };
        let term = TopologySelectorTerm { match_label_expressions: vec![expression.clone(), expression] };
        let mut errors = ErrorList::new();
        validate_topologies(&[term.clone(), term], &mut errors);
        let texts: Vec<String> = errors.iter().take(3).map(ToString::to_string).collect();
        let path = "allowedTopologies[0].matchLabelExpressions";
        assert_eq!(
            texts,
            [
                format!(r#"{path}[0].values[1]: Duplicate value: "a""#),
                format!(r#"{path}[1].values[1]: Duplicate value: "a""#),
                format!(r#"{path}[1].key: Duplicate value: "zone""#),
            ]
        );
        let mut empty = ErrorList::new();
        validate_topologies(&[TopologySelectorTerm::default(), TopologySelectorTerm::default()], &mut empty);
        assert_eq!(empty.len(), 5, "each of two against two empty ones, and the second against the first");
        let last = errors.iter().last().map(ToString::to_string);
        assert_eq!(last.as_deref(), Some(r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#));
    }
}
