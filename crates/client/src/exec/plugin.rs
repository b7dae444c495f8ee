//! What a kubeconfig says of a plugin, checked.

use api_machinery::json;
use api_machinery::leaf::RawJson;

use super::credential::{ClusterInfo, ExecCredential, ExecCredentialSpec, KIND};
use crate::config::{ConfigError, system_text};
use crate::kubeconfig::{Cluster, ExecConfig, User};

/// The cluster's extension that is meant for plugins.
const EXTENSION: &str = "client.authentication.k8s.io/exec";

/// The versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V1beta1,
}

impl Version {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::V1, Self::V1beta1].into_iter().find(|version| version.as_str() == text)
    }
}

/// A plugin's settings. Clients with equal settings share what it says.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecPlugin {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) version: Version,
    pub(super) install_hint: String,
    /// Whether it cannot work without a terminal.
    pub(super) needs_terminal: bool,
    /// What it is told, as JSON.
    pub(super) info: String,
    /// The credentials are for this server.
    server: String,
}

/// Arguments and variables may hold secrets.
impl std::fmt::Debug for ExecPlugin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ExecPlugin({:?})", self.command)
    }
}

impl ExecPlugin {
    /// The plugin of a user that is used for a cluster.
    ///
    /// # Errors
    /// When the version of the protocol is unknown, or the cluster's authority cannot be read.
    pub(crate) fn new(exec: &ExecConfig, cluster: &Cluster) -> Result<Self, ConfigError> {
        let version = Version::parse(&exec.api_version)
            .ok_or_else(|| ConfigError::Plugin(format!("exec plugin: invalid apiVersion {:?}", exec.api_version)))?;
        let cluster_info = if exec.provide_cluster_info { Some(cluster_info(cluster)?) } else { None };
        let told = ExecCredential {
            spec: ExecCredentialSpec { cluster: cluster_info, interactive: false },
            ..ExecCredential::default()
        };
        Ok(Self {
            command: exec.command.clone(),
            args: exec.args.clone(),
            env: exec.env.iter().map(|own| (own.name.clone(), own.value.clone())).collect(),
            version,
            install_hint: printable(&exec.install_hint),
            needs_terminal: mode(exec) == "Always",
            info: json::encode_typed(KIND, version.as_str(), &told),
            server: cluster.server.clone(),
        })
    }
}

fn cluster_info(cluster: &Cluster) -> Result<ClusterInfo, ConfigError> {
    let failed = |error: std::io::Error| {
        let file = &cluster.certificate_authority;
        let why = format!("failed to load CA bundle for execProvider: open {file}: {}", system_text(&error));
        ConfigError::Plugin(why)
    };
    let authority = if cluster.certificate_authority.is_empty() || !cluster.certificate_authority_data.is_empty() {
        cluster.certificate_authority_data.clone()
    } else {
        std::fs::read(&cluster.certificate_authority).map_err(failed)?.into()
    };
    let extension = cluster.extensions.iter().find(|own| own.name == EXTENSION);
    Ok(ClusterInfo {
        server: cluster.server.clone(),
        tls_server_name: cluster.tls_server_name.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: authority,
        proxy_url: cluster.proxy_url.clone(),
        disable_compression: cluster.disable_compression,
        config: extension.map_or_else(|| RawJson::from_text("null"), |own| own.extension.clone()),
    })
}

/// Whether the plugin may talk to somebody; former versions of the protocol need not say.
fn mode(exec: &ExecConfig) -> &str {
    let is_former = ["v1beta1", "v1alpha1"]
        .iter()
        .any(|version| exec.api_version.strip_prefix("client.authentication.k8s.io/") == Some(*version));
    if exec.interactive_mode.is_empty() && is_former { "IfAvailable" } else { &exec.interactive_mode }
}

