//! Elasticity at size: what metrics-server takes for the pods of hollow kubelets, and kube-controller-manager for autoscalers
//! that all look at their metrics in every period.

pub mod kubelets;
mod objects;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base::TaskGroup;
use bytes::Bytes;
use client::{Client, ClientConfig, Request, Trust};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use serde_json::Value;

use self::objects::{Made, PODS_OF_A_NODE};
use crate::api_server::{ApiServer, Storage, free_port};
use crate::child::Child;
use crate::controller_manager::ControllerManager;
use crate::figure::Figure;
use crate::https::{Connection, JSON};
use crate::identity::Identity;
use crate::sample::Stopwatch;
use crate::usage::{CpuMeter, resident_bytes};

const FLAGS: &[&str] = &[
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority,DefaultTolerationSeconds",
    "--enable-aggregator-routing=true",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-username-headers=X-Remote-User",
];
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
/// How often everything is looked at, by default.
const PERIOD: Duration = Duration::from_secs(15);
/// Requests under way while objects are made.
const PARALLEL: usize = 64;
/// When this is over and something has not come about, something is wrong.
const PATIENCE: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(500);
const METRICS_SERVER_MIB: f64 = 60.0;
const METRICS_SERVER_PERCENT: f64 = 2.0;
const AUTOSCALERS_PERCENT: f64 = 5.0;

/// The sizes of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the binaries are.
    pub binaries: PathBuf,
    /// Pods that metrics-server tells of, for its own figures.
    pub pods: usize,
    /// Autoscalers, each of a workload with one pod.
    pub autoscalers: usize,
    /// For how long each process is watched.
    pub watched: Duration,
}

impl Plan {
    /// The run that figures are published from.
    #[must_use]
    pub fn full(binaries: PathBuf) -> Self {
        Self { binaries, pods: 5_000, autoscalers: 10_000, watched: 4 * PERIOD }
    }

    /// A run that shows that everything works; its figures mean nothing.
    #[must_use]
    pub fn quick(binaries: PathBuf) -> Self {
        Self { binaries, pods: 100, autoscalers: 200, watched: PERIOD }
    }
}

/// Everything that runs, and connections to it.
struct Stage {
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
    identity: Identity,
    _server: ApiServer,
    connection: Connection,
    tasks: TaskGroup,
    kubelets: (Child, u16),
}

/// Measures and prints the figures.
///
/// # Errors
/// A process did not start, or what it should do did not come about in time.
pub async fn run(plan: &Plan) -> Result<()> {
    let stage = Stage::start(&plan.binaries).await?;
    stage.make(objects::namespaces()).await?;
    stage.make_pods(0..plan.pods).await?;
    let metrics = MetricsServer::start(&plan.binaries, &stage).await?;
    metrics.wait_for(plan.pods).await?;
    watch("elastic-metrics-server", &metrics.process, plan.watched, METRICS_SERVER_PERCENT).await?;
    let mebibytes = mebibytes(metrics.process.pid())?;
    Figure::beside_promised("elastic-metrics-server-memory", mebibytes, METRICS_SERVER_MIB, "MiB").print()?;

    stage.make_pods(plan.pods..plan.autoscalers).await?;
    stage.make((0..plan.autoscalers).map(objects::deployment)).await?;
    stage.make(objects::extension(metrics.address, metrics.port)).await?;
    metrics.wait_for(plan.autoscalers.max(plan.pods)).await?;
    stage.wait_for_extension().await?;
    stage.make((0..plan.autoscalers).map(objects::autoscaler)).await?;
    let controllers = Controllers::start(&plan.binaries, &stage).await?;
    controllers.wait_for_looks(2 * plan.autoscalers).await?;
    let (before, since) = (controllers.looks().await?, Stopwatch::start());
    watch("elastic-autoscalers", controllers.manager.process(), plan.watched, AUTOSCALERS_PERCENT).await?;
    let looks = as_float(controllers.looks().await?.saturating_sub(before)) / since.elapsed().as_secs_f64();
    let due = as_float(plan.autoscalers) / PERIOD.as_secs_f64();
    Figure::beside_promised("elastic-autoscalers-looks", looks, due, "1/s").print()?;
    Figure::alone("elastic-autoscalers-memory", self::mebibytes(controllers.manager.process().pid())?, "MiB")
        .print()?;
    Ok(())
}

