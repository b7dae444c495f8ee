//! What the cluster's API servers say of the certificates of clients and of themselves as proxies, for servers behind them:
//! the ConfigMap `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::ConfigMap;
use client::{Change, Client, ClientError, InformerOptions, Informers, Scope};
use pki::{BundleError, CaBundle, CaPool};

use super::identify::{FrontProxy, Trusted};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What is done about it, by the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Nothing: only flags count.
    Skipped,
    /// It is followed; where it cannot be read at the start, it counts once it can be.
    Tolerant,
    /// It is followed, and has to be there to be read at the start.
    Strict,
}

impl Lookup {
    /// As the flags have it.
    pub(super) fn of(skips: bool, tolerates_failure: bool) -> Self {
        match (skips, tolerates_failure) {
            (true, _) => Self::Skipped,
            (false, true) => Self::Tolerant,
            (false, false) => Self::Strict,
        }
    }
}

/// What they say now; nothing where there is no such object.
pub(super) async fn read(client: &Client) -> Result<BTreeMap<String, String>, ClientError> {
    let found = client.namespaced::<ConfigMap>(NAMESPACE).get_opt(NAME).await?;
    Ok(found.map(|own| own.data).unwrap_or_default())
}

/// Tells of what they say with every change, for as long as the client's tasks run.
pub(super) fn follow(client: &Client, told: impl Fn(&BTreeMap<String, String>) + Send + Sync + 'static) {
    let informers = Informers::new(client, InformerOptions::default());
    let published = informers.scoped::<ConfigMap>(&Scope::object(NAMESPACE, NAME));
    published.subscribe(move |change: &Change<ConfigMap>| told(&change.object().data));
    published.start();
}

/// Says what comes of it that nobody can be asked.
pub(super) fn warn_of_nobody(flags: &Trusted) {
    for (is_told, key, what) in [
        (flags.client_ca.is_some(), "client-ca-file", "client certificate"),
        (flags.front_proxy.is_some(), "requestheader-client-ca-file", "request-header client certificate"),
    ] {
        if !is_told {
            tracing::warn!(
                "No authentication-kubeconfig provided in order to lookup {key} in configmap/{NAME} in {NAMESPACE}, so {what} \
                 authentication won't work."
            );
        }
    }
}

/// What is to be believed.
///
/// # Errors
/// When a bundle cannot be read.
pub(super) fn trusted(data: &BTreeMap<String, String>) -> Result<Trusted, BundleError> {
    let pool = |key: &str| {
        let pem = data.get(key).filter(|pem| !pem.is_empty());
        let bundle = pem.map(|pem| CaBundle::from_pem(pem.as_bytes())).transpose()?;
        Ok::<_, BundleError>(bundle.map(|bundle| Arc::new(CaPool::new(bundle))))
    };
    // The lists are written as JSON; one that is not is as good as none.
    let list = |key: &str| {
        let text = data.get(key).map(String::as_str).unwrap_or_default();
        serde_json::from_str::<Vec<String>>(text).unwrap_or_default()
    };
    let front_proxy = pool("requestheader-client-ca-file")?.map(|pool| FrontProxy {
        pool,
        allowed_names: list("requestheader-allowed-names"),
        username: list("requestheader-username-headers"),
        uid: list("requestheader-uid-headers"),
        groups: list("requestheader-group-headers"),
        extra_prefixes: list("requestheader-extra-headers-prefix"),
    });
    Ok(Trusted { client_ca: pool("client-ca-file")?, front_proxy })
}
