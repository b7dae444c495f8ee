//! A watch: a body that is cut into events. JSON events end with a line feed; protobuf ones start with their length; CBOR ones
//! end where they end.

use std::marker::PhantomData;

use api_machinery::cbor;
use api_machinery::json;
use api_machinery::meta::WatchEvent as WireEvent;
use api_machinery::meta::constants::INITIAL_EVENTS_ANNOTATION_KEY;
use api_machinery::object::Object;
use api_machinery::protobuf::Decoder;
use api_machinery::status::ApiError;
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;

use crate::api::wrong_type;
use crate::cbor_sequence::ItemScan;
use crate::codec;
use crate::error::ClientError;
use crate::request::{CBOR_SEQUENCE, JSON, PROTOBUF, media_type};
use crate::resource::{ApiObject, Codec, downcast};
use crate::transport::Body;

/// The largest event that is read; the server stores no object anywhere near it.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// One change, typed.
#[derive(Debug, Clone)]
pub enum WatchEvent<T> {
    /// The object appeared.
    Added(T),
    /// The object changed.
    Modified(T),
    /// The object is gone; this is its last state.
    Deleted(T),
    /// Nothing changed up to this version.
    Bookmark {
        /// The version.
        resource_version: String,
        /// Whether all objects that were there at the start have been sent.
        initial_events_end: bool,
    },
    /// The server gave up; no event follows.
    Error(ApiError),
}

impl<T> WatchEvent<T> {
    fn try_map<R>(self, convert: impl Fn(T) -> Option<R>) -> Option<WatchEvent<R>> {
        Some(match self {
            Self::Added(object) => WatchEvent::Added(convert(object)?),
            Self::Modified(object) => WatchEvent::Modified(convert(object)?),
            Self::Deleted(object) => WatchEvent::Deleted(convert(object)?),
            Self::Bookmark { resource_version, initial_events_end } => {
                WatchEvent::Bookmark { resource_version, initial_events_end }
            }
            Self::Error(error) => WatchEvent::Error(error),
        })
    }
}

/// A running watch. Dropping it ends the request.
pub struct WatchStream<T> {
    raw: RawWatch,
    object: PhantomData<fn() -> T>,
}

impl<T: ApiObject> WatchStream<T> {
    pub(crate) fn new(raw: RawWatch) -> Self {
        Self { raw, object: PhantomData }
    }

    /// The next event; nothing when the server ended the watch. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<T>, ClientError>> {
        let event = self.raw.next().await?;
        Some(event.and_then(|event| event.try_map(downcast).ok_or_else(wrong_type)))
    }
}

/// An event before its type is known.
pub(crate) type RawEvent = WatchEvent<Box<dyn Object>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Lines,
    Lengths,
    Items,
}

/// A running watch without its type.
pub(crate) struct RawWatch {
    body: Body,
    buffer: BytesMut,
    framing: Framing,
    codec: Codec,
    /// Where the search for the end of a line goes on.
    scanned: usize,
    /// The same of a CBOR item.
    scan: ItemScan,
    ended: bool,
}

impl RawWatch {
    pub(crate) fn new(response: http::Response<Body>, codec: Codec) -> Result<Self, ClientError> {
        let framing = match media_type(response.headers()) {
            JSON => Framing::Lines,
            PROTOBUF => Framing::Lengths,
            CBOR_SEQUENCE => Framing::Items,
            other => {
                let reason = format!("unsupported media type {other:?}");
                return Err(ClientError::Decode { what: "watch".to_owned(), reason });
            }
        };
        let body = response.into_body();
        Ok(Self { body, buffer: BytesMut::new(), framing, codec, scanned: 0, scan: ItemScan::default(), ended: false })
    }

    /// The next event; nothing at the end. Safe to drop while waiting.
    pub(crate) async fn next(&mut self) -> Option<Result<RawEvent, ClientError>> {
        if self.ended {
            return None;
        }
        loop {
            match self.take_frame() {
                Ok(Some(frame)) => return Some(self.decode(&frame)),
                Ok(None) => {}
                Err(error) => return self.end(Some(error)),
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return self.end(Some(ClientError::Body(error.to_string()))),
                None if self.buffer.iter().all(u8::is_ascii_whitespace) => return self.end(None),
                None => return self.end(Some(ClientError::Body("unexpected EOF".to_owned()))),
            }
        }
    }

