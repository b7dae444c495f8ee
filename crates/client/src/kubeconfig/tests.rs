//! Kubeconfig tables: choosing, merging, what is refused, and the pod's configuration.

use std::path::{Path, PathBuf};

use super::in_cluster::from_pod;
use super::{Kubeconfig, Overrides};
use crate::config::{CertSource, ClientConfig, ConfigError, Credentials, Trust};

const FILE: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: local
  cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: Q0E=, tls-server-name: api}
- name: plain
  cluster: {server: 'http://localhost:8080'}
users:
- name: admin
  user: {token: secret, as: jane, as-groups: [dev]}
- name: file
  user: {client-certificate: pki/a.crt, client-key: /abs/a.key}
- name: both
  user: {token: t, username: u, password: p}
contexts:
- name: one
  context: {cluster: local, user: admin, namespace: team}
- name: insecure
  context: {cluster: plain, user: admin}
- name: files
  context: {cluster: local, user: file}
- name: broken
  context: {cluster: local, user: both}
- name: lost
  context: {cluster: nowhere, user: admin}
";

fn resolve(context: &str) -> Result<ClientConfig, ConfigError> {
    let mut file = Kubeconfig::parse(FILE).unwrap();
    file.resolve_paths(Path::new("/etc/kubernetes"));
    ClientConfig::from_kubeconfig(&file, &Overrides { context: context.into(), ..Overrides::default() })
}

#[test]
fn the_current_context_is_used() {
    let config = resolve("").unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://127.0.0.1:6443", "team"));
    assert_eq!((config.trust, config.server_name.as_str()), (Trust::Pem(b"CA".to_vec()), "api"));
    assert_eq!(config.credentials, Credentials::Token("secret".into()));
    assert_eq!((config.impersonate.user.as_str(), config.impersonate.groups), ("jane", vec!["dev".to_owned()]));
}

#[test]
fn credentials_are_dropped_without_tls_and_paths_follow_the_file() {
    assert_eq!(resolve("insecure").unwrap().credentials, Credentials::None);
    let config = resolve("files").unwrap();
    let CertSource::Files { cert, key } = config.identity else { panic!("files expected") };
    assert_eq!((cert, key), (PathBuf::from("/etc/kubernetes/pki/a.crt"), PathBuf::from("/abs/a.key")));
}

#[test]
fn impossible_configurations_are_refused() {
    let cases = [
        ("missing", "context \"missing\" does not exist"),
        ("lost", "cluster \"nowhere\" does not exist"),
        (
            "broken",
            "invalid configuration: more than one authentication method found for both; found [token basicAuth], only one is allowed",
        ),
    ];
    for (context, text) in cases {
        assert_eq!(resolve(context).unwrap_err().to_string(), text);
    }
    let empty = ClientConfig::from_kubeconfig(&Kubeconfig::default(), &Overrides::default()).unwrap_err();
    assert!(empty.to_string().starts_with("invalid configuration: no configuration has been provided"), "{empty}");
    let twice = Kubeconfig::parse("users: [{name: a, user: {}}, {name: a, user: {}}]").err().unwrap();
    assert!(twice.to_string().contains("duplicate name \"a\" in list"), "{twice}");
}

#[test]
fn the_first_file_wins_and_errors_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    std::fs::write(&one, "clusters: [{name: a, cluster: {server: 'https://first'}}]").unwrap();
    std::fs::write(&two, FILE.replace("name: local", "name: a").replace("cluster: local", "cluster: a")).unwrap();
    let merged = Kubeconfig::read_all(&[directory.path().join("absent"), one, two]).unwrap();
    let config = ClientConfig::from_kubeconfig(&merged, &Overrides::default()).unwrap();
    assert_eq!(config.server, "https://first");
    let bad = directory.path().join("bad");
    std::fs::write(&bad, "clusters: 7").unwrap();
    let text = Kubeconfig::read(&bad).err().unwrap().to_string();
    assert!(text.contains("bad") && text.contains("clusters"), "{text}");
}

#[test]
fn pods_use_their_service_account() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(from_pod("", "443", "", directory.path()), Err(ConfigError::NotInCluster)));
    assert!(matches!(from_pod("::1", "443", "", directory.path()), Err(ConfigError::Token { .. })));
    std::fs::write(directory.path().join("token"), "t").unwrap();
    std::fs::write(directory.path().join("namespace"), "team\n").unwrap();
    let config = from_pod("fd00::1", "443", "", directory.path()).unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://[fd00::1]:443", "team"));
    assert_eq!(config.credentials, Credentials::TokenFile(directory.path().join("token")));
}
