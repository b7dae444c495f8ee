//! Makes few events of many: similar ones are merged, equal ones counted, and a flood is cut off. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use api_types::core_v1::Event;
use tokio::time::Instant;

use crate::rate_limit::TokenBucket;

/// From this many different messages on, similar events become one.
const SIMILAR_LIMIT: usize = 10;
/// Similar events further apart than this are not merged.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// How many events of one source about one object are sent at once, and how often one more.
const SPAM_BURST: u32 = 25;
const SPAM_PER_SECOND: f64 = 1.0 / 300.0;
/// Entries of each cache; the least recently used one makes room.
const CACHE_ENTRIES: usize = 4096;

/// What to send for an event.
#[derive(Debug, Clone)]
pub(super) enum CorrelateResult {
    /// A new one.
    Create(Box<Event>),
    /// One more of an event that was sent before: count, time and message have changed.
    Count(Box<Event>),
    /// Nothing.
    Drop,
}

/// What was sent for a key.
#[derive(Clone, Default)]
struct Seen {
    count: i32,
    name: String,
    first: api_machinery::time::Time,
}

#[derive(Default)]
struct Similar {
    messages: Vec<String>,
    last: Option<Instant>,
}

pub(super) struct Correlator {
    similar: Cache<Similar>,
    seen: Cache<Seen>,
    floods: Cache<Option<TokenBucket>>,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self { similar: Cache::new(), seen: Cache::new(), floods: Cache::new() }
    }

    /// Decides what becomes of an event whose times are set.
    pub(super) fn correlate(&mut self, mut event: Event, now: Instant) -> CorrelateResult {
        let about = about(&event);
        let aggregate = format!("{about}\0{}\0{}\0{}", event.type_, event.reason, event.reporting_component);
        let merged = self.is_one_too_many(&aggregate, &event.message, now);
        let key = if merged {
            event.message = format!("(combined from similar events): {}", event.message);
            aggregate
        } else {
            format!("{aggregate}\0{}\0{}", event.involved_object.field_path, event.message)
        };
        let seen = self.seen.entry(&key);
        seen.count += 1;
        let known = seen.count > 1;
        if known {
            event.metadata.name.clone_from(&seen.name);
            event.first_timestamp = seen.first;
            event.count = seen.count;
        } else {
            seen.name.clone_from(&event.metadata.name);
            seen.first = event.first_timestamp;
        }
        let flood = self.floods.entry(&format!("{about}\0{}", event.type_));
        let bucket = flood.get_or_insert_with(|| TokenBucket::new(SPAM_PER_SECOND, SPAM_BURST, now));
        if !bucket.try_take(now) {
            return CorrelateResult::Drop;
        }
        if known { CorrelateResult::Count(Box::new(event)) } else { CorrelateResult::Create(Box::new(event)) }
    }

    fn is_one_too_many(&mut self, aggregate: &str, message: &str, now: Instant) -> bool {
        let similar = self.similar.entry(aggregate);
        if similar.last.is_some_and(|last| now.saturating_duration_since(last) > SIMILAR_WITHIN) {
            similar.messages.clear();
        }
        similar.last = Some(now);
        if !similar.messages.iter().any(|known| known == message) {
            similar.messages.push(message.to_owned());
        }
        let too_many = similar.messages.len() >= SIMILAR_LIMIT;
        // One is forgotten again, so that those that were told before go on to be counted by themselves.
        similar.messages.truncate(SIMILAR_LIMIT - 1);
        too_many
    }
}

/// Source and object, without the field.
fn about(event: &Event) -> String {
    let object = &event.involved_object;
    let parts = [
        event.source.component.as_str(),
        &event.source.host,
        &object.kind,
        &object.namespace,
        &object.name,
        &object.uid,
        &object.api_version,
    ];
    parts.join("\0")
}

/// A bounded map that forgets what was used longest ago. Touches are queued and skipped when they are outdated, so
/// that a use costs little.
struct Cache<V> {
    entries: BTreeMap<String, (V, u64)>,
    touches: VecDeque<(u64, String)>,
    clock: u64,
}

impl<V: Default> Cache<V> {
    fn new() -> Self {
        Self { entries: BTreeMap::new(), touches: VecDeque::new(), clock: 0 }
    }

    fn entry(&mut self, key: &str) -> &mut V {
        self.clock += 1;
        let clock = self.clock;
        self.touches.push_back((clock, key.to_owned()));
        while self.touches.len() > 2 * CACHE_ENTRIES || self.entries.len() > CACHE_ENTRIES {
            let Some((at, oldest)) = self.touches.pop_front() else { break };
            if self.entries.get(&oldest).is_some_and(|(_, touched)| *touched == at) {
                self.entries.remove(&oldest);
            }
        }
        let (value, touched) = self.entries.entry(key.to_owned()).or_default();
        *touched = clock;
        value
    }
}
