//! Finding out which other servers there are, and what they serve: whenever one of their leases comes, goes or changes
//! hands, and from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::json;
use api_machinery::time::MicroTime;
use api_types::apidiscovery_v2::APIGroupDiscovery;
use api_types::coordination_v1::Lease;
use async_trait::async_trait;
use client::{Informer, InformerOptions, Informers, Scope};
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::endpoint::{keys, told};
use super::state::{Peer, Peers};
use crate::aggregation::fetch::{self, FetchError, Question};
use crate::bootstrap::{IDENTITY_SELECTOR, LEASE_NAMESPACE, has_ended};
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::node_proxy::connection::{Backend, authority};
use crate::node_proxy::guard::{Reach, resolve};
use crate::server_id::server_id;

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer";
/// How long a server may take for a document, and how long that may be.
const LIMIT: Duration = Duration::from_secs(5);
const LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// How often everything is asked for anew.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// The rest after a round in which a server could not be asked, and how many such rounds there are before the next refresh.
const RETRY: Duration = Duration::from_secs(2);
const TRIES: u32 = 20;
/// Servers that are asked; clusters have a handful.
const MAX_PEERS: usize = 64;

/// The hook `peer-discovery-workers`.
pub(super) struct Workers(pub(super) Arc<Peers>);

#[async_trait]
impl PostStartHook for Workers {
    fn name(&self) -> &'static str {
        "peer-discovery-workers"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let informers = Informers::new(cx.loopback(), InformerOptions::default());
        let scope = Scope {
            namespace: LEASE_NAMESPACE.to_owned(),
            label_selector: IDENTITY_SELECTOR.to_owned(),
            ..Scope::default()
        };
        let leases = informers.scoped::<Lease>(&scope);
        let changed = Arc::new(Notify::new());
        let tell = Arc::clone(&changed);
        leases.subscribe(move |change| {
            let held_by = |lease: &Lease| lease.spec.holder_identity.clone();
            // Renewals say nothing new.
            if change.old().is_none_or(|old| held_by(old) != held_by(change.object())) || change.is_deleted() {
                tell.notify_one();
            }
        });
        leases.start();
        let worker = Worker { cx: Arc::clone(cx), peers: Arc::clone(&self.0), leases };
        cx.tasks().spawn_cancellable("peer-discovery", async move { worker.work(&changed).await });
        Ok(())
    }
}

struct Worker {
    cx: Arc<ApiCx>,
    peers: Arc<Peers>,
    leases: Informer<Lease>,
}

/// Which servers are asked in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Those of which nothing is known.
    Unknown,
    /// All of them.
    Whole,
}

impl Worker {
    async fn work(&self, changed: &Notify) {
        self.leases.wait_synced().await;
        let (mut failures, mut refreshed) = (0, Instant::now());
        let mut round = Round::Unknown;
        loop {
            let complete = self.look(round).await;
            failures = if complete { 0 } else { failures + 1 };
            if round == Round::Whole {
                refreshed = Instant::now();
            }
            let refresh = refreshed + REFRESH;
            let again = if complete || failures > TRIES { refresh } else { refresh.min(Instant::now() + RETRY) };
            tokio::select! {
                () = changed.notified() => failures = 0,
                () = tokio::time::sleep_until(again) => {}
            }
            round = if Instant::now() >= refresh { Round::Whole } else { Round::Unknown };
        }
    }

    /// Asks those servers that are to be asked, and forgets those that are gone; says whether all answered.
    async fn look(&self, round: Round) -> bool {
        let own = server_id(&self.cx.config().host_name());
        let now = MicroTime::from(self.cx.clock().wall());
        let (former, mut servers, mut complete) = (self.peers.known(), BTreeMap::new(), true);
        let live = self.leases.list();
        let live = live.iter().filter(|lease| lease.metadata.name != own && !has_ended(lease, now));
        for lease in live.take(MAX_PEERS) {
            let (id, holder) = (&lease.metadata.name, lease.spec.holder_identity.clone().unwrap_or_default());
            let known = former.servers.get(id).filter(|known| known.holder == holder);
            if let Some(known) = known.filter(|known| round == Round::Unknown && known.backend.is_some()) {
                servers.insert(id.clone(), Arc::clone(known));
                continue;
            }
            match self.ask(id, holder).await {
                Ok(peer) => drop(servers.insert(id.clone(), Arc::new(peer))),
                Err(error) => {
                    tracing::warn!(%error, peer = id, "It could not be found out what another API server serves");
                    self.peers.metrics.sync_errors.with(&[error.kind()]).inc();
                    complete = false;
                    // What is known of it is better than nothing.
                    servers.extend(known.map(|known| (id.clone(), Arc::clone(known))));
                }
            }
        }
        let same = |(one, other): (&Arc<Peer>, &Arc<Peer>)| Arc::ptr_eq(one, other);
        let is_changed =
            former.servers.len() != servers.len() || !former.servers.values().zip(servers.values()).all(same);
        if is_changed {
            self.peers.put(servers);
        }
        complete
    }

    async fn ask(&self, id: &str, holder: String) -> Result<Peer, NoPeer> {
        let stored = keys(&self.cx).get(id).await.map_err(|error| NoPeer::Address(error.to_string()))?;
        let place = stored.as_ref().and_then(told).ok_or_else(|| NoPeer::Address("it does not say".to_owned()))?;
        let addresses = resolve(&place.0, place.1, Reach::Node).await.map_err(NoPeer::Address)?;
        let backend = Backend { addresses, authority: authority(&place.0, place.1), tls: Some(self.peers.tls.clone()) };
        let core = self.document(&backend, "/api").await?;
        let groups = self.document(&backend, "/apis").await?;
        Ok(Peer::new(holder, Some(backend), &core, groups))
    }

    async fn document(&self, backend: &Backend, path: &str) -> Result<Vec<APIGroupDiscovery>, NoPeer> {
        let groups = [authn::MASTERS];
        let question =
            Question { path, accept: ACCEPT, known: None, groups: &groups, limit: LIMIT, limit_bytes: LIMIT_BYTES };
        let answer = fetch::get_from(&self.cx.aggregation, &self.cx, backend, &question).await?;
        if answer.status != StatusCode::OK {
            return Err(question.answered_by(answer.status).into());
        }
        let document: serde_json::Value =
            serde_json::from_slice(&answer.body).map_err(|error| NoPeer::Unreadable(error.to_string()))?;
        let items = document.get("items").and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
        let group = |item: serde_json::Value| {
            let mut group = APIGroupDiscovery::default();
            let decoded = json::decode(item.to_string().as_bytes(), &mut group);
            decoded.map(|_| group).map_err(|error| NoPeer::Unreadable(error.to_string()))
        };
        items.into_iter().map(group).collect()
    }
}

/// Why it is not known what a server serves.
#[derive(Debug, thiserror::Error)]
enum NoPeer {
    #[error("finding its address: {0}")]
    Address(String),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("reading its document: {0}")]
    Unreadable(String),
}

impl NoPeer {
    /// As metrics name it.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Address(_) => "hostport_resolution",
            Self::Fetch(_) | Self::Unreadable(_) => "fetch_discovery",
        }
    }
}
