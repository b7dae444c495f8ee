//! ServiceAccount: every pod runs as an account of its namespace and gets a token for it, unless it wants none.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::constants::MIRROR_POD_ANNOTATION_KEY;
use api_types::core_v1::{
    ConfigMapProjection, DownwardAPIProjection, DownwardAPIVolumeFile, EnvFromSource, EnvVar, KeyToPath,
    LocalObjectReference, ObjectFieldSelector, Pod, ProjectedVolumeSource, ServiceAccount,
    ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection, VolumeSource,
};
use async_trait::async_trait;
use base::Rng;
use component_helpers::pod_references::{Reference, each_reference};

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "ServiceAccount",
    enabled_by_default: true,
    passes: Passes::Both,
    reads: &[&ServiceAccount::TYPE],
    configuration: None,
    build: |_| Box::new(ServiceAccounts),
};

const DEFAULT_ACCOUNT: &str = "default";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
const ROOT_CA: &str = "kube-root-ca.crt";
/// The mark by which the token issuer knows a token that was put in here, and extends it.
const TOKEN_SECONDS: i64 = 3607;
const FILE_MODE: i32 = 0o644;
/// Letters and digits that never spell words.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
/// A namespace's default account may be a moment late.
const DEFAULT_ACCOUNT_TRIES: usize = 10;

struct ServiceAccounts;

#[async_trait]
impl Plugin for ServiceAccounts {
    fn handles(&self, attributes: &Attributes) -> bool {
        match attributes.operation {
            Operation::Create => attributes.is("", "pods"),
            Operation::Update => attributes.is_sub("", "pods", "ephemeralcontainers"),
            Operation::Delete | Operation::Connect => false,
        }
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        if attributes.operation != Operation::Create {
            return Ok(());
        }
        // Nothing is changed about mirror pods; what is wrong with them is said before other plugins see them.
        if is_mirror(pod) {
            return validate_mirror(attributes, pod);
        }
        if pod.spec.service_account_name.is_empty() {
            pod.spec.service_account_name = DEFAULT_ACCOUNT.into();
        }
        let account = find(cx, attributes, &pod.spec.service_account_name).await?;
        if wants_token(pod, &account) {
            mount_token(pod, &cx.rng);
        }
        if pod.spec.image_pull_secrets.is_empty() {
            pod.spec.image_pull_secrets.clone_from(&account.image_pull_secrets);
        }
        Ok(())
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        let creates = attributes.operation == Operation::Create;
        if creates && is_mirror(pod) {
            return validate_mirror(attributes, pod);
        }
        let name = &pod.spec.service_account_name;
        if name.is_empty() {
            let text = format!("no service account specified for pod {}/{}", attributes.namespace, pod.metadata.name);
            return Err(attributes.forbidden(text));
        }
        let account = find(cx, attributes, name).await?;
        let enforced = account.metadata.annotations.get(ENFORCE_MOUNTABLE);
        if enforced.is_some_and(|value| matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True")) {
            let check = if creates { check_secrets } else { check_ephemeral_secrets };
            return check(attributes, pod, &account);
        }
        Ok(())
    }
}

fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.contains_key(MIRROR_POD_ANNOTATION_KEY)
}

async fn find(cx: &Context, attributes: &Attributes, name: &str) -> Result<Arc<ServiceAccount>, ApiError> {
    let namespace = &attributes.namespace;
    let tries = if name == DEFAULT_ACCOUNT { DEFAULT_ACCOUNT_TRIES } else { 1 };
    let pause = Duration::from_millis(100 + cx.rng.below(100));
    for attempt in 0..tries {
        if let Some(account) = cx.lookup.get(namespace, name) {
            return Ok(account);
        }
        if attempt > 0 {
            tokio::time::sleep(pause).await;
        }
        match cx.lookup.get_live(namespace, name).await {
            Ok(account) => return Ok(account),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(lookup_failed(attributes, name, &error.message)),
        }
    }
    Err(lookup_failed(attributes, name, &format!("serviceaccount {name:?} not found")))
}

fn lookup_failed(attributes: &Attributes, name: &str, why: &str) -> ApiError {
    attributes.forbidden(format_args!("error looking up service account {}/{name}: {why}", attributes.namespace))
}

fn wants_token(pod: &Pod, account: &ServiceAccount) -> bool {
    pod.spec.automount_service_account_token.or(account.automount_service_account_token).unwrap_or(true)
}

/// Mounts the token volume into every container that has nothing at its place, and adds the volume if one needs it.
fn mount_token(pod: &mut Pod, rng: &Rng) {
    let existing = pod.spec.volumes.iter().find(|volume| volume.name.starts_with(VOLUME_PREFIX));
    let (name, is_there) = match existing {
        Some(volume) => (volume.name.clone(), true),
        None => (format!("{VOLUME_PREFIX}{}", suffix(rng)), false),
    };
    let mut mounted = false;
    for container in pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers) {
        if container.volume_mounts.iter().any(|mount| mount.mount_path == MOUNT_PATH) {
            continue;
        }
        container.volume_mounts.push(VolumeMount {
            name: name.clone(),
            read_only: true,
            mount_path: MOUNT_PATH.into(),
            ..VolumeMount::default()
        });
        mounted = true;
    }
    if mounted && !is_there {
        pod.spec.volumes.push(token_volume(name));
    }
}

fn suffix(rng: &Rng) -> String {
    let letter = |_| {
        let index = usize::try_from(rng.below(SUFFIX_ALPHABET.len() as u64)).unwrap_or_default();
        char::from(SUFFIX_ALPHABET.get(index).copied().unwrap_or(b'x'))
    };
    (0..5).map(letter).collect()
}

