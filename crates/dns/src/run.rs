//! The DNS server as a process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, ClientConfig, ClientCx, InformerOptions, Informers, RequestMetrics};
use component_base::flags::{self, Errors, Flag, FlagSet, Options};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::{BoxError, PortSharing, Request, Security, Server, bind, handler_fn, text};
use component_base::{Component, Known, Lifecycle, no_config_file, notify};
use http::StatusCode;

use crate::cache::Cache;
use crate::data::ClusterData;
use crate::forward::Upstreams;
use crate::informed::Informed;
use crate::metrics::DnsMetrics;
use crate::responder::Responder;
use crate::server::serve;
use crate::zone::Zone;

const MAX_TTL: i64 = 3600;
/// How long the contents have to arrive before queries are answered without them.
const FIRST_CONTENTS: Duration = Duration::from_secs(5);
/// How long queries are still answered after the request to end, until clients have learnt of it.
const LAME_DUCK: Duration = Duration::from_secs(5);

/// The server's flags.
pub(crate) const FLAGS: &[FlagSet] = &[
    flags::GLOBAL,
    flags::LOGS,
    flags::METRICS,
    FlagSet {
        title: "cluster-dns",
        flags: &[
            Flag::string("kubeconfig", "").help("Path to a kubeconfig; without one the pod's own account is used."),
            Flag::string("master", "").help("The address of the API server (overrides that in the kubeconfig)."),
            Flag::string("bind-address", "0.0.0.0:53").help("Address and port to answer on, over UDP and TCP; 0.0.0.0 and :: stand for all addresses of both families."),
            Flag::string("health-bind-address", "0.0.0.0:8080").help("Address and port of /health."),
            Flag::string("ready-bind-address", "0.0.0.0:8181").help("Address and port of /ready."),
            Flag::string("metrics-bind-address", "0.0.0.0:9153").help("Address and port of /metrics."),
            Flag::string("cluster-domain", "cluster.local").help("The domain of Services."),
            Flag::int32("ttl", "30").help("How long answers may be kept, in seconds, 0 to 3600."),
            Flag::string("own-service", "kube-system/kube-dns").help("The Service by which clients reach this server."),
            Flag::string("resolv-conf", "/etc/resolv.conf").help("Names the servers that know what this one does not."),
        ],
    },
];

const COMPONENT: Component = Component {
    name: "cluster-dns",
    about: "Answers DNS queries for Services and pods of the cluster.",
    flags: FLAGS,
    gates: Known::KUBERNETES,
    prepare: no_config_file,
    drain: Duration::from_secs(5),
};

/// Runs the binary. `tidy` is called by threads before they sleep, as [`component_base::run`] says.
#[must_use]
pub fn main(tidy: base::Tidy) -> ExitCode {
    component_base::run(&COMPONENT, tidy, run)
}

struct Settings {
    zone: Zone,
    dns: SocketAddr,
    health: SocketAddr,
    ready: SocketAddr,
    metrics: SocketAddr,
}

fn settings(options: &Options) -> Result<Settings, BoxError> {
    let mut errors = Errors::new();
    let ttl = options.int("ttl");
    errors.check((0..=MAX_TTL).contains(&ttl), format_args!("--ttl must be between 0 and {MAX_TTL}, not {ttl}"));
    let domain = options.string("cluster-domain").trim_matches('.').to_ascii_lowercase();
    errors.check(!domain.is_empty(), "--cluster-domain must not be empty");
    let own = options.string("own-service").split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let own = errors.ok(own.ok_or("--own-service must be NAMESPACE/NAME")).unwrap_or_default();
    let unusable = SocketAddr::from(([0, 0, 0, 0], 0));
    let mut address = |flag: &str| {
        let text = options.string(flag);
        let parsed = text.parse().map_err(|_| format!("--{flag} must be IP:port, not {text:?}"));
        errors.ok(parsed).unwrap_or(unusable)
    };
    let (dns, health) = (address("bind-address"), address("health-bind-address"));
    let (ready, metrics) = (address("ready-bind-address"), address("metrics-bind-address"));
    errors.into_result()?;
    let zone = Zone { domain, ttl: u32::try_from(ttl).unwrap_or(0), own_service: own };
    Ok(Settings { zone, dns, health, ready, metrics })
}

