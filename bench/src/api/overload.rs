//! What others feel of a tenant who asks for many times what the server can give (API priority and fairness, KEP-1040): a
//! node that cannot renew its lease is given up, and another tenant's requests are nobody's overload.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use base::TaskGroup;
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::api_server::Storage;
use crate::figure::Figure;
use crate::https::{Connection, JSON};
use crate::identity::Identity;
use crate::sample::{Samples, Stopwatch};

/// How many pods the noisy tenant lists each time, at most.
const PODS: usize = 1_000;
/// Lists on the way at a time: far more than a machine answers at once.
const NOISY_CONNECTIONS: usize = 10;
const NOISY_STREAMS: usize = 100;
/// A pause between what the others ask for.
const PAUSE: Duration = Duration::from_millis(5);
/// As clients wait that are told to come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// What the others' 99th percentile may be.
const PROMISED_MS: f64 = 100.0;

const NODE: User = User { name: "system:node:n1", groups: &["system:nodes", "system:authenticated"] };
const NOISY: User = User { name: "system:serviceaccount:noisy:operator", groups: ACCOUNTS };
const QUIET: User = User { name: "system:serviceaccount:quiet:operator", groups: ACCOUNTS };
const ACCOUNTS: &[&str] = &["system:serviceaccounts", "system:authenticated"];
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Who a request is made as.
struct User {
    name: &'static str,
    groups: &'static [&'static str],
}

impl User {
    /// A request in this name, read to its end.
    async fn call(&self, connection: &Connection, method: Method, path: &str, body: Bytes) -> Result<StatusCode> {
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { JSON };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", JSON)
            .header("content-type", media)
            .header("impersonate-user", self.name);
        for group in self.groups {
            request = request.header("impersonate-group", *group);
        }
        let answer = connection.send(request.body(Full::new(body))?).await?;
        let status = answer.status();
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            frame.context("reading an answer")?;
        }
        Ok(status)
    }
}

/// Renews a node's lease and gets a tenant's pod so many times each: first alone, then beside the noisy tenant.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn overload(options: &Options, times: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let site = Site::open(options, home.path(), &identity, Storage::Embedded).await?;
    microseconds_each(0..options.pods.min(PODS), options.parallel, |number| site.create_pod(number)).await?;
    prepare(&site).await?;
    let alone = both(&site, times).await?;

    let noise = Noise::start(&site)?;
    let beside = both(&site, times).await;
    let (answered, refused) = noise.stop().await?;
    let beside = beside?;
    for (name, alone, beside) in [("lease", &alone.0, &beside.0), ("get", &alone.1, &beside.1)] {
        Figure::beside(format!("overload-{name}"), beside.median(), alone.median(), "ms").print()?;
        Figure::beside_promised(format!("overload-{name}-p99"), beside.part(0.99), PROMISED_MS, "ms").print()?;
    }
    Figure::alone("overload-noise-answered", answered, "lists/s").print()?;
    Figure::alone("overload-noise-refused", refused, "lists/s").print()?;
    Ok(())
}

