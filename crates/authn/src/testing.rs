//! What the tests of this crate share: requests, certificates of a throw-away CA, and a clock that stands still.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base::{Rng, SharedClock, StandingClock};
use component_base::metrics::{Metrics, MetricsOptions};
use http::request::Parts;
use pki::{CaBundle, CaPool, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
use rustls_pki_types::CertificateDer;

use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::identity::Identity;
use crate::service_account::TokenUses;

pub(crate) const NOW_SECONDS: i64 = 1_790_000_000;

/// The time of all tests, plus `seconds`.
pub(crate) fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(NOW_SECONDS + seconds).unwrap())
}

pub(crate) fn clock(seconds: i64) -> SharedClock {
    Arc::new(StandingClock(at(seconds)))
}

/// Counters that nobody reads.
pub(crate) fn uses() -> TokenUses {
    TokenUses::new(&Metrics::new(MetricsOptions::default()))
}

pub(crate) fn request(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = http::Request::builder().uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

pub(crate) fn authority() -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::create("ca", key, Duration::from_secs(86_400), at(0), &Rng::seeded(1)).unwrap()
}

pub(crate) fn pool(ca: &CertificateAuthority) -> Arc<CaPool> {
    Arc::new(CaPool::new(CaBundle::new(vec![ca.certificate().clone()]).unwrap()))
}

pub(crate) fn client(ca: &CertificateAuthority, name: &str, groups: &[&str]) -> Vec<CertificateDer<'static>> {
    let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
    issue(ca, &CertificateSpec::client(name, &groups, Duration::from_secs(3600)))
}

pub(crate) fn issue(ca: &CertificateAuthority, spec: &CertificateSpec) -> Vec<CertificateDer<'static>> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let issued = ca.issue(spec, key.public_key(), at(0), &Rng::seeded(2)).unwrap();
    vec![CertificateDer::from(issued.der().to_vec())]
}

/// Knows the token `good` as alice, fails on `bad`, passes on others.
pub(crate) struct FewTokens;

#[async_trait]
impl TokenAuthenticator for FewTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        match token {
            "good" => Ok(Some(Identity { audiences: audiences.to_vec(), ..Identity::new("alice", Vec::new()) })),
            "bad" => Err(AuthnError::refused("bad token")),
            _ => Ok(None),
        }
    }
}
