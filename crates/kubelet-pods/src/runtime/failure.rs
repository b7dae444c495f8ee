//! Why a container did not start, and the memory of it that pod statuses show.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;

/// Why a container waits, as users see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingReason {
    CrashLoopBackOff,
    ImagePullBackOff,
    ErrImagePull,
    ErrImageNeverPull,
    InvalidImageName,
    ImageInspectError,
    RegistryUnavailable,
    SignatureValidationFailed,
    CreateContainerConfigError,
    CreateContainerError,
    RunContainerError,
    PostStartHookError,
    ContainerCreating,
    PodInitializing,
}

impl WaitingReason {
    /// As statuses, events and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrashLoopBackOff => "CrashLoopBackOff",
            Self::ImagePullBackOff => "ImagePullBackOff",
            Self::ErrImagePull => "ErrImagePull",
            Self::ErrImageNeverPull => "ErrImageNeverPull",
            Self::InvalidImageName => "InvalidImageName",
            Self::ImageInspectError => "ImageInspectError",
            Self::RegistryUnavailable => "RegistryUnavailable",
            Self::SignatureValidationFailed => "SignatureValidationFailed",
            Self::CreateContainerConfigError => "CreateContainerConfigError",
            Self::CreateContainerError => "CreateContainerError",
            Self::RunContainerError => "RunContainerError",
            Self::PostStartHookError => "PostStartHookError",
            Self::ContainerCreating => "ContainerCreating",
            Self::PodInitializing => "PodInitializing",
        }
    }

    /// Whether the container was tried: who waits its time has not been.
    pub fn is_attempt(self) -> bool {
        self != Self::CrashLoopBackOff
    }
}

impl fmt::Display for WaitingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a container did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: WaitingReason,
    pub message: String,
    /// When it makes sense to try again, where that is known.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn new(reason: WaitingReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after: None }
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }
}

/// Failures kept at most, as upstream.
const MAX_FAILURES: usize = 1000;

/// The last failure of each container that has not started since.
#[derive(Default)]
pub struct Failures {
    entries: Mutex<HashMap<(String, String), (u64, Failure)>>,
}

impl Failures {
    pub fn set(&self, uid: &str, container: &str, failure: Failure) {
        let mut entries = self.entries.lock();
        let newest = entries.values().map(|(order, _)| *order).max().unwrap_or(0);
        if entries.len() >= MAX_FAILURES {
            let oldest = entries.iter().min_by_key(|(_, (order, _))| *order).map(|(key, _)| key.clone());
            oldest.and_then(|key| entries.remove(&key));
        }
        entries.insert((uid.to_owned(), container.to_owned()), (newest + 1, failure));
    }

    pub fn clear(&self, uid: &str, container: &str) {
        self.entries.lock().remove(&(uid.to_owned(), container.to_owned()));
    }

    pub fn get(&self, uid: &str, container: &str) -> Option<Failure> {
        self.entries.lock().get(&(uid.to_owned(), container.to_owned())).map(|(_, failure)| failure.clone())
    }

    pub fn forget_pod(&self, uid: &str) {
        self.entries.lock().retain(|(of, _), _| of != uid);
    }
}
