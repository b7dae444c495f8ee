//! What a quota has refused is tried again as soon as the quota has room. The retries of a queue are up to a quarter of an
//! hour apart by then, and nothing else tells of it.
//!
//! One key at a time: whoever finds room hands on to the next, and whoever is refused again goes to the end. Many may wait,
//! and room is mostly for one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{ResourceList, ResourceQuota};
use client::{Change, Informer, ObjectKey, WorkQueue};
use parking_lot::Mutex;

use crate::cx::ReconcileError;

/// What the server says, in upstream's words, of a request for which a quota has no room.
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
    /// By namespace, who has waited longest first.
    waiting: BTreeMap<String, VecDeque<ObjectKey>>,
    /// Those that try again.
    trying: BTreeSet<ObjectKey>,
    /// How often there was room so far.
    times: u64,
    /// The namespaces that had it last, the newest at the end.
    namespaces: VecDeque<String>,
}

/// Where what is made for a key goes: its namespace, or the one that it names.
fn namespace_of(key: &ObjectKey) -> &str {
    if key.namespace.is_empty() { &key.name } else { &key.namespace }
}

impl State {
    /// Whether a namespace may have had room since there was some so many times.
    fn had_room(&self, namespace: &str, since: u64) -> bool {
        let missed = usize::try_from(self.times.saturating_sub(since)).unwrap_or(usize::MAX);
        missed > REMEMBERED || self.namespaces.iter().rev().take(missed).any(|own| own == namespace)
    }

    /// The next of a namespace, to try again.
    fn next(&mut self, namespace: &str) -> Option<ObjectKey> {
        let key = self.waiting.get(namespace)?.front()?.clone();
        self.remove(&key);
        self.trying.insert(key.clone());
        Some(key)
    }

    /// It waits no more.
    fn remove(&mut self, key: &ObjectKey) {
        let namespace = namespace_of(key);
        let Some(keys) = self.waiting.get_mut(namespace) else { return };
        keys.retain(|own| own != key);
        if keys.is_empty() {
            self.waiting.remove(namespace);
        }
    }

    /// It waits, as one who came last if it has not waited yet.
    fn push(&mut self, key: &ObjectKey) {
        let keys = self.waiting.entry(namespace_of(key).to_owned()).or_default();
        if !keys.contains(key) {
            keys.push_back(key.clone());
        }
    }
}

impl Refused {
    /// Tries the keys of a queue again when one of these quotas has more room than before.
    pub(crate) fn of(queue: &WorkQueue<ObjectKey>, quotas: &Informer<ResourceQuota>) -> Arc<Self> {
        let refused = Arc::new(Self { queue: queue.clone(), state: Mutex::default() });
        let told = Arc::clone(&refused);
        quotas.subscribe(move |change| {
            if makes_room(change) {
                told.note_room(change.key().namespace);
            }
        });
        refused
    }

    fn note_room(&self, namespace: String) {
        let mut state = self.state.lock();
        let next = state.next(&namespace);
        state.times += 1;
        state.namespaces.push_back(namespace);
        if state.namespaces.len() > REMEMBERED {
            state.namespaces.pop_front();
        }
        drop(state);
        next.into_iter().for_each(|key| self.queue.add(key));
    }

    /// How often there was room so far; to be asked before something may be refused.
    pub(crate) fn times(&self) -> u64 {
        self.state.lock().times
    }

    /// Notes what came of a key: when it was refused something, it waits for room. Where there was some after `since`, or the
    /// key has found some, the next one tries.
    pub(crate) fn note(&self, key: &ObjectKey, since: u64, error: Option<&ReconcileError>) {
        let is_refused = error.is_some_and(|error| error.to_string().contains(REFUSAL));
        let mut state = self.state.lock();
        let has_tried = state.trying.remove(key);
        let is_next = if is_refused {
            state.push(key);
            state.had_room(namespace_of(key), since)
        } else {
            state.remove(key);
            has_tried
        };
        let next = if is_next { state.next(namespace_of(key)) } else { None };
        drop(state);
        next.into_iter().for_each(|key| self.queue.add(key));
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

    struct Case {
        queue: WorkQueue<ObjectKey>,
        refused: Refused,
    }

    impl Case {
        fn new() -> Self {
            let queue = WorkQueue::new("q", RateLimit::default(), base::TokioClock::shared(), Arc::new(NoMetrics));
            Self { refused: Refused { queue: queue.clone(), state: Mutex::default() }, queue }
        }

        fn refuse(&self, key: &ObjectKey, since: u64) {
            let text = "pods \"web-x\" is forbidden: exceeded quota: q, requested: pods=1";
            self.refused.note(key, since, Some(&ReconcileError::failed(text)));
        }

        /// The keys that are queued, taken from it.
        async fn queued(&self) -> Vec<String> {
            let mut names = Vec::new();
            while !self.queue.is_empty() {
                let key = self.queue.next().await.unwrap();
                self.queue.done(&key);
                names.push(key.name);
            }
            names
        }
    }

    #[tokio::test]
    async fn room_is_for_one_who_hands_on_to_the_next() {
        let case = Case::new();
        let refused = &case.refused;
        let keys = ["a", "b", "c"].map(|name| ObjectKey::new("ns", name));
        let other = ObjectKey::new("ns", "other");
        refused.note(&other, 0, Some(&ReconcileError::failed("something else")));
        keys.iter().for_each(|key| case.refuse(key, refused.times()));
        refused.note_room("elsewhere".into());
        assert_eq!(case.queued().await, [""; 0]);
        refused.note_room("ns".into());
        assert_eq!(case.queued().await, ["a"]);
        refused.note(&keys[0], refused.times(), None);
        assert_eq!(case.queued().await, ["b"], "there may be more");
        case.refuse(&keys[1], refused.times());
        assert_eq!(case.queued().await, [""; 0], "there is no more");
        refused.note_room("ns".into());
        assert_eq!(case.queued().await, ["c"], "who was refused again comes last");
        // What was tried again by itself, and found room, waits no more, and was not handed anything.
        refused.note(&keys[1], refused.times(), None);
        refused.note(&keys[2], refused.times(), Some(&ReconcileError::failed("something else")));
        assert_eq!(case.queued().await, [""; 0]);
        assert!(refused.state.lock().trying.is_empty());
    }

    #[tokio::test]
    async fn what_names_a_namespace_waits_for_it() {
        let case = Case::new();
        case.refuse(&ObjectKey::cluster("ns"), 0);
        case.refused.note_room("ns".into());
        assert_eq!(case.queued().await, ["ns"]);
    }

    #[tokio::test]
    async fn room_that_came_meanwhile_is_not_missed() {
        let case = Case::new();
        let (refused, key) = (&case.refused, ObjectKey::new("ns", "web"));
        let before = refused.times();
        refused.note_room("ns".into());
        refused.note_room("other".into());
        case.refuse(&key, refused.times());
        assert_eq!(case.queued().await, [""; 0], "not since");
        case.refuse(&key, before);
        assert_eq!(case.queued().await, ["web"]);
        case.refuse(&ObjectKey::new("elsewhere", "web"), before);
        assert_eq!(case.queued().await, [""; 0], "not there");
        (0..REMEMBERED).for_each(|_| refused.note_room("other".into()));
        case.refuse(&key, before);
        assert_eq!(case.queued().await, ["web"], "who knows");
    }
}
