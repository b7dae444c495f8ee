//! Records events.k8s.io/v1 events: the first is written, repetitions are counted here and written now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::status::ApiError;
use api_machinery::time::MicroTime;
use api_machinery::value::{Value, to_value};
use api_types::core_v1::ObjectReference;
use api_types::events_v1::{Event, EventSeries};
use base::Rng;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::deliveries::{Deliveries, Recorded, Write};
use super::queue::Queue;
use super::{EventType, event_name, event_namespace, reference_bytes};
use crate::client::Client;

/// Different events that are remembered; one more ends what was not seen for longest.
const SERIES_LIMIT: usize = 4096;
/// How often running series are written.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// How often series that have ended are written a last time, and after how long a series has ended.
const FINISH: Duration = Duration::from_secs(6 * 60);
/// How long to wait for the next try when no answer comes, plus up to a quarter.
const RETRY_DELAY: Duration = Duration::from_secs(10);
const RETRY_JITTER: f64 = 0.25;

/// What happened, to what, and what was done about it.
#[derive(Debug, Clone)]
pub struct SeriesEvent {
    /// The object that it is about.
    pub regarding: ObjectReference,
    /// Another object that took part.
    pub related: Option<ObjectReference>,
    /// Good news or bad.
    pub kind: EventType,
    /// Why, in one word.
    pub reason: String,
    /// What was done, in one word.
    pub action: String,
    /// Text for people.
    pub note: String,
}

/// Records events with series. Clones share the queue. Recording never waits.
#[derive(Clone)]
pub struct SeriesRecorder {
    client: Client,
    controller: Arc<str>,
    instance: Arc<str>,
    queue: Arc<Queue<Event>>,
}

impl SeriesRecorder {
    /// A recorder that writes as `controller` on the machine `hostname`. Its task lives in the client's group.
    #[must_use]
    pub fn new(client: &Client, controller: &str, hostname: &str) -> Self {
        let (queue, waiting) = Queue::new(client, controller);
        let task = Recorder {
            client: client.clone(),
            deliveries: Deliveries::new(client, controller),
            known: BTreeMap::new(),
            by_age: BTreeMap::new(),
            looks: 0,
        };
        client.tasks().spawn_cancellable("event-series-recorder", task.run(waiting));
        let instance = format!("{controller}-{hostname}").into();
        Self { client: client.clone(), controller: controller.into(), instance, queue: Arc::new(queue) }
    }

    /// Records an event.
    pub fn event(&self, what: SeriesEvent) {
        let wall = self.client.clock().wall();
        let nanos = wall.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let event = Event {
            metadata: ObjectMeta {
                name: event_name(&what.regarding, nanos, self.client.rng()),
                namespace: event_namespace(&what.regarding),
                ..ObjectMeta::default()
            },
            event_time: MicroTime::from(wall),
            reporting_controller: self.controller.to_string(),
            reporting_instance: self.instance.to_string(),
            action: what.action,
            reason: what.reason,
            regarding: what.regarding,
            related: what.related,
            note: what.note,
            type_: what.kind.as_str().to_owned(),
            ..Event::default()
        };
        self.queue.put(event);
    }
}

struct Recorder {
    client: Client,
    deliveries: Deliveries<Event>,
    known: BTreeMap<String, Known>,
    /// The keys of those that are known by when they were looked at last, the one longest ago first.
    by_age: BTreeMap<u64, String>,
    looks: u64,
}

struct Known {
    event: Event,
    /// When it was last seen.
    seen: Instant,
    /// Where it is in the order of age.
    look: u64,
    /// Whether there is something to write that the server has not got.
    unwritten: bool,
}

impl Recorder {
    async fn run(mut self, mut waiting: mpsc::Receiver<Write<Event>>) {
        let start = Instant::now();
        let mut refresh = tokio::time::interval_at(start + REFRESH, REFRESH);
        let mut finish = tokio::time::interval_at(start + FINISH, FINISH);
        loop {
            tokio::select! {
                biased;
                () = self.deliveries.progress() => {}
                recorded = waiting.recv() => match recorded {
                    Some(recorded) => self.observe(recorded),
                    None => break,
                },
                _ = finish.tick() => self.finish(),
                _ = refresh.tick() => self.refresh(),
            }
        }
        self.deliveries.drain().await;
    }

