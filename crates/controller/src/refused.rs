//! What a quota has refused is tried again as soon as the quota has room. The retries of a queue are up to a quarter of an
//! hour apart by then, and nothing else tells of it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{ResourceList, ResourceQuota};
use client::{Change, Informer, ObjectKey, WorkQueue};
use parking_lot::Mutex;

use crate::cx::ReconcileError;

/// What the server says of a request for which a quota has no room.
const REFUSAL: &str = "exceeded quota:";
/// How many times there was room are remembered: those that came while a key was worked on matter.
const REMEMBERED: usize = 64;

/// The keys of a queue that quotas have refused something.
pub(crate) struct Refused {
    queue: WorkQueue<ObjectKey>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: BTreeSet<ObjectKey>,
    /// How often there was room so far.
    times: u64,
    /// The namespaces that had it last, the newest at the end.
    namespaces: VecDeque<String>,
}

/// Where what is made for a key goes: its namespace, or the one that it names.
fn namespace_of(key: &ObjectKey) -> &str {
    if key.namespace.is_empty() { &key.name } else { &key.namespace }
}

impl Refused {
    /// Tries the keys of a queue again when one of these quotas has more room than before.
    pub(crate) fn of(queue: &WorkQueue<ObjectKey>, quotas: &Informer<ResourceQuota>) -> Arc<Self> {
        let refused = Arc::new(Self { queue: queue.clone(), state: Mutex::default() });
        let told = Arc::clone(&refused);
        quotas.subscribe(move |change| {
            if makes_room(change) {
                told.try_again(change.key().namespace);
            }
        });
        refused
    }

    fn try_again(&self, namespace: String) {
        let mut state = self.state.lock();
        let keys: Vec<ObjectKey> = state.keys.extract_if(.., |key| namespace_of(key) == namespace).collect();
        state.times += 1;
        state.namespaces.push_back(namespace);
        if state.namespaces.len() > REMEMBERED {
            state.namespaces.pop_front();
        }
        drop(state);
        keys.into_iter().for_each(|key| self.queue.add(key));
    }

    /// How often there was room so far; to be asked before something may be refused.
    pub(crate) fn times(&self) -> u64 {
        self.state.lock().times
    }

    /// Notes what came of a key: when it was refused something, it waits for room, unless there was some after `since`.
    pub(crate) fn note(&self, key: &ObjectKey, since: u64, error: &ReconcileError) {
        if !error.to_string().contains(REFUSAL) {
            return;
        }
        let mut state = self.state.lock();
        let missed = usize::try_from(state.times.saturating_sub(since)).unwrap_or(usize::MAX);
        let mut last = state.namespaces.iter().rev().take(missed);
        if missed > REMEMBERED || last.any(|own| own == namespace_of(key)) {
            drop(state);
            self.queue.add(key.clone());
        } else {
            state.keys.insert(key.clone());
        }
    }
}

/// Whether less of a quota is used than before, or more of it allowed.
fn makes_room(change: &Change<ResourceQuota>) -> bool {
    let (old, new) = match change {
        Change::Added { .. } => return false,
        Change::Deleted { .. } => return true,
        Change::Updated { old, new } => (&old.status, &new.status),
    };
    old.hard.keys().any(|name| !new.hard.contains_key(name))
        || has_more(&old.hard, &new.hard)
        || has_more(&new.used, &old.used)
}

/// Whether there is more of anything than there was before.
fn has_more(before: &ResourceList, now: &ResourceList) -> bool {
    now.iter().any(|(name, amount)| *amount > *before.get(name).unwrap_or(&Quantity::default()))
}

#[cfg(test)]
mod tests {
    use client::{NoMetrics, RateLimit};

    use super::*;

    fn quota(hard: u32, used: u32) -> Arc<ResourceQuota> {
        let amounts = |pods: u32| {
            let pods = Quantity::parse(&pods.to_string()).unwrap();
            ResourceList::from([("pods".to_owned(), pods)])
        };
        let mut quota = ResourceQuota::default();
        (quota.status.hard, quota.status.used) = (amounts(hard), amounts(used));
        Arc::new(quota)
    }

    #[test]
    fn a_quota_has_room_when_less_is_used_or_more_allowed() {
        for (before, after, expected) in [
            ((3, 3), (3, 2), true),
            ((3, 2), (3, 3), false),
            ((3, 3), (4, 3), true),
            ((4, 3), (3, 3), false),
            ((3, 3), (3, 3), false),
        ] {
            let change = Change::Updated { old: quota(before.0, before.1), new: quota(after.0, after.1) };
            assert_eq!(makes_room(&change), expected, "{before:?} {after:?}");
        }
        let mut unlimited = ResourceQuota::clone(&quota(3, 3));
        unlimited.status.hard.clear();
        assert!(makes_room(&Change::Updated { old: quota(3, 3), new: Arc::new(unlimited) }));
        assert!(makes_room(&Change::Deleted { object: quota(3, 3), stale: false }));
        assert!(!makes_room(&Change::Added { object: quota(3, 2), initial: false }));
    }

    #[tokio::test]
    async fn what_is_refused_waits_for_room_in_its_namespace() {
        let queue = WorkQueue::new("q", RateLimit::default(), base::TokioClock::shared(), Arc::new(NoMetrics));
        let refused = Refused { queue: queue.clone(), state: Mutex::default() };
        let refusal = ReconcileError::failed("pods \"web-x\" is forbidden: exceeded quota: q, requested: pods=1");
        let (key, of_namespace) = (ObjectKey::new("ns", "web"), ObjectKey::cluster("ns"));
        let waiting = || refused.state.lock().keys.len();
        refused.note(&key, refused.times(), &ReconcileError::failed("something else"));
        assert_eq!(waiting(), 0);
        refused.note(&key, refused.times(), &refusal);
        refused.note(&of_namespace, refused.times(), &refusal);
        refused.try_again("other".into());
        assert_eq!((waiting(), queue.len()), (2, 0));
        refused.try_again("ns".into());
        assert_eq!((waiting(), queue.len()), (0, 2));
        for _ in 0..2 {
            let key = queue.next().await.unwrap();
            queue.done(&key);
        }
        // There was room while it was being refused.
        let before = refused.times();
        refused.try_again("ns".into());
        refused.try_again("other".into());
        refused.note(&key, refused.times(), &refusal);
        assert_eq!((waiting(), queue.len()), (1, 0), "not since");
        refused.note(&key, before, &refusal);
        assert_eq!(queue.len(), 1);
        refused.note(&ObjectKey::new("elsewhere", "web"), before, &refusal);
        assert_eq!((waiting(), queue.len()), (2, 1), "not there");
        (0..REMEMBERED).for_each(|_| refused.try_again("other".into()));
        refused.note(&ObjectKey::new("elsewhere", "web"), before, &refusal);
        assert_eq!(queue.len(), 2, "who knows");
    }
}
