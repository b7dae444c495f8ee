//! The kubelet's own API: what answers, who is recognised, and who may ask.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use authn::{Anonymous, Authenticator, BearerHeader, Chain, ClientCertificate, SubjectUid, TokenCache};
use base::TaskGroup;
use component_base::debugging::{Contention, Debugging};
use component_base::health::{Check, Endpoint, Health};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::reload::{Reload, spawn_reloader};
use component_base::serving::{
    BoxError, Limits, PortSharing, Request, Security, Server, ServerHandle, bind, handler_fn, text,
};
use component_base::tls::{CaFile, CertFiles, ServerTls, ServingCerts, TlsOptions};
use component_base::zpages::Zpages;
use component_base::{Gates, Lifecycle};
use http::StatusCode;
use pki::{CaBundle, CaPool};

use super::Dependencies;
use crate::certificates;
use crate::config::{Plan, gates};
use crate::server::{
    Access, Api, Authorizer, Everyone, NodeLogs, ReadOnly, ReviewAuthorizer, ReviewTokens, Secured, Source, Stats,
};
use crate::volume_health;

/// Pause before the port for health is tried again.
const HEALTH_PAUSE: Duration = Duration::from_secs(5);

/// Starts the servers that the configuration asks for.
pub(super) async fn serve(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
    api: &Arc<Api>,
) -> Result<Vec<ServerHandle>, BoxError> {
    let (config, tasks) = (&plan.config, lifecycle.tasks());
    let mut servers = Vec::new();
    if config.enable_server != Some(false) {
        let (tls, authentication) = secure(dependencies, plan, lifecycle).await?;
        let access = Access { authentication, authorizer: authorizer(dependencies, plan)? };
        let listener =
            bind(SocketAddr::new(config.address.parse()?, u16::try_from(config.port)?), PortSharing::Exclusive)?;
        let secured = Arc::new(Secured { api: api.clone(), access });
        let server = Server::new(secured, Security::Tls(tls)).with_limits(Limits::default());
        servers.push(server.spawn(tasks, listener)?);
        tracing::info!(address = config.address, port = config.port, "Starting to listen");
    }
    if config.read_only_port > 0 {
        let address = SocketAddr::new(config.address.parse()?, u16::try_from(config.read_only_port)?);
        let listener = bind(address, PortSharing::Exclusive)?;
        servers.push(Server::new(Arc::new(ReadOnly(api.clone())), Security::Plain).spawn(tasks, listener)?);
    }
    let port = config.healthz_port.unwrap_or(10248);
    if port > 0 {
        let address = SocketAddr::new(config.healthz_bind_address.parse()?, u16::try_from(port)?);
        tasks.spawn_cancellable("health-port", serve_health(address, tasks.clone()));
    }
    Ok(servers)
}

/// The port for those who watch the process from the machine: it tells that the kubelet lives. What has the port now is
/// waited for.
async fn serve_health(address: SocketAddr, tasks: TaskGroup) {
    let health = Health::new(&Metrics::new(MetricsOptions::default()), Duration::ZERO);
    let handler = Arc::new(handler_fn(move |request: Request| {
        let health = health.clone();
        async move {
            let (path, query) = (request.uri().path(), request.uri().query());
            let answer = if path.starts_with("/healthz") { health.answer(path, query).await } else { None };
            answer.unwrap_or_else(|| text(StatusCode::NOT_FOUND, "404 page not found\n"))
        }
    }));
    loop {
        let server = Server::new(handler.clone(), Security::Plain);
        let served = bind(address, PortSharing::Exclusive).map_err(BoxError::from);
        match served.and_then(|listener| Ok(server.spawn(&tasks, listener)?)) {
            Ok(_) => return,
            Err(error) => tracing::error!(%error, "Failed to start healthz server"),
        }
        tokio::time::sleep(HEALTH_PAUSE).await;
    }
}

