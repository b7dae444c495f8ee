//! Expectations: what a controller has asked for and not yet seen in its watch. Until it has, its cache is known to
//! be stale and it must not count what is in there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::SharedClock;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::object_key::ObjectKey;

/// After this long the controller stops waiting: something was missed. As upstream.
const EXPIRY: Duration = Duration::from_secs(5 * 60);

/// The target of what is logged when a wait has lasted too long: something was missed and only time has healed it, which
/// should never be needed. A simulation counts what is logged there.
pub const EXPIRED: &str = "client::expectations::expired";

/// The open expectations of a controller, by the key of the owner.
pub struct Expectations {
    clock: SharedClock,
    open: Mutex<BTreeMap<ObjectKey, Expected>>,
}

struct Expected {
    creations: i64,
    /// How many creations nobody has answered yet.
    unanswered: i64,
    /// The newest version that a creation was answered with.
    newest: u64,
    deletions: BTreeSet<ObjectKey>,
    since: Instant,
}

impl Expectations {
    /// Nothing is expected yet.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, open: Mutex::default() }
    }

    /// The owner is about to create `count` objects. Replaces what was expected before.
    pub fn expect_creations(&self, owner: &ObjectKey, count: usize) {
        self.expect(owner, count, []);
    }

    /// The owner is about to delete these objects. Replaces what was expected before.
    pub fn expect_deletions(&self, owner: &ObjectKey, objects: impl IntoIterator<Item = ObjectKey>) {
        self.expect(owner, 0, objects);
    }

    /// The owner is about to create so many objects and to delete these. Replaces what was expected before.
    pub fn expect(&self, owner: &ObjectKey, creations: usize, deletions: impl IntoIterator<Item = ObjectKey>) {
        let creations = i64::try_from(creations).unwrap_or(i64::MAX);
        let (deletions, since) = (deletions.into_iter().collect(), self.clock.monotonic());
        let expected = Expected { creations, unanswered: creations, newest: 0, deletions, since };
        self.open.lock().insert(owner.clone(), expected);
    }

    /// An object of the owner was created, at this version.
    pub fn creation_answered(&self, owner: &ObjectKey, version: &str) {
        if let Some(expected) = self.open.lock().get_mut(owner) {
            // A version that cannot be compared leaves the creation unanswered.
            let Ok(version) = version.parse::<u64>() else { return };
            expected.unanswered -= 1;
            expected.newest = expected.newest.max(version);
        }
    }

    /// Creating an object of the owner failed, or was not tried.
    pub fn creation_failed(&self, owner: &ObjectKey) {
        if let Some(expected) = self.open.lock().get_mut(owner) {
            expected.creations -= 1;
            expected.unanswered -= 1;
        }
    }

    /// The cache is at this version: what was created up to it is in there, or came and went between two lists, so that
    /// nobody will ever tell of it.
    pub fn caught_up(&self, owner: &ObjectKey, version: &str) {
        if let Some(expected) = self.open.lock().get_mut(owner)
            && expected.unanswered <= 0
            && version.parse::<u64>().is_ok_and(|version| version >= expected.newest)
        {
            expected.creations = 0;
        }
    }

    /// An object of the owner was seen.
    pub fn creation_observed(&self, owner: &ObjectKey) {
        if let Some(expected) = self.open.lock().get_mut(owner) {
            expected.creations -= 1;
        }
    }

    /// The deletion of an object was seen, or deleting it failed. The same object counts once.
    pub fn deletion_observed(&self, owner: &ObjectKey, object: &ObjectKey) {
        if let Some(expected) = self.open.lock().get_mut(owner) {
            expected.deletions.remove(object);
        }
    }

    /// Whether everything has been seen, nothing was expected, or the wait has lasted too long.
    #[must_use]
    pub fn satisfied(&self, owner: &ObjectKey) -> bool {
        self.wait(owner).is_none()
    }

    /// How long to wait yet for what has not been seen: nothing may ever be heard of it, such as of an object that was
    /// deleted before a watch that had broken off came back. None when [`Self::satisfied`].
    #[must_use]
    pub fn wait(&self, owner: &ObjectKey) -> Option<Duration> {
        let open = self.open.lock();
        let expected = open.get(owner).filter(|own| own.creations > 0 || !own.deletions.is_empty())?;
        let age = self.clock.monotonic().saturating_duration_since(expected.since);
        let left = EXPIRY.checked_sub(age).filter(|left| !left.is_zero());
        if left.is_none() {
            tracing::warn!(target: EXPIRED, %owner, "Expectations expired");
        }
        left
    }

    /// Forgets an owner, as when it is gone.
    pub fn forget(&self, owner: &ObjectKey) {
        self.open.lock().remove(owner);
    }
}

