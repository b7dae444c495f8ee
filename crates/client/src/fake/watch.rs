//! The watches of the fake server: a cursor into the log.

use api_machinery::json::encode_value;
use api_machinery::value::Value;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::FakeServer;
use super::serve::{Selection, metadata_only};
use crate::transport::{Body, BoxError};

struct Cursor {
    server: FakeServer,
    select: Selection,
    version: u64,
    generation: u64,
    partial: bool,
    /// Events to send before the log.
    first: std::collections::VecDeque<Value>,
}

fn event(kind: &str, object: Value) -> Value {
    let mut event = Value::Object(Default::default());
    event["type"] = kind.into();
    event["object"] = object;
    event
}

fn bookmark(version: u64, initial_end: bool) -> Value {
    let mut object = Value::Object(Default::default());
    object["metadata"] = Value::Object(Default::default());
    object["metadata"]["resourceVersion"] = version.to_string().into();
    if initial_end {
        object["metadata"]["annotations"] = Value::Object(Default::default());
        object["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true".into();
    }
    event("BOOKMARK", object)
}

/// The end of a watch that is behind what the server remembers.
fn expired() -> Value {
    let mut status = Value::Object(Default::default());
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    status["status"] = "Failure".into();
    status["reason"] = "Expired".into();
    status["code"] = 410.into();
    status["message"] = "too old resource version".into();
    event("ERROR", status)
}

/// The body of a watch from a version on.
pub(super) fn body(server: &FakeServer, select: Selection, version: u64, initial: bool, partial: bool) -> Body {
    let store = server.store.lock();
    let mut cursor = Cursor {
        server: server.clone(),
        version,
        generation: store.generation,
        partial,
        first: Default::default(),
        select,
    };
    if initial {
        let objects = store.objects(&cursor.select.resource).into_iter().filter(|object| cursor.select.matches(object));
        cursor.first = objects.map(|object| event("ADDED", object)).collect();
        cursor.first.push_back(bookmark(store.version(), true));
        cursor.version = store.version();
    } else if version < store.oldest {
        cursor.first.push_back(expired());
    }
    drop(store);
    let stream = futures_util::stream::unfold(cursor, |mut cursor| async move {
        let event = cursor.next().await?;
        let mut line = encode_value(&event);
        line.push('\n');
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from(line))), cursor))
    });
    StreamBody::new(stream).boxed_unsync()
}

impl Cursor {
    async fn next(&mut self) -> Option<Value> {
        let event = self.find().await?;
        if !self.partial || text_kind(&event) == "ERROR" {
            return Some(event);
        }
        let mut event = event;
        let object = event["object"].take();
        event["object"] = metadata_only(object);
        Some(event)
    }

    async fn find(&mut self) -> Option<Value> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        loop {
            let server = self.server.clone();
            let changed = server.changed.notified();
            {
                let store = server.store.lock();
                if store.generation != self.generation {
                    return None;
                }
                if self.version + 1 < store.oldest {
                    self.version = u64::MAX;
                    return Some(expired());
                }
                let new = store.log.iter().find(|change| {
                    let concerns = change.kind == "BOOKMARK"
                        || (change.resource == self.select.resource && self.select.matches(&change.object));
                    change.version > self.version && concerns
                });
                if let Some(change) = new {
                    self.version = change.version;
                    return Some(match change.kind {
                        "BOOKMARK" => bookmark(change.version, false),
                        kind => event(kind, change.object.clone()),
                    });
                }
                self.version = self.version.max(store.version());
            }
            changed.await;
        }
    }
}

fn text_kind(event: &Value) -> &str {
    super::store::text(event, &["type"])
}
