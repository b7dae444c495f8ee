//! The kubelet's own API: what answers, who is recognised, and who may ask.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use authn::{Anonymous, Authenticator, BearerHeader, Chain, ClientCertificate, SubjectUid, TokenCache};
use component_base::Lifecycle;
use component_base::debugging::{Contention, Debugging};
use component_base::health::{Check, Endpoint, Health};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::reload::{Reload, spawn_reloader};
use component_base::serving::{
    BoxError, Limits, PortSharing, Request, Security, Server, ServerHandle, bind, handler_fn, text,
};
use component_base::tls::{CaFile, CertFiles, ServerTls, ServingCerts, TlsOptions};
use component_base::zpages::Zpages;
use http::StatusCode;
use pki::{CaBundle, CaPool};

use super::Dependencies;
use crate::certificates;
use crate::config::{Plan, gates};
use crate::server::{
    Access, Api, Authorizer, Everyone, NodeLogs, ReadOnly, ReviewAuthorizer, ReviewTokens, Secured, Source, Stats,
};
use crate::volume_health;

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
        let listener = bind(address, PortSharing::Exclusive)?;
        let handler = handler_fn(async |request: Request| match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "ok"),
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        });
        servers.push(Server::new(Arc::new(handler), Security::Plain).spawn(tasks, listener)?);
    }
    Ok(servers)
}

pub(super) fn api(dependencies: &Dependencies, plan: &Plan, lifecycle: &Lifecycle) -> Result<Api, BoxError> {
    let (volumes, set) = (dependencies.volumes.clone(), lifecycle.gates().clone());
    let (metrics, slis) = (dependencies.metrics.all.clone(), Metrics::new(MetricsOptions::default()));
    metrics.show_gates(lifecycle.gates());
    metrics.show_versions(lifecycle.versions());
    let health = Health::new(&slis, Duration::ZERO);
    let engine = dependencies.engine.clone();
    let sync_loop = move || engine.sync_loop_health().map_err(|error| error.to_string());
    health.add(&[Endpoint::Healthz], &Check::instant("syncloop", sync_loop))?;
    if let Some(logging) = lifecycle.logging().cloned() {
        health.add(&[Endpoint::Healthz], &Check::instant("log", move || logging.check()))?;
    }
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
        source: if lifecycle.gates().enabled(gates::STATS_FROM_RUNTIME) { Source::Runtime } else { Source::Groups },
        checkpoints: lifecycle.gates().enabled(gates::CHECKPOINTS),
        zpages: Zpages::new("kubelet", lifecycle, &["/configz", "/healthz", "/metrics", "/pods"]),
        debugging: Debugging::new(lifecycle, Contention::Untold),
        tracer: dependencies.tracer.clone(),
    })
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
    let mut targets: Vec<Arc<dyn Reload>> = vec![certs];
    let mut members: Vec<Arc<dyn Authenticator>> = Vec::new();
    let ca = &config.authentication.x509.client_ca_file;
    if !ca.is_empty() {
        let file = CaFile::load(ca)?;
        tls.request_client_certs(&[&file.bundle().load_full()])?;
        let pool = Arc::new(CaPool::new(CaBundle::from_pem(&file.pem())?));
        follow(&file, &pool, &tls, ca);
        members.push(Arc::new(ClientCertificate::new(pool, lifecycle.clock().clone(), SubjectUid::Ignored)));
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

/// A changed bundle is in force for new connections and for open ones.
fn follow(file: &Arc<CaFile>, pool: &Arc<CaPool>, tls: &Arc<ServerTls>, path: &str) {
    let (pool, tls, path) = (Arc::downgrade(pool), Arc::downgrade(tls), Path::new(path).to_owned());
    file.on_change(move |bundle| {
        let (Some(pool), Some(tls)) = (pool.upgrade(), tls.upgrade()) else { return };
        if let Err(error) = tls.request_client_certs(&[bundle]) {
            tracing::error!(%error, "Applying a new client CA bundle failed");
        }
        if let Err(error) = pool.reload(&path) {
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
