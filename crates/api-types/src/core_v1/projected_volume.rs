//! ProjectedVolumeSource and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::LabelSelector;

use super::{LocalObjectReference, ObjectFieldSelector, ResourceFieldSelector};

/// Several volume sources projected into one directory.
#[api]
pub struct ProjectedVolumeSource {
    /// The sources to project; each entry sets exactly one member.
    #[field(1, always)]
    pub sources: Vec<VolumeProjection>,
    /// Permission bits of created files, 0 to 0777; default 0644.
    #[field(2, fill = "420")]
    pub default_mode: Option<i32>,
}

/// One source of a projected volume; exactly one member is set.
#[api]
pub struct VolumeProjection {
    /// Data of a Secret to project.
    #[field(1)]
    pub secret: Option<SecretProjection>,
    /// Information about the pod to project.
    #[field(2, name = "downwardAPI")]
    pub downward_api: Option<DownwardAPIProjection>,
    /// Data of a ConfigMap to project.
    #[field(3)]
    pub config_map: Option<ConfigMapProjection>,
    /// A service account token to project.
    #[field(4)]
    pub service_account_token: Option<ServiceAccountTokenProjection>,
    /// Trust anchors to project from ClusterTrustBundle objects.
    #[field(5)]
    pub cluster_trust_bundle: Option<ClusterTrustBundleProjection>,
    /// A private key and certificate to project for the pod.
    #[field(6)]
    pub pod_certificate: Option<PodCertificateProjection>,
}

/// Projects a Secret's keys into a projected volume.
#[api]
pub struct SecretProjection {
    /// The Secret to project, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Keys to project and their paths; empty projects every key.
    #[field(2)]
    pub items: Vec<KeyToPath>,
    /// Whether the Secret or its keys may be missing; default false.
    #[field(4)]
    pub optional: Option<bool>,
}

/// Maps one key to a file path in the volume.
#[api]
pub struct KeyToPath {
    /// The key to project.
    #[field(1, always, required)]
    pub key: String,
    /// Relative file path for the key; it may not contain "..".
    #[field(2, always, required)]
    pub path: String,
    /// Permission bits of this file, 0 to 0777; default is defaultMode.
    #[field(3)]
    pub mode: Option<i32>,
}

/// Projects pod information into a projected volume.
#[api]
pub struct DownwardAPIProjection {
    /// The files to create.
    #[field(1)]
    pub items: Vec<DownwardAPIVolumeFile>,
}

/// One file with a pod field or container resource.
#[api]
pub struct DownwardAPIVolumeFile {
    /// Relative path of the file; it may not contain "..".
    #[field(1, always, required)]
    pub path: String,
    /// Pod field to write; metadata fields only.
    #[field(2)]
    pub field_ref: Option<ObjectFieldSelector>,
    /// Container limit or request to write.
    #[field(3)]
    pub resource_field_ref: Option<ResourceFieldSelector>,
    /// Permission bits of this file, 0 to 0777; default is defaultMode.
    #[field(4)]
    pub mode: Option<i32>,
}

/// Projects a ConfigMap's keys into a projected volume.
#[api]
pub struct ConfigMapProjection {
    /// The ConfigMap to project, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Keys to project and their paths; empty projects every key.
    #[field(2)]
    pub items: Vec<KeyToPath>,
    /// Whether the ConfigMap or its keys may be missing; default false.
    #[field(4)]
    pub optional: Option<bool>,
}

/// Projects a service account token that the kubelet keeps fresh.
#[api]
pub struct ServiceAccountTokenProjection {
    /// Intended audience of the token; default is the API server.
    #[field(1)]
    pub audience: String,
    /// Requested token lifetime in seconds; default 3600, minimum 600.
    #[field(2, fill = "3600")]
    pub expiration_seconds: Option<i64>,
    /// File path of the token, relative to the mount point.
    #[field(3, always, required)]
    pub path: String,
}

/// Projects trust anchors from ClusterTrustBundles as one PEM file.
#[api]
pub struct ClusterTrustBundleProjection {
    /// A single bundle to use; excludes signerName and labelSelector.
    #[field(1)]
    pub name: Option<String>,
    /// Uses all bundles of this signer; excludes name.
    #[field(2)]
    pub signer_name: Option<String>,
    /// Filters the signer's bundles; unset matches nothing, empty matches everything.
    #[field(3)]
    pub label_selector: Option<LabelSelector>,
    /// Whether missing bundles let the pod start; the file is then empty.
    #[field(5)]
    pub optional: Option<bool>,
    /// File path of the bundle, relative to the volume root.
    #[field(4, always, required)]
    pub path: String,
}

/// Projects a key and certificate that the kubelet requests and renews.
#[api]
pub struct PodCertificateProjection {
    /// Signer that issues the certificate.
    #[field(1, required)]
    pub signer_name: String,
    /// Key to generate, for example RSA3072, ECDSAP256 or ED25519.
    #[field(2, required)]
    pub key_type: String,
    /// Longest certificate lifetime wanted, in seconds; default 86400, minimum 3600.
    #[field(3)]
    pub max_expiration_seconds: Option<i32>,
    /// File for the key followed by the certificate chain, in PEM.
    #[field(4)]
    pub credential_bundle_path: String,
    /// File for the private key alone, in PEM.
    #[field(5)]
    pub key_path: String,
    /// File for the certificate chain alone, in PEM.
    #[field(6)]
    pub certificate_chain_path: String,
    /// Extra data passed unverified to the signer; keys need a domain prefix.
    #[field(7)]
    pub user_annotations: BTreeMap<String, String>,
}

/// Files made from the keys of a ConfigMap.
#[api]
pub struct ConfigMapVolumeSource {
    /// The ConfigMap to use, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Keys to project and their paths; empty projects every key.
    #[field(2)]
    pub items: Vec<KeyToPath>,
    /// Permission bits of created files, 0 to 0777; default 0644.
    #[field(3, fill = "420")]
    pub default_mode: Option<i32>,
    /// Whether the ConfigMap or its keys may be missing; default false.
    #[field(4)]
    pub optional: Option<bool>,
}

/// Files made from the keys of a Secret.
#[api]
pub struct SecretVolumeSource {
    /// Name of the Secret, in the pod's namespace.
    #[field(1)]
    pub secret_name: String,
    /// Keys to project and their paths; empty projects every key.
    #[field(2)]
    pub items: Vec<KeyToPath>,
    /// Permission bits of created files, 0 to 0777; default 0644.
    #[field(3, fill = "420")]
    pub default_mode: Option<i32>,
    /// Whether the Secret or its keys may be missing; default false.
    #[field(4)]
    pub optional: Option<bool>,
}

/// Files with information about the pod itself.
#[api]
pub struct DownwardAPIVolumeSource {
    /// The files to create.
    #[field(1)]
    pub items: Vec<DownwardAPIVolumeFile>,
    /// Permission bits of created files, 0 to 0777; default 0644.
    #[field(2, fill = "420")]
    pub default_mode: Option<i32>,
}
