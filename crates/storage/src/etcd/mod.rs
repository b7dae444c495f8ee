//! The store of real clusters: etcd 3.4 and later, over gRPC.
//!
//! Requests go to one member and move to the next when it cannot be reached; the keep-alive finds dead connections.
//! Reads are asked again on the next member, writes never: whether a write that failed half-way happened is for the
//! caller to find out. Every watch has a stream of its own that is resumed where it broke off.

mod connection;
mod convert;
mod gather;
#[cfg(test)]
mod tests;
mod transport;
mod version;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{Backoff, SharedRng, TaskGroup};
use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, TxnOp, TxnOpResponse};
use futures_util::FutureExt as _;

use self::connection::Members;
use self::gather::Gatherer;
use crate::{Backend, EventStream, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};

pub use connection::{EtcdOptions, EtcdTls};

/// The key that health probes read; it need not exist.
const HEALTH_KEY: &str = "health";

/// How often the members' versions are looked at again.
const VERSION_INTERVAL: Duration = Duration::from_secs(60);

/// A connection to an etcd cluster.
pub struct Etcd {
    members: Arc<Members>,
    reads: Gatherer,
    rng: SharedRng,
}

impl Etcd {
    /// Connects and waits, at most the dial timeout, until a member answers.
    ///
    /// A task of `group` looks at the members' versions from time to time.
    ///
    /// # Errors
    /// When an option is wrong, or no member answers in time.
    pub async fn connect(options: EtcdOptions, rng: SharedRng, group: &TaskGroup) -> Result<Arc<Self>, StorageError> {
        let dial_timeout = options.dial_timeout;
        let members = Arc::new(Members::new(options, group.clone()).await?);
        let reads = gathered(&members);
        let etcd = Self { members, reads, rng };
        let answered = tokio::time::timeout(dial_timeout, etcd.first_answer()).await;
        answered.map_err(|_| StorageError::unavailable("context deadline exceeded"))?;
        etcd.check_versions().await;
        let etcd = Arc::new(etcd);
        let checker = Arc::clone(&etcd);
        group.spawn_cancellable("etcd-versions", async move {
            loop {
                tokio::time::sleep(VERSION_INTERVAL.mul_f64(1.0 + checker.rng.unit() / 2.0)).await;
                checker.check_versions().await;
            }
        });
        Ok(etcd)
    }

    /// Asks until a member answers; the caller bounds the time.
    async fn first_answer(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), 2.0, Duration::from_secs(1), 0.2);
        while let Err(error) = self.health().await {
            tracing::debug!(%error, "etcd does not answer yet");
            tokio::time::sleep(backoff.step(&self.rng)).await;
        }
    }

    async fn check_versions(&self) {
        let before = self.members.has_dependable_progress();
        self.members.statuses().await;
        let dependable = self.members.has_dependable_progress();
        if before != dependable {
            tracing::info!(dependable, "progress notification on demand");
        }
    }
}

/// Reads of keys that are asked for together: one by itself as upstream asks, several in a transaction that writes nothing,
/// which sees what was acknowledged before it as a single read does.
fn gathered(members: &Arc<Members>) -> Gatherer {
    let members = Arc::clone(members);
    Gatherer::new(Arc::new(move |keys: Vec<Key>| {
        let members = Arc::clone(&members);
        async move {
            let together = match keys.as_slice() {
                [key] => return Ok(vec![get(&members, key).await?]),
                keys => get_together(&members, keys).await,
            };
            match together {
                // It may allow fewer operations in a transaction, or not so large an answer.
                Err(error) if !error.is_transient() => {
                    futures_util::future::try_join_all(keys.iter().map(|key| get(&members, key))).await
                }
                outcome => outcome,
            }
        }
        .boxed()
    }))
}

async fn get(members: &Members, key: &Key) -> Result<Get, StorageError> {
    let bytes = key.as_bytes().to_vec();
    let mut response = members
        .read(move |client| {
            let (mut kv, bytes) = (client.kv.clone(), bytes.clone());
            async move { kv.get(bytes, None).await }
        })
        .await?;
    let revision = convert::revision(response.header())?;
    let kv = response.take_kvs().into_iter().next().map(convert::owned);
    Ok(Get { kv, revision })
}

async fn get_together(members: &Members, keys: &[Key]) -> Result<Vec<Get>, StorageError> {
    let response = members
        .read(|client| {
            let operations = keys.iter().map(|key| TxnOp::get(key.as_bytes(), None)).collect::<Vec<_>>();
            let mut kv = client.kv.clone();
            async move { kv.txn(etcd_client::Txn::new().and_then(operations)).await }
        })
        .await?;
    let revision = convert::revision(response.header())?;
    let found = response.op_responses().into_iter().map(|operation| match operation {
        TxnOpResponse::Get(mut get) => get.take_kvs().into_iter().next().map(convert::owned),
        _ => None,
    });
    Ok(found.map(|kv| Get { kv, revision }).collect())
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Etcd")
    }
}