/// Lets the tenants do everything, and makes the node's lease.
async fn prepare(site: &Site) -> Result<()> {
    let subjects = r#"[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:serviceaccounts"}]"#;
    let role = r#"{"kind":"ClusterRole","apiGroup":"rbac.authorization.k8s.io","name":"cluster-admin"}"#;
    let binding = format!(r#"{{"metadata":{{"name":"tenants"}},"subjects":{subjects},"roleRef":{role}}}"#);
    site.call(Method::POST, BINDINGS, binding.into()).await?.ok().context("binding the tenants' role")?;
    let node = r#"{"metadata":{"name":"n1"}}"#;
    site.call(Method::POST, "/api/v1/nodes", node.into()).await?.ok().context("making the node")?;
    let made = NODE.call(&site.connection, Method::POST, LEASES, node.into()).await?;
    anyhow::ensure!(made == StatusCode::CREATED, "making the lease: {made}");
    Ok(())
}

/// Renewals of a lease, and gets, in milliseconds; each has a connection of its own.
async fn both(site: &Site, times: usize) -> Result<(Samples, Samples)> {
    let tasks = TaskGroup::new("others");
    let node = Connection::open(site.server.port(), &site.tls, &tasks).await?;
    let quiet = Connection::open(site.server.port(), &site.tls, &tasks).await?;
    let (lease, pod) = (format!("{LEASES}/n1"), pods::path(0));
    let renewals = measured(times, async |number: usize| {
        let (minute, second) = (number / 60 % 60, number % 60);
        let body = format!(r#"{{"spec":{{"renewTime":"2026-03-14T09:{minute:02}:{second:02}.{number:06}Z"}}}}"#);
        NODE.call(&node, Method::PATCH, &lease, body.into()).await
    });
    let gets = measured(times, async |_| QUIET.call(&quiet, Method::GET, &pod, Bytes::new()).await);
    tokio::try_join!(renewals, gets)
}

async fn measured(times: usize, operation: impl AsyncFn(usize) -> Result<StatusCode>) -> Result<Samples> {
    let mut samples = Samples::default();
    for number in 0..times {
        let watch = Stopwatch::start();
        let status = operation(number).await?;
        anyhow::ensure!(status.is_success(), "one of the others was answered {status}");
        samples.push(watch.elapsed_ms());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(samples)
}

/// The noisy tenant, on a thread of its own: what others wait for must not wait for the tenant's answers to be read.
struct Noise {
    runtime: Runtime,
    tenant: JoinHandle<Result<()>>,
    counts: Arc<Counts>,
    watch: Stopwatch,
}

#[derive(Default)]
struct Counts {
    ended: AtomicBool,
    answered: AtomicUsize,
    refused: AtomicUsize,
}

impl Noise {
    fn start(site: &Site) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (port, tls, counts) = (site.server.port(), Arc::clone(&site.tls), Arc::<Counts>::default());
        let own = Arc::clone(&counts);
        let tenant = runtime.spawn(async move {
            let tasks = TaskGroup::new("noise");
            let mut connections = Vec::new();
            for _ in 0..NOISY_CONNECTIONS {
                connections.push(Connection::open(port, &tls, &tasks).await?);
            }
            let streams = connections.iter().flat_map(|connection| (0..NOISY_STREAMS).map(move |_| connection));
            try_join_all(streams.map(|connection| lists(connection, &own))).await.map(drop)
        });
        Ok(Self { runtime, tenant, counts, watch: Stopwatch::start() })
    }

    /// Ends it; the lists that were answered, and refused, in a second.
    async fn stop(self) -> Result<(f64, f64)> {
        let seconds = self.watch.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let per_second = |count: &AtomicUsize| count.load(Ordering::Relaxed) as f64 / seconds;
        let rates = (per_second(&self.counts.answered), per_second(&self.counts.refused));
        self.counts.ended.store(true, Ordering::Relaxed);
        let ended = self.tenant.await;
        self.runtime.shutdown_background();
        ended.context("the noisy tenant")??;
        Ok(rates)
    }
}

/// Lists everything again and again, and waits where it is told to.
async fn lists(connection: &Connection, counts: &Counts) -> Result<()> {
    while !counts.ended.load(Ordering::Relaxed) {
        match NOISY.call(connection, Method::GET, pods::COLLECTION, Bytes::new()).await? {
            StatusCode::OK => counts.answered.fetch_add(1, Ordering::Relaxed),
            StatusCode::TOO_MANY_REQUESTS => {
                tokio::time::sleep(RETRY_AFTER).await;
                counts.refused.fetch_add(1, Ordering::Relaxed)
            }
            other => anyhow::bail!("the noisy tenant was answered {other}"),
        };
    }
    Ok(())
}
