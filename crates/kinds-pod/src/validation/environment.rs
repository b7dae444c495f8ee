//! Rules of a container's environment, and of the references into the pod that downward files share with it.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::{
    Container, EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector, PodSpec,
    ResourceFieldSelector,
};
use feature_gates::shared::ENV_FILES;
use kinds_frame::field_rules as rules;
use kinds_frame::pod_containers::each_container;

use super::containers::several;
use super::{Around, nothing};
use crate::disabled::has_file_variables;

/// Paths that a variable may take its value from.
pub(super) const ENV_PATHS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Paths that a file may take its content from.
pub(super) const FILE_PATHS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Paths that name something, though not all may be used everywhere.
const KNOWN_PATHS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Where a variable may have its value from.
const SOURCES: &str = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
const SOURCES_BEFORE_FILES: &str = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub(super) fn validate(around: &Around<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    let files = around.gates.enabled(ENV_FILES) || around.stored(has_file_variables);
    for (index, variable) in container.env.iter().enumerate() {
        let path = path.child("env").index(index);
        rules::named(&path.child("name"), &variable.name, names::env_var_name, errors);
        if let Some(source) = &variable.value_from {
            let sources = if files { SOURCES } else { SOURCES_BEFORE_FILES };
            validate_source(variable, source, sources, &path.child("valueFrom"), errors);
        }
    }
    for (index, source) in container.env_from.iter().enumerate() {
        validate_env_from(source, &path.child("envFrom"), index, errors);
    }
}

fn validate_source(variable: &EnvVar, source: &EnvVarSource, sources: &str, path: &Path, errors: &mut ErrorList) {
    let mut found = 0;
    if let Some(reference) = &source.field_ref {
        found += 1;
        validate_field(reference, &ENV_PATHS, &path.child("fieldRef"), errors);
    }
    if let Some(reference) = &source.resource_field_ref {
        found += 1;
        validate_resource(reference, &path.child("resourceFieldRef"), errors);
    }
    if let Some(reference) = &source.config_map_key_ref {
        found += 1;
        validate_key(&reference.local_object_reference.name, &reference.key, &path.child("configMapKeyRef"), errors);
    }
    if let Some(reference) = &source.secret_key_ref {
        found += 1;
        validate_key(&reference.local_object_reference.name, &reference.key, &path.child("secretKeyRef"), errors);
    }
    if let Some(reference) = &source.file_key_ref {
        found += 1;
        validate_file(reference, &path.child("fileKeyRef"), errors);
    }
    if found == 0 {
        errors.push(path.invalid(nothing(), format!("must specify one of: {sources}")));
    }
    if !variable.value.is_empty() {
        errors.push(path.invalid(nothing(), "may not be specified when `value` is not empty"));
    } else if found > 1 {
        several(path, errors);
    }
}

/// A path into the pod, one of `allowed` or a single label or annotation.
pub(super) fn validate_field(reference: &ObjectFieldSelector, allowed: &[&str], path: &Path, errors: &mut ErrorList) {
    if !rules::required(&path.child("apiVersion"), &reference.api_version, errors)
        || !rules::required(&path.child("fieldPath"), &reference.field_path, errors)
    {
        return;
    }
    let at = path.child("fieldPath");
    let refuse = |errors: &mut ErrorList, problem: String| {
        let detail = format!("error converting fieldPath: {problem}");
        errors.push(at.invalid(reference.field_path.as_str(), detail));
    };
    if reference.api_version != "v1" {
        return refuse(errors, format!("unsupported pod version: {}", reference.api_version));
    }
    if let Some((base, key)) = subscript(&reference.field_path) {
        match base {
            "metadata.annotations" => errors.push_invalid(path, key, names::qualified_name(&key.to_lowercase())),
            "metadata.labels" => errors.push_invalid(path, key, names::qualified_name(key)),
            _ => refuse(errors, format!("field label does not support subscript: {}", reference.field_path)),
        }
        return;
    }
    let label = match reference.field_path.as_str() {
        "spec.host" => "spec.nodeName",
        label => label,
    };
    if !KNOWN_PATHS.contains(&label) {
        refuse(errors, format!("field label not supported: {label}"));
    } else if !allowed.contains(&label) {
        errors.push(at.not_supported(label, allowed));
    }
}

