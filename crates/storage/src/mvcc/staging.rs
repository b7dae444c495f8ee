//! Works out what commands would change, one after another, without changing the state: the first half of a write.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{State, store::Limits};
use crate::{Event, EventBatch, Expect, Key, KeyValue, LeaseId, Revision, StorageError, Txn, Write};

/// A request that may change the store.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Txn { key: Key, expect: Expect, write: Write },
    Grant { ttl: Duration },
    Revoke { lease: LeaseId },
    Compact { at: Revision },
}

impl Command {
    /// How much the command carries.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Txn { key, write: Write::Put { value, .. }, .. } => key.as_bytes().len() + value.len(),
            Self::Txn { key, write: Write::Delete, .. } => key.as_bytes().len(),
            Self::Grant { .. } | Self::Revoke { .. } | Self::Compact { .. } => 0,
        }
    }
}

/// The answer to a command that was carried out.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Txn(Txn),
    Granted(LeaseId),
    Done,
}

impl Reply {
    pub(crate) fn into_txn(self) -> Result<Txn, StorageError> {
        match self {
            Self::Txn(txn) => Ok(txn),
            Self::Granted(_) | Self::Done => Err(StorageError::Failed("a transaction got another reply".to_owned())),
        }
    }

    pub(crate) fn into_lease(self) -> Result<LeaseId, StorageError> {
        match self {
            Self::Granted(lease) => Ok(lease),
            Self::Txn(_) | Self::Done => Err(StorageError::Failed("a lease grant got another reply".to_owned())),
        }
    }
}

/// One change of the state, in the order in which they must be applied.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    Changed(EventBatch),
    LeaseGranted { lease: LeaseId, ttl: Duration },
    LeaseEnded(LeaseId),
    Compacted(Revision),
}

/// The state plus what the commands so far would change.
pub(crate) struct Staging<'state> {
    state: &'state State,
    limits: Limits,
    revision: Revision,
    compacted: Revision,
    next_lease: i64,
    /// Newest values of the keys that changed; `None` is deleted.
    keys: HashMap<Key, Option<KeyValue>>,
    /// Leases that were granted (true) or ended (false).
    leases: HashMap<LeaseId, bool>,
    /// How many bytes of live data the changes add.
    growth_bytes: i64,
    pub(crate) effects: Vec<Effect>,
}

impl<'state> Staging<'state> {
    pub(crate) fn new(state: &'state State, limits: Limits) -> Self {
        Self {
            state,
            limits,
            revision: state.revision(),
            compacted: state.compacted(),
            next_lease: state.next_lease(),
            keys: HashMap::new(),
            leases: HashMap::new(),
            growth_bytes: 0,
            effects: Vec::new(),
        }
    }

    pub(crate) fn stage(&mut self, command: Command) -> Result<Reply, StorageError> {
        match command {
            Command::Txn { key, expect, write } => self.txn(key, expect, write).map(Reply::Txn),
            Command::Grant { ttl } => self.grant(ttl),
            Command::Revoke { lease } => self.revoke(lease),
            Command::Compact { at } => self.compact(at),
        }
    }

    fn txn(&mut self, key: Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        self.check(&key, &write)?;
        let current = self.current(&key);
        let holds = match expect {
            Expect::Absent => current.is_none(),
            Expect::At(revision) => current.as_ref().is_some_and(|kv| kv.mod_revision == revision),
            Expect::Any => true,
        };
        if !holds {
            return Ok(Txn::Conflict { current, revision: self.revision });
        }
        match write {
            Write::Put { value, lease } => {
                let kv = self.next_value(key, value, lease, current.as_ref());
                self.check_room(&kv, current.as_ref())?;
                self.push(Arc::new([Event::Put { kv, previous: current.clone() }]));
            }
            Write::Delete => {
                if current.is_some() {
                    let revision = self.next_revision();
                    self.push(Arc::new([Event::Delete { key, revision, previous: current.clone() }]));
                }
            }
        }
        Ok(Txn::Committed { revision: self.revision, previous: current })
    }

