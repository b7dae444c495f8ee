//! Which API servers there are, for whom it matters: each keeps a Lease named after its host (KEP-1965), and collects
//! those of servers that are gone. A server that does not listen, as in tests, is nobody's to find and has none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions, ObjectMeta};
use api_machinery::time::MicroTime;
use api_types::coordination_v1::{Lease, LeaseSpec};
use async_trait::async_trait;
use base::host_and_port;
use client::ClientError;
use component_helpers::api_server_leases::{COMPONENT, LABEL, NAMESPACE, SELECTOR};

use super::{namespaces, retry};
use crate::address::peer_address;
use crate::cx::ApiCx;
use crate::gates;
use crate::hooks::{HookError, PostStartHook};
use crate::server_id::{HOSTNAME_FILE, host, server_id};

const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Where the server is, for people: its peers look elsewhere.
const PEER_ADDRESS: &str = "kubernetes.io/peer-advertise-address";
/// How long a server is believed in that does not renew its lease.
const LEASE_SECONDS: i32 = 3600;
/// How often a lease is renewed, made longer by up to [`JITTER`] of it.
const RENEW_PERIOD: Duration = Duration::from_secs(10);
const JITTER: f64 = 0.04;
/// How often leases that ended are collected.
const COLLECT_PERIOD: Duration = Duration::from_secs(3600);
/// How soon a collection that failed is repeated.
const RETRY_PERIOD: Duration = Duration::from_secs(10);
/// The longest that the deletion of the own lease may hold up the shutdown.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);

/// The hook `start-kube-apiserver-identity-lease-controller`.
pub(super) struct IdentityLease;

#[async_trait]
impl PostStartHook for IdentityLease {
    fn name(&self) -> &'static str {
        "start-kube-apiserver-identity-lease-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        if cx.config().serving.is_none() {
            return Ok(());
        }
        let host = match &cx.config().host {
            Some(host) => host.clone(),
            None => host().map_err(|source| HookError::Host { path: HOSTNAME_FILE, source })?,
        };
        let mut own = Own::new(&host, &cx.rng().uuid());
        if cx.lifecycle.gates().enabled(gates::PEERS) {
            let (ip, port) = peer_address(cx.config());
            own.annotations.insert(PEER_ADDRESS.to_owned(), host_and_port(&ip, port));
        }
        let own = Arc::new(own);
        let (context, keeper) = (Arc::clone(cx), Arc::clone(&own));
        cx.tasks().spawn_cancellable("identity-lease", async move { keeper.keep(&context).await });
        cx.before_shutdown(move |cx| {
            let own = Arc::clone(&own);
            async move {
                if tokio::time::timeout(REMOVE_LIMIT, own.remove(&cx)).await.is_err() {
                    tracing::warn!("Deleting the lease of this server took too long");
                }
            }
        });
        Ok(())
    }
}

/// The lease of this server.
struct Own {
    name: String,
    host: String,
    holder: String,
    annotations: BTreeMap<String, String>,
    /// Set when the server ends: from then on the lease is not made again.
    ended: tokio::sync::Mutex<bool>,
}

impl Own {
    fn new(host: &str, run: &str) -> Self {
        let name = server_id(host);
        Self {
            holder: format!("{name}_{run}"),
            name,
            host: host.to_owned(),
            annotations: BTreeMap::new(),
            ended: tokio::sync::Mutex::new(false),
        }
    }

    async fn keep(&self, cx: &ApiCx) {
        // What a former run left behind says nothing of this one.
        self.delete(cx).await;
        loop {
            if let Err(error) = self.renew(cx).await {
                tracing::warn!(%error, name = self.name, "Renewing the lease of this server failed");
            }
            tokio::time::sleep(RENEW_PERIOD.mul_f64(1.0 + JITTER * cx.rng().unit())).await;
        }
    }

    async fn renew(&self, cx: &ApiCx) -> Result<(), ClientError> {
        let ended = self.ended.lock().await;
        if *ended {
            return Ok(());
        }
        let api = cx.loopback().namespaced::<Lease>(NAMESPACE);
        let now = MicroTime::from(cx.clock().wall());
        match api.get_opt(&self.name).await? {
            Some(mut stored) => {
                self.hold(&mut stored.spec, now);
                api.update(&stored).await.map(drop)
            }
            None => {
                namespaces::ensure(cx.loopback(), NAMESPACE).await?;
                api.create(&self.lease(now)).await.map(drop)
            }
        }
    }

    fn hold(&self, spec: &mut LeaseSpec, now: MicroTime) {
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = Some(LEASE_SECONDS);
        spec.renew_time = Some(now.as_renewal_after(spec.renew_time));
    }

    fn lease(&self, now: MicroTime) -> Lease {
        let labels = [(LABEL, COMPONENT), (HOSTNAME_LABEL, &self.host)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let (name, namespace) = (self.name.clone(), NAMESPACE.to_owned());
        let annotations = self.annotations.clone();
        let mut spec = LeaseSpec::default();
        self.hold(&mut spec, now);
        Lease { metadata: ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() }, spec }
    }

    async fn remove(&self, cx: &ApiCx) {
        *self.ended.lock().await = true;
        self.delete(cx).await;
    }

    async fn delete(&self, cx: &ApiCx) {
        let api = cx.loopback().namespaced::<Lease>(NAMESPACE);
        match api.delete(&self.name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => {
                tracing::warn!(%error, name = self.name, "Deleting the lease of this server failed");
            }
            _ => {}
        }
    }
}

/// The hook `start-kube-apiserver-identity-lease-garbage-collector`.
pub(super) struct LeaseCollector;

#[async_trait]
impl PostStartHook for LeaseCollector {
    fn name(&self) -> &'static str {
        "start-kube-apiserver-identity-lease-garbage-collector"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        if cx.config().serving.is_none() {
            return Ok(());
        }
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("identity-lease-collector", async move {
            let work = || collect(&context);
            retry::repeat("Collecting the leases of servers that are gone", COLLECT_PERIOD, RETRY_PERIOD, work).await;
        });
        Ok(())
    }
}

async fn collect(cx: &ApiCx) -> Result<(), ClientError> {
    let api = cx.loopback().namespaced::<Lease>(NAMESPACE);
    let label_selector = SELECTOR.to_owned();
    let all = api.list_all(&ListOptions { label_selector, ..ListOptions::default() }).await?;
    let now = MicroTime::from(cx.clock().wall());
    for lease in all.items.iter().filter(|lease| has_ended(lease, now)) {
        // Renewed since, it is another's word against what was listed: the version decides.
        let version = Some(lease.metadata.resource_version.clone());
        let mut options = DeleteOptions::default();
        options.preconditions.get_or_insert_default().resource_version = version;
        match api.delete(&lease.metadata.name, &options).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Leases that say too little to end are over, too.
pub(crate) fn has_ended(lease: &Lease, now: MicroTime) -> bool {
    let Some((renewed, seconds)) = lease.spec.renew_time.zip(lease.spec.lease_duration_seconds) else { return true };
    renewed + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)) < now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_an_hour_after_it_was_renewed() {
        let own = Own::new("h", "run");
        let now = MicroTime::from_unix_micros(1_790_000_000_000_000);
        let lease = own.lease(now);
        assert_eq!(lease.metadata.labels[HOSTNAME_LABEL], "h");
        assert_eq!(lease.spec.holder_identity, Some(format!("{}_run", server_id("h"))));
        assert!(!has_ended(&lease, now + Duration::from_secs(3600)));
        assert!(has_ended(&lease, now + Duration::from_secs(3601)));
        assert!(has_ended(&Lease::default(), now));
    }
}
