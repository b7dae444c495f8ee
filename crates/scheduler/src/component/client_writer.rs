//! Bindings, statuses, evictions and events through the API.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, Status};
use api_machinery::value::{Value, ValueMap, struct_to_map};
use api_types::core_v1::{Binding, ObjectReference, Pod, PodStatus};
use async_trait::async_trait;
use base::Backoff;
use client::{Client, ClientError, EventType, Patch, SeriesEvent, SeriesRecorder, object_reference};
use tokio::sync::Semaphore;

use crate::writer::{ClusterWriter, EventSink, PodEvent, Severity, WriteError};

/// How often a status is written when the server cannot take it now. As upstream.
const TRIES: usize = 4;
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Bindings that the API server is asked for at once. It takes 200 writes at a time by default, of all its clients, and
/// sends what comes on top away for a second.
const MAX_BINDINGS: usize = 100;

/// Writes through a client.
pub struct ClientWriter {
    client: Client,
    bindings: Semaphore,
}

impl ClientWriter {
    /// A writer.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone(), bindings: Semaphore::new(MAX_BINDINGS) }
    }
}

fn failed(error: &ClientError) -> WriteError {
    if error.is_not_found() { WriteError::NotFound(error.to_string()) } else { WriteError::Failed(error.to_string()) }
}

/// Whether the same write may succeed in a moment.
fn is_passing(error: &ClientError) -> bool {
    let unwell = error.api().is_some_and(|error| matches!(&*error.reason, "InternalError" | "ServiceUnavailable"));
    unwell || error.is_conflict() || error.is_connection_refused()
}

/// The differences between two statuses; the uid makes sure that a pod of the same name is left alone.
fn status_patch(pod: &Pod, status: &PodStatus) -> Value {
    let mut fields = ValueMap::new();
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .filter(|condition| !pod.status.conditions.contains(condition))
        .map(|condition| Value::Object(struct_to_map(condition)))
        .collect();
    if !conditions.is_empty() {
        fields.insert("conditions".into(), Value::Array(conditions));
    }
    if status.nominated_node_name != pod.status.nominated_node_name {
        let name = &status.nominated_node_name;
        let value = if name.is_empty() { Value::Null } else { name.as_str().into() };
        fields.insert("nominatedNodeName".into(), value);
    }
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), pod.metadata.uid.as_str().into());
    let mut patch = ValueMap::new();
    patch.insert("metadata".into(), metadata.into());
    patch.insert("status".into(), fields.into());
    patch.into()
}

#[async_trait]
impl ClusterWriter for ClientWriter {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
        let mut binding = Binding::default();
        binding.metadata.namespace.clone_from(&pod.metadata.namespace);
        binding.metadata.name.clone_from(&pod.metadata.name);
        binding.metadata.uid.clone_from(&pod.metadata.uid);
        binding.target = ObjectReference { kind: "Node".into(), name: node.to_owned(), ..ObjectReference::default() };
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let _turn = self.bindings.acquire().await.map_err(|closed| WriteError::Failed(closed.to_string()))?;
        let answer = pods.create_subresource::<Binding, Status>(&pod.metadata.name, "binding", &binding).await;
        answer.map(drop).map_err(|error| failed(&error))
    }

    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        let patch = Patch::Strategic(status_patch(pod, status));
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let mut backoff = Backoff::new(FIRST_DELAY, 5.0, LONGEST_DELAY, 0.1);
        let mut tries = 1;
        loop {
            match pods.patch_status(&pod.metadata.name, &patch).await {
                Ok(_) => return Ok(()),
                Err(error) if tries < TRIES && is_passing(&error) => {
                    tokio::time::sleep(backoff.step(self.client.rng())).await;
                    tries += 1;
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    async fn delete(&self, pod: &Pod) -> Result<(), WriteError> {
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let deleted = pods.delete(&pod.metadata.name, &DeleteOptions::default()).await;
        deleted.map(drop).map_err(|error| failed(&error))
    }
}

/// Records events, each scheduler name with its own recorder.
pub(super) struct ClientEvents {
    recorders: BTreeMap<String, SeriesRecorder>,
}

impl ClientEvents {
    pub(super) fn new(client: &Client, schedulers: &[&str]) -> Self {
        const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";
        let hostname = std::fs::read_to_string(HOSTNAME_FILE).unwrap_or_default();
        // Events have a rate limit of their own, so that they never hold bindings up.
        let client = client.derive(|config| config).unwrap_or_else(|_| client.clone());
        let recorder = |name: &&str| ((*name).to_owned(), SeriesRecorder::new(&client, name, hostname.trim()));
        Self { recorders: schedulers.iter().map(recorder).collect() }
    }
}

impl EventSink for ClientEvents {
    fn event(&self, event: &PodEvent<'_>) {
        let Some(recorder) = self.recorders.get(event.scheduler) else { return };
        recorder.event(SeriesEvent {
            regarding: object_reference(event.about),
            related: event.related.map(|pod| object_reference(pod)),
            kind: match event.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: event.reason.to_owned(),
            action: event.action.to_owned(),
            note: event.note.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::{Rng, TaskGroup, TokioClock};
    use client::{ApiHandler, Body, ClientConfig, ClientCx, InProcess, Peer};
    use component_base::serving::full;
    use futures_util::future::join_all;
    use http::{Request, Response};

    use super::*;
    use crate::test_objects::pod;

    /// Takes a second for each request, and counts those under way.
    #[derive(Default)]
    struct Slow {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    #[async_trait]
    impl ApiHandler for Slow {
        async fn call(&self, _: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            let mut response = Response::new(full(r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#));
            response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
            response
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_bindings_does_not_overrun_the_server() {
        let server = Arc::new(Slow::default());
        let transport = Arc::new(InProcess::new(server.clone(), Peer::default()));
        let config = ClientConfig::for_server("https://slow").with_rate(-1.0, 1);
        let cx = ClientCx::new(TokioClock::shared(), Rng::seeded(1), TaskGroup::new("test"));
        let writer = ClientWriter::new(&Client::with_transport(transport, config, cx).unwrap());
        let pods: Vec<Pod> = (0..3 * MAX_BINDINGS).map(|number| pod(&number.to_string()).0).collect();
        let bound = join_all(pods.iter().map(|pod| writer.bind(pod, "a"))).await;
        assert!(bound.iter().all(Result::is_ok), "{bound:?}");
        assert_eq!(server.most.load(Ordering::SeqCst), MAX_BINDINGS);
    }
}
