//! An API server and a scheduler as processes of their own: certificates, flags, clients.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base::{Rng, SharedRng, SystemClock, TaskGroup};
use client::{CertSource, Client, ClientConfig, ClientCx, Request, Trust};
use pki::layout::{PkiConfig, USERS};

use crate::child::Child;
use crate::sample::Stopwatch;

const START_DEADLINE: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(50);
/// How much of a log is shown when its process does not do what it should.
const LOG_TAIL_BYTES: usize = 4000;
const SERVICE_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The API server answers these by what a hollow cluster has not got: service accounts, priority classes, kubelets.
const NO_ADMISSION: &str = "ServiceAccount,TaintNodesByCondition,Priority";

/// A directory with everything that the processes need.
pub(super) struct Site {
    directory: tempfile::TempDir,
    binaries: PathBuf,
    rng: SharedRng,
    tasks: TaskGroup,
    port: u16,
}

/// A port that nobody listens on now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((LOOPBACK, 0)).context("looking for a free port")?.local_addr()?.port())
}

impl Site {
    pub(super) fn new(binaries: &Path) -> Result<Self> {
        let site = Self {
            directory: tempfile::tempdir().context("making a directory")?,
            binaries: binaries.to_owned(),
            rng: Rng::from_os(),
            tasks: TaskGroup::new("bench"),
            port: free_port()?,
        };
        std::fs::create_dir_all(site.path("pki"))?;
        pki::ensure(&site.path("pki"), &site.pki(), base::Clock::wall(&SystemClock), &site.rng)?;
        Ok(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn pki(&self) -> PkiConfig {
        let mut config = PkiConfig::new("bench", LOOPBACK, SERVICE_ADDRESS);
        config.api_server_hosts = vec!["localhost".into(), "127.0.0.1".into()];
        config
    }

    fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.binaries.join(name);
        if !path.is_file() {
            bail!("{} is not there: build it first, or name its directory with --bin-dir", path.display());
        }
        Ok(path)
    }

    /// The end of a process's log.
    pub(super) fn log_tail(&self, process: &str) -> String {
        let text = std::fs::read(self.path(process).with_extension("log")).unwrap_or_default();
        let tail = text.get(text.len().saturating_sub(LOG_TAIL_BYTES)..).unwrap_or_default();
        String::from_utf8_lossy(tail).into_owned()
    }

    /// How the API server is reached as one of the layout's users.
    fn config_of(&self, user: &str) -> Result<ClientConfig> {
        let leaf = USERS.iter().find(|leaf| leaf.name == user).context("the layout has no such user")?;
        let now = base::Clock::wall(&SystemClock);
        let identity = pki::issue_user(&self.path("pki"), leaf, &self.pki(), now, &self.rng)?;
        let mut config = ClientConfig::for_server(format!("https://127.0.0.1:{}", self.port)).with_rate(-1.0, 1);
        config.trust = Trust::Pem(std::fs::read(self.path("pki/ca.crt"))?);
        config.identity =
            CertSource::Pem { cert: identity.certificate_pem.into_bytes(), key: identity.key_pem.into_bytes() };
        Ok(config)
    }

    fn client(&self, config: ClientConfig) -> Result<Client> {
        let cx = ClientCx::new(SystemClock::shared(), self.rng.clone(), self.tasks.clone());
        Ok(Client::new(config.with_component("bench"), cx)?)
    }

    /// Starts the API server; the client may do everything.
    pub(super) async fn start_api_server(&self) -> Result<(Child, Client)> {
        let pki = |file: &str| self.path("pki").join(file).display().to_string();
        let arguments = [
            format!("--secure-port={}", self.port),
            "--bind-address=127.0.0.1".into(),
            "--authorization-mode=RBAC".into(),
            format!("--disable-admission-plugins={NO_ADMISSION}"),
            format!("--embedded-storage-dir={}", self.path("store").display()),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
        ];
        let log = self.path("kube-apiserver.log");
        let child = Child::start(&self.program("kube-apiserver")?, arguments, &log)?;
        let client = self.client(self.config_of("super-admin.conf")?)?;
        self.wait_ready("kube-apiserver", &client, "/readyz").await?;
        Ok((child, client))
    }

    /// Starts the scheduler without rate limits; the client may read its metrics.
    pub(super) async fn start_scheduler(&self) -> Result<(Child, Client)> {
        let config = self.config_of("scheduler.conf")?;
        let CertSource::Pem { cert, key } = &config.identity else { bail!("the user has no certificate") };
        std::fs::write(self.path("scheduler.crt"), cert)?;
        std::fs::write(self.path("scheduler.key"), key)?;
        let kubeconfig = self.path("scheduler.conf");
        std::fs::write(&kubeconfig, self.kubeconfig(&config.server))?;
        let settings = self.path("scheduler.yaml");
        std::fs::write(
            &settings,
            format!(
                "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n  \
                 kubeconfig: {}\n  qps: -1\n  burst: 1\nleaderElection:\n  leaderElect: false\n",
                kubeconfig.display()
            ),
        )?;
        let port = free_port()?;
        let arguments = [
            format!("--config={}", settings.display()),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".into(),
            format!("--authentication-kubeconfig={}", kubeconfig.display()),
            format!("--authorization-kubeconfig={}", kubeconfig.display()),
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics".into(),
        ];
        let log = self.path("kube-scheduler.log");
        let child = Child::start(&self.program("kube-scheduler")?, arguments, &log)?;
        let mut config = ClientConfig::for_server(format!("https://127.0.0.1:{port}")).with_rate(-1.0, 1);
        config.trust = Trust::Insecure;
        let client = self.client(config)?;
        self.wait_ready("kube-scheduler", &client, "/livez").await?;
        Ok((child, client))
    }

    fn kubeconfig(&self, server: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: bench\ncontexts:\n- name: bench\n  context:\n    cluster: \
             bench\n    user: bench\nclusters:\n- name: bench\n  cluster:\n    server: {server}\n    \
             certificate-authority: {}\nusers:\n- name: bench\n  user:\n    client-certificate: {}\n    client-key: \
             {}\n",
            self.path("pki/ca.crt").display(),
            self.path("scheduler.crt").display(),
            self.path("scheduler.key").display(),
        )
    }

    async fn wait_ready(&self, process: &str, client: &Client, path: &str) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let Err(error) = client.send(Request::get(path).timeout(START_DEADLINE)).await else { return Ok(()) };
            if watch.elapsed() > START_DEADLINE {
                bail!("{process} is not ready: {error}\n{}", self.log_tail(process));
            }
            tokio::time::sleep(START_POLL).await;
        }
    }
}
