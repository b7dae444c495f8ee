//! Where batches of events go: a trait, so that this crate needs to know no transport.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;

use crate::finished::Finished;

/// Why events did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// They could not be written.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// They could not be sent.
    #[error("{0}")]
    Remote(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A place that takes events.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// The backend's name in metrics and in the log.
    fn name(&self) -> &'static str;

    /// How many batches may be on the way at a time; with one, the next begins where the last ended.
    fn concurrency(&self) -> u32;

    /// Whether a batch ends where its size says, or may take along what else waits.
    fn keeps_batches(&self) -> bool;

    /// Takes events; all of them, or none as far as anybody knows.
    async fn send(&self, events: &[Arc<Finished>]) -> Result<(), SinkError>;
}

/// The events as an `EventList` of audit.k8s.io/v1.
#[must_use]
pub fn event_list(events: &[Arc<Finished>]) -> String {
    let items: Vec<&str> = events.iter().map(|event| event.json()).collect();
    let mut out = String::with_capacity(items.iter().map(|item| item.len() + 1).sum::<usize>() + 100);
    out.push_str("{\"kind\":\"EventList\",\"apiVersion\":\"audit.k8s.io/v1\",\"metadata\":{},\"items\":[");
    out.push_str(&items.join(","));
    out.push_str("]}\n");
    out
}

/// What the log says of events that did not arrive, which is all that is left of them.
pub(crate) fn report(plugin: &str, events: &[Arc<Finished>], why: &dyn std::fmt::Display) {
    let mut impacted = String::new();
    for event in events {
        // Writing to a text cannot fail.
        let _ = writeln!(impacted, "{}", event.legacy());
    }
    let count = events.len();
    tracing::error!(
        "Error in audit plugin '{plugin}' affecting {count} audit events: {why}\nImpacted events:\n{impacted}"
    );
}
