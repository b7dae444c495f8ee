//! What the cluster's API servers say of the certificates of clients and of themselves as proxies, for servers behind them:
//! the ConfigMap `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;
use std::sync::Arc;

use pki::{BundleError, CaBundle, CaPool};

use super::identify::{FrontProxy, Trusted};

pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = "extension-apiserver-authentication";

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
