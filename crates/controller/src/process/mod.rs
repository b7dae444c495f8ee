//! A process that manages controllers: its client, its own endpoint, its election. What it does as leader is handed in.

mod access;
mod configz;
mod endpoint;
mod flags;
mod identify;
mod published;
#[cfg(test)]
mod served_tests;
#[cfg(test)]
mod testing;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::Value;
use base::{CancellationToken, SharedClock, SharedRng};
use client::{
    Candidacy, Client, ClientConfig, ClientCx, ConfigError, ContentType, EventRecorder, LeaderConfig, LeaderElector,
    LeaderEnd, RequestMetrics,
};
use component_base::debugging::{Contention, Debugging};
use component_base::flags::{Errors, Options};
use component_base::health::{Check, Endpoint as HealthEndpoint, Health};
use component_base::metrics::{Desc, Metrics, MetricsOptions, Stability};
use component_base::serving::{BoxError, Response, SecureServing};
use component_base::shared_gates::{COORDINATED_ELECTION, RELEASE_LEASE_ON_EXIT};
use component_base::version::{BINARY, MinorVersion};
use component_base::zpages::Zpages;
use component_base::{Gates, Lifecycle, Versions};
use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};

use crate::DebugPages;
pub use access::{Access, AccessError, AccessOptions, Refusal, UID_GATES, because};
pub use configz::{GENERIC_CONFIG, Row, Source, config_shown};
pub use flags::{CLIENT, DELEGATION, GENERIC, TOLERANT_DELEGATION, leader_election_flags};

/// How long a self-signed serving certificate is good for, as upstream.
const SELF_SIGNED_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long the API server may take to be healthy before the controllers are built.
const HEALTHY_LIMIT: Duration = Duration::from_secs(10);
const HEALTHY_INTERVAL: Duration = Duration::from_secs(1);
const MASTER_STATUS: Desc = Desc::new(
    "leader_election_master_status",
    "Whether this process leads, by the lock's name: 1 for the leader, 0 for those that wait.",
    Stability::Alpha,
)
.labels(&["name"]);
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// What a manager is told by the flags that all managers have.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// The component's name.
    pub name: &'static str,
    /// How the API server is reached.
    pub client: ClientConfig,
    /// The election; none without `--leader-elect`.
    pub leader: Option<LeaderConfig>,
    serving: SecureServing,
    access: AccessOptions,
    metrics_options: MetricsOptions,
    registry: Registry,
    profiling: bool,
    probes: Option<Probes>,
    page: Option<Page>,
    debug_pages: DebugPages,
    /// Who tells of the election; the component itself where it is empty.
    election_reporter: String,
    /// Whether the election may be coordinated (gate `CoordinatedLeaderElection`).
    may_be_coordinated: bool,
}

/// A page of the process's own.
#[derive(Clone)]
struct Page {
    path: &'static str,
    answer: Arc<dyn Fn() -> Response + Send + Sync>,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.path)
    }
}

/// The checks of `/readyz`, for processes that have the newer endpoints.
#[derive(Clone)]
struct Probes(Vec<Check>);

impl std::fmt::Debug for Probes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} checks", self.0.len())
    }
}

/// The metrics of the process.
#[derive(Clone)]
struct Registry {
    metrics: Arc<Metrics>,
    requests: Arc<RequestMetrics>,
}

impl Registry {
    fn new(options: &MetricsOptions) -> Self {
        let metrics = Metrics::of_process(options.clone());
        let requests = RequestMetrics::new(&metrics);
        Self { metrics, requests }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Registry")
    }
}

impl ProcessOptions {
    /// What the process's clients need. Their requests are counted in the process's metrics.
    #[must_use]
    pub fn client_cx(&self, lifecycle: &Lifecycle) -> ClientCx {
        ClientCx::of(lifecycle, lifecycle.tasks().clone()).with_metrics(Arc::clone(&self.registry.requests))
    }

    /// Serves `/livez` and `/readyz` too, the latter with these checks and that of the election.
    #[must_use]
    pub fn with_probes(mut self, checks: Vec<Check>) -> Self {
        self.probes = Some(Probes(checks));
        self
    }

    /// Lets somebody else than the component tell of the election.
    #[must_use]
    pub fn with_election_reporter(mut self, name: &str) -> Self {
        name.clone_into(&mut self.election_reporter);
        self
    }

    /// Lets the API servers decide who leads where the gate `CoordinatedLeaderElection` is on.
    #[must_use]
    pub fn coordinated(mut self) -> Self {
        self.may_be_coordinated = true;
        self
    }

    /// Gives the lease back at a stop, once the leader's work has ended.
    #[must_use]
    pub fn releasing(mut self) -> Self {
        if let Some(leader) = &mut self.leader {
            leader.release_on_stop = true;
        }
        self
    }

    /// The same where the gate `ControllerManagerReleaseLeaderElectionLockOnExit` says so.
    #[must_use]
    pub fn releasing_where_told(self, gates: &Gates) -> Self {
        if gates.enabled(RELEASE_LEASE_ON_EXIT) { self.releasing() } else { self }
    }

