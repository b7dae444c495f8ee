//! What goes to a plugin and what comes back: the kind `ExecCredential`, the same in both versions of its group.

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::object::from_value;
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;
use api_machinery::yaml;

use super::plugin::Version;

pub(super) const KIND: &str = "ExecCredential";

/// A question to a plugin, or its answer.
#[api(group = "client.authentication.k8s.io", version = "v1", kind = "ExecCredential")]
pub(super) struct ExecCredential {
    /// What the plugin is told.
    #[field(1, always)]
    pub(super) spec: ExecCredentialSpec,
    /// What it says.
    #[field(2)]
    pub(super) status: Option<ExecCredentialStatus>,
}

/// What a plugin is told.
#[api]
pub(super) struct ExecCredentialSpec {
    /// The cluster, where the plugin wants to know it.
    #[field(1)]
    pub(super) cluster: Option<ClusterInfo>,
    /// Whether it may talk to the user.
    #[field(2, always)]
    pub(super) interactive: bool,
}

/// What a plugin says.
#[api]
pub(super) struct ExecCredentialStatus {
    /// When the credentials end; absent where they do not end by themselves.
    #[field(1)]
    pub(super) expiration_timestamp: Option<Time>,
    /// A bearer token.
    #[field(2)]
    pub(super) token: String,
    /// A client certificate with its chain in PEM form.
    #[field(3)]
    pub(super) client_certificate_data: String,
    /// Its private key in PEM form.
    #[field(4)]
    pub(super) client_key_data: String,
}

/// How the cluster is reached that the credentials are for.
#[api]
pub(super) struct ClusterInfo {
    /// The URL.
    #[field(1, always)]
    pub(super) server: String,
    /// The name to verify instead of the URL's host.
    #[field(2, name = "tls-server-name")]
    pub(super) tls_server_name: String,
    /// Whether any certificate is accepted.
    #[field(3, name = "insecure-skip-tls-verify")]
    pub(super) insecure_skip_tls_verify: bool,
    /// Trusted authorities in PEM form.
    #[field(4, name = "certificate-authority-data")]
    pub(super) certificate_authority_data: ByteString,
    /// The proxy to go through.
    #[field(5, name = "proxy-url")]
    pub(super) proxy_url: String,
    /// Whether responses must not be compressed.
    #[field(6, name = "disable-compression")]
    pub(super) disable_compression: bool,
    /// What the cluster's extension for plugins holds.
    #[field(7, always)]
    pub(super) config: RawJson,
}

/// Reads a plugin's answer, in JSON or YAML, and checks that it holds credentials.
///
/// # Errors
/// When it does not; never with anything of the credentials.
pub(super) fn read(stdout: &[u8], version: Version) -> Result<ExecCredentialStatus, String> {
    let undecoded = |why: &dyn std::fmt::Display| format!("decoding stdout: {why}");
    let text = std::str::from_utf8(stdout).map_err(|error| undecoded(&error))?;
    let value = yaml::parse(text).map_err(|error| undecoded(&error))?.value;
    let member = |name: &str| value.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    let (kind, said) = (member("kind"), member("apiVersion"));
    if kind.is_empty() {
        return Err(undecoded(&"Object 'Kind' is missing"));
    }
    let Some(returned) = Version::parse(said).filter(|_| kind == KIND) else {
        return Err(undecoded(&format!("no kind {kind:?} is registered for version {said:?}")));
    };
    if returned != version {
        let (wanted, returned) = (version.as_str(), returned.as_str());
        return Err(format!(
            "exec plugin is configured to use API version {wanted}, plugin returned version {returned}"
        ));
    }
    let credential: ExecCredential = from_value(&value).map_err(|error| undecoded(&error))?;
    let Some(status) = credential.status else { return Err("exec plugin didn't return a status field".to_owned()) };
    let (has_cert, has_key) = (!status.client_certificate_data.is_empty(), !status.client_key_data.is_empty());
    if status.token.is_empty() && !has_cert && !has_key {
        return Err("exec plugin didn't return a token or cert/key pair".to_owned());
    }
    if has_cert != has_key {
        return Err("exec plugin returned only certificate or key, not both".to_owned());
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked_in_upstreams_words() {
        let v1 = r#""apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential""#;
        let version = "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned \
                       version client.authentication.k8s.io/v1beta1";
        for (answer, expected) in [
            (format!("{{{v1},\"status\":{{\"token\":\"t\"}}}}"), Ok("t")),
            (format!("{{{v1},\"status\":{{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}}}}"), Ok("")),
            (
                "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: from-yaml, more: 1}".into(),
                Ok("from-yaml"),
            ),
            (format!("{{{v1}}}"), Err("exec plugin didn't return a status field")),
            (format!("{{{v1},\"status\":null}}"), Err("exec plugin didn't return a status field")),
            (format!("{{{v1},\"status\":{{}}}}"), Err("exec plugin didn't return a token or cert/key pair")),
            (
                format!("{{{v1},\"status\":{{\"token\":\"t\",\"clientKeyData\":\"k\"}}}}"),
                Err("exec plugin returned only certificate or key, not both"),
            ),
            (
                format!("{{{v1},\"status\":{{\"clientCertificateData\":\"c\"}}}}"),
                Err("exec plugin returned only certificate or key, not both"),
            ),
            (r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}"#.into(), Err(version)),
            (String::new(), Err("decoding stdout: Object 'Kind' is missing")),
            (
                r#"{"apiVersion":"v1","kind":"Secret"}"#.into(),
                Err(r#"decoding stdout: no kind "Secret" is registered for version "v1""#),
            ),
        ] {
            let read = read(answer.as_bytes(), Version::V1).map(|status| status.token);
            assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{answer}");
        }
        for (name, answer) in [
            ("text", &b"Please log in"[..]),
            ("no text", &[0xff, 0xfe]),
            ("a number", br#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":7}"#),
        ] {
            let error = read(answer, Version::V1).err().unwrap();
            assert!(error.starts_with("decoding stdout: "), "{name}: {error}");
        }
    }
}