pub(super) fn api(dependencies: &Dependencies, plan: &Plan, lifecycle: &Lifecycle) -> Result<Api, BoxError> {
    let (volumes, set) = (dependencies.volumes.clone(), lifecycle.gates().clone());
    let metrics = dependencies.metrics.all.clone();
    let slis = Metrics::new(MetricsOptions::default().obeying(lifecycle.gates()));
    metrics.show_gates(lifecycle.gates());
    metrics.show_versions(lifecycle.versions());
    let health = Health::new(&slis, Duration::ZERO);
    let engine = dependencies.engine.clone();
    let sync_loop = move || engine.sync_loop_health().map_err(|error| error.to_string());
    if let Some(logging) = lifecycle.logging().cloned() {
        health.add(&[Endpoint::Healthz], &Check::instant("log", move || logging.check()))?;
    }
    health.add(&[Endpoint::Healthz], &Check::instant("syncloop", sync_loop))?;
    health.add(&[Endpoint::Healthz], &dependencies.extensions.registration())?;
    let boot = dependencies.facts.proc().boot_time_seconds().ok().and_then(|seconds| i64::try_from(seconds).ok());
    let memory = dependencies.facts.proc().memory().map(|memory| memory.total_bytes).unwrap_or_default();
    let boot = Time::from_unix_seconds(boot.unwrap_or_default());
    Ok(Api {
        engine: dependencies.engine.clone(),
        runtime: dependencies.runtime.clone(),
        config: Arc::new(plan.config.clone()),
        health,
        metrics,
        slis,
        probes: dependencies.metrics.probes.clone(),
        own: dependencies.metrics.own.clone(),
        claims: Box::new(move |pods| {
            let volumes = volumes.clone();
            let set = set.clone();
            Box::pin(async move { volume_health::told(&set, volumes.claimed_rooms(&pods).await) })
        }),
        claims_shown: Default::default(),
        cert_dir: plan.cert_dir.clone(),
        stats: Stats::new(
            &plan.node.name,
            &plan.node.root_dir,
            dependencies.groups.clone(),
            dependencies.images.clone(),
            boot,
            memory,
            dependencies.gauge.clone(),
        ),
        node_logs: NodeLogs::new(&plan.config, lifecycle.tasks()),
        clock: lifecycle.clock().clone(),
        tasks: lifecycle.tasks().clone(),
        splits_log_streams: lifecycle.gates().enabled(gates::SPLIT_LOG_STREAMS),
        translates: lifecycle.gates().enabled(gates::EXTEND_WEBSOCKETS),
        separate_disks: lifecycle.gates().enabled(gates::SEPARATE_DISKS),
        source: source(lifecycle.gates()),
        checkpoints: lifecycle.gates().enabled(gates::CHECKPOINTS),
        zpages: Zpages::new("kubelet", lifecycle, &["/configz", "/healthz", "/metrics", "/pods"]),
        debugging: Debugging::new(lifecycle, Contention::Untold),
        tracer: dependencies.tracer.clone(),
    })
}

/// Who tells what pods as a whole use.
pub(super) fn source(set: &Gates) -> Source {
    if set.enabled(gates::STATS_FROM_RUNTIME) { Source::Runtime } else { Source::Groups }
}

/// Whether the subjects of certificates tell uids.
fn subject_uid(set: &Gates) -> SubjectUid {
    if set.enabled(gates::SUBJECT_UID) { SubjectUid::Parsed } else { SubjectUid::Ignored }
}

