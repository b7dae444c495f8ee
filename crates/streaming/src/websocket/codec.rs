//! One channel's data as a WebSocket message: a number byte and data, or a digit and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

/// How channel messages look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A binary message: one byte of channel number, then the data.
    Binary,
    /// A text message: one digit of channel number, then the data in standard base64.
    Base64,
}

impl Encoding {
    /// The message that carries `data` on `channel`.
    pub(super) fn encode(self, channel: u8, data: &[u8]) -> Message {
        match self {
            Self::Binary => {
                let mut message = BytesMut::with_capacity(1 + data.len());
                message.put_u8(channel);
                message.put_slice(data);
                Message::Binary(message.freeze())
            }
            Self::Base64 => {
                let mut message = String::with_capacity(1 + data.len() * 4 / 3 + 4);
                message.push(char::from(b'0'.wrapping_add(channel)));
                STANDARD.encode_string(data, &mut message);
                Message::Text(message.into())
            }
        }
    }

    /// The channel and data of a message, whether it calls itself text or binary, as upstream's library has it. `Ok(None)` is
    /// a message to drop: empty, or without a channel digit.
    pub(super) fn decode(self, message: &Message) -> Result<Option<(u8, Bytes)>, &'static str> {
        let bytes = match message {
            Message::Binary(bytes) => bytes.clone(),
            Message::Text(text) => Bytes::from(text.clone()),
            _ => return Err("unexpected message type"),
        };
        let Some((channel, rest)) = bytes.split_first() else { return Ok(None) };
        match self {
            Self::Binary => Ok(Some((*channel, bytes.slice(1..)))),
            Self::Base64 if !channel.is_ascii_digit() => Ok(None),
            Self::Base64 => {
                let data = STANDARD.decode(rest).map_err(|_| "invalid base64 in a channel message")?;
                Ok(Some((channel - b'0', data.into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        for encoding in [Encoding::Binary, Encoding::Base64] {
            for data in [&b""[..], b"x", b"\0\xff binary \n"] {
                let message = encoding.encode(3, data);
                let (channel, read) = encoding.decode(&message).unwrap().unwrap();
                assert_eq!((channel, read.as_ref()), (3, data));
            }
        }
        assert_eq!(Encoding::Base64.encode(1, b"hi"), Message::text("1aGk="));
    }

    #[test]
    fn odd_messages_are_dropped_or_refused() {
        assert_eq!(Encoding::Binary.decode(&Message::binary(Vec::new())), Ok(None));
        assert_eq!(Encoding::Base64.decode(&Message::text("")), Ok(None));
        assert_eq!(Encoding::Base64.decode(&Message::text("xaGk=")), Ok(None));
        assert!(Encoding::Base64.decode(&Message::text("0***")).is_err());
        assert!(Encoding::Binary.decode(&Message::Ping(Bytes::new())).is_err());
    }

    /// Python's client sends what it is given as text in text messages, whatever the subprotocol.
    #[test]
    fn text_and_binary_messages_say_the_same() {
        let data = |data: &'static str| Ok(Some((0, Bytes::from(data))));
        assert_eq!(Encoding::Binary.decode(&Message::text("\0hi")), data("hi"));
        assert_eq!(Encoding::Base64.decode(&Message::binary("0aGk=")), data("hi"));
    }
}
