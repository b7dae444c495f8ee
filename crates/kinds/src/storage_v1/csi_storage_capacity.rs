//! CSIStorageCapacity of storage.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal_structs;
use api_types::storage_v1::CSIStorageCapacity;

use crate::field_rules::IMMUTABLE;
use crate::info::{ResourceInfo, StorageInfo};
use crate::internal_json;
use crate::label_selector::{self, Values};
use crate::pod_spec::warnings::deprecated_label;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::{self, Cell};
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<CSIStorageCapacity>("csistoragecapacities", "xeVl+2Ly1kE=")),
    ..ResourceInfo::of::<CSIStorageCapacity>()
};

/// The rules of the kind.
pub(crate) struct CSIStorageCapacityRules;

impl TypedRules for CSIStorageCapacityRules {
    type Object = CSIStorageCapacity;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<CSIStorageCapacity>] = &[
        Cell::NAME,
        Cell::text("StorageClassName", |capacity, _| capacity.storage_class_name.clone().into()),
        Cell::text("Capacity", |capacity, _| {
            table::or_unset(capacity.capacity.as_ref().map(ToString::to_string).as_deref())
        }),
    ];
    const FORMER: &'static [Former] =
        &[Former::same("storage.k8s.io/v1alpha1"), Former::same("storage.k8s.io/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &CSIStorageCapacity) -> ErrorList {
        validate(object, Values::Checked)
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &CSIStorageCapacity,
        old: &CSIStorageCapacity,
    ) -> ErrorList {
        let bad = old.node_topology.as_ref().is_some_and(label_selector::is_bad);
        let mut errors = validate(object, if bad { Values::AsStored } else { Values::Checked });
        let same = match (&object.node_topology, &old.node_topology) {
            (Some(new), Some(stored)) => equal_structs(new, stored),
            (new, stored) => new.is_none() && stored.is_none(),
        };
        if !same {
            let value = object.node_topology.as_ref().map(|selector| internal_json::bad_value(selector));
            errors.push(Path::new("nodeTopology").invalid(value, IMMUTABLE));
        }
        if object.storage_class_name != old.storage_class_name {
            errors.push(Path::new("storageClassName").invalid(&object.storage_class_name, IMMUTABLE));
        }
        errors
    }

    fn warnings(object: &CSIStorageCapacity, _: Option<&CSIStorageCapacity>) -> Vec<String> {
        let Some(selector) = &object.node_topology else { return Vec::new() };
        let path = Path::new("nodeTopology");
        let expressions = selector.match_expressions.iter().enumerate().filter_map(|(index, expression)| {
            let (key, at) = (&expression.key, path.child("matchExpressions").index(index).child("key"));
            deprecated_label(key).map(|text| format!("{at}: {key} is {text}"))
        });
        let labels = selector.match_labels.keys().filter_map(|key| {
            deprecated_label(key).map(|text| format!("{}: {text}", path.child("matchLabels").child(key.clone())))
        });
        expressions.chain(labels).collect()
    }
}

fn validate(object: &CSIStorageCapacity, values: Values) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(selector) = &object.node_topology {
        label_selector::validate(&Path::new("nodeTopology"), selector, values, &mut errors);
    }
    let class = &object.storage_class_name;
    errors.push_invalid(&Path::new("storageClassName"), class, names::dns1123_subdomain(class));
    if let Some(capacity) = object.capacity.as_ref().filter(|capacity| capacity.sign() < 0) {
        errors.push(Path::new("capacity").invalid(capacity.to_string(), "must be greater than or equal to 0"));
    }
    errors
}