/// The certificate that is shown, and who is recognised.
async fn secure(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
) -> Result<(Arc<ServerTls>, Chain), BoxError> {
    let config = &plan.config;
    let certs = serving_certs(dependencies, plan, lifecycle).await?;
    let options = TlsOptions {
        min_version: config.tls_min_version.clone(),
        cipher_suites: config.tls_cipher_suites.clone(),
        curve_preferences: config.tls_curve_preferences.iter().map(|curve| i64::from(*curve)).collect(),
        ..TlsOptions::default()
    };
    let tls = ServerTls::new(certs.clone(), options)?;
    let set = lifecycle.gates();
    let mut targets = followed(set, &certs);
    let mut members: Vec<Arc<dyn Authenticator>> = Vec::new();
    let ca = &config.authentication.x509.client_ca_file;
    if !ca.is_empty() {
        let file = CaFile::load(ca)?;
        tls.request_client_certs(&[&file.bundle().load_full()])?;
        let pool = Arc::new(CaPool::new(CaBundle::from_pem(&file.pem())?));
        follow(&file, &pool, ca);
        advertise(set, &file, &tls);
        members.push(Arc::new(ClientCertificate::new(pool, lifecycle.clock().clone(), subject_uid(set))));
        targets.push(file);
    }
    if config.authentication.webhook.enabled == Some(true) {
        let client = dependencies.clients.as_ref().ok_or("no client provided, cannot use webhook authentication")?;
        let tokens = Arc::new(ReviewTokens(client.main.clone()));
        let ttl = config.authentication.webhook.cache_ttl.to_std();
        let cache = TokenCache::new(tokens, ttl, lifecycle.clock().clone(), lifecycle.rng(), lifecycle.tasks().clone());
        members.push(Arc::new(BearerHeader(Arc::new(cache))));
    }
    spawn_reloader(lifecycle.tasks(), targets);
    let anonymous = (config.authentication.anonymous.enabled == Some(true)).then(Anonymous::default);
    Ok((tls, Chain::new(members, anonymous, Vec::new())))
}

/// The files of the certificate that is shown, where it changes with them (gate `ReloadKubeletServerCertificateFile`). One that
/// is asked for comes from no file.
fn followed(set: &Gates, certs: &Arc<ServingCerts>) -> Vec<Arc<dyn Reload>> {
    let certs: Arc<dyn Reload> = certs.clone();
    if set.enabled(gates::RELOAD_SERVER_CERTIFICATE) { vec![certs] } else { Vec::new() }
}

/// Who is recognised by a changed bundle is so on new connections and on open ones.
fn follow(file: &CaFile, pool: &Arc<CaPool>, path: &str) {
    let (pool, path) = (Arc::downgrade(pool), Path::new(path).to_owned());
    file.on_change(move |_| {
        let Some(pool) = pool.upgrade() else { return };
        if let Err(error) = pool.reload(&path) {
            tracing::error!(%error, "Applying a new client CA bundle failed");
        }
    });
}

/// Clients of new connections are told the authorities of a changed bundle (gate `ReloadKubeletClientCAFile`), or still
/// the former ones. Who is recognised is not a matter of the gate.
fn advertise(set: &Gates, file: &CaFile, tls: &Arc<ServerTls>) {
    if !set.enabled(gates::RELOAD_CLIENT_CA) {
        return;
    }
    let tls = Arc::downgrade(tls);
    file.on_change(move |bundle| {
        let Some(tls) = tls.upgrade() else { return };
        if let Err(error) = tls.request_client_certs(&[bundle]) {
            tracing::error!(%error, "Applying a new client CA bundle failed");
        }
    });
}

async fn serving_certs(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
) -> Result<Arc<ServingCerts>, BoxError> {
    let config = &plan.config;
    if !config.tls_cert_file.is_empty() {
        let files =
            CertFiles { cert: config.tls_cert_file.clone().into(), key: config.tls_private_key_file.clone().into() };
        return Ok(ServingCerts::load(Some(&files), &[])?);
    }
    let requested = config.server_tls_bootstrap && lifecycle.gates().enabled(gates::ROTATE_SERVER_CERTIFICATE);
    if let (true, Some(clients)) = (requested, &dependencies.clients) {
        return Ok(certificates::request_serving(
            plan,
            lifecycle,
            &clients.main,
            dependencies.state.clone(),
            &dependencies.metrics.own,
        )?);
    }
    let now: SystemTime = lifecycle.clock().wall();
    Ok(certificates::self_signed(plan, lifecycle.rng(), now)?)
}

fn authorizer(dependencies: &Dependencies, plan: &Plan) -> Result<Arc<dyn Authorizer>, BoxError> {
    let settings = &plan.config.authorization;
    if settings.mode == "AlwaysAllow" {
        return Ok(Arc::new(Everyone));
    }
    let clients = dependencies.clients.as_ref().ok_or("no client provided, cannot use webhook authorization")?;
    let (yes, no) = (settings.webhook.cache_authorized_ttl.to_std(), settings.webhook.cache_unauthorized_ttl.to_std());
    Ok(Arc::new(ReviewAuthorizer::new(&clients.main, &plan.node.name, yes, no)))
}

