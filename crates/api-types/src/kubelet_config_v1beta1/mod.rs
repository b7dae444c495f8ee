//! kubelet.config.k8s.io/v1beta1: the kubelet's configuration file.
//!
//! These are file formats, not API objects: no metadata, no protobuf numbers.

mod access;
mod configuration;
mod observability;
mod resources;

pub use crate::tracing_api_v1::TracingConfiguration;
pub use access::{
    KubeletAnonymousAuthentication, KubeletAuthentication, KubeletAuthorization, KubeletWebhookAuthentication,
    KubeletWebhookAuthorization, KubeletX509Authentication,
};
pub use configuration::KubeletConfiguration;
pub use observability::{FormatOptions, LoggingConfiguration, OutputRoutingOptions, VModuleItem};
pub use resources::{
    CrashLoopBackOffConfig, MemoryReservation, MemorySwapConfiguration, ShutdownGracePeriodByPodPriority,
    UserNamespaces,
};

/// The group and version that the file names.
pub const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// The kind that the file names.
pub const KIND: &str = "KubeletConfiguration";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kubelet.config.v1beta1";
