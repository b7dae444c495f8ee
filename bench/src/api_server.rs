//! A `kube-apiserver` process of its own for one run, on a free port, with real certificates.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base::TaskGroup;
use bytes::Bytes;
use http::Method;

use crate::child::Child;
use crate::etcd::Etcd;
use crate::https::{Connection, JSON};
use crate::identity::Identity;
use crate::sample::Stopwatch;

/// Flags for a cluster of hollow nodes: it has no service accounts, no priority classes and nobody who lifts a node's first
/// taint.
pub(crate) const HOLLOW: &[&str] = &["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority"];

/// How long a server may take to become ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
const READY_PAUSE: Duration = Duration::from_millis(50);

/// Where the server keeps its objects.
#[derive(Debug, Clone, Copy)]
pub enum Storage<'a> {
    /// In itself.
    Embedded,
    /// In this etcd.
    Etcd(&'a Etcd),
}

/// A running server; it ends with the value.
#[derive(Debug)]
pub struct ApiServer {
    process: Child,
    port: u16,
}

impl ApiServer {
    /// Starts `bin_dir/kube-apiserver` with its files below `directory`, and waits until it is ready. `flags` come
    /// behind those that every run has.
    ///
    /// # Errors
    /// It cannot be started or is not ready in time; its log is `directory/kube-apiserver.log`.
    pub async fn start(
        bin_dir: &Path,
        directory: &Path,
        identity: &Identity,
        storage: Storage<'_>,
        flags: &[&str],
    ) -> Result<Self> {
        let port = free_port()?;
        let pki = |name: &str| identity.file(name).display().to_string();
        let mut arguments = vec![
            "--advertise-address=127.0.0.1".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--secure-port={port}"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
        ];
        arguments.push(match storage {
            Storage::Embedded => format!("--embedded-storage-dir={}", directory.join("store").display()),
            Storage::Etcd(etcd) => format!("--etcd-servers={}", etcd.url()),
        });
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        let log = directory.join("kube-apiserver.log");
        let process = Child::start(&bin_dir.join("kube-apiserver"), arguments, &log)?;
        let server = Self { process, port };
        server.wait_until_ready(identity, &log).await?;
        Ok(server)
    }

    async fn wait_until_ready(&self, identity: &Identity, log: &Path) -> Result<()> {
        let (tls, tasks, watch) = (identity.client_tls()?, TaskGroup::new("ready"), Stopwatch::start());
        while watch.elapsed() < READY_LIMIT {
            if let Ok(connection) = Connection::open(self.port, &tls, &tasks).await
                && let Ok(answer) = connection.call(Method::GET, "/readyz", JSON, Bytes::new()).await
                && answer.status.is_success()
            {
                return Ok(());
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
        bail!("the API server is not ready after {READY_LIMIT:?}; see {}", log.display())
    }

    /// Its process id, for [`usage`](crate::usage).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The port of the loopback address that it serves HTTPS on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for kubeconfigs.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// It cannot be signalled.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await
    }
}

/// A port of the loopback address that nobody listens on now.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Where the binaries are by default: beside this one.
#[must_use]
pub fn own_bin_dir() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().map(Path::to_path_buf).unwrap_or_default()
}
