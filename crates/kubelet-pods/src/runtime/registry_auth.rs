//! Credentials for registries: read from pull secrets and the node's own files, matched to images.

use std::path::Path;

use api_machinery::value::Value;
use api_types::core_v1::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node_api::cri::v1::AuthConfig;

/// Files are not read beyond this.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// One entry of a credentials file: where it is valid, and what to present.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    host: String,
    path: String,
    auth: AuthConfig,
}

/// All credentials that a pod brings or the node has, in the order in which they are tried.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    entries: Vec<Entry>,
}

/// Why credentials cannot be used; somebody has to write others.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("{0}")]
    Json(String),
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    #[error("no auths in the credentials")]
    NoAuths,
    #[error("the credentials are not an object")]
    NoObject,
    #[error("unable to parse auth field, must be formatted as base64(username:password)")]
    NoPassword,
}

impl Keyring {
    /// Adds those of a pull secret; other secrets are passed over.
    ///
    /// # Errors
    /// Its content is not what its type promises.
    pub fn add_secret(&mut self, secret: &Secret) -> Result<(), CredentialsError> {
        let data = |key: &str| secret.data.get(key).map(|bytes| bytes.0.as_slice());
        match secret.type_.as_str() {
            "kubernetes.io/dockerconfigjson" => data(".dockerconfigjson").map_or(Ok(()), |it| self.add_config(it)),
            "kubernetes.io/dockercfg" => data(".dockercfg").map_or(Ok(()), |it| self.add_old_config(it)),
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
                && self.add_config(&bytes).is_ok()
            {
                return;
            }
        }
        let old = [root_dir.join(".dockercfg"), ".dockercfg".into()].into_iter();
        let at_home = home.iter().map(|home| home.join(".dockercfg"));
        for path in old.chain(at_home).chain(["/.dockercfg".into()]) {
            if let Some(bytes) = read(&path)
                && self.add_old_config(&bytes).is_ok()
            {
                return;
            }
        }
    }

    /// What to present for an image, most specific first; empty for none.
    pub fn lookup(&self, repository: &str) -> Vec<AuthConfig> {
        let (host, path) = split_repository(repository);
        let mut found: Vec<&Entry> = self.entries.iter().filter(|entry| entry.matches(&host, &path)).collect();
        // Stable, so that among equals the order of the secrets decides.
        found.sort_by(|a, b| (&b.host, &b.path).cmp(&(&a.host, &a.path)));
        found.into_iter().map(|entry| entry.auth.clone()).collect()
    }

    fn add_config(&mut self, bytes: &[u8]) -> Result<(), CredentialsError> {
        let value = parse(bytes)?;
        let auths = value.get("auths").and_then(Value::as_object).ok_or(CredentialsError::NoAuths)?;
        self.add_auths(auths)
    }

    fn add_old_config(&mut self, bytes: &[u8]) -> Result<(), CredentialsError> {
        let value = parse(bytes)?;
        self.add_auths(value.as_object().ok_or(CredentialsError::NoObject)?)
    }

    fn add_auths(&mut self, auths: &serde_json::Map<String, Value>) -> Result<(), CredentialsError> {
        for (server, value) in auths {
            let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut auth = AuthConfig { username: text("username"), password: text("password"), ..Default::default() };
            let encoded = text("auth");
            if !encoded.is_empty() {
                let decoded = STANDARD.decode(encoded.trim())?;
                let decoded = String::from_utf8(decoded).map_err(|error| error.utf8_error())?;
                let (user, password) = decoded.split_once(':').ok_or(CredentialsError::NoPassword)?;
                auth.username = user.to_owned();
                auth.password = password.to_owned();
            }
            let bare = server.trim_start_matches("https://").trim_start_matches("http://");
            let bare = bare.trim_end_matches('/');
            let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
            let path = path.trim_start_matches("v1").trim_start_matches("v2").trim_start_matches('/');
            self.entries.push(Entry { host: host.to_owned(), path: path.to_owned(), auth });
        }
        Ok(())
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    std::fs::read(path).ok()
}

fn parse(bytes: &[u8]) -> Result<Value, CredentialsError> {
    let text = std::str::from_utf8(bytes)?;
    api_machinery::json::parse_value(text).map_err(|error| CredentialsError::Json(error.to_string()))
}

impl Entry {
    fn matches(&self, host: &str, path: &str) -> bool {
        let below = path == self.path || path.starts_with(&format!("{}/", self.path));
        (self.path.is_empty() || below) && host_matches(&self.host, host)
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
        ring.add_config(json.as_bytes()).unwrap();
        ring
    }

    #[test]
    fn the_most_specific_comes_first() {
        let ring = ring(
            r#"{"auths":{"reg.io":{"auth":"YTpi"},"reg.io/team":{"username":"c","password":"d"},
                "*.example.com":{"username":"e","password":"f"},"https://index.docker.io/v1/":{"username":"g"}}}"#,
        );
        let users = |image: &str| ring.lookup(image).into_iter().map(|auth| auth.username).collect::<Vec<_>>();
        assert_eq!(users("reg.io/team/app"), ["c", "a"]);
        assert_eq!(users("reg.io/other"), ["a"]);
        assert_eq!(users("reg.io/teamwork"), ["a"]);
        assert_eq!(users("eu.example.com/x"), ["e"]);
        assert_eq!(users("a.b.example.com/x"), Vec::<String>::new());
        assert_eq!(users("busybox"), ["g"]);
        assert_eq!(users("reg.io:5000/x"), Vec::<String>::new());
    }

    #[test]
    fn bad_content_is_an_error() {
        assert!(Keyring::default().add_config(b"{").is_err());
        assert!(Keyring::default().add_config(br#"{"auths":{"a":{"auth":"!!"}}}"#).is_err());
    }
}
