//! Why a container did not start, and the memory of it that pod statuses show.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Reasons of a waiting container, as users see them.
pub(crate) mod reason {
    pub(crate) const CRASH_LOOP: &str = "CrashLoopBackOff";
    pub(crate) const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
    pub(crate) const ERR_IMAGE_PULL: &str = "ErrImagePull";
    pub(crate) const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
    pub(crate) const INVALID_IMAGE_NAME: &str = "InvalidImageName";
    pub(crate) const IMAGE_INSPECT: &str = "ImageInspectError";
    pub(crate) const REGISTRY_UNAVAILABLE: &str = "RegistryUnavailable";
    pub(crate) const SIGNATURE: &str = "SignatureValidationFailed";
    pub(crate) const CONFIG: &str = "CreateContainerConfigError";
    pub(crate) const CREATE: &str = "CreateContainerError";
    pub(crate) const RUN: &str = "RunContainerError";
    pub(crate) const POST_START: &str = "PostStartHookError";
    pub(crate) const CREATING: &str = "ContainerCreating";
    pub(crate) const INITIALIZING: &str = "PodInitializing";
}

/// Why a container did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When it makes sense to try again, where that is known.
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after: None }
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }
}

/// Failures kept at most, as upstream.
const MAX_FAILURES: usize = 1000;

/// The last failure of each container that has not started since.
#[derive(Default)]
pub(crate) struct Failures {
    entries: Mutex<HashMap<(String, String), (u64, Failure)>>,
}

impl Failures {
    pub(crate) fn set(&self, uid: &str, container: &str, failure: Failure) {
        let mut entries = self.entries.lock();
        let newest = entries.values().map(|(order, _)| *order).max().unwrap_or(0);
        if entries.len() >= MAX_FAILURES {
            let oldest = entries.iter().min_by_key(|(_, (order, _))| *order).map(|(key, _)| key.clone());
            oldest.and_then(|key| entries.remove(&key));
        }
        entries.insert((uid.to_owned(), container.to_owned()), (newest + 1, failure));
    }

    pub(crate) fn clear(&self, uid: &str, container: &str) {
        self.entries.lock().remove(&(uid.to_owned(), container.to_owned()));
    }

    pub(crate) fn get(&self, uid: &str, container: &str) -> Option<Failure> {
        self.entries.lock().get(&(uid.to_owned(), container.to_owned())).map(|(_, failure)| failure.clone())
    }

    pub(crate) fn forget_pod(&self, uid: &str) {
        self.entries.lock().retain(|(of, _), _| of != uid);
    }
}