#[cfg(test)]
mod tests {
    use base::TokioClock;

    use super::*;

    #[test]
    fn a_cache_that_is_as_new_as_the_answers_has_seen_all() {
        // How many creations were answered, and at which version; how many failed; the cache; whether all was seen.
        for (answered, failed, cache, expected) in [
            (&["5", "7"][..], 0, "7", true),
            (&["7", "5"], 0, "6", false),
            (&["7", "5"], 0, "", false),
            (&["5"], 0, "9", false),
            (&["5", "?"], 0, "9", false),
            (&["5"], 1, "9", true),
            (&[], 2, "1", true),
        ] {
            let (expectations, owner) = (Expectations::new(TokioClock::shared()), ObjectKey::new("ns", "web"));
            expectations.expect_creations(&owner, 2);
            answered.iter().for_each(|version| expectations.creation_answered(&owner, version));
            (0..failed).for_each(|_| expectations.creation_failed(&owner));
            expectations.caught_up(&owner, cache);
            assert_eq!(expectations.satisfied(&owner), expected, "{answered:?} {failed} {cache}");
        }
        let (expectations, owner) = (Expectations::new(TokioClock::shared()), ObjectKey::new("ns", "web"));
        expectations.expect(&owner, 0, [ObjectKey::new("ns", "a")]);
        expectations.caught_up(&owner, "9");
        assert!(!expectations.satisfied(&owner), "a deletion is told of, also by a list");
    }

    #[tokio::test(start_paused = true)]
    async fn work_waits_until_all_was_seen_or_time_is_up() {
        let expectations = Expectations::new(TokioClock::shared());
        let owner = ObjectKey::new("ns", "web");
        assert!(expectations.satisfied(&owner));
        expectations.expect_creations(&owner, 2);
        expectations.creation_observed(&owner);
        assert!(!expectations.satisfied(&owner));
        expectations.creation_observed(&owner);
        assert!(expectations.satisfied(&owner));

        expectations.expect_creations(&owner, 1);
        expectations.creation_observed(&owner);
        expectations.creation_observed(&owner);
        assert!(expectations.satisfied(&owner), "one more than was expected, such as somebody else's");

        let pods = [ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b")];
        expectations.expect_deletions(&owner, pods.clone());
        expectations.deletion_observed(&owner, &pods[0]);
        expectations.deletion_observed(&owner, &pods[0]);
        assert!(!expectations.satisfied(&owner), "the same object counts once");
        expectations.expect(&owner, 1, pods.clone());
        expectations.deletion_observed(&owner, &ObjectKey::new("ns", "other"));
        expectations.deletion_observed(&owner, &pods[0]);
        expectations.creation_observed(&owner);
        assert!(!expectations.satisfied(&owner), "one is still to go");
        tokio::time::advance(Duration::from_secs(60)).await;
        let left = expectations.wait(&owner).expect("not yet");
        assert_eq!(left, Duration::from_secs(240));
        tokio::time::advance(left).await;
        assert!(expectations.satisfied(&owner));
    }
}
