//! The headers that say who asks: bearer tokens (from a file that is read again, or a credential plugin), basic
//! authentication, impersonation.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::{Credentials, Impersonation};
use crate::exec::{Authenticator, PluginCredentials};
use crate::transport::TransportError;

/// How long a token from a file is used before the file is read again: a minute less ten seconds, as upstream.
const TOKEN_LIFETIME: Duration = Duration::from_secs(50);

/// Who asks cannot be said in headers.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("the credentials are not printable")]
    Credentials,
    #[error("impersonation: {0:?} cannot be sent as a header")]
    Impersonation(String),
}

/// The identity of a client, as headers.
pub(crate) struct Identity {
    credentials: Credentials,
    impersonation: Vec<(HeaderName, HeaderValue)>,
    token: Mutex<Option<CachedToken>>,
    plugin: Option<Arc<Authenticator>>,
}

struct CachedToken {
    token: String,
    read_at: Instant,
}

impl Identity {
    /// The headers of a configuration, or why they cannot be written.
    pub(crate) fn new(credentials: Credentials, impersonate: &Impersonation) -> Result<Self, HeaderError> {
        let impersonation = impersonation_headers(impersonate)?;
        Ok(Self { credentials, impersonation, token: Mutex::default(), plugin: None })
    }

    /// The same with a plugin that is asked where a request says nothing else.
    pub(crate) fn asking(self, plugin: Option<Arc<Authenticator>>) -> Self {
        Self { plugin, ..self }
    }

    /// Adds what the plugin says, if there is one and the request has no credentials of its own. A plugin that has to be asked
    /// runs in `tasks`.
    ///
    /// # Errors
    /// When the plugin fails, or its token cannot be sent.
    pub(crate) async fn ask_plugin(
        &self,
        headers: &mut HeaderMap,
        tasks: &TaskGroup,
    ) -> Result<Option<Arc<PluginCredentials>>, TransportError> {
        let Some(plugin) = self.plugin.as_ref().filter(|_| !headers.contains_key(header::AUTHORIZATION)) else {
            return Ok(None);
        };
        let found = plugin.credentials(tasks).await.map_err(TransportError::Credentials)?;
        if !found.token().is_empty() {
            let value = authorization_value(&format!("Bearer {}", found.token()));
            headers.insert(header::AUTHORIZATION, value.map_err(|error| TransportError::Invalid(error.to_string()))?);
        }
        Ok(Some(found))
    }

    /// Adds the headers to a request that has none of its own.
    pub(crate) fn apply(&self, headers: &mut HeaderMap, now: Instant) -> Result<(), HeaderError> {
        if !headers.contains_key(header::AUTHORIZATION)
            && let Some(text) = self.authorization(now)
        {
            headers.insert(header::AUTHORIZATION, authorization_value(&text)?);
        }
        for (name, value) in &self.impersonation {
            headers.append(name.clone(), value.clone());
        }
        Ok(())
    }

    /// The server answered 401. Forgets the token, so that the next request reads the file again; what the plugin had said
    /// when the request was sent is not used again if it says something else now.
    pub(crate) async fn refused(&self, used: Option<&Arc<PluginCredentials>>, tasks: &TaskGroup) {
        if let (Some(plugin), Some(used)) = (&self.plugin, used) {
            plugin.refused(used, tasks).await;
        }
        if let Some(cached) = self.token.lock().as_mut()
            && let Some(earlier) = cached.read_at.checked_sub(TOKEN_LIFETIME)
        {
            cached.read_at = earlier;
        }
    }

    fn authorization(&self, now: Instant) -> Option<String> {
        match &self.credentials {
            Credentials::None | Credentials::Plugin(_) => None,
            Credentials::Token(token) => Some(format!("Bearer {token}")),
            Credentials::TokenFile { path, first } => Some(self.file_token(path, now).unwrap_or_else(|| first.clone()))
                .filter(|token| !token.is_empty())
                .map(|token| format!("Bearer {token}")),
            Credentials::Basic { username, password } => {
                let pair = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
                Some(format!("Basic {pair}"))
            }
        }
    }

