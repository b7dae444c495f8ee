//! What the caches cannot tell: claims that were made a moment ago, and pods and groups that are gone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_types::resource_v1::ResourceClaim;
use tokio::time::Instant;

/// How long a claim that was made is known without the cache.
const KEPT: Duration = Duration::from_secs(3600);
/// How many pods and groups that are gone are remembered.
const GONE: usize = 500;

/// Claims that were made, by the uid of their pod or group and the entry that they are for.
#[derive(Debug, Default)]
pub(super) struct Made {
    claims: BTreeMap<(String, String), (Arc<ResourceClaim>, Instant)>,
    by_age: VecDeque<(Instant, (String, String))>,
}

impl Made {
    pub(super) fn note(&mut self, uid: &str, entry: &str, claim: ResourceClaim, now: Instant) {
        while let Some((at, key)) = self.by_age.front()
            && now.saturating_duration_since(*at) > KEPT
        {
            if self.claims.get(key).is_some_and(|(_, made)| made == at) {
                self.claims.remove(key);
            }
            self.by_age.pop_front();
        }
        let key = (uid.to_owned(), entry.to_owned());
        self.claims.insert(key.clone(), (Arc::new(claim), now));
        self.by_age.push_back((now, key));
    }

    pub(super) fn find(&self, uid: &str, entry: &str) -> Option<Arc<ResourceClaim>> {
        self.claims.get(&(uid.to_owned(), entry.to_owned())).map(|(claim, _)| Arc::clone(claim))
    }

    /// Forgets a claim that was seen to go, so that another is made in its place.
    pub(super) fn forget(&mut self, claim: &ResourceClaim) {
        self.claims.retain(|_, (made, _)| made.metadata.uid != claim.metadata.uid);
    }
}

/// The uids of pods and groups that went last.
#[derive(Debug, Default)]
pub(super) struct Gone {
    uids: BTreeSet<String>,
    by_age: VecDeque<String>,
}

impl Gone {
    pub(super) fn note(&mut self, uid: &str) {
        if !self.uids.insert(uid.to_owned()) {
            return;
        }
        self.by_age.push_back(uid.to_owned());
        if self.by_age.len() > GONE
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub(super) fn holds(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_went_are_remembered() {
        let mut gone = Gone::default();
        for number in 0..=GONE {
            gone.note(&number.to_string());
            gone.note(&number.to_string());
        }
        assert!(!gone.holds("0") && gone.holds("1") && gone.holds(&GONE.to_string()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_made_is_known_for_a_while() {
        let (mut made, now) = (Made::default(), Instant::now());
        let claim = |uid: &str| {
            let mut claim = ResourceClaim::default();
            claim.metadata.uid = uid.into();
            claim
        };
        made.note("pod", "e", claim("first"), now);
        assert!(made.find("pod", "e").is_some() && made.find("pod", "other").is_none());
        made.note("pod", "e", claim("second"), now + KEPT);
        made.note("other", "e", claim("third"), now + KEPT + Duration::from_secs(1));
        assert_eq!(made.find("pod", "e").unwrap().metadata.uid, "second", "the first is old, not this one");
        made.forget(&claim("second"));
        assert!(made.find("pod", "e").is_none());
    }
}
