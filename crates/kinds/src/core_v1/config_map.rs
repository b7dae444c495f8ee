//! ConfigMap of core/v1: its names, and its rules.

use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::ConfigMap;

use crate::info::{ResourceInfo, StorageInfo};
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["cm"],
    storage: Some(StorageInfo::of::<ConfigMap>("configmaps", "qFsyl6wFWjQ=")),
    unconditional_update: true,
    ..ResourceInfo::of::<ConfigMap>()
};

/// The rules of the kind.
pub(crate) struct ConfigMapRules;

impl TypedRules for ConfigMapRules {
    type Object = ConfigMap;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ConfigMap>] =
        &[Cell::NAME, Cell::text("Data", |object, _| (object.data.len() + object.binary_data.len()).into()), Cell::AGE];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ConfigMap) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_data(object, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &ConfigMap, old: &ConfigMap) -> ErrorList {
        let mut errors = ErrorList::new();
        if old.immutable == Some(true) {
            for (field, kept) in [
                ("immutable", object.immutable == Some(true)),
                ("data", object.data == old.data),
                ("binaryData", object.binary_data == old.binary_data),
            ] {
                if !kept {
                    errors.push(Path::new(field).forbidden("field is immutable when `immutable` is set"));
                }
            }
        }
        validate_data(object, &mut errors);
        errors
    }
}

/// The most bytes that the values of a map may have together.
const MAX_DATA_BYTES: usize = 1024 * 1024;

fn validate_data(object: &ConfigMap, errors: &mut ErrorList) {
    for key in object.data.keys() {
        let at = Path::new("data").key(key);
        errors.push_invalid(&at, key, names::config_key(key));
        if object.binary_data.contains_key(key) {
            errors.push(at.invalid(key, "duplicate of key present in binaryData"));
        }
    }
    for key in object.binary_data.keys() {
        errors.push_invalid(&Path::new("binaryData").key(key), key, names::config_key(key));
    }
    let texts: usize = object.data.values().map(String::len).sum();
    let bytes: usize = object.binary_data.values().map(|value| value.0.len()).sum();
    if texts + bytes > MAX_DATA_BYTES {
        errors.push(Path::new("").too_long(MAX_DATA_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_are_file_names_and_immutable_maps_stay() {
        let mut map = ConfigMap::default();
        map.data.insert("a".into(), "x".into());
        map.binary_data.insert("a".into(), vec![1].into());
        let mut errors = ErrorList::new();
        validate_data(&map, &mut errors);
        assert_eq!(texts(&errors), ["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"]);
        map.binary_data.clear();
        map.data.insert("big".into(), "x".repeat(MAX_DATA_BYTES));
        let mut errors = ErrorList::new();
        validate_data(&map, &mut errors);
        assert_eq!(texts(&errors), ["[]: Too long: may not be more than 1048576 bytes"]);
    }
}
