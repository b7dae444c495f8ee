//! The WebSocket forms of streaming: numbered channels in messages, and a byte stream for tunnelled SPDY.

mod channels;
mod codec;
mod tunnel;

pub use channels::WebSocketError;
pub(crate) use channels::{ChannelWriter, Channels, Config, start};
pub use codec::Encoding;
pub use tunnel::WebSocketIo;

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// The largest message that is accepted. Upstream sets none; clients send a few dozen KiB at a time.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 32 * 1024;

/// Limits of every WebSocket connection here.
pub(crate) fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES))
}
