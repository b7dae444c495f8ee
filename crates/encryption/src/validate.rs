//! What a configuration may say; texts are upstream's.

use std::collections::HashSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::gvk::GroupResource;
use api_machinery::json;
use api_types::apiserver_config_v1::{EncryptionConfiguration, KMSConfiguration, Key, ProviderConfiguration};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ciphers::{AES_CBC, AES_GCM, Algorithm, SECRETBOX};

/// Kept in the store, and not by the API.
const NOT_OF_THE_API: [&str; 3] = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];
const OF_ANY_GROUP: &str = "*";

/// Checks a configuration; `reloads` is whether the file will be followed.
pub(crate) fn validate(configuration: &EncryptionConfiguration, reloads: bool) -> ErrorList {
    let (root, mut errors) = (Path::new("resources"), ErrorList::new());
    if configuration.resources.is_empty() {
        errors.push(root.required(format!("at least one {root} is required")));
    }
    let mut kms_names = HashSet::new();
    for (index, element) in configuration.resources.iter().enumerate() {
        let [resources, providers] = ["resources", "providers"].map(|name| root.index(index).child(name));
        if element.resources.is_empty() {
            errors.push(resources.required(format!("at least one {resources} is required")));
        }
        overlap(&resources, &element.resources, &mut errors);
        for (index, name) in element.resources.iter().enumerate() {
            if let Some(problem) = wrong_name(name) {
                errors.push(resources.index(index).invalid(name, problem));
            }
        }
        if element.providers.is_empty() {
            errors.push(providers.required(format!("at least one {providers} is required")));
        }
        for (index, provider) in element.providers.iter().enumerate() {
            let path = providers.index(index);
            single(&path, provider, &mut errors);
            settings(&path, provider, reloads, &mut kms_names, &mut errors);
        }
    }
    errors
}

/// Names that mean the same, or of which one is part of the other.
fn overlap(path: &Path, names: &[String], errors: &mut ErrorList) {
    let all: Vec<GroupResource> = names.iter().map(|name| GroupResource::parse(name)).collect();
    let any = |resource: &GroupResource| resource.resource == OF_ANY_GROUP;
    let pairs = || all.iter().enumerate().flat_map(|(index, one)| all[index + 1..].iter().map(move |two| (one, two)));
    let everything = |one: &GroupResource| any(one) && one.group == OF_ANY_GROUP;
    // Of names that are equal the first pair is a duplicate, and no overlap.
    let twice = pairs().any(|(one, two)| one == two);
    let overlaps = pairs().any(|(one, two)| {
        one != two && (everything(one) || everything(two) || (one.group == two.group && (any(one) || any(two))))
    });
    if twice {
        errors.push(path.invalid(BadValue::list(names), "the same resource cannot be specified multiple times"));
    }
    if overlaps {
        let problem = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not \
                       allowed as they will be masked";
        errors.push(path.invalid(BadValue::list(names), problem));
    }
}

fn wrong_name(name: &str) -> Option<&'static str> {
    let resource = GroupResource::parse(name);
    Some(match () {
        () if name.to_lowercase() != name => "resource name should not contain capital letters",
        () if name == "*" => {
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        }
        () if NOT_OF_THE_API.contains(&name) => "resources which do not have REST API/s cannot be encrypted",
        () if resource.group == "events.k8s.io" => {
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file"
        }
        () if resource.group == "extensions" => "'extensions' group has been removed and cannot be used for encryption",
        () if resource.group == OF_ANY_GROUP && resource.resource != "*" => {
            "encrypting the same resource across groups is not supported"
        }
        () => return None,
    })
}

fn single(path: &Path, provider: &ProviderConfiguration, errors: &mut ErrorList) {
    let ProviderConfiguration { aesgcm, aescbc, secretbox, identity, kms } = provider;
    let found = [aesgcm.is_some(), aescbc.is_some(), secretbox.is_some(), identity.is_some(), kms.is_some()];
    let problem = match found.iter().filter(|is_set| **is_set).count() {
        1 => return,
        0 => "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        _ => "more than one provider specified in a single element, should split into different list elements",
    };
    // Without keys, which upstream prints.
    errors.push(path.invalid(BadValue::json(json::encode_redacted(provider)), problem));
}

