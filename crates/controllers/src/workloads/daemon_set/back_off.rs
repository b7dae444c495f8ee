//! How long a failed daemon pod is left before the next one is tried on its node.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Entries are forgotten when they were not used for this long.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);

/// The delays by key. Bounded by the pods that failed within the last half hour.
#[derive(Default)]
pub(super) struct BackOff {
    entries: Mutex<BTreeMap<String, Entry>>,
}

struct Entry {
    delay: Duration,
    since: Instant,
}

impl BackOff {
    /// The whole delay of a key whose time is not up yet; upstream waits for that, not for the rest.
    pub(super) fn left(&self, key: &str, now: Instant) -> Option<Duration> {
        let entries = self.entries.lock();
        let entry = entries.get(key)?;
        (now.saturating_duration_since(entry.since) < entry.delay).then_some(entry.delay)
    }

    /// Starts the next delay of a key, twice as long as the last one.
    pub(super) fn advance(&self, key: &str, now: Instant) {
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| now.saturating_duration_since(entry.since) < FORGOTTEN);
        let next = entries.get(key).map_or(FIRST, |entry| (entry.delay * 2).min(LONGEST));
        entries.insert(key.to_owned(), Entry { delay: next, since: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_and_are_forgotten() {
        let (back_off, start) = (BackOff::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(back_off.left("a", start), None);
        back_off.advance("a", start);
        assert_eq!(back_off.left("a", start), Some(FIRST));
        assert_eq!(back_off.left("a", at(1)), None);
        back_off.advance("a", at(1));
        assert_eq!(back_off.left("a", at(2)), Some(Duration::from_secs(2)));
        for second in 3..20 {
            back_off.advance("a", at(second));
        }
        assert_eq!(back_off.left("a", at(20)), Some(LONGEST));
        back_off.advance("b", at(20 + 30 * 60));
        assert_eq!(back_off.entries.lock().len(), 1);
    }
}
