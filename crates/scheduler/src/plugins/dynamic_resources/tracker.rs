//! All claims as they are known: as the watch shows them, or as this scheduler has written them since; and the devices
//! that they have, or are about to get.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_types::resource_v1::{AllocationResult, ResourceClaim};
use component_helpers::owners::controller_of;
use component_helpers::resource_claims::is_for_extended_resources;
use dra::Allocated;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::framework::GroupKey;
use crate::listers::{Lister, NotFound};

/// Index of claims by the uid of their managing controller.
const BY_CONTROLLER: &str = "claims-by-controller";

/// The namespace and name of a claim.
type ClaimKey = (String, String);

/// The claims, and what is allocated of all devices.
pub(in crate::plugins) struct Tracker {
    lister: Lister<ResourceClaim>,
    /// Whether claims may have parts of devices.
    shares: bool,
    known: Mutex<Known>,
    /// Tells of every change.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Known {
    /// Claims that were written, until the watch shows them.
    written: HashMap<ClaimKey, Arc<ResourceClaim>>,
    /// What claims are about to get, by their uid.
    in_flight: HashMap<String, InFlight>,
    /// What claims will get that are not made yet, by the uid of their pod.
    promised: HashMap<String, AllocationResult>,
    /// What each claim counts with.
    counted: HashMap<ClaimKey, AllocationResult>,
    allocated: Arc<Allocated>,
}

/// What a claim is about to get.
struct InFlight {
    allocation: AllocationResult,
    /// The uids of the pods that it is for: those of a group may share it.
    pods: BTreeSet<String>,
    group: Option<GroupKey>,
}

fn key_of(claim: &ResourceClaim) -> ClaimKey {
    (claim.metadata.namespace.clone(), claim.metadata.name.clone())
}

fn version(claim: &ResourceClaim) -> u64 {
    claim.metadata.resource_version.parse().unwrap_or(0)
}

impl Tracker {
    /// The claims that a lister has, now and from now on.
    pub(in crate::plugins) fn of(lister: Lister<ResourceClaim>, shares: bool) -> Arc<Self> {
        lister.add_index(BY_CONTROLLER, |claim| {
            controller_of(&claim.metadata).map(|owner| owner.uid.clone()).into_iter().collect()
        });
        let tracker =
            Arc::new(Self { lister: lister.clone(), shares, known: Mutex::default(), news: watch::Sender::new(()) });
        // Profiles are also built to see whether they can be.
        let to = Arc::downgrade(&tracker);
        lister.on_change(move |claim| {
            if let Some(to) = to.upgrade() {
                to.refresh(&key_of(claim));
                to.news.send_replace(());
            }
        });
        for claim in lister.list() {
            tracker.refresh(&key_of(&claim));
        }
        tracker
    }

