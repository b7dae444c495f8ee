//! Putting authenticators together in upstream's order.
//!
//! Front proxy, client certificate, bearer header, WebSocket bearer: the first success wins, an error is remembered and the
//! next is tried. Anonymous comes in only when nobody had an opinion, so a bad token is never anonymous.

use std::sync::Arc;

use async_trait::async_trait;
use http::request::Parts;
use rustls_pki_types::CertificateDer;

use crate::anonymous::Anonymous;
use crate::authenticator::{Authenticator, AuthnError, RequestedAudiences, TokenAuthenticator};
use crate::identity::Identity;

/// Request authenticators in order; errors are remembered, the first success wins. What could only fail is left for when
/// nobody accepts the request.
pub struct Union(Vec<Arc<dyn Authenticator>>);

impl Union {
    /// A union in the order given.
    #[must_use]
    pub fn new(members: Vec<Arc<dyn Authenticator>>) -> Self {
        Self(members)
    }
}

#[async_trait]
impl Authenticator for Union {
    async fn authenticate(
        &self,
        request: &Parts,
        peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        let mut errors = Vec::new();
        for may_know in [true, false] {
            let members = self.0.iter().enumerate().filter(|(_, member)| member.may_know(request) == may_know);
            for (place, member) in members {
                match member.authenticate(request, peer).await {
                    Ok(Some(identity)) => return Ok(Some(identity)),
                    Ok(None) => {}
                    Err(error) => errors.push((place, error)),
                }
            }
        }
        errors.sort_by_key(|(place, _)| *place);
        AuthnError::join(errors.into_iter().map(|(_, error)| error).collect()).map_or(Ok(None), Err)
    }
}

/// Token authenticators in order; a source that does not recognise the token passes, all others' errors are collected.
pub struct TokenUnion(Vec<Arc<dyn TokenAuthenticator>>);

impl TokenUnion {
    /// A union in the order given; upstream's is token file, service accounts, bootstrap tokens, JWT issuers, webhook.
    #[must_use]
    pub fn new(members: Vec<Arc<dyn TokenAuthenticator>>) -> Self {
        Self(members)
    }
}

#[async_trait]
impl TokenAuthenticator for TokenUnion {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        let mut errors = Vec::new();
        for member in &self.0 {
            match member.authenticate_token(token, audiences).await {
                Ok(Some(identity)) => return Ok(Some(identity)),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        AuthnError::join(errors).map_or(Ok(None), Err)
    }
}

/// The whole of authentication: the union, the group that marks success, anonymous, and the audience check.
pub struct Chain {
    members: Union,
    anonymous: Option<Anonymous>,
    api_audiences: Vec<String>,
}

impl Chain {
    /// A chain of `members` in order; `anonymous` answers when none of them has an opinion. `api_audiences` are what tokens
    /// must be good for.
    #[must_use]
    pub fn new(members: Vec<Arc<dyn Authenticator>>, anonymous: Option<Anonymous>, api_audiences: Vec<String>) -> Self {
        Self { members: Union::new(members), anonymous, api_audiences }
    }

    fn check_audiences(&self, request: &Parts, identity: &Identity) -> Result<(), AuthnError> {
        let requested = request.extensions.get::<RequestedAudiences>().map(|requested| &requested.0);
        let accepted = requested.filter(|audiences| !audiences.is_empty()).unwrap_or(&self.api_audiences);
        let (granted, any) = (&identity.audiences, identity.audiences.iter().any(|one| accepted.contains(one)));
        if granted.is_empty() || accepted.is_empty() || any {
            return Ok(());
        }
        Err(AuthnError::refused(format!("unable to match the audience: {granted:?} , accepted: {accepted:?}")))
    }
}

#[async_trait]
impl Authenticator for Chain {
    async fn authenticate(
        &self,
        request: &Parts,
        peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        if let Some(mut identity) = self.members.authenticate(request, peer).await? {
            self.check_audiences(request, &identity)?;
            identity.mark_authenticated();
            return Ok(Some(identity));
        }
        Ok(self.anonymous.as_ref().and_then(|anonymous| anonymous.identify(request)))
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
