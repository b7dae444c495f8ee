//! The recent past of a resource: one bounded log of changes, with side tables that list the changes of one scope.
//!
//! Watchers of everything read the log itself. A watcher of a namespace, an object or an index value reads a bucket:
//! the log's changes in that scope, shared by all watchers of the scope and kept only while there are any. So a
//! change wakes only those it concerns, and one who waits for rare changes is not overrun by the common ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use storage::Revision;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::change::Change;
use crate::snapshot::{Index, Scope, Snapshot, namespace_of};
use crate::{CacheError, Stored};

/// Changes younger than this are kept, so that a client can come back after a bookmark period and then some.
pub(crate) const WINDOW: Duration = Duration::from_secs(75);
/// This many changes are kept however old they are.
pub(crate) const MIN_CHANGES: usize = 100;
/// Never more changes than this, however young.
pub(crate) const MAX_CHANGES: usize = 102_400;
/// Never more bytes of changes than this, beyond [`MIN_CHANGES`]: a hundred thousand large objects would not fit.
const MAX_BYTES: usize = 256 << 20;
/// A snapshot is kept every so many changes; those between are reached from the next by undoing changes, which takes a
/// millisecond at most. Each keeps alive what was changed of the tables since: kilobytes a change, were they near.
pub(crate) const CHECKPOINT_EVERY: u64 = 512;
/// How many changes a watcher takes at a time.
pub(crate) const BATCH: usize = 64;

/// A reader's place has been dropped from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FellOut;

/// What one revision changed: each key with its new object, or none where it was deleted.
pub(crate) struct Batch {
    pub(crate) revision: Revision,
    pub(crate) changes: Vec<(Arc<str>, Option<Arc<Stored>>)>,
}

/// How many changes are looked at before others get at the log again.
const GATHERED_AT_ONCE: usize = 1_024;

/// A watcher's next change, and what wakes it.
pub(crate) type Cursor = (u64, Arc<Notify>);

/// The changes of a scope that nobody watches yet, as far as they were looked for.
pub(crate) struct Gathering {
    /// Earlier revisions are left out.
    seen: Revision,
    /// The first change that was looked at, and the next one to look at.
    from: u64,
    next: u64,
    changes: Vec<Arc<Change>>,
}

/// What is kept in another way from now on.
#[derive(Default)]
pub(crate) struct Settled {
    /// Objects of the newest state.
    pub(crate) objects: Vec<Arc<Stored>>,
    /// Changes, with what they led to wherever that is.
    pub(crate) changes: Vec<Arc<Change>>,
}

/// A state with objects kept in another way.
fn keeping<'a>(snapshot: &Snapshot, objects: impl Iterator<Item = &'a Arc<Stored>>) -> Arc<Snapshot> {
    let mut snapshot = Snapshot::clone(snapshot);
    objects.for_each(|stored| snapshot.keep_as(stored));
    Arc::new(snapshot)
}

struct Bucket {
    changes: VecDeque<Arc<Change>>,
    /// Changes with lower numbers may be missing.
    complete_from: u64,
    /// The newest revision that may be missing.
    dropped: Revision,
    watchers: usize,
    notify: Arc<Notify>,
}

impl Bucket {
    fn new(complete_from: u64, dropped: Revision) -> Self {
        let notify = Arc::new(Notify::new());
        Self { changes: VecDeque::new(), complete_from, dropped, watchers: 0, notify }
    }

    fn push(&mut self, change: &Arc<Change>) {
        self.changes.push_back(Arc::clone(change));
        self.notify.notify_waiters();
    }

    /// Where the change of this number is, or the first one after it.
    fn index_of(&self, sequence: u64) -> usize {
        self.changes.partition_point(|change| change.sequence < sequence)
    }

    /// Keeps a change in another way; gives it as it was, if it is here.
    fn keep_as(&mut self, change: &Arc<Change>) -> Option<Arc<Change>> {
        let at = self.index_of(change.sequence);
        let kept = self.changes.get_mut(at).filter(|kept| kept.sequence == change.sequence)?;
        Some(std::mem::replace(kept, Arc::clone(change)))
    }

