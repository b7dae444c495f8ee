//! How long it took the node to be there: registered, and ready for the first time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A phase of a node's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPhase {
    /// From the start of the machine to that of the kubelet.
    BeforeKubelet,
    /// From there to the first attempt to register the node.
    BeforeRegistration,
    /// From there to the registration.
    Registration,
    /// From there to the node's being ready.
    AfterRegistration,
    /// All of it.
    Whole,
}

/// Is told of the start.
pub trait StartObserver: Send + Sync {
    fn took(&self, phase: StartPhase, time: Duration);
}

/// The moments of the start. Only a node that is new is told of: one that was there before did not start with this kubelet.
pub struct Start {
    observer: Arc<dyn StartObserver>,
    /// The machine's start; `None` where that is not known.
    booted: Option<SystemTime>,
    kubelet: SystemTime,
    attempted: Option<SystemTime>,
    registered: Option<SystemTime>,
    ready: bool,
}

impl Start {
    /// A kubelet was started at `kubelet`.
    pub fn new(observer: Arc<dyn StartObserver>, booted: Option<SystemTime>, kubelet: SystemTime) -> Self {
        Self { observer, booted, kubelet, attempted: None, registered: None, ready: false }
    }

    /// The node is about to be registered; the first attempt counts.
    pub(super) fn attempted(&mut self, now: SystemTime) {
        self.attempted.get_or_insert(now);
    }

    /// The node is registered, and is new.
    pub(super) fn registered(&mut self, now: SystemTime) {
        let (Some(attempted), None) = (self.attempted, self.registered) else { return };
        self.registered = Some(now);
        if let Some(booted) = self.booted {
            self.tell(StartPhase::BeforeKubelet, booted, self.kubelet);
        }
        self.tell(StartPhase::BeforeRegistration, self.kubelet, attempted);
        self.tell(StartPhase::Registration, attempted, now);
    }

    /// The node says that it is ready; the first time counts.
    pub(super) fn ready(&mut self, now: SystemTime) {
        let Some(registered) = self.registered.filter(|_| !self.ready) else { return };
        self.ready = true;
        self.tell(StartPhase::AfterRegistration, registered, now);
        if let Some(booted) = self.booted {
            self.tell(StartPhase::Whole, booted, now);
        }
    }

    /// A clock that was set back in between makes no time of less than nothing.
    fn tell(&self, phase: StartPhase, from: SystemTime, to: SystemTime) {
        self.observer.took(phase, to.duration_since(from).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<(StartPhase, u64)>>);

    impl StartObserver for Told {
        fn took(&self, phase: StartPhase, time: Duration) {
            self.0.lock().push((phase, time.as_secs()));
        }
    }

    #[test]
    fn the_first_of_each_moment_counts() {
        use StartPhase::{AfterRegistration, BeforeKubelet, BeforeRegistration, Registration, Whole};
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let told = Arc::new(Told::default());
        let mut start = Start::new(told.clone(), Some(at(100)), at(110));
        start.registered(at(111));
        start.ready(at(111));
        assert_eq!(*told.0.lock(), [], "it was not registered by this kubelet");
        for now in [112, 113] {
            start.attempted(at(now));
        }
        for now in [117, 118] {
            start.registered(at(now));
        }
        for now in [125, 130] {
            start.ready(at(now));
        }
        let expected =
            [(BeforeKubelet, 10), (BeforeRegistration, 2), (Registration, 5), (AfterRegistration, 8), (Whole, 25)];
        assert_eq!(*told.0.lock(), expected);
    }
}
