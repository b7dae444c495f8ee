//! The file: read, decoded strictly, and checked.

use std::path::Path;

use api_types::apiserver_config_v1::{self, EGRESS_API_VERSIONS, EgressSelectorConfiguration};
use component_base::config_file;

use crate::validate::validate;

const KIND: &str = "EgressSelectorConfiguration";

/// Why a file cannot be used; the text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Reads a file.
///
/// # Errors
/// When it is not there, or everything that is wrong with it.
pub fn read(path: &Path) -> Result<EgressSelectorConfiguration, ConfigError> {
    let shown = path.display();
    let size = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(_) => return Err(ConfigError(format!("egress-selector-config-file {shown} does not exist"))),
    };
    let unread = |why: &dyn std::fmt::Display| {
        ConfigError(format!(
            "failed to read egress selector config: unable to read egress selector configuration from {path:?} [{why}]"
        ))
    };
    if size > config_file::MAX_BYTES {
        return Err(unread(&format_args!("it is larger than {} bytes", config_file::MAX_BYTES)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unread(&error))?;
    parse(&text).map_err(|why| unread(&why))
}

fn parse(text: &str) -> Result<EgressSelectorConfiguration, String> {
    let value = config_file::parse(text).map_err(|error| error.to_string())?;
    let mut configuration = EgressSelectorConfiguration::default();
    apiserver_config_v1::decode(value, KIND, &EGRESS_API_VERSIONS, &mut configuration)?;
    validate(&configuration).into_result().map_err(|errors| errors.to_string())?;
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";

    fn of(connection: &str) -> String {
        format!("{HEAD}- name: cluster\n  connection: {connection}\n")
    }

    /// What is said of each text.
    fn check(cases: &[(String, &str)]) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("egress.yaml");
        assert!(read(&path).unwrap_err().to_string().ends_with("egress.yaml does not exist"));
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected) && expected.is_empty() == error.is_empty(), "{text}: {error}");
        }
    }

    #[test]
    fn mistakes_are_told_with_upstreams_words() {
        check(&[
            (of("{proxyProtocol: Direct}"), ""),
            (of("{proxyProtocol: GRPC, transport: {uds: {udsName: /run/k.sock}}}"), ""),
            (of("{proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/k.sock}}}"), ""),
            (of("{proxyProtocol: Direct}").replace("v1beta1", "v1alpha1"), ""),
            (
                of("{proxyProtocol: Direct}").replace("v1beta1", "v1"),
                "no kind \"EgressSelectorConfiguration\" is registered",
            ),
            (of("{proxyProtocol: Direct, surprise: 1}"), "strict decoding error: unknown field"),
            (
                of("{}"),
                "service.connection.protocol: Unsupported value: \"\": supported values: \"Direct\", \"HTTPConnect\", \"GRPC\"",
            ),
            (
                of("{proxyProtocol: Direct, transport: {}}"),
                "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect",
            ),
            (
                of("{proxyProtocol: HTTPConnect}"),
                "service.connection.transport: Required value: transport must be set for HTTPConnect",
            ),
            (
                of("{proxyProtocol: HTTPConnect, transport: {}}"),
                "service.connection.tcp: Required value: One of TCP or UDS must be set",
            ),
            (
                of("{proxyProtocol: HTTPConnect, transport: {tcp: {url: http://a}, uds: {udsName: /b}}}"),
                "TCP and UDS cannot both be set",
            ),
            (
                of("{proxyProtocol: HTTPConnect, transport: {uds: {}}}"),
                "service.connection.udsName: Invalid value: \"nil\": must be present for UDS connections",
            ),
            (
                of("{proxyProtocol: GRPC}"),
                "service.connection.transport: Required value: transport must be set for GRPC",
            ),
            (
                of("{proxyProtocol: GRPC, transport: {tcp: {url: http://a}}}"),
                "service.connection.uds: Required value: UDS must be set with GRPC",
            ),
            (
                of("{proxyProtocol: Direct}").replace("cluster", "moon"),
                "service.connection: Unsupported value: \"moon\": supported values: \"cluster\", \"controlplane\", \"etcd\"",
            ),
            (
                of("{proxyProtocol: Direct}") + "- name: Cluster\n  connection: {proxyProtocol: Direct}\n",
                "service.connection.1: Duplicate value: \"cluster\"",
            ),
            ("kind: X".to_owned(), "no kind \"X\" is registered"),
        ]);
    }

    #[test]
    fn mistakes_about_proxies_at_ports_are_told() {
        let tcp = |rest: &str| of(&format!("{{proxyProtocol: HTTPConnect, transport: {{tcp: {{{rest}}}}}}}"));
        check(&[
            (tcp("url: http://127.0.0.1:1"), ""),
            (
                tcp("url: \"ftp://a\""),
                "service.connection.url: Invalid value: \"ftp://a\": supported connection protocols are http:// and https://",
            ),
            (tcp("url: \"http://a\", tlsConfig: {}"), "config must not be present when using HTTP"),
            (
                tcp("url: \"https://a\""),
                "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS",
            ),
            (
                tcp("url: \"https://a\", tlsConfig: {caBundle: /nowhere}"),
                "service.connection.tlsConfig.caBundle: Invalid value: \"/nowhere\": TLS config ca bundle does not exist",
            ),
            (
                tcp("url: \"https://a\", tlsConfig: {}"),
                "service.connection.tlsConfig.clientCert: Invalid value: \"nil\": Using TLS requires clientCert",
            ),
            (
                tcp("url: \"https://a\", tlsConfig: {}"),
                "service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using TLS requires requires clientKey",
            ),
            (tcp("url: \"https://a\", tlsConfig: {clientCert: /nowhere}"), "TLS client cert does not exist"),
        ]);
    }
}
