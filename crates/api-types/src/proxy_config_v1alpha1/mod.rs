//! kubeproxy.config.k8s.io/v1alpha1: the service proxy's configuration file. It is a file format, not an API object: no
//! metadata, no protobuf numbers.

mod configuration;

pub use configuration::{
    ClientConnectionConfiguration, DetectLocalConfiguration, KubeProxyConfiguration, KubeProxyConntrackConfiguration,
    KubeProxyIPTablesConfiguration, KubeProxyIPVSConfiguration, KubeProxyNFTablesConfiguration,
    KubeProxyWinkernelConfiguration,
};

/// The group and version that the file names.
pub const API_VERSION: &str = "kubeproxy.config.k8s.io/v1alpha1";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kube-proxy.config.v1alpha1";