/// The hint without what would steer a terminal or hide text.
fn printable(hint: &str) -> String {
    let is_space = |own: char| ('\t'..='\r').contains(&own);
    let is_hidden = |own: char| matches!(own, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let clean = |own: char| if is_hidden(own) || (own.is_control() && !is_space(own)) { '\u{fffd}' } else { own };
    hint.chars().map(clean).collect()
}

/// All that is wrong with a user's plugin, if there is one, in upstream's order and words.
pub(crate) fn problems(name: &str, user: &User) -> Vec<String> {
    let Some(exec) = &user.exec else { return Vec::new() };
    let mut problems = Vec::new();
    let missing = |what: &str| format!("{what} must be specified for {name} to use exec authentication plugin");
    if user.auth_provider.is_some() {
        problems.push(format!("authProvider cannot be provided in combination with an exec plugin for {name}"));
    }
    if exec.command.is_empty() {
        problems.push(missing("command"));
    }
    if exec.api_version.is_empty() {
        problems.push(missing("apiVersion"));
    }
    let nameless = exec.env.iter().filter(|own| own.name.is_empty());
    problems.extend(nameless.map(|_| missing("env variable name")));
    match mode(exec) {
        "" => problems.push(missing("interactiveMode")),
        "Never" | "IfAvailable" | "Always" => {}
        other => problems.push(format!("invalid interactiveMode for {name}: {other:?}")),
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig::Kubeconfig;

    /// What a plugin is told by a file whose cluster is `cluster` and whose plugin is `exec`.
    fn told(cluster: &str, exec: &str) -> String {
        let text = format!("clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {{exec: {exec}}}}}]");
        let file = Kubeconfig::parse(&text).unwrap();
        ExecPlugin::new(file.users[0].user.exec.as_ref().unwrap(), &file.clusters[0].cluster).unwrap().info
    }

    #[test]
    fn plugins_are_told_of_the_cluster_where_they_want_to_know() {
        let exec = "{command: c, apiVersion: client.authentication.k8s.io/v1beta1, provideClusterInfo: true}";
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca");
        std::fs::write(&file, "CA").unwrap();
        let head = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/"#;
        let whole = "{server: 'https://a', tls-server-name: name, insecure-skip-tls-verify: true, proxy-url: 'http://p', \
                     certificate-authority-data: Q0E=, disable-compression: true, extensions: [{name: other, extension: 1}, \
                     {name: client.authentication.k8s.io/exec, extension: {audience: x}}]}";
        for (cluster, exec, expected) in [
            (
                "{server: 'https://a'}",
                "{command: c, apiVersion: client.authentication.k8s.io/v1}",
                r#"v1","spec":{"interactive":false}}"#.to_owned(),
            ),
            (
                "{server: 'https://a'}",
                exec,
                r#"v1beta1","spec":{"cluster":{"server":"https://a","config":null},"interactive":false}}"#.to_owned(),
            ),
            (
                &format!("{{server: 'https://a', certificate-authority: {}}}", file.display()),
                exec,
                concat!(
                    r#"v1beta1","spec":{"cluster":{"server":"https://a","certificate-authority-data":"Q0E=","#,
                    r#""config":null},"interactive":false}}"#
                )
                .to_owned(),
            ),
            (
                whole,
                exec,
                concat!(
                    r#"v1beta1","spec":{"cluster":{"server":"https://a","tls-server-name":"name","#,
                    r#""insecure-skip-tls-verify":true,"certificate-authority-data":"Q0E=","proxy-url":"http://p","#,
                    r#""disable-compression":true,"config":{"audience":"x"}},"interactive":false}}"#
                )
                .to_owned(),
            ),
        ] {
            assert_eq!(told(cluster, exec), format!("{head}{expected}"), "{cluster} {exec}");
        }
    }

    #[test]
    fn hints_cannot_steer_a_terminal() {
        assert_eq!(
            printable("Get it:\n\t\u{1b}[31mhere\u{202e}\u{7f}é"),
            "Get it:\n\t\u{fffd}[31mhere\u{fffd}\u{fffd}é"
        );
    }
}