    /// Where the pages of controllers are, to be given to them.
    #[must_use]
    pub fn debug_pages(&self) -> DebugPages {
        self.debug_pages.clone()
    }

    /// Serves a page of the process's own.
    #[must_use]
    pub fn with_page(mut self, path: &'static str, answer: impl Fn() -> Response + Send + Sync + 'static) -> Self {
        self.page = Some(Page { path, answer: Arc::new(answer) });
        self
    }

    /// Reads the flags, adding what is wrong with them to `errors`.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub fn from_options(
        name: &'static str,
        options: &Options,
        rng: &SharedRng,
        gates: &Gates,
        errors: &mut Errors,
    ) -> Result<Self, ConfigError> {
        let leader = options.bool("leader-elect").then(|| leader_config(options, rng, errors));
        let serving = SecureServing::from_options(options, name, errors);
        let access = AccessOptions::from_options(options, gates, errors);
        let metrics_options = MetricsOptions::from_options(options, errors).obeying(gates);
        let registry = Registry::new(&metrics_options);
        let profiling = options.bool("profiling");
        let mut client =
            ClientConfig::load(options.string("kubeconfig"), options.string("master"))?.with_component(name);
        client.qps = options.float("kube-api-qps");
        client.burst = u32::try_from(options.int("kube-api-burst")).unwrap_or(0);
        match options.string("kube-api-content-type") {
            "application/vnd.kubernetes.protobuf" => client.content = ContentType::Protobuf,
            "application/json" | "" => client.content = ContentType::Json,
            other => errors.push(format!("--kube-api-content-type: unsupported content type {other:?}")),
        }
        Ok(Self {
            name,
            client,
            leader,
            serving,
            access,
            metrics_options,
            registry,
            profiling,
            probes: None,
            page: None,
            debug_pages: DebugPages::default(),
            election_reporter: String::new(),
            may_be_coordinated: false,
        })
    }
}

fn leader_config(options: &Options, rng: &SharedRng, errors: &mut Errors) -> LeaderConfig {
    let lock = options.string("leader-elect-resource-lock");
    errors.check(lock == "leases", "resourceLock value must be \"leases\"");
    let hostname = std::fs::read_to_string(HOSTNAME_FILE).unwrap_or_default();
    let namespace = options.string("leader-elect-resource-namespace");
    let name = options.string("leader-elect-resource-name");
    let config = LeaderConfig {
        lease_duration: options.duration("leader-elect-lease-duration"),
        renew_deadline: options.duration("leader-elect-renew-deadline"),
        retry_period: options.duration("leader-elect-retry-period"),
        ..LeaderConfig::new(namespace, name, hostname.trim(), rng)
    };
    errors.ok(config.validate());
    config
}

/// What the leader gets to work with.
#[derive(Clone)]
pub struct Leading {
    /// The API, as the process itself.
    pub client: Client,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process is asked to stop.
    pub stop: CancellationToken,
}

/// Serves the endpoint, waits to become leader and runs `lead`. Where the lease is given back at a stop, `lead` must end its
/// work and itself then, soon; otherwise, and when the leadership is lost, its future is dropped.
///
/// # Errors
/// When the process cannot serve, `lead` fails, or the leadership is lost.
pub async fn run_process<F, A>(
    options: ProcessOptions,
    lifecycle: &Lifecycle,
    checks: Vec<Check>,
    config: Value,
    lead: F,
) -> Result<(), BoxError>
where
    F: FnOnce(Leading) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    let cx = options.client_cx(lifecycle);
    let client = Client::new(options.client.clone(), cx.clone())?;
    let coordinates = options.may_be_coordinated && lifecycle.gates().enabled(COORDINATED_ELECTION);
    let elector = options.leader.clone().map(|mut config| {
        config.coordinated = coordinates.then(|| candidacy(lifecycle.versions()));
        let reporter = if options.election_reporter.is_empty() { options.name } else { &options.election_reporter };
        let recorder = EventRecorder::new(&client, reporter, "");
        LeaderElector::new(&client, config, Some(recorder))
    });
    let elector = elector.transpose()?;
    let metrics = Arc::clone(&options.registry.metrics);
    metrics.show_gates(lifecycle.gates());
    metrics.show_versions(lifecycle.versions());
    let checks = election_check(elector.as_ref()).into_iter().chain(checks).collect();
    let ready =
        options.probes.iter().flat_map(|probes| election_check(elector.as_ref()).into_iter().chain(probes.0.clone()));
    serve(&options, lifecycle, &cx, &metrics, (checks, ready.collect()), config).await?;
    let leading = Leading { client, metrics, stop: lifecycle.events().shutdown_initiated.token() };
    match elector {
        None => lead_when_healthy(leading, lead).await,
        Some(elector) => {
            let lease = options.leader.as_ref().map(|leader| leader.name.as_str()).unwrap_or_default();
            let leads = leading.metrics.gauges(&MASTER_STATUS).with(&[lease]);
            elect(&elector, leading, leads, lead).await
        }
    }
}

