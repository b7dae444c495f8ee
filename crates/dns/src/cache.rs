//! Answers of other servers, kept for as long as they say but at most half a minute.
//!
//! Only what was forwarded is kept: the cluster's own names are answered from memory and must never be old.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use base::SharedClock;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Answers kept of each sort; the oldest goes first.
const CAPACITY: usize = 9984;
/// Bounds on how long an answer is kept, whatever it says.
const MIN_SECONDS: u32 = 5;
const MAX_SECONDS: u32 = 30;
/// A server that failed is asked again after this.
const FAILURE_SECONDS: u32 = 5;

/// What two queries must share to have one answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    kind: RecordType,
    dnssec_ok: bool,
    checking_disabled: bool,
}

#[derive(Clone)]
struct Entry {
    message: Message,
    stored: Instant,
    lives: Duration,
}

/// Entries of one sort, with the order in which they came.
#[derive(Default)]
struct Shelf {
    entries: HashMap<Key, Entry>,
    order: VecDeque<Key>,
}

/// A sort of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Those with records.
    Success,
    /// Those without, and failures.
    Denial,
}

/// The cache. Answers and denials have room of their own, so that a flood of names that do not exist leaves the rest.
pub struct Cache {
    clock: SharedClock,
    success: Mutex<Shelf>,
    denial: Mutex<Shelf>,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, success: Mutex::default(), denial: Mutex::default() }
    }

    /// How many answers of a sort are held, those that are too old included.
    #[must_use]
    pub fn len(&self, held: Held) -> usize {
        match held {
            Held::Success => self.success.lock().entries.len(),
            Held::Denial => self.denial.lock().entries.len(),
        }
    }

    /// The answer to a query, with what is left of its time to live.
    #[must_use]
    pub fn find(&self, query: &Message) -> Option<(Message, Held)> {
        let (key, now) = (key(query)?, self.clock.monotonic());
        let success = self.success.lock().find(&key, now).map(|entry| (entry, Held::Success));
        let (found, held) = success.or_else(|| Some((self.denial.lock().find(&key, now)?, Held::Denial)))?;
        let passed = u32::try_from(now.duration_since(found.stored).as_secs()).unwrap_or(u32::MAX);
        let mut message = found.message;
        message.metadata.id = query.metadata.id;
        message.metadata.recursion_desired = query.metadata.recursion_desired;
        // Clients may check that the name is spelled as they asked.
        message.queries.clone_from(&query.queries);
        for record in message.answers.iter_mut().chain(&mut message.authorities).chain(&mut message.additionals) {
            record.ttl = record.ttl.saturating_sub(passed);
        }
        Some((message, held))
    }

    /// Keeps an answer, if it is one that may be kept; says of which sort it is, and how many others had to go for it.
    pub fn keep(&self, query: &Message, answer: &Message) -> Option<(Held, usize)> {
        let key = key(query)?;
        if answer.metadata.truncation || answer.queries != query.queries {
            return None;
        }
        let denial = answer.metadata.response_code != ResponseCode::NoError || answer.answers.is_empty();
        let seconds = lifetime(answer, denial)?;
        let mut message = answer.clone();
        message.edns = None;
        for record in message.answers.iter_mut().chain(&mut message.authorities).chain(&mut message.additionals) {
            record.ttl = record.ttl.clamp(MIN_SECONDS.min(seconds), seconds);
        }
        let lives = Duration::from_secs(seconds.into());
        let entry = Entry { message, stored: self.clock.monotonic(), lives };
        let (own, other) = if denial { (&self.denial, &self.success) } else { (&self.success, &self.denial) };
        other.lock().entries.remove(&key);
        let evicted = own.lock().put(key, entry);
        Some((if denial { Held::Denial } else { Held::Success }, evicted))
    }
}

impl Shelf {
    fn find(&mut self, key: &Key, now: Instant) -> Option<Entry> {
        let entry = self.entries.get(key)?;
        if now.duration_since(entry.stored) < entry.lives {
            return Some(entry.clone());
        }
        self.entries.remove(key);
        None
    }

    /// Gives how many others had to go.
    fn put(&mut self, key: Key, entry: Entry) -> usize {
        let mut evicted = 0;
        if self.entries.insert(key.clone(), entry).is_none() {
            self.order.push_back(key);
        }
        // Keys of entries that are gone may come up first; they make room in the list only.
        while self.entries.len() > CAPACITY || self.order.len() > 2 * CAPACITY {
            let Some(oldest) = self.order.pop_front() else { break };
            evicted += usize::from(self.entries.remove(&oldest).is_some());
        }
        evicted
    }
}

