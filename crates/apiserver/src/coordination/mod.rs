//! Coordinated leader election: components say which versions they are of, and one of the API servers decides who of them
//! leads (KEP-4355, gate `CoordinatedLeaderElection`).

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_machinery::time::MicroTime;
use api_types::coordination_v1::{Lease, LeaseSpec};
use api_types::coordination_v1beta1::LeaseCandidate;
use async_trait::async_trait;
use base::CancellationToken;
use client::{ClientError, Informer, InformerOptions, Informers, LeaderConfig, LeaderElector, LeaderEnd};
use tokio::sync::Notify;

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use plan::{ELECTION, Election, Step, has_run_out, holder, is_forgotten};

/// The lease of the server that decides.
const LEASE: (&str, &str) = ("kube-system", "leader-election-controller");
/// How soon a server that lost that lease stands for it again.
const REST: Duration = Duration::from_secs(5);
/// How often candidates that are forgotten are collected.
const COLLECT_PERIOD: Duration = Duration::from_secs(30 * 60);

/// The hook `start-kube-apiserver-coordinated-leader-election-controller`.
pub(crate) struct Coordination;

#[async_trait]
impl PostStartHook for Coordination {
    fn name(&self) -> &'static str {
        "start-kube-apiserver-coordinated-leader-election-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let times = &cx.config().coordination;
        let config = LeaderConfig {
            lease_duration: times.lease_duration,
            renew_deadline: times.renew_deadline,
            retry_period: times.retry_period,
            ..LeaderConfig::new(LEASE.0, LEASE.1, &cx.config().host_name(), cx.rng())
        };
        let elector = LeaderElector::new(cx.loopback(), config, None).map_err(|error| HookError::Configuration {
            what: "coordinated leader election",
            why: error.to_string(),
        })?;
        let context = Arc::clone(cx);
        let stop = cx.lifecycle.events().shutdown_initiated.token();
        cx.tasks().spawn_cancellable("coordination", async move {
            let informers = Informers::new(context.loopback(), InformerOptions::default());
            let controller = Controller::new(context, informers.of::<LeaseCandidate>());
            while elector.run(stop.clone(), |leading| controller.decide(leading)).await == LeaderEnd::Lost {
                tokio::time::sleep(REST).await;
            }
        });
        Ok(())
    }
}

struct Controller {
    cx: Arc<ApiCx>,
    candidates: Informer<LeaseCandidate>,
    changed: Arc<Notify>,
}

impl Controller {
    fn new(cx: Arc<ApiCx>, candidates: Informer<LeaseCandidate>) -> Self {
        let changed = Arc::new(Notify::new());
        let tell = Arc::clone(&changed);
        candidates.subscribe(move |_| tell.notify_one());
        Self { cx, candidates, changed }
    }

    /// Decides for as long as this server is the one that does.
    async fn decide(&self, leading: CancellationToken) {
        self.candidates.start();
        self.candidates.wait_synced().await;
        let mut collected = self.cx.clock().monotonic();
        while !leading.is_cancelled() {
            for (namespace, name) in self.leases() {
                if let Err(error) = self.advance(&namespace, &name).await {
                    tracing::warn!(%error, namespace, name, "A coordinated election failed");
                }
            }
            if self.cx.clock().monotonic() >= collected {
                collected += COLLECT_PERIOD;
                self.collect().await;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(ELECTION) => {}
            }
        }
    }

    /// The leases that somebody is a candidate for, by namespace and name.
    fn leases(&self) -> BTreeSet<(String, String)> {
        let place = |own: &Arc<LeaseCandidate>| (own.metadata.namespace.clone(), own.spec.lease_name.clone());
        self.candidates.list().iter().map(place).collect()
    }

    fn now(&self) -> MicroTime {
        MicroTime::from(self.cx.clock().wall())
    }