/// Prints the part of a processor that a process takes.
async fn watch(name: &str, process: &Child, time: Duration, promised: f64) -> Result<()> {
    let (meter, since) = (CpuMeter::start(process.pid())?, Stopwatch::start());
    tokio::time::sleep(time).await;
    let percent = 100.0 * meter.seconds()? / since.elapsed().as_secs_f64();
    Ok(Figure::beside_promised(format!("{name}-cpu"), percent, promised, "percent").print()?)
}

fn mebibytes(pid: u32) -> Result<f64> {
    Ok(as_float(usize::try_from(resident_bytes(pid)?)?) / f64::from(1 << 20))
}

#[expect(clippy::cast_precision_loss, reason = "figures are small")]
fn as_float(number: usize) -> f64 {
    number as f64
}

/// The address by which others know this machine: the API server passes nothing on to a loopback address.
fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).context("this machine has no address that others know")?;
    let address = socket.local_addr()?.ip();
    ensure!(!address.is_loopback() && !address.is_unspecified(), "this machine has no address that others know");
    Ok(address)
}

impl Stage {
    async fn start(binaries: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let identity = Identity::create(&home.path().join("pki"))?;
        let file = |name: &str| identity.file(name).display().to_string();
        let more = [
            format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt")),
            format!("--proxy-client-cert-file={}", file("front-proxy-client.crt")),
            format!("--proxy-client-key-file={}", file("front-proxy-client.key")),
        ];
        let flags: Vec<&str> = FLAGS.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let server = ApiServer::start(binaries, home.path(), &identity, Storage::Embedded, &flags).await?;
        let (tasks, tls) = (TaskGroup::new("elastic"), identity.client_tls()?);
        let connection = Connection::open(server.port(), &tls, &tasks).await?;
        let kubeconfig = identity.kubeconfig(&server.url())?;
        let port = free_port()?;
        let program = std::env::var_os("BENCH_ELASTIC").map_or_else(std::env::current_exe, |path| Ok(path.into()))?;
        let arguments =
            ["hollow-kubelets".into(), port.to_string().into(), identity.directory().as_os_str().to_owned()];
        let kubelets = Child::start(&program, arguments, &home.path().join("kubelets.log"))?;
        Ok(Self { home, kubeconfig, identity, _server: server, connection, tasks, kubelets: (kubelets, port) })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.path().join(format!("{name}.log"))
    }

    async fn make(&self, objects: impl IntoIterator<Item = Made>) -> Result<()> {
        let made = stream::iter(objects).map(|made| self.make_one(made)).buffer_unordered(PARALLEL);
        made.try_for_each(|()| async { Ok(()) }).await
    }

    async fn make_one(&self, made: Made) -> Result<()> {
        let Made { collection, object, status } = made;
        let call = async |method, path: &str, media, body: String| -> Result<()> {
            let answer = self.connection.call(method, path, media, body.into()).await?;
            answer.ok().map(drop).with_context(|| path.to_owned())
        };
        call(Method::POST, &collection, JSON, object.to_string()).await?;
        let Some(status) = status else { return Ok(()) };
        let path = format!("{collection}/{}/status", object["metadata"]["name"].as_str().unwrap_or_default());
        call(Method::PATCH, &path, "application/merge-patch+json", status.to_string()).await
    }

    /// Pods with these numbers, and the nodes that they are on.
    async fn make_pods(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let nodes = numbers.start.div_ceil(PODS_OF_A_NODE)..numbers.end.div_ceil(PODS_OF_A_NODE);
        self.make(nodes.map(|number| objects::node(number, self.kubelets.1))).await?;
        self.make(numbers.map(objects::pod)).await
    }