/// Runs the server until it is asked to end.
///
/// # Errors
/// When the settings are wrong, a port is taken, or the API server's address is not known.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let settings = settings(&options)?;
    let mut errors = Errors::new();
    let metrics = Metrics::of_process(MetricsOptions::from_options(&options, &mut errors));
    errors.into_result()?;
    let resolv_conf = options.string("resolv-conf");
    let text_of = std::fs::read_to_string(Path::new(resolv_conf));
    let upstreams = Upstreams::from_resolv_conf(&text_of.map_err(|error| format!("{resolv_conf}: {error}"))?);

    let tasks = lifecycle.tasks();
    let config = ClientConfig::load(options.string("kubeconfig"), options.string("master"))?;
    let cx = ClientCx::new(lifecycle.clock().clone(), lifecycle.rng().clone(), tasks.clone())
        .behind(lifecycle.proxies())
        .with_metrics(RequestMetrics::new(&metrics));
    let client = Client::new(config.with_component("cluster-dns"), cx)?;
    let informers = Informers::new(&client, InformerOptions::default());
    let counted = DnsMetrics::new(&metrics);
    let data: Arc<dyn ClusterData> = Arc::new(Informed::new(&informers, lifecycle.clock(), Arc::clone(&counted)));

    page(settings.health, &lifecycle, "/health", || text(StatusCode::OK, "OK"))?;
    let seen = Arc::clone(&data);
    page(settings.ready, &lifecycle, "/ready", move || {
        if seen.is_synced() { text(StatusCode::OK, "OK") } else { text(StatusCode::SERVICE_UNAVAILABLE, "kubernetes") }
    })?;
    page(settings.metrics, &lifecycle, "/metrics", move || metrics.answer())?;
    let (cache, rng) = (Cache::new(lifecycle.clock().clone()), lifecycle.rng().clone());
    let responder = Responder::new(settings.zone, data, upstreams, cache, rng).counting(counted);
    let responder = Arc::new(responder);
    tokio::select! {
        _ = tokio::time::timeout(FIRST_CONTENTS, informers.wait_synced()) => {}
        () = lifecycle.shutdown_requested() => return Ok(()),
    }
    let address = serve(settings.dns, Arc::clone(&responder), tasks).await?;
    tracing::info!(address = %address, "answering");
    tasks.spawn_cancellable("loop", async move { responder.look_for_loops().await });
    notify::ready();
    lifecycle.shutdown_requested().await;
    tokio::time::sleep(LAME_DUCK).await;
    Ok(())
}

/// Serves one page on a port of its own.
fn page<F>(address: SocketAddr, lifecycle: &Lifecycle, path: &'static str, answer: F) -> Result<(), BoxError>
where
    F: Fn() -> component_base::serving::Response + Send + Sync + 'static,
{
    let handler = handler_fn(move |request: Request| {
        let found = request.uri().path() == path;
        let response = if found { answer() } else { text(StatusCode::NOT_FOUND, "404 page not found\n") };
        async move { response }
    });
    let listener = bind(address, PortSharing::Exclusive)?;
    Server::new(Arc::new(handler), Security::Plain).spawn(lifecycle.tasks(), listener)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_flags_is_sound() {
        assert_eq!(flags::check_table(FLAGS), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (argument, part) in [
            ("--ttl=4000", "--ttl"),
            ("--own-service=dns", "--own-service"),
            ("--bind-address=here", "--bind-address"),
            ("--cluster-domain=.", "--cluster-domain"),
        ] {
            let options = flags::parse(FLAGS, [argument.to_owned()]).unwrap();
            let error = settings(&options).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{error}");
        }
    }
}
