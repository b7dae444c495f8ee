//! SPDY/3.1 as Kubernetes uses it: many streams over one upgraded connection, headers, half close, reset, PING, GOAWAY.
//!
//! Deliberately not here: flow control windows (no peer in this ecosystem keeps them; a full stream stops the reader
//! and TCP pushes back), priorities, settings, server push.

mod connection;
mod dictionary;
mod frame;
mod headers;
mod reader;
mod stream;
mod writer;

#[cfg(test)]
mod tests;

pub use connection::{Connection, Driver, Incoming, IncomingStream, Options, Role, start};
pub use headers::Headers;
pub use stream::{Stream, StreamWriter};

/// Why a SPDY connection or one of its operations failed.
#[derive(Debug, thiserror::Error)]
pub enum SpdyError {
    /// The transport failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The peer speaks another version.
    #[error("unsupported SPDY version {0}")]
    Version(u16),
    /// A frame is shorter than its kind needs.
    #[error("truncated SPDY frame")]
    Truncated,
    /// A frame, block or count is beyond its limit.
    #[error("the {0} is too large")]
    TooLarge(&'static str),
    /// A header block does not decompress.
    #[error("corrupt SPDY header compression")]
    Compression,
    /// The peer used a stream id it may not use.
    #[error("invalid SPDY stream id {0}")]
    StreamId(u32),
    /// The connection has ended.
    #[error("connection closed")]
    Closed,
    /// Too many streams are open.
    #[error("too many SPDY streams")]
    TooManyStreams,
    /// The peer refused or reset the stream before replying to it.
    #[error("stream reset")]
    Refused,
    /// The peer did not reply to a new stream in time.
    #[error("timed out waiting for a reply to the new stream")]
    ReplyTimeout,
    /// No data moved for the idle timeout.
    #[error("connection closed after it was idle")]
    Idle,
}