/// The parts of `path['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(base, _)| !base.is_empty())
}

/// A request or limit of a container, with a divisor that suits it.
pub(super) fn validate_resource(reference: &ResourceFieldSelector, path: &Path, errors: &mut ErrorList) {
    let resource = reference.resource.as_str();
    if !rules::required(&path.child("resource"), resource, errors) {
        return;
    }
    let huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if !huge && !RESOURCES.contains(&resource) {
        errors.push(path.child("resource").not_supported(resource, &RESOURCES));
        return;
    }
    let divisor = reference.divisor.to_string();
    if reference.divisor.is_zero() {
        return;
    }
    let (allowed, shown): (&[&str], String) = match resource.rsplit('.').next().unwrap_or_default() {
        "cpu" => (&["1m", "1"], "1m and 1 are supported with the cpu resource".into()),
        name => {
            let what = match name {
                "memory" => "memory",
                "ephemeral-storage" => "local ephemeral storage",
                _ => "hugepages",
            };
            (&BYTE_DIVISORS, format!("{} are supported with the {what} resource", BYTE_DIVISORS.join(", ")))
        }
    };
    if !allowed.contains(&divisor.as_str()) {
        errors.push(path.child("divisor").invalid(resource, format!("only divisor's values {shown}")));
    }
}

fn validate_key(name: &str, key: &str, path: &Path, errors: &mut ErrorList) {
    errors.push_invalid(&path.child("name"), name, names::dns1123_subdomain(name));
    rules::named(&path.child("key"), key, names::config_key, errors);
}

fn validate_file(reference: &FileKeySelector, path: &Path, errors: &mut ErrorList) {
    rules::named(&path.child("key"), &reference.key, names::env_var_name, errors);
    rules::named(&path.child("volumeName"), &reference.volume_name, names::dns1123_label, errors);
    if rules::required(&path.child("path"), &reference.path, errors) {
        rules::no_backsteps(&path.child("path"), &reference.path, errors);
    }
}

fn validate_env_from(source: &EnvFromSource, path: &Path, index: usize, errors: &mut ErrorList) {
    let at = path.index(index);
    rules::named_if_set(&at.child("prefix"), &source.prefix, names::env_var_name, errors);
    let map = source.config_map_ref.as_ref().map(|map| ("configMapRef", &map.local_object_reference.name));
    let secret = source.secret_ref.as_ref().map(|secret| ("secretRef", &secret.local_object_reference.name));
    for (field, name) in [map, secret].into_iter().flatten() {
        let at = at.child(field).child("name");
        if rules::required(&at, name, errors) {
            errors.push_invalid(&at, name, kinds_frame::object_name::dns_subdomain(name, true));
        }
    }
    match (map, secret) {
        (None, None) => {
            errors.push(path.invalid(nothing(), "must specify one of: `configMapRef` or `secretRef`"));
        }
        (Some(_), Some(_)) => several(path, errors),
        _ => {}
    }
}

/// The volumes that variables are read from must be there and be empty directories.
pub(super) fn validate_file_volumes(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    if spec.volumes.is_empty() && each_container(spec, path).iter().all(|(_, container)| container.env.is_empty()) {
        return;
    }
    for (path, container) in each_container(spec, path) {
        for (index, variable) in container.env.iter().enumerate() {
            let source = variable.value_from.as_ref().and_then(|source| source.file_key_ref.as_ref());
            let Some(reference) = source else { continue };
            let at = path.child("env").index(index).child("valueFrom").child("fileKeyRef").child("volumeName");
            match spec.volumes.iter().find(|volume| volume.name == reference.volume_name) {
                None => errors.push(at.not_found(reference.volume_name.as_str())),
                Some(volume) if volume.volume_source.empty_dir.is_none() => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.push(at.invalid(BadValue::from(&reference.volume_name), detail));
                }
                Some(_) => {}
            }
        }
    }
}