/// What this process stands for in an election that others decide.
fn candidacy(versions: Versions) -> Candidacy {
    let whole = |version: MinorVersion| format!("{version}.0");
    Candidacy { binary_version: whole(BINARY), emulation_version: whole(versions.emulated) }
}

async fn elect<F, A>(
    elector: &LeaderElector,
    leading: Leading,
    leads: prometheus::Gauge,
    lead: F,
) -> Result<(), BoxError>
where
    F: FnOnce(Leading) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    let mut outcome = Ok(());
    let stop = leading.stop.clone();
    leads.set(0.0);
    let work = async {
        leads.set(1.0);
        outcome = lead_when_healthy(leading, lead).await;
    };
    let end = elector.run(stop, |_| work).await;
    leads.set(0.0);
    match end {
        LeaderEnd::Lost => Err("leaderelection lost".into()),
        LeaderEnd::Stopped | LeaderEnd::Finished => outcome,
    }
}

async fn lead_when_healthy<F, A>(leading: Leading, lead: F) -> Result<(), BoxError>
where
    F: FnOnce(Leading) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    tokio::select! {
        biased;
        () = leading.stop.cancelled() => return Ok(()),
        healthy = wait_healthy(&leading.client) => healthy?,
    }
    lead(leading).await
}

/// The API server answers `/healthz` within ten seconds, or the process ends and is started again.
async fn wait_healthy(client: &Client) -> Result<(), BoxError> {
    let healthy = async {
        loop {
            let answer = client.send(client::Request::get("/healthz").timeout(HEALTHY_LIMIT)).await;
            if answer.is_ok_and(|answer| answer.status == http::StatusCode::OK) {
                return;
            }
            tokio::time::sleep(HEALTHY_INTERVAL).await;
        }
    };
    tokio::time::timeout(HEALTHY_LIMIT, healthy)
        .await
        .map_err(|_| BoxError::from("failed to wait for apiserver being healthy: timed out waiting for the condition"))
}

fn election_check(elector: Option<&LeaderElector>) -> Option<Check> {
    let elector = elector?.clone();
    Some(Check::instant("leaderElection", move || elector.check()))
}

async fn serve(
    options: &ProcessOptions,
    lifecycle: &Lifecycle,
    cx: &ClientCx,
    metrics: &Arc<Metrics>,
    (checks, ready): (Vec<Check>, Vec<Check>),
    config: Value,
) -> Result<(), BoxError> {
    if !options.serving.is_enabled() {
        return Ok(());
    }
    let slis = Metrics::new(options.metrics_options.clone());
    let health = Health::new(&slis, Duration::ZERO);
    for check in checks {
        health.add(&[HealthEndpoint::Healthz], &check)?;
    }
    for check in ready {
        health.add(HealthEndpoint::READY, &check)?;
    }
    let (access, client_cas) = Access::new(&options.access, options.name, cx, lifecycle.rng(), None)?;
    let access = Arc::new(access);
    let mut serving = options.serving.clone();
    serving.asks_for_certificates = access.follow_cluster().await?;
    let endpoint = endpoint::Endpoint {
        access,
        health,
        metrics: Arc::clone(metrics),
        slis,
        config,
        zpages: Zpages::new(options.name, lifecycle, &["/configz", "/healthz", "/metrics"]),
        debugging: options.profiling.then(|| Debugging::new(lifecycle, Contention::Untold)),
        probes: options.probes.is_some(),
        page: options.page.clone(),
        debug_pages: options.debug_pages.clone(),
    };
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let (clock, rng) = (Arc::clone(lifecycle.clock()), Arc::clone(lifecycle.rng()));
    let generate = move |names: &[String]| self_signed(names, &clock, &rng);
    let certs = serving.certificates(&names, &generate)?;
    serving.serve(lifecycle.tasks(), certs, &client_cas, Arc::new(endpoint))?;
    component_base::notify::ready();
    Ok(())
}

/// A serving pair, signed by an authority that is forgotten at once.
///
/// # Errors
/// When there is no key to be had.
pub fn self_signed(names: &[String], clock: &SharedClock, rng: &SharedRng) -> Result<(Vec<u8>, Vec<u8>), BoxError> {
    let name = names.first().map(String::as_str).unwrap_or_default();
    let (ca_key, key) =
        (PrivateKey::generate(KeyAlgorithm::EcdsaP256)?, PrivateKey::generate(KeyAlgorithm::EcdsaP256)?);
    let now = clock.wall();
    let authority = CertificateAuthority::create(&format!("{name}-ca"), ca_key, SELF_SIGNED_VALIDITY, now, rng)?;
    let mut alt_names = AltNames::default();
    for name in names {
        alt_names.push_host(name);
    }
    let spec = CertificateSpec::server(name, alt_names, SELF_SIGNED_VALIDITY);
    let leaf = authority.issue(&spec, key.public_key(), now, rng)?;
    let chain = format!("{}{}", leaf.to_pem(), authority.certificate().to_pem());
    Ok((chain.into_bytes(), key.to_pem()?.into_bytes()))
}
