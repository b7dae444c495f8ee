//! kubelet.config.k8s.io/v1beta1: the kubelet's configuration files, and its records of the images that it pulls.
//!
//! These are file formats, not API objects: no metadata, no protobuf numbers.

mod access;
mod configuration;
mod credential_provider;
mod image_pulls;
mod observability;
mod resources;

pub use crate::tracing_api_v1::TracingConfiguration;
pub use access::{
    KubeletAnonymousAuthentication, KubeletAuthentication, KubeletAuthorization, KubeletWebhookAuthentication,
    KubeletWebhookAuthorization, KubeletX509Authentication,
};
pub use configuration::KubeletConfiguration;
pub use credential_provider::{CredentialProvider, CredentialProviderConfig};
pub use image_pulls::{
    ImagePullCredentials, ImagePullIntent, ImagePullSecret, ImagePullServiceAccount, ImagePulledRecord,
};
pub use observability::{FormatOptions, LoggingConfiguration, OutputRoutingOptions, VModuleItem};
pub use resources::{
    CrashLoopBackOffConfig, MemoryReservation, MemorySwapConfiguration, ShutdownGracePeriodByPodPriority,
    UserNamespaces,
};

/// The group and version that the file names.
pub const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// What files about credential providers and records of pulled images may name, too; both versions have the same fields.
pub const API_VERSIONS: [&str; 2] = [API_VERSION, "kubelet.config.k8s.io/v1alpha1"];
/// The kind that the file names.
pub const KIND: &str = "KubeletConfiguration";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kubelet.config.v1beta1";
