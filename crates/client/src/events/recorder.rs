//! Records core/v1 events: a bounded queue and one task that correlates and sends.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, PatchOptions};
use api_machinery::object::Object;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::{Event, EventSource, ObjectReference};
use tokio::sync::mpsc;

use super::correlator::{Correlator, Verdict};
use super::{EventType, event_name, event_namespace, object_reference};
use crate::client::Client;
use crate::error::ClientError;
use crate::patch::Patch;

/// Events that wait to be sent; more are dropped with a log line. As upstream.
const QUEUE_LIMIT: usize = 1000;
/// How often an event is sent when no answer comes, and how long to wait in between. As upstream.
const TRIES: usize = 12;
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Records events about objects. Clones share the queue. Recording never waits.
#[derive(Clone)]
pub struct EventRecorder {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    source: EventSource,
    queue: mpsc::Sender<Event>,
}

impl EventRecorder {
    /// A recorder that writes as `component` on `host`; the host is empty for what runs nowhere in particular. Its
    /// task lives in the client's group and sends what is queued until the group ends.
    #[must_use]
    pub fn new(client: &Client, component: &str, host: &str) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LIMIT);
        let sender = Sender { client: client.clone(), correlator: Correlator::new() };
        client.tasks().spawn_cancellable("event-recorder", sender.run(waiting));
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
        if self.inner.queue.try_send(event).is_err() {
            tracing::warn!(reason, "Event queue is full, dropping event");
        }
    }
}

/// The task that sends.
struct Sender {
    client: Client,
    correlator: Correlator,
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Event>) {
        while let Some(event) = waiting.recv().await {
            let now = self.client.clock().monotonic();
            match self.correlator.correlate(event, now) {
                Verdict::Create(event) => self.deliver(&event, false).await,
                Verdict::Count(event) => self.deliver(&event, true).await,
                Verdict::Drop => {}
            }
        }
    }

    /// Sends until the server has answered, whatever the answer, or the tries are used up.
    async fn deliver(&self, event: &Event, known: bool) {
        for tries in 0..TRIES {
            match self.send(event, known).await {
                Ok(()) => return,
                Err(ClientError::Api(error)) => {
                    let quiet = error.is_already_exists() || error.has_cause("NamespaceTerminating");
                    if !quiet {
                        tracing::error!(%error, reason = %event.reason, "Server rejected event (will not retry!)");
                    }
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, reason = %event.reason, "Unable to write event (may retry after sleeping)");
                }
            }
            // The first wait is random, so that the events of many nodes do not come back all at once.
            let share = if tries == 0 { self.client.rng().unit() } else { 1.0 };
            tokio::time::sleep(RETRY_DELAY.mul_f64(share)).await;
        }
        tracing::error!(reason = %event.reason, "Unable to write event (retry limit exceeded!)");
    }

    async fn send(&self, event: &Event, known: bool) -> Result<(), ClientError> {
        let events = self.client.namespaced::<Event>(&event.metadata.namespace);
        if known {
            let patch = Patch::Strategic(count_patch(event));
            match events.patch_with(&event.metadata.name, &patch, &PatchOptions::default()).await {
                Err(error) if error.is_not_found() => {}
                outcome => return outcome.map(drop),
            }
        }
        events.create(event).await.map(drop)
    }
}

/// What changes when the same event happens again.
fn count_patch(event: &Event) -> Value {
    let mut patch = api_machinery::value::ValueMap::new();
    patch.insert("count".into(), event.count.into());
    patch.insert("lastTimestamp".into(), event.last_timestamp.to_string().into());
    patch.insert("message".into(), event.message.clone().into());
    Value::Object(patch)
}
