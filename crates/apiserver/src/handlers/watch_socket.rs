//! Watches over a WebSocket, for clients in browsers.

use std::sync::Arc;

use bytes::Bytes;
use component_base::serving::{Response, empty, full};
use futures_util::stream;
use streaming::{Accepted, EventForm, accept_event_stream, send_events};

use super::watch_stream::Streaming;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::MediaType;

/// The length that stands before each event of a protobuf stream; messages have ends of their own.
const LENGTH_BYTES: usize = 4;

/// Accepts the connection and sends the events, each as a message.
pub(super) fn answer(cx: &Arc<ApiCx>, request: Request<Authorized>, watching: Streaming, media: MediaType) -> Response {
    let (form, skipped) = match media {
        MediaType::Protobuf => (EventForm::Binary, LENGTH_BYTES),
        MediaType::Cbor => (EventForm::Binary, 0),
        MediaType::Json | MediaType::Yaml => (EventForm::Text, 0),
    };
    let audited = request.audited().clone();
    let (parts, body) = request.into_parts();
    let accepted = accept_event_stream(&mut http::Request::from_parts(parts, body), form);
    let Accepted { response, dialect, upgrade } = match accepted {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(full),
    };
    let events = stream::unfold(watching, move |mut watching| async move {
        let frame = watching.next_frame().await?;
        Some((frame.get(skipped..).map_or_else(Bytes::new, |event| frame.slice_ref(event)), watching))
    });
    cx.tasks().spawn_cancellable("watch-socket", async move {
        let sent = match upgrade.io().await {
            Ok(io) => send_events(io, dialect, events).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::debug!(error, "A watch over a WebSocket ended");
        }
        drop(audited);
    });
    response.map(|()| empty())
}
