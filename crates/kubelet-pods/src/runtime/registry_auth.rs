//! Credentials for registries: read from pull secrets and the node's own files, matched to images.

use std::path::Path;

use api_types::core_v1::Secret;
use node_api::cri::v1::AuthConfig;

use super::docker_config::{self, Auths, CredentialsError};
use super::labels::go_json;
use crate::interfaces::{CredentialOwner, RegistryCredential};

/// Files are not read beyond this.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where credentials come from, as the record of a pull remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// The node itself: all its pods may use them.
    Node,
    /// A pull secret.
    Secret(CredentialOwner),
    /// A service account.
    Account(CredentialOwner),
}

/// Credentials that fit an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub auth: AuthConfig,
    pub source: CredentialSource,
}

impl Found {
    /// What tells them from others without giving them away: the hash of their JSON.
    pub fn hash(&self) -> String {
        let AuthConfig { username, password, .. } = &self.auth;
        let members = [("username", username), ("password", password)].into_iter().filter(|(_, text)| !text.is_empty());
        let members: Vec<String> = members.map(|(name, text)| format!("\"{name}\":{}", go_json(text))).collect();
        kubelet_node::csi::hash(&[&format!("{{{}}}", members.join(","))])
    }
}

/// One entry of a credentials file: where it is valid, and what to present.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    host: String,
    path: String,
    auth: AuthConfig,
    source: CredentialSource,
}

/// All credentials that a pod brings or the node has.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    entries: Vec<Entry>,
    /// Those of the node's files, which are tried after the others.
    files: Vec<Entry>,
}

impl Keyring {
    /// Those that somebody has.
    pub fn of(found: Vec<RegistryCredential>) -> Self {
        let entry = |found: RegistryCredential| {
            let source = found.account.map_or(CredentialSource::Node, CredentialSource::Account);
            Entry::new(&found.server, found.auth, source)
        };
        Self { entries: found.into_iter().map(entry).collect(), files: Vec::new() }
    }

    /// Adds those of a pull secret; other secrets are passed over.
    ///
    /// # Errors
    /// Its content is not what its type promises.
    pub fn add_secret(&mut self, secret: &Secret) -> Result<(), CredentialsError> {
        let api_machinery::meta::ObjectMeta { uid, namespace, name, .. } = secret.metadata.clone();
        let source = CredentialSource::Secret(CredentialOwner { uid, namespace, name });
        let data = |key: &str| secret.data.get(key).map(|bytes| bytes.0.as_slice());
        match secret.type_.as_str() {
            "kubernetes.io/dockerconfigjson" => {
                data(".dockerconfigjson").map_or(Ok(()), |it| self.add_config(it, &source))
            }
            "kubernetes.io/dockercfg" => data(".dockercfg").map_or(Ok(()), |it| self.add_old_config(it, &source)),
            _ => Ok(()),
        }
    }

    /// Adds those of the first readable file among the places that upstream looks at.
    pub fn add_node_files(&mut self, root_dir: &Path) {
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        let docker = home.iter().map(|home| home.join(".docker/config.json"));
        let new = [root_dir.join("config.json"), "config.json".into()].into_iter().chain(docker);
        for path in new.chain(["/.docker/config.json".into()]) {
            if let Some(bytes) = read(&path)
                && self.add_config(&bytes, &CredentialSource::Node).is_ok()
            {
                return;
            }
        }
        let old = [root_dir.join(".dockercfg"), ".dockercfg".into()].into_iter();
        let at_home = home.iter().map(|home| home.join(".dockercfg"));
        for path in old.chain(at_home).chain(["/.dockercfg".into()]) {
            if let Some(bytes) = read(&path)
                && self.add_old_config(&bytes, &CredentialSource::Node).is_ok()
            {
                return;
            }
        }
    }

    /// What to present for an image, in the order in which it is tried: the pod's own before the node's, of each the most
    /// specific first. Empty for none.
    pub fn lookup(&self, repository: &str) -> Vec<Found> {
        let (host, path) = split_repository(repository);
        let fitting = |entries: &[Entry]| -> Vec<Found> {
            let mut found: Vec<&Entry> = entries.iter().filter(|entry| entry.matches(&host, &path)).collect();
            // Stable, so that among equals the order of the secrets decides.
            found.sort_by(|a, b| (&b.host, &b.path).cmp(&(&a.host, &a.path)));
            found.into_iter().map(|entry| Found { auth: entry.auth.clone(), source: entry.source.clone() }).collect()
        };
        [fitting(&self.entries), fitting(&self.files)].concat()
    }

    fn add_config(&mut self, bytes: &[u8], source: &CredentialSource) -> Result<(), CredentialsError> {
        self.add_auths(docker_config::read(bytes)?, source);
        Ok(())
    }

    fn add_old_config(&mut self, bytes: &[u8], source: &CredentialSource) -> Result<(), CredentialsError> {
        self.add_auths(docker_config::read_old(bytes)?, source);
        Ok(())
    }

