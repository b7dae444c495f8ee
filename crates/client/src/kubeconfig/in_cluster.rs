//! What a pod finds in its container: the API server's address in the environment, and its service account's token.

use std::path::Path;

use crate::config::{ClientConfig, ConfigError, Credentials, Trust};

/// Where the kubelet mounts the service account.
const SERVICE_ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl ClientConfig {
    /// The configuration of a process in a pod.
    ///
    /// # Errors
    /// When the environment does not name the server, or the token cannot be read.
    pub fn in_cluster() -> Result<Self, ConfigError> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        from_pod(
            &variable("KUBERNETES_SERVICE_HOST"),
            &variable("KUBERNETES_SERVICE_PORT"),
            &variable("POD_NAMESPACE"),
            Path::new(SERVICE_ACCOUNT_DIRECTORY),
        )
    }
}

pub(super) fn from_pod(host: &str, port: &str, namespace: &str, directory: &Path) -> Result<ClientConfig, ConfigError> {
    if host.is_empty() || port.is_empty() {
        return Err(ConfigError::NotInCluster);
    }
    let token = directory.join("token");
    std::fs::File::open(&token).map_err(|source| ConfigError::Token { path: token.clone(), source })?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut config = ClientConfig::for_server(format!("https://{host}:{port}"));
    config.credentials = Credentials::TokenFile { path: token, first: String::new() };
    let ca = directory.join("ca.crt");
    match std::fs::File::open(&ca) {
        Ok(_) => config.trust = Trust::File(ca),
        Err(error) => tracing::error!(%error, file = %ca.display(), "Expected to load root CA config"),
    }
    let mounted = || std::fs::read_to_string(directory.join("namespace")).unwrap_or_default();
    let namespace = if namespace.is_empty() { mounted().trim().to_owned() } else { namespace.to_owned() };
    if !namespace.is_empty() {
        config.namespace = namespace;
    }
    Ok(config)
}
