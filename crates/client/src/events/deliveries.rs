//! Writes events to the server: several at once, but one after the other what is about the same event. What has come
//! together for an event while it waits is one write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::PatchOptions;
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use base::Rng;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::queue::Room;
use crate::client::Client;
use crate::error::ClientError;
use crate::patch::Patch;

/// Requests under way at once: one answer after the other would hold a busy component's events up until there is no room
/// for more.
const MAX_DELIVERIES: usize = 32;
/// How often an event is sent when no answer comes. As upstream.
const TRIES: usize = 12;

/// An event of one of the two APIs.
pub(super) trait Recorded: Kind + Object + Sized + Send + Sync + 'static {
    /// What its texts take in memory.
    fn text_bytes(&self) -> usize;
    /// Its reason, for the log.
    fn reason(&self) -> &str;
    /// Says of this event, which was not sent yet, what a newer look at it says.
    fn renew(&mut self, newer: Self);
    /// What to write when the server has the event already.
    fn repetition(&self) -> Value;
    /// Whether an answer of the server's is worth another try.
    fn is_worth_retrying(&self, error: &ApiError) -> bool;
    /// How long to wait before the next try.
    fn delay(tries: usize, rng: &Rng) -> Duration;
}

/// An event that is to be written.
pub(super) struct Write<E> {
    /// The event, as it is now.
    pub(super) event: E,
    /// Whether the server should have it.
    pub(super) known: bool,
    /// What it takes of the room for events.
    room: Option<Room>,
}

impl<E> Write<E> {
    /// A new event.
    pub(super) fn new(event: E, room: Option<Room>) -> Self {
        Self { event, known: false, room }
    }

    /// One more of an event that was written before.
    pub(super) fn again(event: E, room: Option<Room>) -> Self {
        Self { event, known: true, room }
    }

    /// The event and its room.
    pub(super) fn into_parts(self) -> (E, Option<Room>) {
        (self.event, self.room)
    }
}

/// Namespace and name.
type Name = (String, String);

/// The writes of one recorder. Each holds room, so the queue's bound is theirs too.
pub(super) struct Deliveries<E> {
    client: Client,
    component: Arc<str>,
    under_way: FuturesUnordered<BoxFuture<'static, Name>>,
    busy: BTreeSet<Name>,
    waiting: BTreeMap<Name, Write<E>>,
    /// Those that wait and are not under way, in the order in which they came.
    ready: VecDeque<Name>,
}

impl<E: Recorded> Deliveries<E> {
    pub(super) fn new(client: &Client, component: &str) -> Self {
        Self {
            client: client.clone(),
            component: component.into(),
            under_way: FuturesUnordered::new(),
            busy: BTreeSet::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Writes an event soon.
    pub(super) fn add(&mut self, write: Write<E>) {
        let name = name_of(&write.event);
        if let Some(waiting) = self.waiting.get_mut(&name) {
            waiting.event.renew(write.event);
            return;
        }
        if !self.busy.contains(&name) {
            self.ready.push_back(name.clone());
        }
        self.waiting.insert(name, write);
        self.start();
    }

    /// Waits for the end of a write; for ever while there is none. Nothing is lost when this is dropped.
    pub(super) async fn progress(&mut self) {
        match self.under_way.next().await {
            Some(name) => self.finish(name),
            None => std::future::pending().await,
        }
    }

    /// Waits until everything is written.
    pub(super) async fn drain(&mut self) {
        while let Some(name) = self.under_way.next().await {
            self.finish(name);
        }
    }

    fn finish(&mut self, name: Name) {
        self.busy.remove(&name);
        if self.waiting.contains_key(&name) {
            self.ready.push_back(name);
        }
        self.start();
    }

    fn start(&mut self) {
        while self.under_way.len() < MAX_DELIVERIES
            && let Some(name) = self.ready.pop_front()
        {
            let Some(write) = self.waiting.remove(&name) else { continue };
            self.busy.insert(name.clone());
            let (client, component) = (self.client.clone(), Arc::clone(&self.component));
            self.under_way.push(Box::pin(async move {
                deliver(&client, &component, write).await;
                name
            }));
        }
    }
}

fn name_of<E: Recorded>(event: &E) -> Name {
    (event.meta().namespace.clone(), event.meta().name.clone())
}

/// Sends an event until the server has answered, whatever the answer, or the tries are used up.
async fn deliver<E: Recorded>(client: &Client, component: &str, write: Write<E>) {
    let event = &write.event;
    for tries in 0..TRIES {
        if tries > 0 {
            tokio::time::sleep(E::delay(tries - 1, client.rng())).await;
        }
        match send(client, &write).await {
            Ok(()) => return,
            Err(ClientError::Api(error)) if !event.is_worth_retrying(&error) => {
                let quiet = error.is_already_exists() || error.has_cause("NamespaceTerminating");
                if !quiet {
                    tracing::error!(%error, reason = event.reason(), "Server rejected event (will not retry!)");
                }
                return;
            }
            Err(error) => {
                tracing::debug!(%error, reason = event.reason(), "Unable to write event (may retry after sleeping)");
            }
        }
    }
    if let Some(metrics) = client.cx().metrics() {
        metrics.event_dropped(component, "no_answer");
    }
    tracing::error!(reason = event.reason(), "Unable to write event (retry limit exceeded!)");
}

async fn send<E: Recorded>(client: &Client, write: &Write<E>) -> Result<(), ClientError> {
    let event = &write.event;
    let events = client.namespaced::<E>(&event.meta().namespace);
    if write.known {
        let patch = Patch::Strategic(event.repetition());
        match events.patch_with(&event.meta().name, &patch, &PatchOptions::default()).await {
            Err(error) if error.is_not_found() => {}
            outcome => return outcome.map(drop),
        }
    }
    events.create(event).await.map(drop)
}