fn key(query: &Message) -> Option<Key> {
    let question = query.queries.first()?;
    Some(Key {
        name: question.name().to_ascii().to_ascii_lowercase(),
        kind: question.query_type(),
        dnssec_ok: query.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok),
        checking_disabled: query.metadata.checking_disabled,
    })
}

/// How long an answer may be kept; nothing for those that say nothing about the name.
fn lifetime(answer: &Message, denial: bool) -> Option<u32> {
    match answer.metadata.response_code {
        ResponseCode::ServFail => return Some(FAILURE_SECONDS),
        ResponseCode::NoError | ResponseCode::NXDomain => {}
        _ => return None,
    }
    let least = if denial {
        let soa = answer.authorities.iter().find_map(|record| match &record.data {
            RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
            _ => None,
        });
        soa.unwrap_or(MIN_SECONDS)
    } else {
        answer.answers.iter().map(|record| record.ttl).min()?
    };
    Some(least.clamp(MIN_SECONDS, MAX_SECONDS))
}

#[cfg(test)]
mod tests {
    use base::TokioClock;
    use hickory_proto::op::Query;
    use hickory_proto::rr::rdata::{A, SOA};
    use hickory_proto::rr::{Name, Record};

    use super::*;

    fn query(name: &str, id: u16) -> Message {
        let mut message = Message::query();
        message.metadata.id = id;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
        message
    }

    fn answer(query: &Message, code: ResponseCode, ttl: Option<u32>) -> Message {
        let mut message = Message::response(query.metadata.id, query.metadata.op_code);
        message.metadata.response_code = code;
        message.queries.clone_from(&query.queries);
        let name = query.queries[0].name().clone();
        if let Some(ttl) = ttl {
            if code == ResponseCode::NoError {
                message.answers.push(Record::from_rdata(name, ttl, RData::A(A::new(10, 0, 0, 1))));
            } else {
                let soa = SOA::new(name.clone(), name.clone(), 1, 2, 3, 4, ttl);
                message.authorities.push(Record::from_rdata(name, 3600, RData::SOA(soa)));
            }
        }
        message
    }

    #[tokio::test(start_paused = true)]
    async fn answers_live_as_long_as_they_say_within_bounds() {
        for (code, ttl, lives) in [
            (ResponseCode::NoError, Some(12), 12),
            (ResponseCode::NoError, Some(1), 5),
            (ResponseCode::NoError, Some(3600), 30),
            (ResponseCode::NoError, None, 5),
            (ResponseCode::NXDomain, Some(20), 20),
            (ResponseCode::NXDomain, Some(900), 30),
            (ResponseCode::ServFail, None, 5),
            (ResponseCode::Refused, None, 0),
        ] {
            let cache = Cache::new(TokioClock::shared());
            let asked = query("example.com.", 7);
            cache.keep(&asked, &answer(&asked, code, ttl));
            let mut seconds = 0;
            while cache.find(&asked).is_some() {
                tokio::time::advance(Duration::from_secs(1)).await;
                seconds += 1;
            }
            assert_eq!(seconds, lives, "{code} {ttl:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_answer_fits_its_query_and_ages() {
        let cache = Cache::new(TokioClock::shared());
        let asked = query("example.com.", 7);
        cache.keep(&asked, &answer(&asked, ResponseCode::NoError, Some(20)));
        tokio::time::advance(Duration::from_secs(8)).await;
        let other = query("EXAMPLE.com.", 9);
        let (found, held) = cache.find(&other).unwrap();
        assert_eq!((held, cache.len(Held::Success), cache.len(Held::Denial)), (Held::Success, 1, 0));
        assert_eq!((found.metadata.id, found.answers[0].ttl), (9, 12));
        assert_eq!(found.queries, other.queries);
        let mut unlike = query("example.com.", 9);
        unlike.metadata.checking_disabled = true;
        assert!(cache.find(&unlike).is_none());
        let mut cut = answer(&query("cut.com.", 1), ResponseCode::NoError, Some(20));
        cut.metadata.truncation = true;
        cache.keep(&query("cut.com.", 1), &cut);
        assert!(cache.find(&query("cut.com.", 1)).is_none(), "half an answer is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_make_room() {
        let cache = Cache::new(TokioClock::shared());
        let mut went = 0;
        for number in 0..CAPACITY + 10 {
            let asked = query(&format!("n{number}.example."), 1);
            let kept = cache.keep(&asked, &answer(&asked, ResponseCode::NoError, Some(30)));
            went += kept.filter(|(held, _)| *held == Held::Success).unwrap().1;
        }
        assert_eq!(went, 10);
        assert_eq!(cache.success.lock().entries.len(), CAPACITY);
        assert!(cache.find(&query("n9.example.", 1)).is_none() && cache.find(&query("n10.example.", 1)).is_some());
        assert!(cache.denial.lock().entries.is_empty());
    }
}
