//! A watch on a cache: a cursor into the log, a filter, and a clock for bookmarks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use storage::Revision;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cache::{Bookmarks, Epoch};
use crate::log::{BATCH, Cursor, FellOut};
use crate::snapshot::{Matcher, Scope, Snapshot};
use crate::{CacheError, ChangeEvent, ChangeKind, Event, Since, Stored, WatchFault, WatchRequest};

/// How often a bookmark is sent.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// A last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How many initial objects are looked at in one go, so that a selective watch on a large resource yields at times.
const INITIAL_SCAN: usize = 1_024;

/// The objects that are yet to be sent as the initial state.
struct Initial {
    snapshot: Arc<Snapshot>,
    /// The first key not yet looked at.
    from: String,
}

/// A watch. Dropping it ends it.
pub struct Watcher {
    epoch: Arc<Epoch>,
    scope: Scope,
    matcher: Option<Matcher>,
    clock: SharedClock,
    notify: Arc<Notify>,
    /// The number of the next change to read.
    position: u64,
    /// Everything up to here has been delivered or is pending.
    seen: Revision,
    /// The changes of revisions up to here were left out by a start in the future.
    quiet_until: Revision,
    initial: Option<Initial>,
    initial_bookmark_owed: bool,
    /// The last look at the log found changes, so there may be more.
    behind: bool,
    /// At most one batch.
    pending: VecDeque<Event>,
    next_bookmark: Option<Instant>,
    deadline: Option<Instant>,
    ended: bool,
}

impl Watcher {
    pub(crate) async fn start(
        epoch: Arc<Epoch>,
        request: WatchRequest,
        clock: SharedClock,
    ) -> Result<Self, CacheError> {
        let snapshot = epoch.snapshot();
        let initial_wanted = matches!(request.since, Since::InitialEvents(_));
        let seen = match request.since {
            // A revision from the future is waited for in silence.
            Since::Revision(revision) => revision,
            Since::InitialEvents(_) | Since::Now(_) => snapshot.revision(),
        };
        let (position, notify) = join(&epoch, &request.scope, seen).await?;
        let now = clock.monotonic();
        Ok(Self {
            initial: initial_wanted.then(|| Initial { snapshot, from: String::new() }),
            initial_bookmark_owed: initial_wanted && request.bookmarks == Bookmarks::AndInitialEnd,
            next_bookmark: (request.bookmarks != Bookmarks::None).then(|| first_bookmark(now, request.deadline)),
            epoch,
            scope: request.scope,
            matcher: request.matcher,
            clock,
            notify,
            position,
            seen,
            quiet_until: seen,
            behind: false,
            pending: VecDeque::new(),
            deadline: request.deadline,
            ended: false,
        })
    }