#[async_trait]
impl Backend for Etcd {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        self.reads.get(key).await
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        if range.is_empty() {
            return Ok(Slice { kvs: Vec::new(), remaining: 0, revision: self.current_revision().await? });
        }
        let options = convert::range_options(range)
            .with_limit(i64::try_from(limit).unwrap_or(i64::MAX))
            .with_revision(at.map_or(0, |at| at.0));
        let mut response = self.members.read_range(range, options).await.map_err(|error| convert::at(error, at))?;
        let revision = convert::revision(response.header())?;
        let total = u64::try_from(response.count()).unwrap_or(0);
        let kvs: Vec<_> = response.take_kvs().into_iter().map(convert::owned).collect();
        let remaining = total.saturating_sub(kvs.len() as u64);
        Ok(Slice { kvs, remaining, revision })
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        if range.is_empty() {
            return Ok(0);
        }
        let options = convert::range_options(range).with_count_only();
        let response = self.members.read_range(range, options).await?;
        Ok(u64::try_from(response.count()).unwrap_or(0))
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        let bytes = key.as_bytes().to_vec();
        let compare = match expect {
            Expect::Absent => vec![Compare::mod_revision(bytes.clone(), CompareOp::Equal, 0)],
            Expect::At(revision) => vec![Compare::mod_revision(bytes.clone(), CompareOp::Equal, revision.0)],
            Expect::Any => Vec::new(),
        };
        // An expectation of revision 0 would mean "absent" to etcd; no key was ever written at 0.
        if expect == Expect::At(Revision(0)) {
            let Get { kv, revision } = self.get(key).await?;
            return Ok(Txn::Conflict { current: kv, revision });
        }
        let lease = if let Write::Put { lease, .. } = &write { *lease } else { None };
        let operation = match write {
            Write::Put { value, lease } => {
                let options = PutOptions::new().with_prev_key().with_lease(lease.map_or(0, |lease| lease.0));
                TxnOp::put(bytes.clone(), value, Some(options))
            }
            Write::Delete => TxnOp::delete(bytes.clone(), Some(DeleteOptions::new().with_prev_key())),
        };
        let txn = etcd_client::Txn::new()
            .when(compare)
            .and_then(vec![operation])
            .or_else(vec![TxnOp::get(bytes, Some(GetOptions::new()))]);
        let response = self
            .members
            .write(|client| {
                let mut kv = client.kv.clone();
                async move { kv.txn(txn).await }
            })
            .await;
        let mut response = response.map_err(|error| convert::with_lease(error, lease))?;
        let revision =
            response.take_header().map_or(Err(convert::no_header()), |header| Ok(Revision(header.revision())))?;
        let committed = response.succeeded();
        let found = response.op_responses().into_iter().next().and_then(|operation| match operation {
            TxnOpResponse::Put(mut put) => put.take_prev_key(),
            TxnOpResponse::Delete(mut delete) => delete.take_prev_kvs().into_iter().next(),
            TxnOpResponse::Get(mut get) => get.take_kvs().into_iter().next(),
            TxnOpResponse::Txn(_) => None,
        });
        let found = found.map(convert::owned);
        Ok(match committed {
            true => Txn::Committed { revision, previous: found },
            false => Txn::Conflict { current: found, revision },
        })
    }

    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        watch::watch(Arc::clone(&self.members), range, after, Arc::clone(&self.rng))
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        // There need be no such key: each answer tells the revision.
        Ok(self.reads.get(&Key::from(HEALTH_KEY)).await?.revision)
    }

    fn supports_progress(&self) -> bool {
        self.members.has_dependable_progress()
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        if ttl.is_zero() {
            return Err(StorageError::Invalid("the lifetime of a lease must be positive"));
        }
        let seconds = i64::try_from(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).unwrap_or(i64::MAX);
        let granted = self
            .members
            .write(|client| {
                let mut leases = client.lease.clone();
                async move { leases.grant(seconds, None).await }
            })
            .await?;
        Ok(LeaseId(granted.id()))
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        let revoked = self
            .members
            .write(|client| {
                let mut leases = client.lease.clone();
                async move { leases.revoke(lease.0).await }
            })
            .await;
        revoked.map(drop).map_err(|error| convert::with_lease(error, Some(lease)))
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        let compacted = self
            .members
            .write(|client| {
                let mut kv = client.kv.clone();
                async move { kv.compact(at.0, None).await }
            })
            .await;
        compacted.map(drop).map_err(|error| convert::at(error, Some(at)))
    }

    async fn health(&self) -> Result<(), StorageError> {
        self.current_revision().await.map(drop)
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        let statuses = self.members.statuses().await;
        let sizes = statuses.iter().filter_map(|status| status.as_ref().ok());
        let largest = sizes.map(|status| u64::try_from(status.db_size()).unwrap_or(0)).max();
        largest.ok_or_else(|| StorageError::unavailable("no etcd member tells its size"))
    }
}