    /// Until the API server passes questions about metrics on.
    async fn wait_for_extension(&self) -> Result<()> {
        let path = format!("{METRICS}/nodes");
        let answers = async || {
            let answer = self.connection.call(Method::GET, &path, JSON, Bytes::new()).await?;
            Ok(answer.status.is_success())
        };
        until("metrics behind the API server", answers).await
    }
}

/// Asks again and again.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let since = Stopwatch::start();
    while !is_so().await? {
        if since.elapsed() > PATIENCE {
            bail!("{what}: not there after {PATIENCE:?}");
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// A client of a process that signs its certificate itself, once it answers.
async fn client_of(port: u16, stage: &Stage, log: &Path) -> Result<Client> {
    let mut config = ClientConfig::from_kubeconfig_file(&stage.kubeconfig)?;
    (config.server, config.trust) = (format!("https://127.0.0.1:{port}"), Trust::Insecure);
    let client = crate::scheduler_process::client(config, &stage.tasks)?;
    let answers = async || Ok(client.send(Request::get("/healthz")).await.is_ok());
    until("an answer", answers).await.with_context(|| format!("see {}", log.display()))?;
    Ok(client)
}

struct MetricsServer {
    process: Child,
    address: IpAddr,
    port: u16,
    client: Client,
}

impl MetricsServer {
    async fn start(binaries: &Path, stage: &Stage) -> Result<Self> {
        let (address, port, log) = (own_address()?, free_port()?, stage.log("metrics-server"));
        let kubeconfig = stage.kubeconfig.display();
        let arguments = [
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", stage.home.path().join("metrics-server").display()),
            "--kubelet-insecure-tls".to_owned(),
            "--kubelet-use-node-status-port".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--metric-resolution={}s", PERIOD.as_secs()),
        ];
        let process = Child::start(&binaries.join("metrics-server"), arguments, &log)?;
        let client = client_of(port, stage, &log).await?;
        Ok(Self { process, address, port, client })
    }

    /// Until it tells of so many pods.
    async fn wait_for(&self, pods: usize) -> Result<()> {
        let path = format!("{METRICS}/pods");
        let tells = async || {
            let Ok(answer) = self.client.send(Request::get(path.as_str())).await else { return Ok(false) };
            let list: Value = serde_json::from_slice(&answer.body)?;
            Ok(list["items"].as_array().map_or(0, Vec::len) == pods)
        };
        until(&format!("metrics of {pods} pods"), tells).await
    }
}

struct Controllers {
    manager: ControllerManager,
    client: Client,
}

impl Controllers {
    async fn start(binaries: &Path, stage: &Stage) -> Result<Self> {
        let manager = ControllerManager::start(
            binaries,
            stage.home.path(),
            &stage.identity,
            &stage.kubeconfig,
            &["horizontal-pod-autoscaler-controller"],
            &["--concurrent-horizontal-pod-autoscaler-syncs=20"],
        )?;
        let client = client_of(manager.port(), stage, manager.log()).await?;
        Ok(Self { manager, client })
    }

    /// How often an autoscaler was looked at so far.
    async fn looks(&self) -> Result<usize> {
        let answer = self.client.send(Request::get("/metrics").accept("text/plain")).await?;
        let text = String::from_utf8_lossy(&answer.body);
        let series = text.lines().filter_map(|line| {
            line.strip_prefix("horizontal_pod_autoscaler_controller_reconciliations_total{")?.rsplit(' ').next()
        });
        Ok(series.filter_map(|number| number.parse::<usize>().ok()).sum())
    }

    async fn wait_for_looks(&self, looks: usize) -> Result<()> {
        until(&format!("{looks} looks at autoscalers"), async || Ok(self.looks().await? >= looks)).await
    }
}
