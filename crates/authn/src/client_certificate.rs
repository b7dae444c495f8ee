//! Users with TLS client certificates: the common name is the user, every organization a group.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use base::SharedClock;
use http::request::Parts;
use pki::{CaBundle, CaPool, Certificate, ChainError, Purpose};
use rustls_pki_types::CertificateDer;

use crate::authenticator::{Authenticator, AuthnError};
use crate::identity::{CREDENTIAL_ID_KEY, Identity, UserInfo, single_valued};
use crate::verified_chains::VerifiedChains;

/// Whether a uid is read from the subject: feature gate `AllowParsingUserUIDFromCertAuth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectUid {
    /// Read it.
    Parsed,
    /// Leave it.
    Ignored,
}

/// Authenticates by client certificate against a reloadable CA bundle.
pub struct ClientCertificate {
    pool: Arc<CaPool>,
    clock: SharedClock,
    subject_uid: SubjectUid,
    /// Who they are; some are nobody.
    verified: VerifiedChains<Option<Identity>>,
}

impl ClientCertificate {
    /// Trusts the certificates of `pool`, which may be reloaded meanwhile.
    #[must_use]
    pub fn new(pool: Arc<CaPool>, clock: SharedClock, subject_uid: SubjectUid) -> Self {
        Self { pool, clock, subject_uid, verified: VerifiedChains::default() }
    }
}

#[async_trait]
impl Authenticator for ClientCertificate {
    async fn authenticate(
        &self,
        _request: &Parts,
        peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        let (bundle, now) = (self.pool.current(), self.clock.wall());
        if let Some(known) = self.verified.find(peer, &bundle, now) {
            return Ok(known);
        }
        let Some(leaf) = verified_leaf(&bundle, peer, now)? else { return Ok(None) };
        let mut identity = identity(&leaf, self.subject_uid)?;
        // What is known is marked already: nobody has to copy it for that.
        identity.iter_mut().for_each(Identity::mark_authenticated);
        self.verified.put(peer, &bundle, now, &identity);
        Ok(identity)
    }
}

/// The leaf of a chain that verifies for client authentication; `None` without any certificate.
pub(crate) fn verified_leaf(
    bundle: &CaBundle,
    peer: &[CertificateDer<'static>],
    now: SystemTime,
) -> Result<Option<Certificate>, AuthnError> {
    let Some(leaf) = peer.first() else { return Ok(None) };
    let verified = Certificate::from_der(leaf).map_err(ChainError::from).and_then(|leaf| {
        pki::verify_chain(bundle, &leaf, peer, &Purpose::client_auth(), now)?;
        Ok(leaf)
    });
    verified.map(Some).map_err(|error| {
        let certificate = Certificate::from_der(leaf).map(|leaf| pki::describe(&leaf)).unwrap_or_default();
        AuthnError::Certificate { certificate, why: error.to_string() }
    })
}

fn identity(leaf: &Certificate, subject_uid: SubjectUid) -> Result<Option<Identity>, AuthnError> {
    let subject = leaf.subject();
    if subject.common_name().is_empty() {
        return Ok(None);
    }
    let uid = match subject_uid {
        SubjectUid::Parsed => subject.user_uid().map_err(|error| AuthnError::refused(error.to_string()))?.to_owned(),
        SubjectUid::Ignored => String::new(),
    };
    let user = UserInfo {
        username: subject.common_name().to_owned(),
        uid,
        groups: subject.organizations(),
        extra: single_valued([(CREDENTIAL_ID_KEY, format!("X509SHA256={}", leaf.fingerprint_sha256()))]),
    };
    Ok(Some(Identity { certificate_ends: Some(leaf.not_after()), ..Identity::of(user) }))
}

#[cfg(test)]
#[path = "client_certificate_tests.rs"]
mod tests;