    /// Hears of every change from now on.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// A claim, the newer of what the watch shows and what was written.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Result<Arc<ResourceClaim>, NotFound> {
        let key = (namespace.to_owned(), name.to_owned());
        self.current(&mut self.known.lock(), &key).ok_or_else(|| NotFound::of::<ResourceClaim>(name))
    }

    fn current(&self, known: &mut Known, key: &ClaimKey) -> Option<Arc<ResourceClaim>> {
        let shown = self.lister.find(&key.0, &key.1);
        let Some(written) = known.written.get(key) else { return shown };
        let is_newer = shown
            .as_ref()
            .is_some_and(|shown| shown.metadata.uid == written.metadata.uid && version(written) > version(shown));
        if is_newer {
            return Some(Arc::clone(written));
        }
        known.written.remove(key);
        shown
    }

    /// Counts a claim with what it has now.
    fn refresh(&self, key: &ClaimKey) {
        let mut known = self.known.lock();
        let known = &mut *known;
        let claim = self.current(known, key);
        let has = claim.as_ref().and_then(|claim| claim.status.allocation.as_ref());
        let will_have =
            claim.as_ref().and_then(|claim| known.in_flight.get(&claim.metadata.uid)).map(|own| &own.allocation);
        let now = has.or(will_have).cloned();
        if known.counted.get(key) == now.as_ref() {
            return;
        }
        let allocated = Arc::make_mut(&mut known.allocated);
        if let Some(before) = known.counted.remove(key) {
            allocated.remove(&before, self.shares);
        }
        if let Some(now) = now {
            allocated.add(&now, self.shares);
            known.counted.insert(key.clone(), now);
        }
    }

    /// The devices that claims have, or are about to get.
    pub(in crate::plugins) fn allocated(&self) -> Arc<Allocated> {
        Arc::clone(&self.known.lock().allocated)
    }

    /// What a claim is about to get, and for which group.
    pub(super) fn in_flight(&self, uid: &str) -> Option<(AllocationResult, Option<GroupKey>)> {
        self.known.lock().in_flight.get(uid).map(|own| (own.allocation.clone(), own.group.clone()))
    }

    /// A claim is about to get devices for a pod, and others of its group: they are nobody else's any more.
    pub(super) fn put_in_flight(
        &self,
        claim: &ResourceClaim,
        allocation: AllocationResult,
        pod_uid: &str,
        group: Option<GroupKey>,
    ) {
        let mut known = self.known.lock();
        let own = known.in_flight.entry(claim.metadata.uid.clone());
        let own = own.or_insert_with(|| InFlight { allocation, pods: BTreeSet::new(), group });
        own.pods.insert(pod_uid.to_owned());
        drop(known);
        self.refresh(&key_of(claim));
    }

    /// A claim gets nothing any more for a pod; what it has stays, and what it gets for others.
    pub(super) fn land(&self, claim: &ResourceClaim, pod_uid: &str) {
        let mut known = self.known.lock();
        if let Some(own) = known.in_flight.get_mut(&claim.metadata.uid) {
            own.pods.remove(pod_uid);
            if own.pods.is_empty() {
                known.in_flight.remove(&claim.metadata.uid);
            }
        }
        drop(known);
        self.refresh(&key_of(claim));
    }

    /// The claim that was made for the extended resources of a pod.
    pub(super) fn made_for(&self, pod_uid: &str) -> Option<Arc<ResourceClaim>> {
        let owned = self.lister.by_index(BY_CONTROLLER, pod_uid);
        let shown = owned.iter().find(|claim| is_for_extended_resources(claim))?;
        self.get(&shown.metadata.namespace, &shown.metadata.name).ok()
    }

    /// A claim that is to be made for a pod will get devices: they are nobody else's any more.
    pub(super) fn promise(&self, pod_uid: &str, allocation: AllocationResult) {
        let mut known = self.known.lock();
        let known = &mut *known;
        known.give_up(pod_uid, self.shares);
        Arc::make_mut(&mut known.allocated).add(&allocation, self.shares);
        known.promised.insert(pod_uid.to_owned(), allocation);
    }

    /// The claim has what was promised, or will not be made.
    pub(super) fn end_promise(&self, pod_uid: &str) {
        self.known.lock().give_up(pod_uid, self.shares);
    }

    /// Waits until the watch shows a claim. Says whether it did within the time.
    pub(super) async fn wait_shown(&self, claim: &ResourceClaim, longest: Duration) -> bool {
        let mut news = self.news();
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let is_shown = || {
            let shown = self.lister.find(namespace, name);
            shown.is_some_and(|shown| shown.metadata.uid == claim.metadata.uid)
        };
        let shown = async {
            while !is_shown() {
                if news.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        timeout(longest, shown).await.unwrap_or(false)
    }

    /// A claim was written.
    pub(super) fn put_written(&self, claim: ResourceClaim) {
        let key = key_of(&claim);
        let mut known = self.known.lock();
        known.in_flight.remove(&claim.metadata.uid);
        known.written.insert(key.clone(), Arc::new(claim));
        drop(known);
        self.refresh(&key);
    }
}

impl Known {
    fn give_up(&mut self, pod_uid: &str, shares: bool) {
        if let Some(before) = self.promised.remove(pod_uid) {
            Arc::make_mut(&mut self.allocated).remove(&before, shares);
        }
    }
}
