//! A trusted proxy in front: it proves itself with a client certificate of its own CA and names the user in headers. This is how
//! the API server speaks to aggregated servers.

use std::sync::Arc;

use async_trait::async_trait;
use base::SharedClock;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use pki::CaPool;
use rustls_pki_types::CertificateDer;

use crate::authenticator::{Authenticator, AuthnError};
use crate::client_certificate::verified_leaf;
use crate::headers;
use crate::identity::{Identity, UserInfo, list_valued};
use crate::verified_chains::VerifiedChains;

/// Which headers carry what: `--requestheader-*-headers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// The first non-empty of these is the user's name.
    pub username: Vec<String>,
    /// The first non-empty of these is the user's uid.
    pub uid: Vec<String>,
    /// All values of all of these are groups.
    pub groups: Vec<String>,
    /// What follows these prefixes is a key of the extra data.
    pub extra_prefixes: Vec<String>,
}

impl Default for ProxyHeaders {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            username: one("X-Remote-User"),
            uid: one("X-Remote-Uid"),
            groups: one("X-Remote-Group"),
            extra_prefixes: one("X-Remote-Extra-"),
        }
    }
}

impl ProxyHeaders {
    /// Reads the user; `None` without a name.
    #[must_use]
    pub fn user(&self, map: &HeaderMap) -> Option<UserInfo> {
        let username = first(map, &self.username)?.to_owned();
        let mut extra = std::collections::BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (key, mut values) in headers::prefixed(map, prefix) {
                extra.entry(key).or_insert_with(Vec::new).append(&mut values);
            }
        }
        let groups = self.groups.iter().flat_map(|name| headers::values(map, name)).map(str::to_owned);
        Some(UserInfo {
            username,
            uid: first(map, &self.uid).unwrap_or_default().to_owned(),
            groups: groups.collect(),
            extra: list_valued(extra),
        })
    }

    /// Removes all of these headers, so that nothing behind authentication can mistake them.
    pub fn strip(&self, map: &mut HeaderMap) {
        let named = || self.username.iter().chain(&self.uid).chain(&self.groups);
        // Few requests have any, so that what they have is looked at once, and nothing is looked for.
        let is_own = |name: &HeaderName| {
            named().any(|own| own.eq_ignore_ascii_case(name.as_str()))
                || self.extra_prefixes.iter().any(|prefix| headers::after(name, prefix).is_some())
        };
        let own: Vec<HeaderName> = map.keys().filter(|name| is_own(name)).cloned().collect();
        for name in own {
            map.remove(name);
        }
    }
}

/// The first of these headers' values that is not empty.
fn first<'a>(map: &'a HeaderMap, names: &[String]) -> Option<&'a str> {
    let mut values = names.iter().filter_map(|name| headers::values(map, name).next());
    values.find(|value| !value.is_empty())
}

/// Authenticates requests that a trusted proxy vouches for.
pub struct FrontProxy {
    pool: Arc<CaPool>,
    clock: SharedClock,
    allowed_names: Vec<String>,
    headers: ProxyHeaders,
    /// Their common names.
    verified: VerifiedChains<String>,
}

impl FrontProxy {
    /// Trusts proxies with certificates of `pool` and, if the list is not empty, one of `allowed_names` as common name.
    #[must_use]
    pub fn new(pool: Arc<CaPool>, clock: SharedClock, allowed_names: Vec<String>, headers: ProxyHeaders) -> Self {
        Self { pool, clock, allowed_names, headers, verified: VerifiedChains::default() }
    }

    /// The common name of a certificate that verifies; `None` without any certificate.
    fn proxy(&self, peer: &[CertificateDer<'static>]) -> Result<Option<String>, AuthnError> {
        let (bundle, now) = (self.pool.current(), self.clock.wall());
        if let Some(known) = self.verified.find(peer, &bundle, now) {
            return Ok(Some(known));
        }
        let Some(leaf) = verified_leaf(&bundle, peer, now)? else { return Ok(None) };
        let name = leaf.subject().common_name().to_owned();
        self.verified.put(peer, &bundle, now, &name);
        Ok(Some(name))
    }
}

#[async_trait]
impl Authenticator for FrontProxy {
    /// Nobody is vouched for without a name.
    fn may_know(&self, request: &Parts) -> bool {
        first(&request.headers, &self.headers.username).is_some()
    }

    async fn authenticate(
        &self,
        request: &Parts,
        peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        let Some(name) = self.proxy(peer)? else { return Ok(None) };
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(&name) {
            return Err(AuthnError::Refused(format!("x509: subject with cn={name} is not in the allowed list")));
        }
        Ok(self.headers.user(&request.headers).map(Identity::of))
    }
}

#[cfg(test)]
#[path = "front_proxy_tests.rs"]
mod tests;
