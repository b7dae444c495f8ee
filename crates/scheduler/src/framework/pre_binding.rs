//! Pods for which work is done before they are bound, such as for their volumes. Who needs their room more may stop that, up
//! to the moment in which they are bound.

use std::collections::HashMap;
use std::sync::Arc;

use base::CancellationToken;
use parking_lot::Mutex;

use super::status::{Status, StatusResult};

/// The pods, by uid. As many as have room on nodes.
#[derive(Default)]
pub(super) struct PreBindingPods(Mutex<HashMap<String, Arc<Work>>>);

#[derive(Default)]
struct Work {
    stop: CancellationToken,
    /// Who has stopped it.
    stopped_by: Mutex<Option<&'static str>>,
}

/// The work for one pod. It cannot be stopped any more once this is dropped.
pub(crate) struct PreBinding {
    pods: Arc<PreBindingPods>,
    uid: String,
    work: Arc<Work>,
}

impl PreBindingPods {
    /// Work begins for a pod.
    pub(super) fn begin(self: &Arc<Self>, uid: &str) -> PreBinding {
        let work = Arc::new(Work::default());
        self.0.lock().insert(uid.to_owned(), Arc::clone(&work));
        PreBinding { pods: Arc::clone(self), uid: uid.to_owned(), work }
    }

    /// Whether work is done for a pod.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.0.lock().contains_key(uid)
    }

    /// A plugin needs the pod's room. Says whether the pod lets go of it.
    pub(super) fn preempt(&self, uid: &str, plugin: &'static str) -> bool {
        let pods = self.0.lock();
        let Some(work) = pods.get(uid) else { return false };
        work.stopped_by.lock().get_or_insert(plugin);
        work.stop.cancel();
        true
    }
}

impl PreBinding {
    /// Cancelled when somebody needs the room.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.work.stop
    }

    /// The work is over, and the pod is bound now, unless somebody needs its room.
    ///
    /// # Errors
    /// When somebody does.
    pub(crate) fn finish(self) -> StatusResult {
        // Nobody can come in between: who needs the room asks under the same lock.
        self.pods.0.lock().remove(&self.uid);
        let stopped_by = *self.work.stopped_by.lock();
        stopped_by.map_or(Ok(()), |plugin| Err(Status::error(format!("preempted by {plugin}"))))
    }
}

impl Drop for PreBinding {
    fn drop(&mut self) {
        let mut pods = self.pods.0.lock();
        if pods.get(&self.uid).is_some_and(|known| Arc::ptr_eq(known, &self.work)) {
            pods.remove(&self.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_can_be_stopped_until_the_pod_is_bound() {
        let pods = Arc::new(PreBindingPods::default());
        assert!(!pods.preempt("p", "One"));
        let working = pods.begin("p");
        assert!(!working.stop().is_cancelled());
        assert!(pods.preempt("p", "One") && pods.preempt("p", "Two"));
        assert!(working.stop().is_cancelled());
        assert_eq!(working.finish().map_err(|status| status.message()), Err("preempted by One".to_owned()));
        let working = pods.begin("p");
        assert_eq!(working.finish(), Ok(()));
        assert!(!pods.preempt("p", "One"));
        drop(pods.begin("p"));
        assert!(pods.0.lock().is_empty());
    }

    #[test]
    fn a_pod_that_is_tried_again_keeps_its_place() {
        let pods = Arc::new(PreBindingPods::default());
        let first = pods.begin("p");
        let second = pods.begin("p");
        drop(first);
        assert!(pods.preempt("p", "One") && second.stop().is_cancelled());
    }
}
