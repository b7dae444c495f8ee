//! Records core/v1 events: a bounded queue and one task that correlates what is then written several at a time.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::{Event, EventSource, ObjectReference};
use base::Rng;
use tokio::sync::mpsc;

use super::correlator::{CorrelateResult, Correlator};
use super::deliveries::{Deliveries, Recorded, Write};
use super::queue::Queue;
use super::{EventType, event_name, event_namespace, object_reference, reference_bytes};
use crate::client::Client;

/// How long to wait for the next try when no answer comes. As upstream.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Records events about objects. Clones share the queue. Recording never waits.
#[derive(Clone)]
pub struct EventRecorder {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    source: EventSource,
    queue: Queue<Event>,
}

impl EventRecorder {
    /// A recorder that writes as `component` on `host`; the host is empty for what runs nowhere in particular. Its
    /// task lives in the client's group and sends what is queued until the group ends.
    #[must_use]
    pub fn new(client: &Client, component: &str, host: &str) -> Self {
        let (queue, waiting) = Queue::new(client, component);
        let deliveries = Deliveries::new(client, component);
        client.tasks().spawn_cancellable("event-recorder", write_all(client.clone(), deliveries, waiting));
        let source = EventSource { component: component.to_owned(), host: host.to_owned() };
        Self { inner: Arc::new(Inner { client: client.clone(), source, queue }) }
    }

    /// Records an event about an object.
    pub fn event(&self, about: &dyn Object, kind: EventType, reason: &str, message: impl Into<String>) {
        self.event_for(object_reference(about), kind, reason, message);
    }

    /// Records an event about what a reference points at.
    pub fn event_for(&self, about: ObjectReference, kind: EventType, reason: &str, message: impl Into<String>) {
        self.annotated_event(about, std::collections::BTreeMap::new(), kind, reason, message);
    }

    /// Records an event that carries annotations.
    pub fn annotated_event(
        &self,
        about: ObjectReference,
        annotations: std::collections::BTreeMap<String, String>,
        kind: EventType,
        reason: &str,
        message: impl Into<String>,
    ) {
        let wall = self.inner.client.clock().wall();
        let nanos = wall.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = Time::from(wall);
        let source = &self.inner.source;
        let event = Event {
            metadata: ObjectMeta {
                name: event_name(&about, nanos, self.inner.client.rng()),
                namespace: event_namespace(&about),
                annotations,
                ..ObjectMeta::default()
            },
            involved_object: about,
            reason: reason.to_owned(),
            message: message.into(),
            source: source.clone(),
            first_timestamp: now,
            last_timestamp: now,
            count: 1,
            type_: kind.as_str().to_owned(),
            reporting_component: source.component.clone(),
            reporting_instance: source.host.clone(),
            ..Event::default()
        };
        self.inner.queue.put(event);
    }
}

/// The task that decides what to write of what was recorded.
async fn write_all(client: Client, mut deliveries: Deliveries<Event>, mut waiting: mpsc::Receiver<Write<Event>>) {
    let mut correlator = Correlator::new();
    loop {
        tokio::select! {
            biased;
            () = deliveries.progress() => {}
            recorded = waiting.recv() => {
                let Some(recorded) = recorded else { break };
                let (event, room) = recorded.into_parts();
                match correlator.correlate(event, client.clock().monotonic()) {
                    CorrelateResult::Create(event) => deliveries.add(Write::new(*event, room)),
                    CorrelateResult::Count(event) => deliveries.add(Write::again(*event, room)),
                    CorrelateResult::Drop => {}
                }
            }
        }
    }
    deliveries.drain().await;
}

impl Recorded for Event {
    fn text_bytes(&self) -> usize {
        let annotations: usize = self.metadata.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        let source = self.source.component.len() + self.source.host.len();
        let name = self.metadata.name.len() + self.metadata.namespace.len();
        reference_bytes(&self.involved_object) + annotations + self.message.len() + name + 2 * source
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn renew(&mut self, newer: Self) {
        (self.count, self.last_timestamp, self.message) = (newer.count, newer.last_timestamp, newer.message);
    }

    fn repetition(&self) -> Value {
        let mut patch = api_machinery::value::ValueMap::new();
        patch.insert("count".into(), self.count.into());
        patch.insert("lastTimestamp".into(), self.last_timestamp.to_string().into());
        patch.insert("message".into(), self.message.clone().into());
        Value::Object(patch)
    }

    fn is_worth_retrying(&self, _: &ApiError) -> bool {
        false
    }

    fn delay(tries: usize, rng: &Rng) -> Duration {
        // The first wait is random, so that the events of many nodes do not come back all at once.
        let share = if tries == 0 { rng.unit() } else { 1.0 };
        RETRY_DELAY.mul_f64(share)
    }
}
