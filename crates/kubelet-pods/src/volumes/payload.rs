//! The files of config map, secret, downward API and projected volumes.

use std::sync::Arc;

use api_types::core_v1::{
    ClusterTrustBundleProjection, ConfigMap, ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource,
    KeyToPath, Pod, PodCertificateProjection, ProjectedVolumeSource, Secret, SecretVolumeSource,
    ServiceAccountTokenProjection, VolumeProjection,
};

use super::writer::{Content, Payload};
use crate::env::fields::{self, Surroundings};
use crate::env::{EnvError, config_map, secret};
use crate::objects::Objects;
use crate::pod_certificates::{Credential, PodCertificateError, PodCertificates};
use crate::tokens::{TokenError, Tokens};
use crate::trust_bundles::{TrustBundleError, TrustBundles};

/// Mode of files where nothing else is said; defaulting fills it in for pods of the API.
const DEFAULT_MODE: i32 = 0o644;
/// Mode of files for a user or group of their own.
const OWN_MODE: i32 = 0o600;

/// Why there are no files, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    /// An object or a field that cannot be had.
    #[error(transparent)]
    Source(#[from] EnvError),
    #[error("configmap references non-existent config key: {0}")]
    NoConfigMapKey(String),
    #[error("references non-existent secret key: {0}")]
    NoSecretKey(String),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    TrustBundle(#[from] TrustBundleError),
    #[error(transparent)]
    Certificate(#[from] PodCertificateError),
    #[error("kube client is not configured")]
    NoClient,
    /// Projections of kinds that this kubelet does not have.
    #[error("{projection} projection requires the {feature} feature")]
    Unsupported { projection: &'static str, feature: &'static str },
    /// What several sources of a projected volume say.
    #[error("[{}]", joined(.0))]
    Several(Vec<Self>),
}

fn joined(errors: &[PayloadError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What files are made from.
pub(super) struct MadeOf {
    pub(super) objects: Arc<dyn Objects>,
    /// None without an API server.
    pub(super) tokens: Option<Tokens>,
    /// None while the feature is off.
    pub(super) trust_bundles: Option<TrustBundles>,
    /// None while the feature is off.
    pub(super) certificates: Option<PodCertificates>,
}

/// Makes the files of a pod.
pub(super) struct Maker<'a> {
    pub pod: &'a Pod,
    pub made_of: &'a MadeOf,
    pub around: &'a Surroundings,
}

impl Maker<'_> {
    pub(super) async fn config_map(&self, source: &ConfigMapVolumeSource) -> Result<Payload, PayloadError> {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        let optional = source.optional == Some(true);
        self.map_files(&source.local_object_reference.name, &source.items, mode, optional).await
    }

    pub(super) async fn secret(&self, source: &SecretVolumeSource) -> Result<Payload, PayloadError> {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        self.secret_files(&source.secret_name, &source.items, mode, source.optional == Some(true)).await
    }

    pub(super) fn downward(&self, source: &DownwardAPIVolumeSource) -> Result<Payload, PayloadError> {
        self.downward_files(&source.items, source.default_mode.unwrap_or(DEFAULT_MODE))
    }

    /// All sources of a volume in order; the later of two files of one path wins. Problems of all sources are told together.
    pub(super) async fn projected(
        &self,
        volume: &str,
        source: &ProjectedVolumeSource,
    ) -> Result<Payload, PayloadError> {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        let (mut payload, mut problems) = (Payload::new(), Vec::new());
        for (index, projection) in source.sources.iter().enumerate() {
            match self.projection((volume, index), projection, mode).await {
                Ok(files) => payload.extend(files),
                Err(error) => problems.push(error),
            }
        }
        match (problems.pop(), problems.is_empty()) {
            (None, _) => Ok(payload),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                problems.push(last);
                Err(PayloadError::Several(problems))
            }
        }
    }

    /// One source, which is the volume's so-many-th.
    async fn projection(
        &self,
        place: (&str, usize),
        projection: &VolumeProjection,
        mode: i32,
    ) -> Result<Payload, PayloadError> {
        if let Some(source) = &projection.secret {
            let optional = source.optional == Some(true);
            return self.secret_files(&source.local_object_reference.name, &source.items, mode, optional).await;
        }
        if let Some(source) = &projection.config_map {
            let optional = source.optional == Some(true);
            return self.map_files(&source.local_object_reference.name, &source.items, mode, optional).await;
        }
        if let Some(source) = &projection.downward_api {
            return self.downward_files(&source.items, mode);
        }
        if let Some(source) = &projection.service_account_token {
            return self.token_file(source, mode).await;
        }
        if let Some(source) = &projection.cluster_trust_bundle {
            return self.trust_bundle_file(source, mode).await;
        }
        if let Some(source) = &projection.pod_certificate {
            return self.certificate_files(place, source, mode).await;
        }
        Ok(Payload::new())
    }

    async fn map_files(
        &self,
        name: &str,
        items: &[KeyToPath],
        mode: i32,
        optional: bool,
    ) -> Result<Payload, PayloadError> {
        let map = config_map(&*self.made_of.objects, &self.pod.metadata.namespace, name, optional).await?;
        let Some(map) = map else { return Ok(Payload::new()) };
        files(items, mode, optional, bytes_of_map(&map), PayloadError::NoConfigMapKey)
    }

    async fn secret_files(
        &self,
        name: &str,
        items: &[KeyToPath],
        mode: i32,
        optional: bool,
    ) -> Result<Payload, PayloadError> {
        let secret = secret(&*self.made_of.objects, &self.pod.metadata.namespace, name, optional).await?;
        let Some(secret) = secret else { return Ok(Payload::new()) };
        files(items, mode, optional, bytes_of_secret(&secret), PayloadError::NoSecretKey)
    }

    fn downward_files(&self, items: &[DownwardAPIVolumeFile], mode: i32) -> Result<Payload, PayloadError> {
        let mut payload = Payload::new();
        for item in items {
            let text = if let Some(selector) = &item.field_ref {
                fields::field(self.pod, selector, self.around)?
            } else if let Some(selector) = &item.resource_field_ref {
                fields::resource(self.pod, None, selector, self.around)?
            } else {
                continue;
            };
            payload.insert(item.path.clone(), content(text.into_bytes(), item.mode.unwrap_or(mode)));
        }
        Ok(payload)
    }

    async fn token_file(&self, source: &ServiceAccountTokenProjection, mode: i32) -> Result<Payload, PayloadError> {
        let Some(tokens) = &self.made_of.tokens else { return Err(PayloadError::NoClient) };
        let token = tokens.token(self.pod, source).await?;
        Ok([(source.path.clone(), self.of_user(token, mode))].into())
    }

    async fn trust_bundle_file(
        &self,
        source: &ClusterTrustBundleProjection,
        mode: i32,
    ) -> Result<Payload, PayloadError> {
        let Some(bundles) = &self.made_of.trust_bundles else {
            let feature = "ClusterTrustBundleProjection";
            return Err(PayloadError::Unsupported { projection: "ClusterTrustBundle", feature });
        };
        let certificates = bundles.pem(source).await?;
        Ok([(source.path.clone(), self.of_user(certificates, mode))].into())
    }

    async fn certificate_files(
        &self,
        (volume, index): (&str, usize),
        source: &PodCertificateProjection,
        mode: i32,
    ) -> Result<Payload, PayloadError> {
        let Some(certificates) = &self.made_of.certificates else {
            let feature = "PodCertificateRequest";
            return Err(PayloadError::Unsupported { projection: "PodCertificate", feature });
        };
        let place = (self.pod.metadata.uid.clone(), volume.to_owned(), index);
        let Credential { key, chain, .. } = certificates.credential(self.pod, place, source).await?;
        let files = [
            (&source.credential_bundle_path, format!("{key}{chain}")),
            (&source.key_path, key),
            (&source.certificate_chain_path, chain),
        ];
        let files = files.into_iter().filter(|(path, _)| !path.is_empty());
        Ok(files.map(|(path, text)| (path.clone(), self.of_user(text, mode))).collect())
    }

    /// A file for the user or group of the pod alone, where it has one.
    fn of_user(&self, text: String, mode: i32) -> Content {
        let owner = uniform_user(self.pod);
        let fs_group = self.pod.spec.security_context.as_ref().and_then(|context| context.fs_group);
        let mode = if owner.is_some() || fs_group.is_some() { OWN_MODE } else { mode };
        Content { owner, ..content(text.into_bytes(), mode) }
    }
}

fn content(bytes: Vec<u8>, mode: i32) -> Content {
    Content { bytes, mode: u32::try_from(mode).unwrap_or(0o644) & 0o7777, owner: None }
}

fn bytes_of_map(map: &ConfigMap) -> Vec<(&str, &[u8])> {
    let text = map.data.iter().map(|(key, value)| (key.as_str(), value.as_bytes()));
    let binary = map.binary_data.iter().map(|(key, value)| (key.as_str(), &value[..]));
    text.chain(binary).collect()
}

fn bytes_of_secret(secret: &Secret) -> Vec<(&str, &[u8])> {
    secret.data.iter().map(|(key, value)| (key.as_str(), &value[..])).collect()
}

/// All keys as files, or only those that are listed.
fn files(
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
    keys: Vec<(&str, &[u8])>,
    missing: fn(String) -> PayloadError,
) -> Result<Payload, PayloadError> {
    if items.is_empty() {
        return Ok(keys.into_iter().map(|(key, value)| (key.to_owned(), content(value.to_vec(), mode))).collect());
    }
    let mut payload = Payload::new();
    for item in items {
        match keys.iter().find(|(key, _)| *key == item.key) {
            Some((_, value)) => {
                payload.insert(item.path.clone(), content(value.to_vec(), item.mode.unwrap_or(mode)));
            }
            None if optional => {}
            None => return Err(missing(item.key.clone())),
        }
    }
    Ok(payload)
}

/// The user that all containers run as, if it is one and the same.
fn uniform_user(pod: &Pod) -> Option<u32> {
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.run_as_user);
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let mut users = containers
        .map(|container| container.security_context.as_ref().and_then(|context| context.run_as_user).or(of_pod));
    let first = users.next()??;
    users.all(|user| user == Some(first)).then(|| u32::try_from(first).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{
        ConfigMapProjection, Container, DownwardAPIProjection, LocalObjectReference, ObjectFieldSelector,
        SecretProjection, SecurityContext,
    };

    use super::*;
    use crate::objects::FixedObjects;

    fn made_of() -> MadeOf {
        let mut objects = FixedObjects::default();
        objects.put_config_map("ns", "cfg", [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        objects.put_secret("ns", "s", [("b".to_owned(), b"three".to_vec())]);
        MadeOf { objects: Arc::new(objects), tokens: None, trust_bundles: None, certificates: None }
    }

    fn pod() -> Pod {
        let mut pod = Pod::default();
        pod.metadata.namespace = "ns".into();
        pod.metadata.name = "web".into();
        pod
    }

    fn text(payload: &Payload) -> Vec<(String, String, u32)> {
        let one = |(path, content): (&String, &Content)| {
            (path.clone(), String::from_utf8_lossy(&content.bytes).into_owned(), content.mode)
        };
        payload.iter().map(one).collect()
    }

    fn key(key: &str, path: &str, mode: Option<i32>) -> KeyToPath {
        KeyToPath { key: key.into(), path: path.into(), mode }
    }

    #[tokio::test]
    async fn keys_become_files() {
        let (made_of, pod, around) = (made_of(), pod(), Surroundings::default());
        let maker = Maker { pod: &pod, made_of: &made_of, around: &around };
        let source = |items: Vec<KeyToPath>, name: &str, optional: bool| ConfigMapVolumeSource {
            local_object_reference: LocalObjectReference { name: name.into() },
            items,
            default_mode: None,
            optional: Some(optional),
        };
        let all = maker.config_map(&source(vec![], "cfg", false)).await.unwrap();
        assert_eq!(text(&all), [("a".into(), "1".into(), 0o644), ("b".into(), "2".into(), 0o644)]);
        let listed = maker.config_map(&source(vec![key("b", "x/y", Some(0o400))], "cfg", false)).await.unwrap();
        assert_eq!(text(&listed), [("x/y".into(), "2".into(), 0o400)]);
        let cases = [
            (source(vec![key("c", "c", None)], "cfg", false), Err("configmap references non-existent config key: c")),
            (source(vec![key("c", "c", None)], "cfg", true), Ok(0)),
            (source(vec![], "none", false), Err("configmap \"none\" not found")),
            (source(vec![], "none", true), Ok(0)),
        ];
        for (source, expected) in cases {
            let made = maker.config_map(&source).await;
            let made = made.map(|payload| payload.len()).map_err(|error| error.to_string());
            assert_eq!(made.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        }
    }

    #[tokio::test]
    async fn projections_are_merged_in_order() {
        let (made_of, pod, around) = (made_of(), pod(), Surroundings::default());
        let maker = Maker { pod: &pod, made_of: &made_of, around: &around };
        let reference = |name: &str| LocalObjectReference { name: name.into() };
        let map = VolumeProjection {
            config_map: Some(ConfigMapProjection {
                local_object_reference: reference("cfg"),
                ..ConfigMapProjection::default()
            }),
            ..VolumeProjection::default()
        };
        let secret = |name: &str| VolumeProjection {
            secret: Some(SecretProjection { local_object_reference: reference(name), ..SecretProjection::default() }),
            ..VolumeProjection::default()
        };
        let name = DownwardAPIVolumeFile {
            path: "name".into(),
            field_ref: Some(ObjectFieldSelector {
                field_path: "metadata.name".into(),
                ..ObjectFieldSelector::default()
            }),
            ..DownwardAPIVolumeFile::default()
        };
        let downward = VolumeProjection {
            downward_api: Some(DownwardAPIProjection { items: vec![name] }),
            ..VolumeProjection::default()
        };
        let all =
            ProjectedVolumeSource { sources: vec![map.clone(), secret("s"), downward], default_mode: Some(0o440) };
        let expected =
            [("a", "1"), ("b", "three"), ("name", "web")].map(|(path, text)| (path.into(), text.into(), 0o440));
        assert_eq!(text(&maker.projected("v", &all).await.unwrap()), expected);
        let broken = ProjectedVolumeSource { sources: vec![secret("x"), map, secret("y")], default_mode: None };
        let error = maker.projected("v", &broken).await.unwrap_err();
        assert_eq!(error.to_string(), "[secret \"x\" not found, secret \"y\" not found]");
    }

    #[test]
    fn a_user_shared_by_all_owns_tokens() {
        let container = |user: Option<i64>| Container {
            security_context: Some(SecurityContext { run_as_user: user, ..SecurityContext::default() }),
            ..Container::default()
        };
        let cases = [
            (vec![Some(5), Some(5)], Some(5)),
            (vec![Some(5), Some(6)], None),
            (vec![Some(5), None], None),
            (vec![], None),
        ];
        for (users, expected) in cases {
            let mut pod = pod();
            pod.spec.containers = users.into_iter().map(container).collect();
            assert_eq!(uniform_user(&pod), expected);
        }
    }
}