    /// Takes note of an event; writes it if it is the first or the second of its kind.
    fn observe(&mut self, recorded: Write<Event>) {
        let (event, room) = recorded.into_parts();
        let key = series_key(&event);
        let now = self.client.clock().monotonic();
        let at = event.event_time;
        self.looks += 1;
        let look = self.looks;
        let Some(known) = self.known.get_mut(&key) else {
            self.by_age.insert(look, key.clone());
            self.known.insert(key, Known { event: event.clone(), seen: now, look, unwritten: false });
            self.deliveries.add(Write::new(event, room));
            self.keep_to_limit();
            return;
        };
        self.by_age.remove(&std::mem::replace(&mut known.look, look));
        self.by_age.insert(look, key);
        known.seen = now;
        if let Some(series) = &mut known.event.series {
            series.count = series.count.saturating_add(1);
            series.last_observed_time = at;
            known.unwritten = true;
            return;
        }
        known.event.series = Some(EventSeries { count: 2, last_observed_time: at });
        self.deliveries.add(Write::again(known.event.clone(), room));
    }

    /// Writes the series that go on.
    fn refresh(&mut self) {
        for known in self.known.values_mut().filter(|known| known.event.series.is_some()) {
            known.unwritten = false;
            self.deliveries.add(Write::again(known.event.clone(), None));
        }
    }

    /// Forgets what was not seen for long.
    fn finish(&mut self) {
        let now = self.client.clock().monotonic();
        while let Some((_, key)) = self.by_age.first_key_value()
            && self.known.get(key).is_none_or(|known| now.saturating_duration_since(known.seen) >= FINISH)
        {
            self.forget_oldest();
        }
    }

    fn keep_to_limit(&mut self) {
        while self.known.len() > SERIES_LIMIT {
            self.forget_oldest();
        }
    }

    /// Forgets what was not seen for longest; what of it the server has not got is written a last time.
    fn forget_oldest(&mut self) {
        let Some((_, key)) = self.by_age.pop_first() else { return };
        if let Some(known) = self.known.remove(&key).filter(|known| known.unwritten) {
            self.deliveries.add(Write::again(known.event, None));
        }
    }
}

impl Recorded for Event {
    fn text_bytes(&self) -> usize {
        let related = self.related.as_ref().map_or(0, reference_bytes);
        let by = self.reporting_controller.len() + self.reporting_instance.len();
        let name = self.metadata.name.len() + self.metadata.namespace.len();
        reference_bytes(&self.regarding) + related + self.note.len() + name + by
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn renew(&mut self, newer: Self) {
        self.series = newer.series;
    }

    fn repetition(&self) -> Value {
        let mut patch = api_machinery::value::ValueMap::new();
        if let Some(series) = &self.series {
            patch.insert("series".into(), to_value(series));
        }
        patch.into()
    }

    fn is_worth_retrying(&self, error: &ApiError) -> bool {
        self.series.is_some() && error.is_already_exists()
    }

    fn delay(_: usize, rng: &Rng) -> Duration {
        RETRY_DELAY.mul_f64(1.0 + RETRY_JITTER * rng.unit())
    }
}

/// What makes two events the same; the note does not count. The version of the object does: once that has changed, what
/// is said of it may be something else.
fn series_key(event: &Event) -> String {
    let reference = |about: &ObjectReference| {
        let ObjectReference { kind, namespace, name, uid, api_version, resource_version, field_path } = about;
        [kind, namespace, name, uid, api_version, resource_version, field_path].map(String::as_str).join("\0")
    };
    let related = event.related.as_ref().map(reference).unwrap_or_default();
    let parts = [
        &event.type_,
        &event.action,
        &event.reason,
        &event.reporting_controller,
        &event.reporting_instance,
        &reference(&event.regarding),
        &related,
    ];
    parts.map(String::as_str).join("\0")
}
