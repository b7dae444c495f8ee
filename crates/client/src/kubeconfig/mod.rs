//! Kubeconfig files: their format, merging several of them, choosing a context, and what pods find instead.
//!
//! Auth providers are refused with an error: upstream has none left that components know.

mod file;
mod in_cluster;
mod merge;
mod resolve;
#[cfg(test)]
mod tests;

pub use file::{
    AuthProviderConfig, Cluster, Context, ExecConfig, ExecEnvVar, Kubeconfig, NamedCluster, NamedContext,
    NamedExtension, NamedUser, Preferences, User,
};
pub use merge::ParseError;
pub use resolve::Overrides;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.client-go.tools.clientcmd.api.v1";