    /// Takes the next step for one lease.
    async fn advance(&self, namespace: &str, name: &str) -> Result<(), ClientError> {
        let leases = self.cx.loopback().namespaced::<Lease>(namespace);
        let lease = leases.get_opt(name).await?;
        let all = self.candidates.in_namespace(namespace);
        let own: BTreeMap<&str, &LeaseCandidate> = all
            .iter()
            .filter(|own| own.spec.lease_name == name)
            .map(|own| (own.metadata.name.as_str(), own.as_ref()))
            .collect();
        let candidates: Vec<&LeaseCandidate> = own.values().copied().collect();
        match plan::next(lease.as_ref(), &candidates, self.now()) {
            Err(conflict) => tracing::warn!(%conflict, namespace, name, "Nobody is elected"),
            Ok(Step::Rest | Step::Wait) => {}
            Ok(Step::Ask(names)) => {
                for candidate in names.iter().filter_map(|name| own.get(name.as_str())) {
                    self.ask(candidate).await?;
                }
            }
            Ok(Step::Elect(election)) => self.write(namespace, name, lease, &election).await?,
        }
        Ok(())
    }

    /// Asks a candidate whether it is there.
    async fn ask(&self, candidate: &LeaseCandidate) -> Result<(), ClientError> {
        let mut asked = candidate.clone();
        asked.spec.ping_time = Some(self.now());
        let candidates = self.cx.loopback().namespaced::<LeaseCandidate>(&candidate.metadata.namespace);
        overtaken(candidates.update(&asked).await.map(drop))
    }

    /// Writes the outcome of an election into the lease.
    async fn write(
        &self,
        namespace: &str,
        name: &str,
        lease: Option<Lease>,
        election: &Election,
    ) -> Result<(), ClientError> {
        let (leases, now) = (self.cx.loopback().namespaced::<Lease>(namespace), self.now());
        tracing::info!(namespace, name, leader = ?election.leader, strategy = election.strategy, "Elected");
        let Some(mut lease) = lease else {
            let metadata =
                ObjectMeta { name: name.to_owned(), namespace: namespace.to_owned(), ..ObjectMeta::default() };
            let mut spec = LeaseSpec { strategy: Some(election.strategy.clone()), ..LeaseSpec::default() };
            if let Some(leader) = &election.leader {
                give(&mut spec, leader, now);
            }
            return overtaken(leases.create(&Lease { metadata, spec }).await.map(drop));
        };
        let is_free = holder(&lease).is_empty() || has_run_out(&lease, now);
        lease.spec.strategy = Some(election.strategy.clone());
        match &election.leader {
            Some(leader) if is_free => {
                let transitions = lease.spec.lease_transitions.unwrap_or(0);
                lease.spec.lease_transitions = Some(transitions.saturating_add(1));
                lease.spec.preferred_holder = None;
                give(&mut lease.spec, leader, now);
            }
            Some(leader) if holder(&lease) != leader => lease.spec.preferred_holder = Some(leader.clone()),
            _ => lease.spec.preferred_holder = None,
        }
        overtaken(leases.update(&lease).await.map(drop))
    }

    /// Deletes the candidates that nobody has heard of for long.
    async fn collect(&self) {
        let now = self.now();
        for candidate in self.candidates.list().iter().filter(|own| is_forgotten(own, now)) {
            let candidates = self.cx.loopback().namespaced::<LeaseCandidate>(&candidate.metadata.namespace);
            if let Err(error) = candidates.delete_this(&candidate.metadata, DeleteOptions::default()).await {
                tracing::warn!(%error, candidate = candidate.metadata.name, "A lease candidate could not be deleted");
            }
        }
    }
}

/// Gives a lease to a candidate, who then has to renew it.
fn give(spec: &mut LeaseSpec, leader: &str, now: MicroTime) {
    spec.holder_identity = Some(leader.to_owned());
    spec.lease_duration_seconds = i32::try_from(ELECTION.as_secs()).ok();
    spec.acquire_time = Some(now);
    spec.renew_time = Some(now);
}

/// Somebody else was faster: what they wrote is looked at with the next round.
fn overtaken(outcome: Result<(), ClientError>) -> Result<(), ClientError> {
    match outcome {
        Err(error) if !error.is_conflict() && !error.is_already_exists() && !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
