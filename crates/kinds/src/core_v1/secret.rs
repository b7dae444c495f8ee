//! Secret of core/v1: its names, and its rules.

use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::Secret;

use crate::info::{ResourceInfo, StorageInfo};
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<Secret>("secrets", "S6u1pOWzb84=")),
    unconditional_update: true,
    field_selectors: &["type"],
    ..ResourceInfo::of::<Secret>()
};

/// The rules of the kind.
pub(crate) struct SecretRules;

impl TypedRules for SecretRules {
    type Object = Secret;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Secret>] = &[
        Cell::NAME,
        Cell::text("Type", |object, _| object.type_.clone().into()),
        Cell::text("Data", |object, _| object.data.len().into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    /// `stringData` is only another way of writing `data`, so whoever writes it owns `data`.
    fn set_defaults_first(object: &mut Secret) {
        merge_string_data(object);
    }

    fn prepare_update(_: &RuleContext, _: Endpoint, object: &mut Secret, old: &Secret) {
        if object.type_.is_empty() {
            object.type_.clone_from(&old.type_);
        }
    }

    fn validate(_: &RuleContext, object: &Secret) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_data(object, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &Secret, old: &Secret) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.type_ != old.type_ {
            errors.push(Path::new("type").invalid(BadValue::named(&object.type_), crate::field_rules::IMMUTABLE));
        }
        if old.immutable == Some(true) {
            for (field, kept) in [("immutable", object.immutable == Some(true)), ("data", object.data == old.data)] {
                if !kept {
                    errors.push(Path::new(field).forbidden("field is immutable when `immutable` is set"));
                }
            }
        }
        validate_data(object, &mut errors);
        errors
    }

    fn warnings(object: &Secret, _: Option<&Secret>) -> Vec<String> {
        if object.type_ != "kubernetes.io/tls" {
            return Vec::new();
        }
        let data = |key: &str| object.data.get(key).map(|value| value.0.as_slice()).unwrap_or_default();
        super::key_pair::problem(data("tls.crt"), data("tls.key")).into_iter().collect()
    }

    fn field(object: &Secret, path: &str) -> Option<String> {
        Some(match path {
            "type" => object.type_.clone(),
            _ => return None,
        })
    }
}

/// `stringData` is only for writing: it wins over `data` and is not kept.
fn merge_string_data(secret: &mut Secret) {
    for (key, text) in std::mem::take(&mut secret.string_data) {
        secret.data.insert(key, text.as_str().into());
    }
}

/// The most bytes that the values of a secret may have together.
const MAX_DATA_BYTES: usize = 1024 * 1024;

fn validate_data(object: &Secret, errors: &mut ErrorList) {
    let path = Path::new("data");
    for key in object.data.keys() {
        errors.push_invalid(&path.key(key), key, names::config_key(key));
    }
    if object.data.values().map(|value| value.0.len()).sum::<usize>() > MAX_DATA_BYTES {
        errors.push(path.too_long(MAX_DATA_BYTES));
    }
    let missing = |key: &str| !object.data.contains_key(key);
    let require =
        |keys: &[&str], errors: &mut ErrorList| errors.extend(keys.iter().map(|key| path.key(key).required("")));
    match object.type_.as_str() {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            if object.metadata.annotations.get(NAME).is_none_or(String::is_empty) {
                errors.push(Path::new("metadata").child("annotations").key(NAME).required(""));
            }
        }
        "kubernetes.io/dockercfg" => validate_json(object, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_json(object, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => {
            require(&["username", "password"], errors);
        }
        "kubernetes.io/ssh-auth" if object.data.get("ssh-privatekey").is_none_or(|key| key.0.is_empty()) => {
            require(&["ssh-privatekey"], errors);
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| missing(key)) {
                require(&[key], errors);
            }
        }
        _ => {}
    }
}

fn validate_json(object: &Secret, key: &str, errors: &mut ErrorList) {
    let at = Path::new("data").key(key);
    let Some(text) = object.data.get(key) else {
        errors.push(at.required(""));
        return;
    };
    if let Err(problem) = crate::go_json::check_object(&text.0) {
        errors.push(at.invalid("<secret contents redacted>", problem));
    }
}

#[cfg(test)]
mod validation_tests {
    use super::*;

    #[test]
    fn types_need_their_keys() {
        for (type_, data, expected) in [
            ("Opaque", &[][..], &[][..]),
            ("kubernetes.io/tls", &["tls.crt"], &["data[tls.key]: Required value"]),
            ("kubernetes.io/basic-auth", &[], &["data[username]: Required value", "data[password]: Required value"]),
            ("kubernetes.io/basic-auth", &["username"], &[]),
            ("kubernetes.io/ssh-auth", &["ssh-privatekey"], &["data[ssh-privatekey]: Required value"]),
            ("kubernetes.io/dockercfg", &[], &["data[.dockercfg]: Required value"]),
        ] {
            let data = data.iter().map(|key| ((*key).to_owned(), Vec::new().into())).collect();
            let secret = Secret { type_: type_.into(), data, ..Secret::default() };
            let mut errors = ErrorList::new();
            validate_data(&secret, &mut errors);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{type_}");
        }
    }
}