    fn end(&mut self, error: Option<ClientError>) -> Option<Result<RawEvent, ClientError>> {
        self.ended = true;
        error.map(Err)
    }

    /// Cuts a whole event off the front of the buffer, if there is one.
    fn take_frame(&mut self) -> Result<Option<Bytes>, ClientError> {
        let too_large = || ClientError::Body("watch event is too large".to_owned());
        match self.framing {
            Framing::Lengths => {
                let Some(header) = self.buffer.first_chunk::<4>() else { return Ok(None) };
                let length = usize::try_from(u32::from_be_bytes(*header)).unwrap_or(usize::MAX);
                if length > MAX_EVENT_BYTES {
                    return Err(too_large());
                }
                if self.buffer.len() < length + 4 {
                    return Ok(None);
                }
                self.buffer.advance(4);
                Ok(Some(self.buffer.split_to(length).freeze()))
            }
            Framing::Items => {
                let end = self.scan.end(&self.buffer).map_err(|error| ClientError::Body(error.to_string()))?;
                if end.unwrap_or(self.buffer.len()) > MAX_EVENT_BYTES {
                    return Err(too_large());
                }
                Ok(end.map(|end| self.buffer.split_to(end).freeze()))
            }
            Framing::Lines => {
                // Blank space between events is not an event.
                while self.scanned == 0 && self.buffer.first().is_some_and(u8::is_ascii_whitespace) {
                    self.buffer.advance(1);
                }
                let rest = self.buffer.get(self.scanned..).unwrap_or_default();
                let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
                    self.scanned = self.buffer.len();
                    return if self.scanned > MAX_EVENT_BYTES { Err(too_large()) } else { Ok(None) };
                };
                let line = self.buffer.split_to(self.scanned + at + 1).freeze();
                self.scanned = 0;
                Ok(Some(line))
            }
        }
    }

    fn decode(&self, frame: &Bytes) -> Result<RawEvent, ClientError> {
        let bad = |reason: String| ClientError::Decode { what: "watch event".to_owned(), reason };
        let (event, object) = match self.framing {
            Framing::Lengths => wire_event(frame).map_err(|error| bad(error.to_string()))?,
            Framing::Lines => json_event(frame).map_err(bad)?,
            Framing::Items => {
                let text = cbor::to_json(frame).map_err(|error| bad(error.to_string()))?;
                json_event(text.as_bytes()).map_err(bad)?
            }
        };
        match event.as_str() {
            "ADDED" => codec::decode_object(&self.codec, &object).map(WatchEvent::Added),
            "MODIFIED" => codec::decode_object(&self.codec, &object).map(WatchEvent::Modified),
            "DELETED" => codec::decode_object(&self.codec, &object).map(WatchEvent::Deleted),
            "BOOKMARK" => codec::decode_object(&self.codec, &object).map(|object| {
                let meta = object.meta();
                let mark = meta.annotations.get(INITIAL_EVENTS_ANNOTATION_KEY);
                WatchEvent::Bookmark {
                    resource_version: meta.resource_version.clone(),
                    initial_events_end: mark.is_some_and(|mark| mark == "true"),
                }
            }),
            "ERROR" => codec::decode_status(JSON, &object)
                .map(WatchEvent::Error)
                .ok_or_else(|| bad("the error is not a Status".to_owned())),
            other => Err(bad(format!("got invalid watch event type: {other}"))),
        }
    }
}

/// Reads a JSON event: its type and the object.
fn json_event(text: &[u8]) -> Result<(String, Bytes), String> {
    let mut event = WireEvent::default();
    json::decode(text, &mut event).map_err(|error| error.to_string())?;
    Ok((event.type_, Bytes::copy_from_slice(event.object.as_str().as_bytes())))
}

/// Reads a protobuf event: its type and the enveloped object. Only the object has an envelope here.
fn wire_event(frame: &Bytes) -> Result<(String, Bytes), api_machinery::protobuf::WireError> {
    let (mut kind, mut object) = (String::new(), Bytes::new());
    let mut decoder = Decoder::new(frame);
    while let Some((number, value)) = decoder.next()? {
        match number {
            1 => kind = value.text()?,
            2 => {
                let mut raw = Decoder::new(value.bytes()?);
                while let Some((number, value)) = raw.next()? {
                    if number == 1 {
                        object = frame.slice_ref(value.bytes()?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok((kind, object))
}
