//! Who has credentials for registries beside pods and the node's files.

use std::sync::Arc;

use client::Client;
use component_base::Lifecycle;
use component_base::serving::BoxError;
use sys::exec::LinuxExec;

use crate::config::{Plan, gates};
use crate::credentials::{CredentialProviders, ProviderConfigs, ProviderDeps};
use crate::interfaces::ImageCredentials;
use crate::metrics::KubeletMetrics;

/// The programs that the node's administrator named; none where there are no such.
pub(super) fn providers(
    plan: &Plan,
    lifecycle: &Lifecycle,
    client: Option<Client>,
    metrics: &Arc<KubeletMetrics>,
) -> Result<Option<Arc<dyn ImageCredentials>>, BoxError> {
    let Some((config, programs)) = &plan.credential_providers else { return Ok(None) };
    let tokens = lifecycle.gates().enabled(gates::CREDENTIAL_TOKENS);
    let configs = ProviderConfigs::load(config, programs, tokens)
        .map_err(|error| format!("failed to register CRI auth plugins: {error}"))?;
    let (clock, metrics) = (lifecycle.clock().clone(), metrics.clone());
    let deps = ProviderDeps { configs, exec: Arc::new(LinuxExec), client, clock, metrics };
    Ok(Some(CredentialProviders::new(deps)))
}