fn token_volume(name: String) -> Volume {
    let token = VolumeProjection {
        service_account_token: Some(ServiceAccountTokenProjection {
            path: "token".into(),
            expiration_seconds: Some(TOKEN_SECONDS),
            ..ServiceAccountTokenProjection::default()
        }),
        ..VolumeProjection::default()
    };
    let authority = VolumeProjection {
        config_map: Some(ConfigMapProjection {
            local_object_reference: LocalObjectReference { name: ROOT_CA.into() },
            items: vec![KeyToPath { key: "ca.crt".into(), path: "ca.crt".into(), mode: None }],
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    let namespace = VolumeProjection {
        downward_api: Some(DownwardAPIProjection {
            items: vec![DownwardAPIVolumeFile {
                path: "namespace".into(),
                field_ref: Some(ObjectFieldSelector {
                    api_version: "v1".into(),
                    field_path: "metadata.namespace".into(),
                }),
                ..DownwardAPIVolumeFile::default()
            }],
        }),
        ..VolumeProjection::default()
    };
    let projected = ProjectedVolumeSource { sources: vec![token, authority, namespace], default_mode: Some(FILE_MODE) };
    Volume { name, volume_source: VolumeSource { projected: Some(projected), ..VolumeSource::default() } }
}

fn validate_mirror(attributes: &Attributes, pod: &Pod) -> Result<(), ApiError> {
    let spec = &pod.spec;
    let token_sources = spec.volumes.iter().filter_map(|volume| volume.volume_source.projected.as_ref());
    let text = if !spec.service_account_name.is_empty() {
        "a mirror pod may not reference service accounts"
    } else if has_secret(pod) {
        "a mirror pod may not reference secrets"
    } else if token_sources.flat_map(|source| &source.sources).any(|source| source.service_account_token.is_some()) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(attributes.forbidden(text))
}

/// Whether the pod names a secret anywhere, in volumes of every kind too.
fn has_secret(pod: &Pod) -> bool {
    let mut found = false;
    each_reference(&pod.spec, &mut |reference| found |= matches!(reference, Reference::Secret(_)));
    found
}

/// A secret that a container reads its environment from, and how a refusal names the place.
struct SecretReference<'a> {
    secret: &'a str,
    place: String,
}

impl SecretReference<'_> {
    fn refusal(&self, account: &str) -> String {
        format!(
            "{} referencing secret.secretName={:?} is not allowed because service account {account} does not \
             reference that secret",
            self.place, self.secret
        )
    }
}

/// Every secret in the environments of the pod's containers.
fn secret_references(pod: &Pod) -> Vec<SecretReference<'_>> {
    let spec = &pod.spec;
    let init = spec.init_containers.iter().map(|container| ("init container", container));
    let main = spec.containers.iter().map(|container| ("container", container));
    init.chain(main).flat_map(|(kind, own)| references_of(kind, &own.name, &own.env, &own.env_from)).collect()
}

fn references_of<'a>(
    kind: &str,
    container: &str,
    env: &'a [EnvVar],
    env_from: &'a [EnvFromSource],
) -> Vec<SecretReference<'a>> {
    let mut references = Vec::new();
    for variable in env {
        let source = variable.value_from.as_ref().and_then(|source| source.secret_key_ref.as_ref());
        if let Some(source) = source {
            references.push(SecretReference {
                secret: &source.local_object_reference.name,
                place: format!("{kind} {container} with envVar {}", variable.name),
            });
        }
    }
    for source in env_from.iter().filter_map(|source| source.secret_ref.as_ref()) {
        references.push(SecretReference {
            secret: &source.local_object_reference.name,
            place: format!("{kind} {container} with envFrom"),
        });
    }
    references
}

/// Ephemeral containers read no other secrets than the pod may. Upstream's refusal has no status of its own, so that it
/// is answered as an error of the server.
fn check_ephemeral_secrets(_: &Attributes, pod: &Pod, account: &ServiceAccount) -> Result<(), ApiError> {
    for container in &pod.spec.ephemeral_containers {
        let own = &container.ephemeral_container_common;
        for reference in references_of("ephemeral container", &own.name, &own.env, &own.env_from) {
            if !account.secrets.iter().any(|listed| listed.name == reference.secret) {
                return Err(ApiError::unclassified(reference.refusal(&account.metadata.name)));
            }
        }
    }
    Ok(())
}

fn check_secrets(attributes: &Attributes, pod: &Pod, account: &ServiceAccount) -> Result<(), ApiError> {
    let mountable = |secret: &str| account.secrets.iter().any(|reference| reference.name == secret);
    let name = &account.metadata.name;
    for volume in &pod.spec.volumes {
        let Some(source) = &volume.volume_source.secret else { continue };
        if !mountable(&source.secret_name) {
            return Err(attributes.forbidden(format_args!(
                "volume with secret.secretName={:?} is not allowed because service account {name} does not reference \
                 that secret",
                source.secret_name
            )));
        }
    }
    if let Some(reference) = secret_references(pod).iter().find(|reference| !mountable(reference.secret)) {
        return Err(attributes.forbidden(reference.refusal(name)));
    }
    for (index, secret) in pod.spec.image_pull_secrets.iter().enumerate() {
        if !account.image_pull_secrets.contains(secret) {
            return Err(attributes.forbidden(format_args!(
                "imagePullSecrets[{index}].name={:?} is not allowed because service account {name} does not \
                 reference that imagePullSecret",
                secret.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "service_account_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "service_account_hostile_tests.rs"]
mod hostile_tests;
