//! What a webhook has answered, for a while.

use std::time::Duration;

use api_types::authorization_v1::SubjectAccessReviewStatus;
use base::{Expiring, SharedClock};
use parking_lot::Mutex;

use crate::Attributes;

/// Answers remembered, as upstream.
const MAX_ANSWERS: usize = 8192;
/// Requests whose texts are longer than this in all are not remembered, in bytes, as upstream: callers choose them.
const MAX_TEXT_BYTES: usize = 10_000;

/// How long answers are remembered; zero for not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttls {
    /// Requests that were allowed.
    pub authorized: Duration,
    /// All others.
    pub unauthorized: Duration,
}

pub(super) struct Cache {
    answers: Mutex<Expiring<String, SubjectAccessReviewStatus>>,
    ttls: Ttls,
    clock: SharedClock,
}

impl Cache {
    pub(super) fn new(ttls: Ttls, clock: SharedClock) -> Self {
        Self { answers: Mutex::new(Expiring::new(MAX_ANSWERS)), ttls, clock }
    }

    pub(super) fn get(&self, key: &String) -> Option<SubjectAccessReviewStatus> {
        self.answers.lock().get(key, self.clock.monotonic())
    }

    pub(super) fn insert(&self, key: String, status: &SubjectAccessReviewStatus) {
        let ttl = if status.allowed { self.ttls.authorized } else { self.ttls.unauthorized };
        if !ttl.is_zero() {
            let now = self.clock.monotonic();
            self.answers.lock().insert(key, status.clone(), now + ttl, now);
        }
    }
}

/// Whether the answer about a request may be remembered.
pub(super) fn may_be_remembered(attributes: &Attributes) -> bool {
    let own = attributes;
    let texts =
        [&own.namespace, &own.verb, &own.group, &own.version, &own.resource, &own.subresource, &own.name, &own.path];
    texts.into_iter().map(String::len).sum::<usize>() < MAX_TEXT_BYTES
}
