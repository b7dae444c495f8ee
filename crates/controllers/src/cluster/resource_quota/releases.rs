//! What is no longer used: the quotas that counted it are counted anew.

use std::sync::Arc;

use api_types::core_v1::ResourceQuota;
use base::SharedClock;
use client::{ApiObject, Change, Informer, ObjectKey};
use component_helpers::pod_requests;
use component_helpers::quota::{Circumstances, Evaluator, ExtendedDevices};
use controller::Queue;

use super::booked::Booked;
use super::pod_level::PodLevel;

/// Tells the quotas of what goes.
#[derive(Clone)]
pub(super) struct Releases {
    pub(super) clock: SharedClock,
    pub(super) extended: Option<Arc<dyn ExtendedDevices>>,
    pub(super) pod_level: PodLevel,
    pub(super) quotas: Informer<ResourceQuota>,
    pub(super) booked: Arc<Booked>,
    pub(super) queue: Queue,
}

impl Releases {
    /// A handler that enqueues the quotas that count a resource, by a name of it, when an object of it goes, or changes in
    /// a way that matters.
    pub(super) fn handler<T: ApiObject>(
        &self,
        evaluator: Evaluator,
        matters: impl Fn(&T, &T) -> bool + Send + 'static,
    ) -> impl FnMut(&Change<T>) + Send + 'static {
        let releases = self.clone();
        move |change| match change {
            Change::Added { .. } => {}
            Change::Updated { old, new } => {
                if !change.is_resync() && matters(old, new) {
                    releases.tell(&evaluator, &**old, Some(&**new));
                }
            }
            Change::Deleted { object, .. } => releases.tell(&evaluator, &**object, None),
        }
    }

    fn tell<T: ApiObject>(&self, evaluator: &Evaluator, old: &T, new: Option<&T>) {
        let extended = self.extended.as_deref();
        let at = Circumstances { now: self.clock.wall().into(), devices: extended };
        for quota in self.quotas.in_namespace(&old.meta().namespace) {
            if !quota.status.hard.keys().any(|name| evaluator.counts(name, extended)) {
                continue;
            }
            let usage = |object: &T| self.pod_level.usage(evaluator, &quota.spec, object, at).unwrap_or_default();
            let key = ObjectKey::of(&quota.metadata);
            let released = pod_requests::less(&usage(old), &new.map(usage).unwrap_or_default());
            self.booked.note_released(&key, &released);
            self.queue.add(key);
        }
    }
}