    fn add_auths(&mut self, auths: Auths, source: &CredentialSource) {
        let entries = if *source == CredentialSource::Node { &mut self.files } else { &mut self.entries };
        entries.extend(auths.into_iter().map(|(server, auth)| Entry::new(&server, auth, source.clone())));
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    std::fs::read(path).ok()
}

/// Whether a pattern of images, a host with globs and maybe a path, is one of an image.
pub(crate) fn matches_image(pattern: &str, repository: &str) -> bool {
    let (own, prefix) = host_and_path(pattern);
    let (host, path) = split_repository(repository);
    host_matches(own, &host) && is_below(prefix, &path)
}

/// The host of a pattern, and what follows it.
fn host_and_path(pattern: &str) -> (&str, &str) {
    let bare = pattern.trim_start_matches("https://").trim_start_matches("http://");
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    (host, path.trim_matches('/'))
}

/// Whether a path is another, or goes on from there.
fn is_below(prefix: &str, path: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Entry {
    fn new(server: &str, auth: AuthConfig, source: CredentialSource) -> Self {
        let (host, path) = host_and_path(server);
        // Old files name the version of the registry's API, too.
        let path = match path.split_once('/').unwrap_or((path, "")) {
            ("v1" | "v2", rest) => rest,
            _ => path,
        };
        Self { host: host.to_owned(), path: path.to_owned(), auth, source }
    }

    fn matches(&self, host: &str, path: &str) -> bool {
        host_matches(&self.host, host) && is_below(&self.path, path)
    }
}

/// Host and path of a repository; names without a registry are the public one's.
fn split_repository(repository: &str) -> (String, String) {
    let (first, rest) = repository.split_once('/').unwrap_or(("", repository));
    let is_host = first.contains('.') || first.contains(':') || first == "localhost";
    match (is_host, first) {
        (true, "docker.io" | "index.docker.io") => ("index.docker.io".to_owned(), rest.to_owned()),
        (true, host) => (host.to_owned(), rest.to_owned()),
        (false, _) => ("index.docker.io".to_owned(), repository.to_owned()),
    }
}

/// Compares label by label; `*` in a pattern stands for any text within one label. Ports must be equal.
fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, pattern_port) = pattern.split_once(':').unwrap_or((pattern, ""));
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let pattern = if pattern == "docker.io" { "index.docker.io" } else { pattern };
    let (patterns, labels): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    pattern_port == port
        && patterns.len() == labels.len()
        && patterns.iter().zip(&labels).all(|(pattern, label)| glob(pattern, label))
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => {
            let Some(rest) = text.strip_prefix(head) else { return false };
            (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| glob(tail, rest)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(json: &str) -> Keyring {
        let mut ring = Keyring::default();
        ring.add_config(json.as_bytes(), &CredentialSource::Node).unwrap();
        ring
    }

    #[test]
    fn the_most_specific_comes_first() {
        let ring = ring(
            r#"{"auths":{"reg.io":{"auth":"YTpi"},"reg.io/team":{"username":"c","password":"d"},
                "*.example.com":{"username":"e","password":"f"},"https://index.docker.io/v1/":{"username":"g"}}}"#,
        );
        let users = |image: &str| ring.lookup(image).into_iter().map(|found| found.auth.username).collect::<Vec<_>>();
        assert_eq!(users("reg.io/team/app"), ["c", "a"]);
        assert_eq!(users("reg.io/other"), ["a"]);
        assert_eq!(users("reg.io/teamwork"), ["a"]);
        assert_eq!(users("eu.example.com/x"), ["e"]);
        assert_eq!(users("a.b.example.com/x"), Vec::<String>::new());
        assert_eq!(users("busybox"), ["g"]);
        assert_eq!(users("reg.io:5000/x"), Vec::<String>::new());
    }

    #[test]
    fn the_pods_own_come_before_the_nodes() {
        let mut ring = ring(r#"{"auths":{"reg.io/team/app":{"username":"node"}}}"#);
        let own = CredentialSource::Secret(CredentialOwner::default());
        ring.add_config(br#"{"auths":{"reg.io":{"username":"pod"},"reg.io/v1team":{"username":"other"}}}"#, &own)
            .unwrap();
        let found = ring.lookup("reg.io/team/app");
        let users: Vec<(&str, bool)> =
            found.iter().map(|found| (found.auth.username.as_str(), found.source == CredentialSource::Node)).collect();
        assert_eq!(users, [("pod", false), ("node", true)]);
        assert_eq!(ring.lookup("reg.io/v1team/app").len(), 2, "it is no version of an API");
        assert!(matches_image("reg.io/v2", "reg.io/v2/app") && !matches_image("*.reg.io", "reg.io/team"));
    }

    #[test]
    fn bad_content_is_an_error() {
        let node = CredentialSource::Node;
        assert!(Keyring::default().add_config(b"{", &node).is_err());
        assert!(Keyring::default().add_config(br#"{"auths":{"a":{"auth":"!!"}}}"#, &node).is_err());
    }
}
