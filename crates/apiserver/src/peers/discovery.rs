//! Finding out which other servers there are, and what they serve: whenever one of their leases comes, goes or changes
//! hands, versions come that are nobody's own, and from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::json;
use api_machinery::time::MicroTime;
use api_types::apidiscovery_v2::APIGroupDiscovery;
use api_types::coordination_v1::Lease;
use async_trait::async_trait;
use client::{Informer, InformerOptions, Informers, Scope};
use component_helpers::api_server_leases;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::cluster_wide::ClusterWide;
use super::endpoint::{NoAddress, backend};
use super::state::{Peer, Peers};
use crate::aggregation::fetch::{self, FetchError, Question};
use crate::aggregation::identity;
use crate::bootstrap::has_ended;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::node_proxy::connection::Backend;
use crate::server_id::server_id;

/// What the other serves itself; one that knows no others has a document for that alone.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,\
                      application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const DOCUMENT: &str = "APIGroupDiscoveryList";
/// How long a server may take for a document, and how long that may be.
const LIMIT: Duration = Duration::from_secs(5);
const LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// How often everything is asked for anew.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// The rest after a round in which a server could not be asked, give or take a half of it, and how many such rounds there are
/// before the next refresh.
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
            namespace: api_server_leases::NAMESPACE.to_owned(),
            label_selector: api_server_leases::SELECTOR.to_owned(),
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
        let cluster_wide = ClusterWide::new(&changed);
        cluster_wide.follow(cx);
        let worker = Worker { cx: Arc::clone(cx), peers: Arc::clone(&self.0), leases, cluster_wide };
        cx.tasks().spawn_cancellable("peer-discovery", async move { worker.work(&changed).await });
        Ok(())
    }
}

struct Worker {
    cx: Arc<ApiCx>,
    peers: Arc<Peers>,
    leases: Informer<Lease>,
    cluster_wide: Arc<ClusterWide>,
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
            let rest = RETRY.mul_f64(0.5 + self.cx.rng().unit());
            let again = if complete || failures > TRIES { refresh } else { refresh.min(Instant::now() + rest) };
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
        let covered = || self.cluster_wide.covered(Instant::now());
        let live = self.leases.list();
        let live = live.iter().filter(|lease| lease.metadata.name != own && !has_ended(lease, now));
        for lease in live.take(MAX_PEERS) {
            let (id, holder) = (&lease.metadata.name, lease.spec.holder_identity.clone().unwrap_or_default());
            let known = former.servers.get(id).filter(|known| known.holder == holder);
            if let Some(known) = known.filter(|_| round == Round::Unknown) {
                servers.insert(id.clone(), known.without(&covered()));
                continue;
            }
            match self.ask(id, holder).await {
                Ok(peer) => drop(servers.insert(id.clone(), Arc::new(peer).without(&covered()))),
                Err(error) => {
                    tracing::warn!(%error, peer = id, "It could not be found out what another API server serves");
                    self.peers.metrics.sync_errors.with(&[error.kind()]).inc();
                    complete = false;
                    // What is known of it is better than nothing.
                    servers.extend(known.map(|known| (id.clone(), known.without(&covered()))));
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
        let backend = backend(&self.cx, &self.peers, id).await?;
        let core = self.document(&backend, "/api").await?;
        let groups = self.document(&backend, "/apis").await?;
        Ok(Peer::new(holder, &core, groups))
    }

    async fn document(&self, backend: &Backend, path: &str) -> Result<Vec<APIGroupDiscovery>, NoPeer> {
        let user = identity::api_server();
        let question = Question { path, accept: ACCEPT, known: None, user, limit: LIMIT, limit_bytes: LIMIT_BYTES };
        let answer = fetch::get_from(&self.cx.aggregation, &self.cx, backend, &question).await?;
        self.peers.metrics.note_asked(answer.status);
        if answer.status != StatusCode::OK {
            return Err(question.answered_by(answer.status).into());
        }
        groups(&answer.body)
    }
}

/// The groups of a document.
fn groups(document: &[u8]) -> Result<Vec<APIGroupDiscovery>, NoPeer> {
    let unreadable = |why: &dyn std::fmt::Display| NoPeer::Unreadable(why.to_string());
    let document: serde_json::Value = serde_json::from_slice(document).map_err(|error| unreadable(&error))?;
    if document["kind"] != DOCUMENT {
        return Err(unreadable(&format_args!("it is no {DOCUMENT}")));
    }
    let group = |item: &serde_json::Value| {
        let mut group = APIGroupDiscovery::default();
        let decoded = json::decode(item.to_string().as_bytes(), &mut group);
        decoded.map(|_| group).map_err(|error| unreadable(&error))
    };
    document["items"].as_array().into_iter().flatten().map(group).collect()
}

/// Why it is not known what a server serves.
#[derive(Debug, thiserror::Error)]
enum NoPeer {
    #[error("finding its address: {0}")]
    Address(#[from] NoAddress),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_document_that_was_asked_for_is_read() {
        for (document, expected) in [
            (r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"x"}}]}"#, Ok(1)),
            (r#"{"kind":"APIGroupDiscoveryList"}"#, Ok(0)),
            (r#"{"kind":"APIGroupList","groups":[]}"#, Err("reading its document: it is no APIGroupDiscoveryList")),
            ("[]", Err("reading its document: it is no APIGroupDiscoveryList")),
        ] {
            let read = groups(document.as_bytes()).map(|groups| groups.len()).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{document}");
        }
        assert!(groups(b"{").is_err());
        assert!(groups(br#"{"kind":"APIGroupDiscoveryList","items":[{"versions":1}]}"#).is_err());
    }
}
