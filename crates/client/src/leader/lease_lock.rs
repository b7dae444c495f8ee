//! The Lease as a lock: one try to take or renew it, and giving it back.

use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Kind as _;
use api_machinery::time::MicroTime;
use api_types::coordination_v1::{Lease, LeaseSpec};
use api_types::core_v1::ObjectReference;
use tokio::time::Instant;

use super::LeaderConfig;
use crate::api::Api;
use crate::client::Client;
use crate::error::ClientError;

/// How long the lease is marked to last when it is given back.
const RELEASED_SECONDS: i32 = 1;

/// How a try ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The lease is ours until the duration has passed.
    Held,
    /// Another holds it.
    HeldByOther,
}

pub(super) struct LeaseLock {
    client: Client,
    leases: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    duration: Duration,
    /// The lease as last read or written.
    observed: Option<Lease>,
    /// When it was last seen to change, on the local clock.
    observed_at: Instant,
    /// When the request was sent by which it was last taken or renewed.
    written_at: Instant,
}

fn holder_of(lease: &Lease) -> &str {
    lease.spec.holder_identity.as_deref().unwrap_or_default()
}

impl LeaseLock {
    pub(super) fn new(client: &Client, config: &LeaderConfig) -> Self {
        Self {
            client: client.clone(),
            leases: client.namespaced(&config.namespace),
            namespace: config.namespace.clone(),
            name: config.name.clone(),
            identity: config.identity.clone(),
            duration: config.lease_duration,
            observed: None,
            observed_at: client.clock().monotonic(),
            written_at: client.clock().monotonic(),
        }
    }

    /// Who holds the lease, as last seen; empty for nobody.
    pub(super) fn holder(&self) -> &str {
        self.observed.as_ref().map(holder_of).unwrap_or_default()
    }

    /// Until when nobody else may have taken the lease that we last wrote: it counts from before it was written.
    pub(super) fn held_until(&self) -> Instant {
        self.written_at + self.duration
    }

    /// The Lease, for events.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            kind: Lease::TYPE.kind.to_owned(),
            api_version: Lease::TYPE.api_version(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.observed.as_ref().map(|lease| lease.metadata.uid.clone()).unwrap_or_default(),
            ..ObjectReference::default()
        }
    }

    pub(super) async fn try_acquire_or_renew(&mut self) -> Result<Attempt, ClientError> {
        // The holder writes without reading first; the version fences it if another took over meanwhile.
        if let Some(held) =
            self.observed.clone().filter(|lease| holder_of(lease) == self.identity && self.is_valid(lease))
        {
            match self.write(held).await {
                Ok(()) => return Ok(Attempt::Held),
                Err(error) => tracing::debug!(%error, lease = %self.name, "Renewing without reading failed"),
            }
        }
        let Some(found) = self.leases.get_opt(&self.name).await? else {
            let sent_at = self.client.clock().monotonic();
            let created = self.leases.create(&self.first_lease()).await?;
            self.written_at = sent_at;
            self.observe(created);
            return Ok(Attempt::Held);
        };
        self.observe(found.clone());
        let holder = holder_of(&found);
        if !holder.is_empty() && holder != self.identity && self.is_valid(&found) {
            return Ok(Attempt::HeldByOther);
        }
        self.write(found).await?;
        Ok(Attempt::Held)
    }

    /// Renews the lease where somebody else has given it to us. It is not ours any longer once it has run out, or another
    /// is to follow.
    pub(super) async fn try_renew_what_was_given(&mut self) -> Result<Attempt, ClientError> {
        let Some(found) = self.leases.get_opt(&self.name).await? else { return Ok(Attempt::HeldByOther) };
        self.observe(found.clone());
        let ends = found.spec.preferred_holder.as_ref().is_some_and(|next| !next.is_empty() && *next != self.identity);
        if holder_of(&found) != self.identity || ends || !self.is_valid(&found) {
            return Ok(Attempt::HeldByOther);
        }
        self.write(found).await?;
        Ok(Attempt::Held)
    }

    /// Gives the lease back if it is still ours.
    pub(super) async fn release(&mut self) -> Result<(), ClientError> {
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else { return Ok(()) };
        if holder_of(&lease) != self.identity {
            return Ok(());
        }
        let now = self.now();
        lease.spec.holder_identity = Some(String::new());
        lease.spec.lease_duration_seconds = Some(RELEASED_SECONDS);
        lease.spec.acquire_time = Some(now);
        lease.spec.renew_time = Some(now);
        let released = self.leases.update(&lease).await?;
        self.observe(released);
        Ok(())
    }

    fn now(&self) -> MicroTime {
        MicroTime::from(self.client.clock().wall())
    }

    /// Whether the record may still count, measured since it was last seen to change.
    fn is_valid(&self, lease: &Lease) -> bool {
        let seconds = lease.spec.lease_duration_seconds.unwrap_or(0);
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.observed_at + lasts > self.client.clock().monotonic()
    }

    fn observe(&mut self, lease: Lease) {
        let same = self.observed.as_ref().is_some_and(|known| {
            known.spec.holder_identity == lease.spec.holder_identity
                && known.spec.renew_time == lease.spec.renew_time
                && known.spec.acquire_time == lease.spec.acquire_time
                && known.spec.lease_transitions == lease.spec.lease_transitions
                && known.spec.lease_duration_seconds == lease.spec.lease_duration_seconds
        });
        if !same {
            self.observed_at = self.client.clock().monotonic();
        }
        self.observed = Some(lease);
    }

    fn first_lease(&self) -> Lease {
        let now = self.now();
        Lease {
            metadata: ObjectMeta {
                name: self.name.clone(),
                namespace: self.namespace.clone(),
                ..ObjectMeta::default()
            },
            spec: LeaseSpec { acquire_time: Some(now), lease_transitions: Some(0), ..self.held(now) },
        }
    }

    fn held(&self, now: MicroTime) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }

    /// Writes our name into a lease that was read, at the version that was read.
    async fn write(&mut self, mut lease: Lease) -> Result<(), ClientError> {
        let now = self.now();
        let ours = holder_of(&lease) == self.identity;
        let transitions = lease.spec.lease_transitions.unwrap_or(0);
        let acquire_time = if ours { lease.spec.acquire_time } else { Some(now) };
        let renew_time = Some(now.as_renewal_after(lease.spec.renew_time));
        let lease_transitions = Some(if ours { transitions } else { transitions.saturating_add(1) });
        let (strategy, preferred_holder) = (lease.spec.strategy.take(), lease.spec.preferred_holder.take());
        lease.spec =
            LeaseSpec { acquire_time, renew_time, lease_transitions, strategy, preferred_holder, ..self.held(now) };
        let sent_at = self.client.clock().monotonic();
        let written = self.leases.update(&lease).await?;
        self.written_at = sent_at;
        self.observe(written);
        Ok(())
    }
}
