//! Watch events over a WebSocket: each event is one message, of text where its form is text.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::header::ORIGIN;
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::handshake::{Accepted, PendingUpgrade, Refusal, subprotocols, websocket_response};
use crate::one_way::send_all;
use crate::websocket::WebSocketError;

/// Whether events travel as text or as binary messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventForm {
    /// Text: JSON.
    Text,
    /// Binary: protobuf.
    Binary,
}

/// Accepts a WebSocket client of a watch. It must name its origin, as browsers do, which is what watches over WebSocket
/// are for. There are no subprotocols to choose from: one that the client names is taken for granted, several cannot be.
///
/// # Errors
/// The answer to send when the request cannot be upgraded.
pub fn accept_event_stream<B>(request: &mut Request<B>, form: EventForm) -> Result<Accepted<EventForm>, Refusal> {
    let wanted = subprotocols(request.headers());
    let chosen = match wanted.as_slice() {
        [] => "",
        [only] => only,
        _ => return Err(Refusal::new(StatusCode::BAD_REQUEST, "")),
    };
    let response = websocket_response(request, chosen)?;
    if !names_origin(request.headers()) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, ""));
    }
    Ok(Accepted { response, dialect: form, upgrade: PendingUpgrade::of(request) })
}

/// Whether there is an origin that is a URI; upstream asks for no more.
fn names_origin(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = origin.split_once(':').map_or("", |(scheme, _)| scheme);
    let has_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|part| part.is_ascii_alphanumeric() || "+-.".contains(part));
    origin.starts_with('/') || has_scheme
}

/// Sends events to their end, or until the client goes away.
///
/// # Errors
/// When the connection fails.
pub async fn send_events<Io, S>(io: Io, form: EventForm, events: S) -> Result<(), WebSocketError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    S: Stream<Item = Bytes>,
{
    let message = |event: Bytes| match form {
        // JSON is UTF-8; anything else would be a bug, which must not cost the other events.
        EventForm::Text => Message::Text(Utf8Bytes::try_from(event).unwrap_or_default()),
        EventForm::Binary => Message::Binary(event),
    };
    send_all(io, events.map(|event| Ok(message(event)))).await
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, stream};
    use http::header::SEC_WEBSOCKET_PROTOCOL;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[tokio::test]
    async fn every_event_is_a_message() {
        let cases = [
            (EventForm::Text, [Message::text("{}\n"), Message::text("ä\n")]),
            (EventForm::Binary, [Message::binary("{}\n".as_bytes()), Message::binary("ä\n".as_bytes())]),
        ];
        for (form, expected) in cases {
            let (near, far) = tokio::io::duplex(1024);
            let events = stream::iter(["{}\n", "ä\n"].map(|text| Bytes::from_static(text.as_bytes())));
            let client = async {
                let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
                let mut messages = Vec::new();
                while let Some(Ok(message)) = socket.next().await {
                    messages.push(message);
                }
                messages
            };
            let (messages, sent) = tokio::join!(client, send_events(far, form, events));
            sent.unwrap();
            assert_eq!(messages[..2], expected);
            assert!(messages[2].is_close(), "{messages:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_it() {
        let (near, far) = tokio::io::duplex(1024);
        let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let (left, sent) =
            tokio::join!(socket.send(Message::Close(None)), send_events(far, EventForm::Text, stream::pending()));
        left.unwrap();
        sent.unwrap();
    }

    fn asking(origin: &str) -> Request<()> {
        let mut request = crate::websocket_request("/", "hub", &[], &base::Rng::seeded(1)).unwrap();
        if !origin.is_empty() {
            request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
        }
        request
    }

    #[test]
    fn clients_name_their_origin() {
        for (origin, accepted) in [("", false), ("null", false), ("http://localhost", true), ("/here", true)] {
            let answer = accept_event_stream(&mut asking(origin), EventForm::Text);
            let expected = if accepted { Ok(()) } else { Err((StatusCode::FORBIDDEN, String::new())) };
            assert_eq!(answer.map(drop).map_err(|refusal| (refusal.status, refusal.body)), expected, "{origin}");
        }
    }

    #[test]
    fn one_subprotocol_is_echoed_and_several_are_refused() {
        for (wanted, expected) in [("", Ok("")), ("x.example.com", Ok("x.example.com")), ("a, b", Err(400))] {
            let mut request = asking("https://here");
            if !wanted.is_empty() {
                request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, wanted.parse().unwrap());
            }
            let answer = accept_event_stream(&mut request, EventForm::Text);
            let chosen = answer.map(|accepted| {
                let chosen = accepted.response.headers().get(SEC_WEBSOCKET_PROTOCOL);
                chosen.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
            });
            assert_eq!(chosen.map_err(|refusal| refusal.status.as_u16()), expected.map(str::to_owned), "{wanted}");
        }
    }
}