    /// The token in the file; the former one where the file cannot be read or is empty. The file is tiny and read
    /// once a minute, so reading it here does not hold up the executor.
    fn file_token(&self, path: &Path, now: Instant) -> Option<String> {
        let mut cached = self.token.lock();
        if let Some(cached) = cached.as_ref()
            && now.saturating_duration_since(cached.read_at) < TOKEN_LIFETIME
        {
            return Some(cached.token.clone());
        }
        match std::fs::read_to_string(path) {
            Ok(text) if !text.trim().is_empty() => {
                *cached = Some(CachedToken { token: text.trim().to_owned(), read_at: now });
            }
            Ok(_) => tracing::error!(file = %path.display(), "Token file is empty, keeping the former token"),
            Err(error) => {
                tracing::error!(%error, file = %path.display(), "Reading the token file failed, keeping the former token");
            }
        }
        cached.as_ref().map(|cached| cached.token.clone())
    }
}

fn authorization_value(text: &str) -> Result<HeaderValue, HeaderError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| HeaderError::Credentials)?;
    value.set_sensitive(true);
    Ok(value)
}

fn impersonation_headers(impersonate: &Impersonation) -> Result<Vec<(HeaderName, HeaderValue)>, HeaderError> {
    let mut headers = Vec::new();
    let mut add = |name: String, value: &str| -> Result<(), HeaderError> {
        let bad = |what: &str| HeaderError::Impersonation(what.to_owned());
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad(&name))?;
        headers.push((header, HeaderValue::from_str(value).map_err(|_| bad(value))?));
        Ok(())
    };
    if !impersonate.user.is_empty() {
        add("impersonate-user".to_owned(), &impersonate.user)?;
    }
    if !impersonate.uid.is_empty() {
        add("impersonate-uid".to_owned(), &impersonate.uid)?;
    }
    for group in &impersonate.groups {
        add("impersonate-group".to_owned(), group)?;
    }
    for (key, values) in &impersonate.extra {
        for value in values {
            add(format!("impersonate-extra-{}", escape_header_key(key)), value)?;
        }
    }
    Ok(headers)
}

/// Percent-escapes what a header name cannot hold, and `%` itself.
fn escape_header_key(key: &str) -> String {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    key.bytes().map(|byte| if allowed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(identity: &Identity, now: Instant) -> Option<String> {
        let mut headers = HeaderMap::new();
        identity.apply(&mut headers, now).unwrap();
        headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn token_files_are_read_again_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let following = |first: &str| {
            let credentials = Credentials::TokenFile { path: path.clone(), first: first.into() };
            Identity::new(credentials, &Impersonation::default()).unwrap()
        };
        let (identity, given) = (following(""), following("given"));
        let start = Instant::now();
        assert_eq!(authorization(&identity, start), None);
        assert_eq!(authorization(&given, start).as_deref(), Some("Bearer given"));
        std::fs::write(&path, "one\n").unwrap();
        for identity in [&identity, &given] {
            assert_eq!(authorization(identity, start).as_deref(), Some("Bearer one"));
        }
        std::fs::write(&path, "two").unwrap();
        assert_eq!(authorization(&identity, start + Duration::from_secs(49)).as_deref(), Some("Bearer one"));
        assert_eq!(authorization(&identity, start + Duration::from_secs(51)).as_deref(), Some("Bearer two"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(authorization(&identity, start + Duration::from_secs(200)).as_deref(), Some("Bearer two"));
    }

    #[test]
    fn impersonation_escapes_keys() {
        let mut impersonate = Impersonation { user: "jane".into(), ..Impersonation::default() };
        impersonate.extra.insert("example.org/100%".into(), vec!["x".into()]);
        let identity = Identity::new(Credentials::None, &impersonate).unwrap();
        let mut headers = HeaderMap::new();
        identity.apply(&mut headers, Instant::now()).unwrap();
        assert_eq!(headers["impersonate-user"], "jane");
        assert_eq!(headers["impersonate-extra-example.org%2f100%25"], "x");
    }
}
