//! A watch that is under way, whatever carries it to the client.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use registry::Watch;
use tokio::time::Instant;

use super::watch_frames::Frames;
use crate::limits::Watched;

/// Events that are there at once are sent together up to this size.
const FLUSH_BYTES: usize = 64 * 1024;

/// A watch that is under way.
pub(super) struct Streaming {
    pub(super) events: Watch,
    pub(super) frames: Frames,
    /// One of those that end with the server.
    pub(super) watched: Watched,
    pub(super) deadline: Instant,
    pub(super) ended: bool,
}

impl Streaming {
    /// Waits for an event; nothing at the end.
    pub(super) async fn next_frame(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let event = tokio::select! {
            biased;
            () = self.watched.over() => return None,
            event = self.events.next() => event?,
            // The watch ends by itself then; this is for one that would not.
            () = tokio::time::sleep_until(self.deadline + Duration::from_secs(1)) => return None,
        };
        Some(self.encode(&event))
    }

    /// Waits for an event, and takes what else is there.
    pub(super) async fn next_chunk(&mut self) -> Option<Bytes> {
        let first = self.next_frame().await?;
        let mut chunk: Option<BytesMut> = None;
        while !self.ended && chunk.as_ref().map_or(first.len(), BytesMut::len) < FLUSH_BYTES {
            let Some(event) = self.events.try_next() else { break };
            let frame = self.encode(&event);
            chunk.get_or_insert_with(|| BytesMut::from(first.as_ref())).extend_from_slice(&frame);
        }
        Some(chunk.map_or(first, BytesMut::freeze))
    }

    fn encode(&mut self, event: &registry::Event) -> Bytes {
        self.ended |= matches!(event, registry::Event::Error(_));
        self.frames.encode(event)
    }
}
