//! Records events.k8s.io/v1 events: the first is written, repetitions are counted here and written now and then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object as _;
use api_machinery::time::MicroTime;
use api_machinery::value::to_value;
use api_types::core_v1::ObjectReference;
use api_types::events_v1::{Event, EventSeries};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{EventType, event_name, event_namespace};
use crate::client::Client;
use crate::error::ClientError;
use crate::patch::Patch;

/// Events that wait to be sent; more are dropped with a log line.
const QUEUE_LIMIT: usize = 1000;
/// Requests under way at once: one answer after the other would hold a busy scheduler's events up until they are dropped.
const MAX_DELIVERIES: usize = 32;
/// Different events that are remembered; the rest is sent without being counted.
const SERIES_LIMIT: usize = 4096;
/// How often running series are written.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// How often series that have ended are written a last time, and after how long a series has ended.
const FINISH: Duration = Duration::from_secs(6 * 60);
/// How often an event is sent when no answer comes, and how long to wait in between, plus up to a quarter.
const TRIES: usize = 12;
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
    queue: mpsc::Sender<Event>,
}

impl SeriesRecorder {
    /// A recorder that writes as `controller` on the machine `hostname`. Its task lives in the client's group.
    #[must_use]
    pub fn new(client: &Client, controller: &str, hostname: &str) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LIMIT);
        let task = Recorder { client: client.clone(), known: BTreeMap::new() };
        client.tasks().spawn_cancellable("event-series-recorder", task.run(waiting));
        let instance = format!("{controller}-{hostname}").into();
        Self { client: client.clone(), controller: controller.into(), instance, queue }
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
        if self.queue.try_send(event).is_err() {
            tracing::warn!("Event queue is full, dropping event");
        }
    }
}

struct Recorder {
    client: Client,
    known: BTreeMap<String, Known>,
}

struct Known {
    event: Event,
    /// When it was last seen.
    seen: Instant,
    /// Whether there is something to write that the server has not got.
    unwritten: bool,
}

impl Recorder {
    async fn run(mut self, mut waiting: mpsc::Receiver<Event>) {
        let start = Instant::now();
        let mut refresh = tokio::time::interval_at(start + REFRESH, REFRESH);
        let mut finish = tokio::time::interval_at(start + FINISH, FINISH);
        let mut deliveries = FuturesUnordered::new();
        // What is to be written and waits for its turn: at most one event for each that is remembered, as nothing is
        // added before this is empty.
        let mut due: VecDeque<Event> = VecDeque::new();
        loop {
            while deliveries.len() < MAX_DELIVERIES
                && let Some(event) = due.pop_front()
            {
                deliveries.push(deliver(self.client.clone(), event));
            }
            let idle = due.is_empty() && deliveries.len() < MAX_DELIVERIES;
            tokio::select! {
                biased;
                Some(()) = deliveries.next() => {}
                event = waiting.recv(), if idle => match event {
                    Some(event) => due.extend(self.observe(event)),
                    None => break,
                },
                _ = finish.tick(), if idle => due.extend(self.finish()),
                _ = refresh.tick(), if idle => due.extend(self.refresh()),
            }
        }
        while deliveries.next().await.is_some() {}
    }

    /// Takes note of an event; gives what is to be written for it.
    fn observe(&mut self, event: Event) -> Option<Event> {
        let key = series_key(&event);
        let now = self.client.clock().monotonic();
        let at = event.event_time;
        let Some(known) = self.known.get_mut(&key) else {
            if self.known.len() < SERIES_LIMIT {
                self.known.insert(key, Known { event: event.clone(), seen: now, unwritten: false });
            }
            return Some(event);
        };
        known.seen = now;
        if let Some(series) = &mut known.event.series {
            series.count = series.count.saturating_add(1);
            series.last_observed_time = at;
            known.unwritten = true;
            return None;
        }
        known.event.series = Some(EventSeries { count: 2, last_observed_time: at });
        Some(known.event.clone())
    }

    /// The series that go on.
    fn refresh(&mut self) -> Vec<Event> {
        let running = self.known.values_mut().filter(|known| known.event.series.is_some());
        running
            .map(|known| {
                known.unwritten = false;
                known.event.clone()
            })
            .collect()
    }

    /// Forgets the series that have ended; gives those that are to be written a last time.
    fn finish(&mut self) -> Vec<Event> {
        let now = self.client.clock().monotonic();
        let mut ended = Vec::new();
        self.known.retain(|_, known| {
            let over = now.saturating_duration_since(known.seen) >= FINISH;
            if over && known.unwritten {
                ended.push(known.event.clone());
            }
            !over
        });
        ended
    }
}

/// Sends an event until the server has answered, whatever the answer, or the tries are used up.
async fn deliver(client: Client, event: Event) {
    for _ in 0..TRIES {
        match send(&client, &event).await {
            Ok(()) => return,
            Err(ClientError::Api(error)) if event.series.is_none() || !error.is_already_exists() => {
                if !error.is_already_exists() && !error.has_cause("NamespaceTerminating") {
                    tracing::error!(%error, reason = %event.reason, "Server rejected event (will not retry!)");
                }
                return;
            }
            Err(error) => tracing::debug!(%error, "Unable to write event (may retry after sleeping)"),
        }
        let jitter = 1.0 + RETRY_JITTER * client.rng().unit();
        tokio::time::sleep(RETRY_DELAY.mul_f64(jitter)).await;
    }
    tracing::error!(reason = %event.reason, "Unable to write event (retry limit exceeded!)");
}

async fn send(client: &Client, event: &Event) -> Result<(), ClientError> {
    let events = client.namespaced::<Event>(&event.meta().namespace);
    if let Some(series) = &event.series {
        let mut patch = api_machinery::value::ValueMap::new();
        patch.insert("series".into(), to_value(series));
        let patch = Patch::Strategic(patch.into());
        match events.patch(&event.metadata.name, &patch).await {
            Err(error) if error.is_not_found() => {}
            outcome => return outcome.map(drop),
        }
    }
    events.create(event).await.map(drop)
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
