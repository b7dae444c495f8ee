//! Chains that were verified before. A connection shows the same certificates with each of its requests, and checking
//! their signatures costs more than all else that is done for a small request.
//!
//! A chain that led to a bundle leads to it until one of the certificates involved expires, so that nothing is served
//! from here which a check would refuse: another bundle, or a time outside, and the chain is verified again. Refusals are
//! not kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use pki::{CaBundle, Certificate};
use rustls_pki_types::CertificateDer;

/// Chains that are remembered: every client of a large cluster. When there are more, all are verified once again.
const MAX_CHAINS: usize = 8192;
/// Larger chains are verified each time: anybody with a certificate can show it with others around it.
const MAX_CHAIN_BYTES: usize = 4096;

/// What verified chains say, by chain.
pub(crate) struct VerifiedChains<T>(Mutex<HashMap<Vec<CertificateDer<'static>>, Verified<T>>>);

struct Verified<T> {
    bundle: Arc<CaBundle>,
    from: SystemTime,
    until: SystemTime,
    says: T,
}

impl<T> Default for VerifiedChains<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> VerifiedChains<T> {
    /// What a chain says, if it was verified against this bundle and that still holds now.
    pub(crate) fn find(&self, chain: &[CertificateDer<'static>], bundle: &Arc<CaBundle>, now: SystemTime) -> Option<T> {
        let chains = self.0.lock();
        let known = chains.get(chain)?;
        let holds = Arc::ptr_eq(&known.bundle, bundle) && (known.from..=known.until).contains(&now);
        holds.then(|| known.says.clone())
    }

    /// Remembers a chain that was verified now.
    pub(crate) fn put(&self, chain: &[CertificateDer<'static>], bundle: &Arc<CaBundle>, now: SystemTime, says: &T) {
        if chain.iter().map(|certificate| certificate.len()).sum::<usize>() > MAX_CHAIN_BYTES {
            return;
        }
        let Some(until) = good_until(chain, bundle, now) else { return };
        let mut chains = self.0.lock();
        if chains.len() >= MAX_CHAINS {
            chains.clear();
        }
        let verified = Verified { bundle: Arc::clone(bundle), from: now, until, says: says.clone() };
        chains.insert(chain.to_vec(), verified);
    }
}

/// The end of the first of the certificates involved; the authority may be any of the bundle's that are current.
fn good_until(chain: &[CertificateDer<'static>], bundle: &CaBundle, now: SystemTime) -> Option<SystemTime> {
    let presented: Vec<Certificate> =
        chain.iter().map(|certificate| Certificate::from_der(certificate)).collect::<Result<_, _>>().ok()?;
    let authorities = bundle.certificates().iter().filter(|authority| authority.is_current(now));
    presented.iter().chain(authorities).map(Certificate::not_after).min()
}
