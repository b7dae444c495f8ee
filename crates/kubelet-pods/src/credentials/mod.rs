//! Programs of the node that have credentials for registries (image credential providers): which there are ([`config`], [`validation`]),
//! what they are asked and answer ([`exchange`]), and what of it is kept ([`cache`]). [`providers`] has them run.
//! See <https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/>.

mod cache;
mod config;
mod exchange;
mod providers;
#[cfg(test)]
mod tests;
mod validation;

pub use config::{ConfigError, ProviderConfigs};
pub use providers::{CredentialProviders, ProviderDeps};