#[cfg(test)]
mod tests {
    use base::{Rng, SystemClock};
    use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A pair for a name, and the authority that signed it.
    fn pair(name: &str) -> (String, String, String) {
        let (rng, now) = (Rng::seeded(7), SystemClock::shared().wall());
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::create(&format!("{name}-ca"), key(), DAY, now, &rng).unwrap();
        let (own, spec) = (key(), CertificateSpec::server(name, AltNames::default(), DAY));
        let leaf = authority.issue(&spec, own.public_key(), now, &rng).unwrap();
        (leaf.to_pem(), own.to_pem().unwrap().as_str().to_owned(), authority.certificate().to_pem())
    }

    #[tokio::test(start_paused = true)]
    async fn the_port_for_health_is_waited_for() {
        let tasks = TaskGroup::new("test");
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        tasks.spawn_cancellable("health-port", serve_health(address, tasks.clone()));
        tokio::time::sleep(HEALTH_PAUSE / 2).await;
        drop(taken);
        tokio::time::sleep(HEALTH_PAUSE).await;
        // From here on there is a real socket, which a clock that jumps would not wait for.
        tokio::time::resume();
        for (path, expected) in [
            ("/healthz", " 200 "),
            ("/healthz/ping", " 200 "),
            ("/healthz?verbose", "[+]ping ok\nhealthz check passed\n"),
            ("/healthz/syncloop", " 404 "),
            ("/livez", " 404 "),
        ] {
            let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
            let asked = format!("GET {path} HTTP/1.0\r\nhost: node1\r\nconnection: close\r\n\r\n");
            connection.write_all(asked.as_bytes()).await.unwrap();
            let mut answer = String::new();
            connection.read_to_string(&mut answer).await.unwrap();
            assert!(answer.contains(expected), "{path}: {answer}");
        }
        tasks.cancel();
    }

    #[test]
    fn subjects_tell_uids_by_the_gate() {
        for (on, expected) in [(true, SubjectUid::Parsed), (false, SubjectUid::Ignored)] {
            assert_eq!(subject_uid(&Gates::default().with(gates::SUBJECT_UID, on)), expected);
        }
    }

    #[test]
    fn files_are_read_again_where_gates_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |(cert, key, authority): &(String, String, String)| {
            std::fs::write(path("cert"), cert).unwrap();
            std::fs::write(path("key"), key).unwrap();
            std::fs::write(path("ca"), authority).unwrap();
        };
        let pairs = [pair("first"), pair("second")];
        for on in [true, false] {
            write(&pairs[0]);
            let set = Gates::default().with(gates::RELOAD_CLIENT_CA, on).with(gates::RELOAD_SERVER_CERTIFICATE, on);
            let files = CertFiles { cert: path("cert"), key: path("key") };
            let certs = ServingCerts::load(Some(&files), &[]).unwrap();
            let tls = ServerTls::new(certs.clone(), TlsOptions::default()).unwrap();
            let file = CaFile::load(path("ca")).unwrap();
            let pool = Arc::new(CaPool::new(CaBundle::from_pem(&file.pem()).unwrap()));
            follow(&file, &pool, path("ca").to_str().unwrap());
            advertise(&set, &file, &tls);
            let mut targets = followed(&set, &certs);
            targets.push(file);
            let (shown, told, recognised) = (certs.default_chain(), tls.config(), pool.current());
            write(&pairs[1]);
            for target in &targets {
                assert!(target.reload().unwrap());
            }
            assert_eq!(certs.default_chain() != shown, on, "the certificate");
            assert_eq!(!Arc::ptr_eq(&tls.config(), &told), on, "the authorities that clients are told");
            assert!(!Arc::ptr_eq(&pool.current(), &recognised), "clients are recognised by what the file says now");
        }
    }
}
