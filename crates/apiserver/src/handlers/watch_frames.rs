//! The frames of a watch. What nothing is projected of is encoded once for all watchers; the rest is made here.

use std::sync::Arc;

use api_machinery::cbor;
use api_machinery::json;
use api_machinery::meta::constants::INITIAL_EVENTS_ANNOTATION_KEY;
use api_machinery::object::{Object, Unstructured};
use api_machinery::protobuf::{self, Encoder};
use api_machinery::status::ApiError;
use bytes::Bytes;
use registry::{Event, Resource, watch_fault};
use tokio::time::Instant;

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{Choice, MediaType, Preferences, Target as Projection};
use crate::request::IncludeObject;
use crate::respond::{Rendering, cbor_of, metadata_json, metadata_protobuf, status_of, table};

/// Encodes the events of one watch.
pub(super) struct Frames {
    cx: Arc<ApiCx>,
    resource: Arc<Resource>,
    api_version: String,
    preferences: Arc<Preferences>,
    choice: Choice,
    include: IncludeObject,
    list_kind: String,
    is_first: bool,
    sent: prometheus::Counter,
    sizes: component_base::metrics::Histogram,
    /// When the watch began.
    begun: Instant,
    scope: &'static str,
}

impl Frames {
    pub(super) fn new(
        cx: &Arc<ApiCx>,
        request: &Request<Authorized>,
        target: &Target,
        choice: Choice,
    ) -> Result<Self, ApiError> {
        let info = target.info();
        Ok(Self {
            cx: Arc::clone(cx),
            resource: Arc::clone(&target.resource),
            api_version: target.api_version(),
            preferences: Arc::clone(request.preferences()),
            include: IncludeObject::read(request.query())?,
            choice,
            list_kind: target.list_kind(),
            is_first: true,
            sent: cx.metrics.watch_events.with(&[info.group, info.version, info.resource]),
            sizes: cx.metrics.watch_sizes.with(&[info.group, info.version, info.resource]),
            begun: cx.clock().monotonic(),
            scope: scope(target),
        })
    }

    /// The frame of an event, counted.
    pub(super) fn encode(&mut self, event: &Event) -> Bytes {
        let frame = self.frame_of(event);
        self.sent.inc();
        #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes")]
        self.sizes.observe(frame.len() as f64);
        if let Event::Bookmark { initial_events_end: true, .. } = event {
            let values =
                [self.resource.info().group, self.resource.info().version, self.resource.info().resource, self.scope];
            let took = self.cx.clock().monotonic() - self.begun;
            self.cx.metrics.watch_lists.with(&values).observe(took.as_secs_f64());
        }
        frame
    }

    fn frame_of(&mut self, event: &Event) -> Bytes {
        let is_protobuf = self.choice.media == MediaType::Protobuf;
        let is_cbor = self.choice.media == MediaType::Cbor;
        match event {
            Event::Change(change) if self.choice.target == Projection::Object && !is_cbor => {
                if is_protobuf {
                    change.protobuf_frame()
                } else {
                    change.json_frame()
                }
            }
            Event::Change(change) => self.frame(change.kind.as_str(), change.item.object()),
            Event::Bookmark { revision, initial_events_end } => {
                let mut object = self.resource.rules().new_object();
                if let Some(custom) = object.downcast_mut::<Unstructured>() {
                    custom.type_meta.api_version.clone_from(&self.api_version);
                    self.resource.info().kind.clone_into(&mut custom.type_meta.kind);
                }
                object.meta_mut().resource_version = revision.to_string();
                if *initial_events_end {
                    object.meta_mut().annotations.insert(INITIAL_EVENTS_ANNOTATION_KEY.to_owned(), "true".to_owned());
                }
                self.frame("BOOKMARK", &*object)
            }
            Event::Error(fault) => {
                let status = status_of(&watch_fault(fault, self.cx.lifecycle.gates()));
                if is_protobuf {
                    protobuf_frame("ERROR", &protobuf::seal("v1", "Status", |out| out.members(&status)))
                } else if is_cbor {
                    cbor_frame("ERROR", cbor::encode_typed("Status", "v1", &status))
                } else {
                    json_frame("ERROR", &json::encode_typed("Status", "v1", &status))
                }
            }
        }
    }

    fn frame(&mut self, kind: &str, object: &dyn Object) -> Bytes {
        match (&self.choice.target, self.choice.media) {
            (Projection::Object, MediaType::Protobuf) => protobuf_frame(kind, &object.to_protobuf()),
            (Projection::Object, MediaType::Cbor) => cbor_frame(kind, object.to_cbor()),
            (Projection::Object, _) => json_frame(kind, &object.to_json()),
            (Projection::Metadata(version) | Projection::MetadataList(version), media) => match media {
                MediaType::Protobuf => protobuf_frame(kind, &metadata_protobuf(object, version)),
                MediaType::Cbor => cbor_frame(kind, cbor_of(metadata_json(object, version).as_bytes()).to_vec()),
                MediaType::Json | MediaType::Yaml => json_frame(kind, &metadata_json(object, version)),
            },
            (Projection::Table(version), _) => {
                let is_first = std::mem::take(&mut self.is_first);
                // A bookmark's row must show its annotation, whatever rows carry.
                let include = if kind == "BOOKMARK" { IncludeObject::Metadata } else { self.include };
                let rendering = Rendering {
                    preferences: &self.preferences,
                    choice: self.choice.clone(),
                    rules: self.resource.rules(),
                    include,
                    now: self.cx.clock().wall().into(),
                    list_kind: self.list_kind.clone(),
                };
                json_frame(kind, &table::of_event(&rendering, object, version, is_first))
            }
        }
    }
}

/// How much is watched, as metrics have it.
fn scope(target: &Target) -> &'static str {
    match (&target.name, target.namespace.is_empty()) {
        (Some(_), _) => "resource",
        (None, false) => "namespace",
        (None, true) => "cluster",
    }
}

fn json_frame(kind: &str, object: &str) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}

/// A document whose object is a document, too; each begins by saying that it is CBOR.
fn cbor_frame(kind: &str, object: Vec<u8>) -> Bytes {
    let mut event = cbor::Members::default();
    event.put("type", cbor::text(kind));
    event.put("object", object);
    event.document().into()
}

/// Four bytes of length and a `WatchEvent` whose object is an enveloped message.
fn protobuf_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut event = Encoder::default();
    event.message(2, |out| out.bytes(1, object));
    event.bytes(1, kind.as_bytes());
    let event = event.into_vec();
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [length.to_be_bytes().as_slice(), &event].concat().into()
}
