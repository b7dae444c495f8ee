//! Delays by key that double at every step and are forgotten when nothing happens for long: crashing containers and
//! failing pulls. In memory only, so a restart of the kubelet begins anew. Setting the wall clock moves no delay.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use base::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Keys kept at most; pods on a node times their containers stays far below.
const MAX_KEYS: usize = 10_000;

pub struct KeyedBackOff {
    initial: Duration,
    longest: Duration,
    /// After how long without a step a key counts as new.
    expiry: Duration,
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    delay: Duration,
    stepped: Instant,
    /// The event that the delay counts from, by the wall clock and by the other.
    event: Option<(SystemTime, Instant)>,
}

impl Entry {
    /// When an event was; worked out once, when it is first heard of.
    fn place(&mut self, event: SystemTime, clock: &dyn Clock) -> Instant {
        match self.event {
            Some((known, at)) if known == event => at,
            _ => {
                let at = place(event, clock);
                self.event = Some((event, at));
                at
            }
        }
    }
}

impl KeyedBackOff {
    pub fn new(initial: Duration, longest: Duration, expiry: Duration) -> Self {
        Self { initial: initial.min(longest), longest, expiry, entries: Mutex::default() }
    }

    /// What is left of the delay that counts from `event`; `None` when it is over or there is none.
    pub fn remaining(&self, key: &str, event: SystemTime, clock: &dyn Clock) -> Option<Duration> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(key)?;
        let since = entry.place(event, clock);
        if since.saturating_duration_since(entry.stepped) > self.expiry {
            return None;
        }
        left(entry.delay, since, clock)
    }

    /// What is left of the delay that counts from the last step.
    pub fn remaining_since_step(&self, key: &str, clock: &dyn Clock) -> Option<Duration> {
        let entry = *self.entries.lock().get(key)?;
        left(entry.delay, entry.stepped, clock)
    }

    /// The delay that holds for a key now; zero for a new one.
    pub fn delay(&self, key: &str) -> Duration {
        self.entries.lock().get(key).map_or(Duration::ZERO, |entry| entry.delay)
    }

    /// Goes on to the next delay, or to the first where the event, or without one now, is long after the last step.
    pub fn step(&self, key: &str, event: Option<SystemTime>, clock: &dyn Clock) {
        let now = clock.monotonic();
        let mut entries = self.entries.lock();
        if entries.len() >= MAX_KEYS {
            entries.retain(|_, entry| !self.is_expired(entry, now));
        }
        let delay = entries.get_mut(key).and_then(|entry| {
            let at = event.map_or(now, |event| entry.place(event, clock));
            (!self.is_expired(entry, at)).then(|| entry.delay.saturating_mul(2).min(self.longest))
        });
        let entry = Entry { delay: delay.unwrap_or(self.initial), stepped: now, event: None };
        entries.insert(key.to_owned(), entry);
    }

    /// Begins anew with a key.
    pub fn forget(&self, key: &str) {
        self.entries.lock().remove(key);
    }

    /// Forgets what expired.
    pub fn collect(&self, now: Instant) {
        self.entries.lock().retain(|_, entry| !self.is_expired(entry, now));
    }

    fn is_expired(&self, entry: &Entry, at: Instant) -> bool {
        at.saturating_duration_since(entry.stepped) > self.expiry
    }
}

fn left(delay: Duration, since: Instant, clock: &dyn Clock) -> Option<Duration> {
    let past = clock.monotonic().saturating_duration_since(since);
    delay.checked_sub(past).filter(|left| !left.is_zero())
}

/// An event of the wall clock on the other one; now where it is yet to come.
fn place(event: SystemTime, clock: &dyn Clock) -> Instant {
    let now = clock.monotonic();
    let age = clock.wall().duration_since(event).unwrap_or_default();
    now.checked_sub(age).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A monotonic clock, and a wall clock that goes with it but can be set.
    struct TestClock {
        start: Instant,
        second: u64,
        set_back: u64,
    }

    impl Clock for TestClock {
        fn wall(&self) -> SystemTime {
            at(self.second - self.set_back)
        }

        fn monotonic(&self) -> Instant {
            self.start + Duration::from_secs(self.second)
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn delays_double_to_the_cap_and_expire() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let clock = |second| TestClock { start, second, set_back: 0 };
        let back_off = KeyedBackOff::new(seconds(10), seconds(300), seconds(600));
        assert_eq!(back_off.remaining("k", at(0), &clock(0)), None);
        back_off.step("k", Some(at(0)), &clock(0));
        assert_eq!(back_off.remaining("k", at(3), &clock(5)), Some(seconds(8)));
        assert_eq!(back_off.remaining("k", at(3), &clock(13)), None);
        let delays: Vec<u64> = (0..6)
            .map(|_| {
                back_off.step("k", Some(at(20)), &clock(20));
                back_off.delay("k").as_secs()
            })
            .collect();
        assert_eq!(delays, [20, 40, 80, 160, 300, 300]);
        assert_eq!(back_off.remaining("k", at(621), &clock(621)), None, "quiet for long");
        back_off.step("k", Some(at(621)), &clock(621));
        assert_eq!(back_off.delay("k"), seconds(10));
        back_off.collect(start + seconds(2000));
        assert_eq!(back_off.delay("k"), Duration::ZERO);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_holds_nothing_up() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let back_off = KeyedBackOff::new(seconds(10), seconds(300), seconds(600));
        let clock = |second, set_back| TestClock { start, second, set_back };
        back_off.step("k", None, &clock(5000, 0));
        assert_eq!(back_off.remaining("k", at(5002), &clock(5003, 0)), Some(seconds(9)));
        assert_eq!(back_off.remaining("k", at(5002), &clock(5010, 4000)), Some(seconds(2)));
        assert_eq!(back_off.remaining("k", at(5002), &clock(5012, 4000)), None);
        assert_eq!(back_off.remaining_since_step("k", &clock(5011, 4000)), None);
    }
}