    /// The next event; `None` at the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let notify = Arc::clone(&self.notify);
            // Made before the look at the log, so that a change in between is not missed.
            let changed = notify.notified();
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            if self.initial.is_some() || self.behind {
                tokio::task::yield_now().await;
                continue;
            }
            let wake = [self.next_bookmark, self.deadline].into_iter().flatten().min();
            let timer = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.epoch.token.cancelled() => self.ended = true,
                () = changed => {}
                () = timer => {}
            }
        }
    }

    /// An event that is there already; `None` says nothing about the end.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.ended || self.epoch.token.is_cancelled() {
            self.ended = true;
            return None;
        }
        if let Some(event) = self.pending.pop_front() {
            return Some(event);
        }
        let now = self.clock.monotonic();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.ended = true;
            return None;
        }
        if self.initial.is_some() {
            self.read_initial();
        } else if self.initial_bookmark_owed {
            self.initial_bookmark_owed = false;
            return Some(Event::Bookmark { revision: self.seen, initial_events_end: true });
        } else {
            self.read_log();
        }
        match self.pending.pop_front() {
            Some(Event::Error(fault)) => {
                self.ended = true;
                Some(Event::Error(fault))
            }
            Some(event) => Some(event),
            None if self.initial.is_none() && !self.behind => self.due_bookmark(now),
            None => None,
        }
    }

    /// Looks at the next initial objects. The cursor has been in the log since before, so nothing is missed; a client
    /// too slow for the log's window falls out of it like any other.
    fn read_initial(&mut self) {
        let Some(mut initial) = self.initial.take() else { return };
        // The log has to be looked at before waiting: nobody rings for what it already has.
        self.behind = true;
        let (mut looked_at, pending_before) = (0, self.pending.len());
        let mut last = None;
        for stored in initial.snapshot.scoped(&self.scope, &initial.from).take(INITIAL_SCAN) {
            looked_at += 1;
            last = Some(Arc::clone(stored.key()));
            if matches(self.matcher.as_ref(), stored) {
                self.pending.push_back(Event::Change(ChangeEvent::new(ChangeKind::Added, Arc::clone(stored))));
            }
            if self.pending.len() >= BATCH {
                break;
            }
        }
        self.epoch.counts.initial_events.add(self.pending.len() - pending_before);
        // Short of both bounds means that there are no more.
        if let Some(last) = last.filter(|_| looked_at == INITIAL_SCAN || self.pending.len() >= BATCH) {
            initial.from = format!("{last}\0");
            self.initial = Some(initial);
        }
    }

    fn read_log(&mut self) {
        self.behind = false;
        let mut changes = Vec::new();
        let read = self.epoch.log.read().read(&self.scope, self.position, &mut changes);
        let Ok(revision) = read else {
            let FellOut = FellOut;
            self.epoch.counts.terminated_watchers.add(1);
            let oldest = self.epoch.log.read().oldest();
            self.pending.push_back(Event::Error(WatchFault::TooOld { requested: self.seen, oldest }));
            return;
        };
        let Some(last) = changes.last() else {
            self.seen = self.seen.max(revision);
            return;
        };
        self.position = last.sequence + 1;
        self.seen = self.seen.max(last.revision);
        let (scope, indexes) = (&self.scope, Arc::clone(&self.epoch.indexes));
        for change in changes.iter().filter(|change| change.revision > self.quiet_until) {
            let selects = |stored: &Stored| scope.contains(stored, &indexes) && matches(self.matcher.as_ref(), stored);
            if let Some((kind, item)) = change.seen_through(selects) {
                self.pending.push_back(Event::Change(ChangeEvent::of(change, kind, item)));
            }
        }
        // A batch in which nothing concerned us must not look like the end of the log.
        self.behind = self.pending.is_empty();
    }

    fn due_bookmark(&mut self, now: Instant) -> Option<Event> {
        if self.next_bookmark.is_none_or(|due| now < due) {
            return None;
        }
        self.next_bookmark = Some(following_bookmark(now, self.deadline));
        // A start in the future has seen nothing yet that it could promise.
        let revision = self.epoch.log.read().revision();
        (revision >= self.quiet_until).then_some(Event::Bookmark { revision: self.seen, initial_events_end: false })
    }
}

/// Joins the log. Where nobody watches the scope yet, its changes are looked for a few at a time: those who write the log
/// and those who read it wait for none of it.
async fn join(epoch: &Epoch, scope: &Scope, seen: Revision) -> Result<Cursor, CacheError> {
    if let Some(place) = epoch.log.write().join(scope, seen)? {
        return Ok(place);
    }
    let mut gathering = epoch.log.read().begin_gathering(seen)?;
    loop {
        let more = epoch.log.read().gather(scope, &mut gathering);
        if !more {
            return epoch.log.write().join_gathered(scope, seen, gathering);
        }
        tokio::task::yield_now().await;
    }
}

fn matches(matcher: Option<&Matcher>, stored: &Stored) -> bool {
    matcher.is_none_or(|matcher| matcher(stored.object()))
}

fn first_bookmark(now: Instant, deadline: Option<Instant>) -> Instant {
    let periodic = now + BOOKMARK_INTERVAL;
    deadline.map_or(periodic, |deadline| periodic.min((deadline - BOOKMARK_BEFORE_END).max(now)))
}

fn following_bookmark(now: Instant, deadline: Option<Instant>) -> Instant {
    let periodic = now + BOOKMARK_INTERVAL;
    let last = deadline.map(|deadline| deadline - BOOKMARK_BEFORE_END).filter(|last| *last > now);
    last.map_or(periodic, |last| periodic.min(last))
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.epoch.log.write().leave(&self.scope);
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Watcher({:?}@{})", self.scope, self.seen)
    }
}
