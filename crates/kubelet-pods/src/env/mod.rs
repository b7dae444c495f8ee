//! The environment of a container: services, `envFrom`, `env` and everything they refer to.

mod env_file;
mod error;
mod expand;
pub(crate) mod fields;
pub(crate) mod services;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use api_types::core_v1::{ConfigMap, Container, EnvFromSource, EnvVar, EnvVarSource, Pod, Secret};

use crate::objects::Objects;
pub(crate) use error::EnvError;
pub(crate) use expand::expand;
use fields::Surroundings;

/// What an environment is made from.
pub(crate) struct Sources<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its container.
    pub container: &'a Container,
    /// Config maps and secrets.
    pub objects: &'a dyn Objects,
    /// The variables of services.
    pub services: BTreeMap<String, String>,
    /// Addresses and what the node has.
    pub around: &'a Surroundings,
    /// Where the pod's emptyDir volumes are, for variables from files.
    pub empty_dirs: &'a (dyn Fn(&str) -> Option<std::path::PathBuf> + Send + Sync),
}

/// Makes the whole environment. Later sources win; values may refer to what was defined before them and to services.
pub(crate) async fn build(sources: &Sources<'_>) -> Result<BTreeMap<String, String>, EnvError> {
    let mut environment = BTreeMap::new();
    for source in &sources.container.env_from {
        from_object(sources, source, &mut environment).await?;
    }
    // Variables of `env` see those of `envFrom` as well as earlier ones of their own list.
    for variable in &sources.container.env {
        if let Some(value) = value_of(sources, variable, &environment).await? {
            environment.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in &sources.services {
        environment.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Ok(environment)
}

async fn value_of(
    sources: &Sources<'_>,
    variable: &EnvVar,
    environment: &BTreeMap<String, String>,
) -> Result<Option<String>, EnvError> {
    if let Some(from) = &variable.value_from {
        return referred(sources, from).await;
    }
    let lookup = |name: &str| environment.get(name).or_else(|| sources.services.get(name)).cloned();
    Ok(Some(expand(&variable.value, &lookup)))
}

async fn referred(sources: &Sources<'_>, from: &EnvVarSource) -> Result<Option<String>, EnvError> {
    let namespace = &sources.pod.metadata.namespace;
    if let Some(selector) = &from.field_ref {
        return fields::field(sources.pod, selector, sources.around).map(Some);
    }
    if let Some(selector) = &from.resource_field_ref {
        return fields::resource(sources.pod, Some(sources.container), selector, sources.around).map(Some);
    }
    if let Some(selector) = &from.config_map_key_ref {
        let (name, key) = (&selector.local_object_reference.name, &selector.key);
        let optional = selector.optional == Some(true);
        let Some(map) = config_map(sources.objects, namespace, name, optional).await? else { return Ok(None) };
        return present(map.data.get(key).cloned(), optional, || no_key("ConfigMap", namespace, name, key));
    }
    if let Some(selector) = &from.secret_key_ref {
        let (name, key) = (&selector.local_object_reference.name, &selector.key);
        let optional = selector.optional == Some(true);
        let Some(secret) = secret(sources.objects, namespace, name, optional).await? else { return Ok(None) };
        let value = secret.data.get(key).map(|value| String::from_utf8_lossy(value).into_owned());
        return present(value, optional, || no_key("Secret", namespace, name, key));
    }
    if let Some(selector) = &from.file_key_ref {
        let missing = || EnvError::NoVolume(selector.volume_name.clone());
        let volume = (sources.empty_dirs)(&selector.volume_name).ok_or_else(missing)?;
        let optional = selector.optional == Some(true);
        let value = env_file::read(&volume, Path::new(&selector.path), &selector.key)?;
        let missing = || EnvError::NoFileKey { key: selector.key.clone(), path: selector.path.clone() };
        return present(value, optional, missing);
    }
    Ok(None)
}

fn no_key(kind: &'static str, namespace: &str, name: &str, key: &str) -> EnvError {
    EnvError::NoKey { key: key.to_owned(), kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn present<T>(value: Option<T>, optional: bool, missing: impl FnOnce() -> EnvError) -> Result<Option<T>, EnvError> {
    match value {
        None if !optional => Err(missing()),
        value => Ok(value),
    }
}

async fn from_object(
    sources: &Sources<'_>,
    source: &EnvFromSource,
    environment: &mut BTreeMap<String, String>,
) -> Result<(), EnvError> {
    let namespace = &sources.pod.metadata.namespace;
    let mut add = |key: &str, value: String| drop(environment.insert(format!("{}{key}", source.prefix), value));
    if let Some(from) = &source.config_map_ref {
        let (name, optional) = (&from.local_object_reference.name, from.optional == Some(true));
        if let Some(map) = config_map(sources.objects, namespace, name, optional).await? {
            map.data.iter().for_each(|(key, value)| add(key, value.clone()));
        }
    }
    if let Some(from) = &source.secret_ref {
        let (name, optional) = (&from.local_object_reference.name, from.optional == Some(true));
        if let Some(secret) = secret(sources.objects, namespace, name, optional).await? {
            secret.data.iter().for_each(|(key, value)| add(key, String::from_utf8_lossy(value).into_owned()));
        }
    }
    Ok(())
}

/// A config map; `None` only where it is optional and missing.
pub(crate) async fn config_map(
    objects: &dyn Objects,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Option<Arc<ConfigMap>>, EnvError> {
    match objects.config_map(namespace, name).await? {
        None if !optional => Err(EnvError::NoConfigMap(name.to_owned())),
        found => Ok(found),
    }
}

/// A secret; `None` only where it is optional and missing.
pub(crate) async fn secret(
    objects: &dyn Objects,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Option<Arc<Secret>>, EnvError> {
    match objects.secret(namespace, name).await? {
        None if !optional => Err(EnvError::NoSecret(name.to_owned())),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests;
