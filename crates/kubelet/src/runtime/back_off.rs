//! Delays by key that double at every step and are forgotten when nothing happens for long: crashing containers and
//! failing pulls. In memory only, so a restart of the kubelet begins anew.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

/// Keys kept at most; pods on a node times their containers stays far below.
const MAX_KEYS: usize = 10_000;

pub(crate) struct KeyedBackOff {
    initial: Duration,
    longest: Duration,
    /// After how long without a step a key counts as new.
    expiry: Duration,
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    delay: Duration,
    stepped: SystemTime,
}

impl KeyedBackOff {
    pub(crate) fn new(initial: Duration, longest: Duration, expiry: Duration) -> Self {
        Self { initial: initial.min(longest), longest, expiry, entries: Mutex::default() }
    }

    /// What is left of the delay that counts from `since`; `None` when it is over or there is none.
    pub(crate) fn remaining(&self, key: &str, since: SystemTime, now: SystemTime) -> Option<Duration> {
        let entry = *self.entries.lock().get(key)?;
        if past(entry.stepped, since) > self.expiry {
            return None;
        }
        entry.delay.checked_sub(past(since, now)).filter(|left| !left.is_zero())
    }

    /// What is left of the delay that counts from the last step.
    pub(crate) fn remaining_since_step(&self, key: &str, now: SystemTime) -> Option<Duration> {
        let entry = *self.entries.lock().get(key)?;
        entry.delay.checked_sub(past(entry.stepped, now)).filter(|left| !left.is_zero())
    }

    /// The delay that holds for a key now; zero for a new one.
    pub(crate) fn delay(&self, key: &str) -> Duration {
        self.entries.lock().get(key).map_or(Duration::ZERO, |entry| entry.delay)
    }

    /// Goes on to the next delay, or to the first where `since` (the event's time) lies long after the last step.
    pub(crate) fn step(&self, key: &str, since: SystemTime, now: SystemTime) {
        let mut entries = self.entries.lock();
        if entries.len() >= MAX_KEYS {
            entries.retain(|_, entry| past(entry.stepped, now) <= self.expiry);
        }
        let delay = match entries.get(key) {
            Some(entry) if past(entry.stepped, since) <= self.expiry => (entry.delay * 2).min(self.longest),
            _ => self.initial,
        };
        entries.insert(key.to_owned(), Entry { delay, stepped: now });
    }

    /// Begins anew with a key.
    pub(crate) fn forget(&self, key: &str) {
        self.entries.lock().remove(key);
    }

    /// Forgets what expired.
    pub(crate) fn collect(&self, now: SystemTime) {
        self.entries.lock().retain(|_, entry| past(entry.stepped, now) <= self.expiry);
    }
}

fn past(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn delays_double_to_the_cap_and_expire() {
        let seconds = Duration::from_secs;
        let back_off = KeyedBackOff::new(seconds(10), seconds(300), seconds(600));
        assert_eq!(back_off.remaining("k", at(0), at(0)), None);
        back_off.step("k", at(0), at(0));
        assert_eq!(back_off.remaining("k", at(3), at(5)), Some(seconds(8)));
        assert_eq!(back_off.remaining("k", at(3), at(13)), None);
        let delays: Vec<u64> = (0..6)
            .map(|_| {
                back_off.step("k", at(20), at(20));
                back_off.delay("k").as_secs()
            })
            .collect();
        assert_eq!(delays, [20, 40, 80, 160, 300, 300]);
        assert_eq!(back_off.remaining("k", at(621), at(621)), None, "quiet for long");
        back_off.step("k", at(621), at(621));
        assert_eq!(back_off.delay("k"), seconds(10));
        back_off.collect(at(2000));
        assert_eq!(back_off.delay("k"), Duration::ZERO);
    }
}