    fn check(&self, key: &Key, write: &Write) -> Result<(), StorageError> {
        if key.as_bytes().is_empty() {
            return Err(StorageError::Invalid("the key is empty"));
        }
        let Write::Put { value, lease } = write else { return Ok(()) };
        if key.as_bytes().len() + value.len() > self.limits.request_bytes {
            return Err(StorageError::RequestTooLarge);
        }
        match lease {
            Some(lease) if !self.has_lease(*lease) => Err(StorageError::LeaseNotFound(*lease)),
            _ => Ok(()),
        }
    }

    /// Refuses to grow past the quota; deletions and replacements by something smaller are always welcome.
    fn check_room(&mut self, kv: &KeyValue, current: Option<&KeyValue>) -> Result<(), StorageError> {
        let growth = weight(kv) - current.map_or(0, weight);
        let total = self.state.live_bytes().saturating_add_signed(self.growth_bytes + growth);
        if growth > 0 && total > self.limits.live_bytes {
            return Err(StorageError::NoSpace { detail: String::new() });
        }
        self.growth_bytes += growth;
        Ok(())
    }

    fn next_value(
        &self,
        key: Key,
        value: bytes::Bytes,
        lease: Option<LeaseId>,
        current: Option<&KeyValue>,
    ) -> KeyValue {
        let revision = self.next_revision();
        let (create_revision, version) = current.map_or((revision, 1), |kv| (kv.create_revision, kv.version + 1));
        KeyValue { key, value, create_revision, mod_revision: revision, version, lease, flaw: None }
    }

    fn grant(&mut self, ttl: Duration) -> Result<Reply, StorageError> {
        if ttl.is_zero() {
            return Err(StorageError::Invalid("the lifetime of a lease must be positive"));
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        self.leases.insert(lease, true);
        let ttl = Duration::from_secs(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0));
        self.effects.push(Effect::LeaseGranted { lease, ttl });
        Ok(Reply::Granted(lease))
    }

    fn revoke(&mut self, lease: LeaseId) -> Result<Reply, StorageError> {
        if !self.has_lease(lease) {
            return Err(StorageError::LeaseNotFound(lease));
        }
        let revision = self.next_revision();
        let events: Vec<Event> = self
            .attached(lease)
            .into_iter()
            .filter_map(|key| self.current(&key).map(|kv| (key, kv)))
            .map(|(key, kv)| Event::Delete { key, revision, previous: Some(kv) })
            .collect();
        if !events.is_empty() {
            self.push(events.into());
        }
        self.leases.insert(lease, false);
        self.effects.push(Effect::LeaseEnded(lease));
        Ok(Reply::Done)
    }

    fn compact(&mut self, at: Revision) -> Result<Reply, StorageError> {
        if at > self.revision {
            return Err(StorageError::FutureRevision { requested: at, current: Some(self.revision) });
        }
        if at <= self.compacted {
            return Err(StorageError::Compacted { requested: at, compacted: Some(self.compacted) });
        }
        self.compacted = at;
        self.effects.push(Effect::Compacted(at));
        Ok(Reply::Done)
    }

    fn next_revision(&self) -> Revision {
        Revision(self.revision.0 + 1)
    }

    fn push(&mut self, events: Arc<[Event]>) {
        self.revision = self.next_revision();
        for event in events.iter() {
            let (key, now) = match event {
                Event::Put { kv, .. } => (&kv.key, Some(kv.clone())),
                Event::Delete { key, .. } => (key, None),
            };
            self.keys.insert(key.clone(), now);
        }
        self.effects.push(Effect::Changed(EventBatch { revision: self.revision, events }));
    }

    fn current(&self, key: &Key) -> Option<KeyValue> {
        match self.keys.get(key) {
            Some(staged) => staged.clone(),
            None => self.state.current(key).cloned(),
        }
    }

    fn has_lease(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease).copied().unwrap_or_else(|| self.state.leases().contains(lease))
    }

    /// The keys that hang on a lease, counting what was staged.
    fn attached(&self, lease: LeaseId) -> BTreeSet<Key> {
        let untouched = self.state.leases().keys(lease).filter(|key| !self.keys.contains_key(*key)).cloned();
        let staged = self.keys.iter().filter(|(_, kv)| kv.as_ref().is_some_and(|kv| kv.lease == Some(lease)));
        untouched.chain(staged.map(|(key, _)| key.clone())).collect()
    }
}

fn weight(kv: &KeyValue) -> i64 {
    i64::try_from(kv.key.as_bytes().len() + kv.value.len()).unwrap_or(i64::MAX)
}