    fn drop_oldest(&mut self, change: &Change) {
        if self.changes.front().is_some_and(|front| front.sequence == change.sequence) {
            self.changes.pop_front();
            self.complete_from = change.sequence + 1;
            self.dropped = change.revision;
        }
    }

    /// Where a watcher starts that has seen everything up to `seen`; `next` is the number of the next change.
    fn position_after(&self, seen: Revision, next: u64) -> u64 {
        let at = self.changes.partition_point(|change| change.revision <= seen);
        self.changes.get(at).map_or(next, |change| change.sequence)
    }

    fn read(&self, from: u64, out: &mut Vec<Arc<Change>>) -> Result<(), FellOut> {
        if from < self.complete_from {
            return Err(FellOut);
        }
        out.extend(self.changes.range(self.index_of(from)..).take(BATCH).cloned());
        Ok(())
    }
}

/// The log, and the state it leads to.
pub(crate) struct Log {
    snapshot: Arc<Snapshot>,
    indexes: Arc<[Index]>,
    main: Bucket,
    buckets: HashMap<Scope, Bucket>,
    checkpoints: VecDeque<Arc<Snapshot>>,
    next: u64,
    bytes: usize,
}

impl Log {
    /// A log that begins with the state of a list.
    pub(crate) fn new(snapshot: Arc<Snapshot>, indexes: Arc<[Index]>) -> Self {
        let main = Bucket::new(0, snapshot.revision());
        Self { snapshot, indexes, main, buckets: HashMap::new(), checkpoints: VecDeque::new(), next: 0, bytes: 0 }
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub(crate) fn revision(&self) -> Revision {
        self.snapshot.revision()
    }

    pub(crate) fn len(&self) -> usize {
        self.main.changes.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn watchers(&self) -> usize {
        self.main.watchers + self.buckets.values().map(|bucket| bucket.watchers).sum::<usize>()
    }

    /// Takes in what revisions changed, in their order, and shows all of it at once.
    pub(crate) fn apply(&mut self, batches: Vec<Batch>, now: Instant) {
        let mut snapshot = Snapshot::clone(&self.snapshot);
        let mut appended = Vec::with_capacity(batches.len());
        for Batch { revision, changes } in batches {
            snapshot.set_revision(revision);
            for (key, current) in changes {
                let previous = snapshot.replace(&key, current.clone());
                // The deletion of what was never seen is no change.
                if current.is_some() || previous.is_some() {
                    let change = Change::new((self.next, revision, now), key, current, previous);
                    self.next += 1;
                    self.bytes += change.size_bytes();
                    appended.push(Arc::new(change));
                }
            }
        }
        self.snapshot = Arc::new(snapshot);
        if let Some(last) = appended.last() {
            let first = last.sequence + 1 - appended.len() as u64;
            if first / CHECKPOINT_EVERY != (last.sequence + 1) / CHECKPOINT_EVERY {
                self.checkpoints.push_back(Arc::clone(&self.snapshot));
            }
        }
        for change in &appended {
            self.append(change);
        }
        self.trim(now);
    }

    /// Notes that nothing changed up to this revision.
    pub(crate) fn advance(&mut self, revision: Revision) {
        if revision > self.revision() {
            let mut snapshot = Snapshot::clone(&self.snapshot);
            snapshot.set_revision(revision);
            self.snapshot = Arc::new(snapshot);
        }
    }

    /// Keeps objects and changes in another way, and lets go of what is too old.
    pub(crate) fn settle(&mut self, settled: &Settled, now: Instant) {
        let led_to: Vec<_> = settled.changes.iter().filter_map(|change| change.current.clone()).collect();
        self.snapshot = keeping(&self.snapshot, settled.objects.iter().chain(&led_to));
        if !led_to.is_empty() {
            self.checkpoints.iter_mut().for_each(|checkpoint| *checkpoint = keeping(checkpoint, led_to.iter()));
        }
        for change in &settled.changes {
            // Its scopes are read from the former one, whose objects may be awake.
            let Some(former) = self.main.keep_as(change) else { continue };
            for scope in self.scopes_of(&former) {
                if let Some(bucket) = self.buckets.get_mut(&scope) {
                    bucket.keep_as(change);
                }
            }
        }
        self.trim(now);
    }

    /// The changes from this number on.
    pub(crate) fn changes_from(&self, sequence: u64) -> impl Iterator<Item = &Arc<Change>> {
        self.main.changes.range(self.main.index_of(sequence)..)
    }

    fn append(&mut self, change: &Arc<Change>) {
        self.main.push(change);
        for scope in self.scopes_of(change) {
            if let Some(bucket) = self.buckets.get_mut(&scope) {
                bucket.push(change);
            }
        }
    }

    /// The scopes that have watchers and may contain a change, each once.
    fn scopes_of(&self, change: &Change) -> Vec<Scope> {
        if self.buckets.is_empty() {
            return Vec::new();
        }
        let mut scopes = vec![Scope::Object(Arc::clone(&change.key))];
        scopes.extend(namespace_of(&change.key).map(|namespace| Scope::Namespace(namespace.into())));
        for (at, index) in self.indexes.iter().enumerate() {
            let value = |stored: &Option<Arc<Stored>>| stored.as_ref()?.look(index.value);
            let (before, after) = (value(&change.previous), value(&change.current));
            if before != after {
                scopes.extend(before.map(|value| Scope::Indexed(at, value.into())));
            }
            scopes.extend(after.map(|value| Scope::Indexed(at, value.into())));
        }
        scopes.retain(|scope| self.buckets.contains_key(scope));
        scopes
    }

    fn trim(&mut self, now: Instant) {
        while let Some(oldest) = self.main.changes.front() {
            let expired = now.saturating_duration_since(oldest.received) > WINDOW;
            let excess = self.len() > MAX_CHANGES || self.bytes > MAX_BYTES;
            if self.len() <= MIN_CHANGES || !(expired || excess) {
                break;
            }
            let oldest = Arc::clone(oldest);
            self.bytes = self.bytes.saturating_sub(oldest.size_bytes());
            self.main.drop_oldest(&oldest);
            for scope in self.scopes_of(&oldest) {
                if let Some(bucket) = self.buckets.get_mut(&scope) {
                    bucket.drop_oldest(&oldest);
                }
            }
        }
        while self.checkpoints.front().is_some_and(|checkpoint| checkpoint.revision() < self.main.dropped) {
            self.checkpoints.pop_front();
        }
        // All that is left is as near to the newest state as to any checkpoint, and each keeps all objects as they were kept.
        if self.len() as u64 <= CHECKPOINT_EVERY {
            self.checkpoints.clear();
        }
    }

    /// The oldest revision whose later changes are all here, as upstream counts it: for its error text.
    pub(crate) fn oldest(&self) -> Revision {
        let first = self.main.changes.front().filter(|_| self.main.complete_from > 0);
        first.map_or(self.main.dropped, |change| Revision(change.revision.0 - 1))
    }

    /// The state at a revision and the changes that lead back to it from a newer one, newest last; `None` where that
    /// revision is no longer, or not yet, known.
    pub(crate) fn undo_to(&self, revision: Revision) -> Option<(Arc<Snapshot>, Vec<Arc<Change>>)> {
        if revision < self.main.dropped || revision > self.revision() {
            return None;
        }
        let at = self.checkpoints.partition_point(|checkpoint| checkpoint.revision() < revision);
        let base = self.checkpoints.get(at).unwrap_or(&self.snapshot);
        let changes = &self.main.changes;
        let start = changes.partition_point(|change| change.revision <= revision);
        let end = changes.partition_point(|change| change.revision <= base.revision());
        Some((Arc::clone(base), changes.range(start..end).cloned().collect()))
    }

    /// Adds a watcher of a scope that has seen everything up to `seen`, and gives its place and its alarm; nothing where
    /// the changes of the scope have to be gathered first.
    pub(crate) fn join(&mut self, scope: &Scope, seen: Revision) -> Result<Option<Cursor>, CacheError> {
        self.check_known(seen)?;
        let (next, oldest) = (self.next, seen.min(self.revision()));
        let bucket = if *scope == Scope::All { Some(&mut self.main) } else { self.buckets.get_mut(scope) };
        let Some(bucket) = bucket.filter(|bucket| bucket.dropped <= oldest) else { return Ok(None) };
        bucket.watchers += 1;
        Ok(Some((bucket.position_after(seen, next), Arc::clone(&bucket.notify))))
    }

    /// Where the changes of a scope after `seen` have to be looked for.
    pub(crate) fn begin_gathering(&self, seen: Revision) -> Result<Gathering, CacheError> {
        self.check_known(seen)?;
        let from = self.main.position_after(seen, self.next);
        Ok(Gathering { seen: seen.min(self.revision()), from, next: from, changes: Vec::new() })
    }

    /// Looks for some more changes of a scope; says whether there may be others.
    pub(crate) fn gather(&self, scope: &Scope, gathering: &mut Gathering) -> bool {
        let inside =
            |stored: &Option<Arc<Stored>>| stored.as_ref().is_some_and(|stored| scope.contains(stored, &self.indexes));
        for change in self.changes_from(gathering.next).take(GATHERED_AT_ONCE) {
            gathering.next = change.sequence + 1;
            if inside(&change.current) || inside(&change.previous) {
                gathering.changes.push(Arc::clone(change));
            }
        }
        gathering.next < self.next
    }

    /// Adds a watcher as [`Self::join`] does, with the changes that were gathered for it and the few since.
    pub(crate) fn join_gathered(
        &mut self,
        scope: &Scope,
        seen: Revision,
        mut gathering: Gathering,
    ) -> Result<Cursor, CacheError> {
        // Somebody else may have joined the scope meanwhile: from an earlier place, or from a later one.
        if let Some(place) = self.join(scope, seen)? {
            return Ok(place);
        }
        while self.gather(scope, &mut gathering) {}
        let (watchers, notify) = match self.buckets.remove(scope) {
            Some(bucket) => (bucket.watchers, bucket.notify),
            None => (0, Arc::new(Notify::new())),
        };
        let complete_from = gathering.from.max(self.main.complete_from);
        let dropped = gathering.seen.max(self.main.dropped);
        let changes = gathering.changes.into_iter().filter(|change| change.sequence >= complete_from).collect();
        let bucket = Bucket { changes, complete_from, dropped, watchers: watchers + 1, notify };
        let place = (bucket.position_after(seen, self.next), Arc::clone(&bucket.notify));
        self.buckets.insert(scope.clone(), bucket);
        Ok(place)
    }

    fn check_known(&self, seen: Revision) -> Result<(), CacheError> {
        if seen < self.main.dropped {
            return Err(CacheError::TooOld { requested: seen, oldest: self.oldest() });
        }
        Ok(())
    }

    /// Takes a watcher of a scope away.
    pub(crate) fn leave(&mut self, scope: &Scope) {
        if *scope == Scope::All {
            self.main.watchers = self.main.watchers.saturating_sub(1);
        } else if let Some(bucket) = self.buckets.get_mut(scope) {
            bucket.watchers = bucket.watchers.saturating_sub(1);
            if bucket.watchers == 0 {
                self.buckets.remove(scope);
            }
        }
    }

    /// The next changes from a place in a scope, and the revision up to which there are no others when there are none.
    pub(crate) fn read(&self, scope: &Scope, from: u64, out: &mut Vec<Arc<Change>>) -> Result<Revision, FellOut> {
        let bucket = if *scope == Scope::All { Some(&self.main) } else { self.buckets.get(scope) };
        bucket.ok_or(FellOut)?.read(from, out)?;
        Ok(self.revision())
    }
}
