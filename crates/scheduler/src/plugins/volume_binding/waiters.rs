//! Pods that wait for their claims hear when one of those, or a volume that names it, has changed.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Assumed;
use crate::listers::Lister;

/// The namespace and name of a claim.
type ClaimKey = (String, String);

/// Who waits for which claim.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<HashMap<ClaimKey, Vec<Arc<Notify>>>>,
}

/// One pod's wait; it ends when this is dropped.
pub(super) struct Waiter<'a> {
    waiters: &'a Waiters,
    claims: Vec<ClaimKey>,
    news: Arc<Notify>,
}

impl Waiters {
    /// Begins to wait for the claims.
    pub(super) fn enter(&self, assumed: &Assumed) -> Waiter<'_> {
        let named = assumed.volumes.iter().filter_map(|volume| key_in(volume));
        let claims: Vec<ClaimKey> = named.chain(assumed.claims.iter().map(|claim| key_of(claim))).collect();
        let news = Arc::new(Notify::new());
        let mut waiting = self.waiting.lock();
        for claim in &claims {
            waiting.entry(claim.clone()).or_default().push(Arc::clone(&news));
        }
        drop(waiting);
        Waiter { waiters: self, claims, news }
    }

    fn tell(&self, claim: &ClaimKey) {
        for news in self.waiting.lock().get(claim).into_iter().flatten() {
            news.notify_one();
        }
    }
}

impl Waiter<'_> {
    /// Waits for news. Those that came since the last time count.
    pub(super) async fn told(&self) {
        self.news.notified().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock();
        for claim in &self.claims {
            let Some(those) = waiting.get_mut(claim) else { continue };
            those.retain(|news| !Arc::ptr_eq(news, &self.news));
            if those.is_empty() {
                waiting.remove(claim);
            }
        }
    }
}

fn key_of(claim: &PersistentVolumeClaim) -> ClaimKey {
    (claim.metadata.namespace.clone(), claim.metadata.name.clone())
}

/// The claim that a volume names.
fn key_in(volume: &PersistentVolume) -> Option<ClaimKey> {
    volume.spec.claim_ref.as_ref().map(|named| (named.namespace.clone(), named.name.clone()))
}

/// Lets those who wait hear of what is watched, for as long as there is anybody who may wait.
pub(super) fn listen(
    waiters: &Arc<Waiters>,
    claims: &Lister<PersistentVolumeClaim>,
    volumes: &Lister<PersistentVolume>,
) {
    let to = Arc::downgrade(waiters);
    claims.on_change(move |claim| {
        if let Some(to) = to.upgrade() {
            to.tell(&key_of(claim));
        }
    });
    let to = Arc::downgrade(waiters);
    volumes.on_change(move |volume| {
        if let Some((to, claim)) = to.upgrade().zip(key_in(volume)) {
            to.tell(&claim);
        }
    });
}
