//! A watch straight on the store, for resources that are not worth a cache: Events above all.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt as _;
use storage::{
    Backend, Event as StoreEvent, EventBatch, EventStream, Key, KeyRange, KeyValue, Revision, StorageError, WatchItem,
};
use tokio::time::Instant;

use crate::cache::Bookmarks;
use crate::change::Change;
use crate::snapshot::{Matcher, Scope};
use crate::{
    CacheError, ChangeEvent, ChangeKind, Codec, CorruptObject, Event, Pace, Since, Stored, WatchFault, WatchRequest,
};

/// How many keys are read from the store at a time.
pub const PAGE_KEYS: usize = 10_000;

/// The rest of the initial state.
struct Initial {
    rest: KeyRange,
    at: Revision,
}

/// A watch on the store.
pub struct DirectWatcher {
    backend: Arc<dyn Backend>,
    codec: Arc<dyn Codec>,
    prefix: String,
    matcher: Option<Matcher>,
    stream: EventStream,
    initial: Option<Initial>,
    initial_bookmark_owed: Option<Revision>,
    /// At most one page or one revision.
    pending: VecDeque<Event>,
    deadline: Option<Instant>,
    ended: bool,
}

impl DirectWatcher {
    /// Starts a watch of the keys under `prefix`. An index in the scope is not used; the filter decides.
    ///
    /// # Errors
    /// When the store fails, or has not come as far as the initial state must be.
    pub async fn start(
        backend: Arc<dyn Backend>,
        codec: Arc<dyn Codec>,
        prefix: &str,
        request: WatchRequest,
    ) -> Result<Self, CacheError> {
        let range = match &request.scope {
            Scope::All | Scope::Indexed(..) => KeyRange::prefix(Key::from(prefix)),
            Scope::Namespace(namespace) => KeyRange::prefix(Key::from(format!("{prefix}{namespace}/"))),
            Scope::Object(key) => KeyRange::single(&Key::from(format!("{prefix}{key}"))),
        };
        let (after, initial) = match request.since {
            Since::Revision(revision) => (revision, None),
            Since::Now(revision) => (reached(&*backend, revision).await?, None),
            Since::InitialEvents(revision) => {
                let at = reached(&*backend, revision).await?;
                (at, Some(Initial { rest: range.clone(), at }))
            }
        };
        Ok(Self {
            stream: backend.watch(range, after),
            backend,
            codec,
            prefix: prefix.to_owned(),
            matcher: request.matcher,
            initial_bookmark_owed: initial
                .as_ref()
                .filter(|_| request.bookmarks == Bookmarks::AndInitialEnd)
                .map(|initial| initial.at),
            initial,
            pending: VecDeque::new(),
            deadline: request.deadline,
            ended: false,
        })
    }

    /// The next event; `None` at the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let deadline = self.deadline;
            let timer = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = timer => self.ended = true,
                read = self.read() => if let Err(fault) = read {
                    self.pending.push_back(Event::Error(fault));
                },
            }
        }
    }

    /// An event that is there already; `None` says nothing about the end.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.pending.pop_front();
        self.ended |= matches!(event, Some(Event::Error(_)));
        event
    }

    async fn read(&mut self) -> Result<(), WatchFault> {
        if let Some(initial) = &self.initial {
            let page = self.backend.range(&initial.rest, PAGE_KEYS, Some(initial.at)).await.map_err(fault)?;
            let rest = page.kvs.last().filter(|_| page.more()).map(|last| initial.rest.after(&last.key));
            // Told at once, so that a reader that is dropped in between sees all of the page again or none of it.
            let (mut seen, mut pace) = (VecDeque::new(), Pace::default());
            for kv in &page.kvs {
                let stored = self.decode(kv).map_err(corrupt)?;
                if self.selects(&stored) {
                    seen.push_back(Event::Change(ChangeEvent::new(ChangeKind::Added, stored)));
                }
                pace.after(Pace::CODED).await;
            }
            self.pending.append(&mut seen);
            self.initial = rest.map(|rest| Initial { rest, at: initial.at });
            return Ok(());
        }
        if let Some(revision) = self.initial_bookmark_owed.take() {
            self.pending.push_back(Event::Bookmark { revision, initial_events_end: true });
            return Ok(());
        }
        match self.stream.next().await {
            Some(Ok(WatchItem::Events(batch))) => self.take(&batch),
            Some(Ok(WatchItem::Progress(_))) => Ok(()),
            Some(Err(error)) => Err(fault(error)),
            None => {
                self.ended = true;
                Ok(())
            }
        }
    }

    fn take(&mut self, batch: &EventBatch) -> Result<(), WatchFault> {
        for event in batch.events.iter() {
            let current = match event {
                StoreEvent::Put { kv, .. } => Some(self.decode(kv).map_err(corrupt)?),
                StoreEvent::Delete { .. } => None,
            };
            let previous = event.previous().map(|kv| self.previous(event, kv)).transpose()?;
            let at = (0, batch.revision, Instant::now());
            let change = Arc::new(Change::new(at, self.relative(event.key()), current, previous));
            if let Some((kind, item)) = change.seen_through(|stored| self.selects(stored)) {
                self.pending.push_back(Event::Change(ChangeEvent::of(&change, kind, item)));
            }
        }
        Ok(())
    }

    fn selects(&self, stored: &Stored) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher(stored.object()))
    }

    /// What was there before an event.
    fn previous(&self, event: &StoreEvent, kv: &KeyValue) -> Result<Arc<Stored>, WatchFault> {
        self.decode(kv).map_err(|error| match event {
            StoreEvent::Delete { .. } => WatchFault::CorruptDeletion { error, written: kv.mod_revision },
            StoreEvent::Put { .. } => corrupt(error),
        })
    }

    fn decode(&self, kv: &KeyValue) -> Result<Arc<Stored>, CorruptObject> {
        Stored::read(&*self.codec, self.relative(&kv.key), kv)
    }

    fn relative(&self, key: &Key) -> Arc<str> {
        let text = key.to_string();
        text.strip_prefix(&self.prefix).unwrap_or(&text).into()
    }
}

/// The store's revision, which must not be less than the one asked for.
async fn reached(backend: &dyn Backend, wanted: Option<Revision>) -> Result<Revision, CacheError> {
    let current = backend.current_revision().await?;
    match wanted {
        Some(requested) if requested > current => Err(CacheError::TooLarge { requested, current }),
        _ => Ok(current),
    }
}

fn fault(error: StorageError) -> WatchFault {
    match error {
        StorageError::Compacted { .. } => WatchFault::Compacted,
        other => WatchFault::Internal(other.to_string()),
    }
}

fn corrupt(error: CorruptObject) -> WatchFault {
    WatchFault::Internal(format!("unable to transform key \"{}\": {error}", error.key))
}

impl std::fmt::Debug for DirectWatcher {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "DirectWatcher({})", self.prefix)
    }
}
