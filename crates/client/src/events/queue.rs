//! Where events wait until their recorder's task looks at them: bounded by the memory that they take, so that a burst of
//! work is told of in full and a server that is away costs no more than that.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::deliveries::{Recorded, Write};
use crate::client::Client;

/// What the events of one recorder may take in memory until they are written: some twenty thousand. Upstream drops what
/// comes while a thousand wait, but writes each event in a task of its own where there is much to tell.
const ROOM_BYTES: u32 = 32 << 20;
/// A queue that is full says so no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The side that recorders hold.
pub(super) struct Queue<E> {
    client: Client,
    component: Arc<str>,
    room: Arc<Semaphore>,
    sender: mpsc::Sender<Write<E>>,
    told: Mutex<Option<Instant>>,
}

/// The room that an event takes, until it is dropped.
pub(super) type Room = OwnedSemaphorePermit;

impl<E: Recorded> Queue<E> {
    /// A queue of a component's events, and its other end.
    pub(super) fn new(client: &Client, component: &str) -> (Self, mpsc::Receiver<Write<E>>) {
        // More than these have no room, however short their texts are.
        let (sender, receiver) = mpsc::channel(ROOM_BYTES as usize / size_of::<E>());
        let room = Arc::new(Semaphore::new(ROOM_BYTES as usize));
        (Self { client: client.clone(), component: component.into(), room, sender, told: Mutex::new(None) }, receiver)
    }

    /// Puts an event in; drops it if there is no room.
    pub(super) fn put(&self, event: E) {
        let bytes = u32::try_from(size_of::<E>().saturating_add(event.text_bytes())).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).ok();
        let sent = room.is_some_and(|room| self.sender.try_send(Write::new(event, Some(room))).is_ok());
        if !sent {
            self.note_dropped();
        }
    }

    fn note_dropped(&self) {
        if let Some(metrics) = self.client.cx().metrics() {
            metrics.event_dropped(&self.component, "queue_full");
        }
        let now = self.client.clock().monotonic();
        let mut told = self.told.lock();
        if told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_EVERY) {
            *told = Some(now);
            tracing::warn!(component = &*self.component, "Event queue is full, dropping events");
        }
    }
}