fn settings<'a>(
    path: &Path,
    provider: &'a ProviderConfiguration,
    reloads: bool,
    kms_names: &mut HashSet<&'a str>,
    errors: &mut ErrorList,
) {
    match provider {
        ProviderConfiguration { kms: Some(own), .. } => {
            kms(
                &path.child("kms"),
                own,
                (reloads || own.api_version != "v1") && kms_names.contains(&*own.name),
                errors,
            );
            kms_names.insert(&own.name);
        }
        ProviderConfiguration { aesgcm: Some(own), .. } => keys(&path.child("aesgcm"), &own.keys, &AES_GCM, errors),
        ProviderConfiguration { aescbc: Some(own), .. } => keys(&path.child("aescbc"), &own.keys, &AES_CBC, errors),
        ProviderConfiguration { secretbox: Some(own), .. } => {
            keys(&path.child("secretbox"), &own.keys, &SECRETBOX, errors);
        }
        _ => {}
    }
}

fn keys(provider: &Path, keys: &[Key], algorithm: &Algorithm, errors: &mut ErrorList) {
    let path = provider.child("keys");
    if keys.is_empty() {
        errors.push(path.required("at least one keys is required"));
    }
    for (index, key) in keys.iter().enumerate() {
        let path = path.index(index);
        if key.name.is_empty() {
            errors.push(path.child("name").required("name is a mandatory field for a key"));
        }
        let path = path.child("secret");
        if key.secret.is_empty() {
            errors.push(path.required("secret is a mandatory field for a key"));
            continue;
        }
        let problem = match STANDARD.decode(&key.secret) {
            Err(_) => "secrets must be base64 encoded".to_owned(),
            Ok(secret) if algorithm.key_lengths.contains(&secret.len()) => continue,
            Ok(secret) => {
                let lengths: Vec<String> = algorithm.key_lengths.iter().map(ToString::to_string).collect();
                let lengths = lengths.join(" ");
                format!("secret is not of the expected length, got {}, expected one of [{lengths}]", secret.len())
            }
        };
        errors.push(path.invalid("REDACTED", problem));
    }
}

fn kms(path: &Path, own: &KMSConfiguration, is_taken: bool, errors: &mut ErrorList) {
    let name = path.child("name");
    if own.name.is_empty() {
        errors.push(name.required("name is a mandatory field for a provider"));
    }
    if own.api_version != "v1" && own.name.contains(':') {
        let problem = format!("invalid KMS provider name {}, must not contain ':'", own.name);
        errors.push(name.invalid(&own.name, problem));
    }
    if is_taken {
        let problem = format!("duplicate KMS provider name {}, names must be unique", own.name);
        errors.push(name.invalid(&own.name, problem));
    }
    if let Some(timeout) = own.timeout.filter(|timeout| timeout.nanos() <= 0) {
        errors.push(path.child("timeout").invalid(timeout.to_string(), "timeout should be a positive value"));
    }
    let endpoint = path.child("endpoint");
    match own.endpoint.split_once(':') {
        _ if own.endpoint.is_empty() => {
            errors.push(endpoint.invalid("", "endpoint is a mandatory field for a kms"));
        }
        Some(("unix", _)) => {}
        other => {
            let scheme = other.map_or("", |(scheme, _)| scheme);
            let problem = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
            errors.push(endpoint.invalid(&own.endpoint, problem));
        }
    }
    match (own.api_version.as_str(), own.cache_size) {
        ("v1", Some(0)) => {
            let problem = "cachesize should be a positive value, or negative to disable";
            errors.push(path.child("cachesize").invalid(0, problem));
        }
        ("v1", _) | (_, None) => {}
        (_, Some(size)) => errors.push(path.child("cachesize").invalid(size, "cachesize is not supported in v2")),
    }
    if !matches!(own.api_version.as_str(), "v1" | "v2") {
        let problem = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(path.child("apiVersion").invalid(&own.api_version, problem));
    }
}
