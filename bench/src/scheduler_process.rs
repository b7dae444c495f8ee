//! A `kube-scheduler` process of its own for one run: its user, its kubeconfig, its configuration, its metrics.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base::{Clock as _, Rng, SystemClock, TaskGroup};
use client::{Client, ClientConfig, ClientCx, Request, Trust};
use pki::layout::{PkiConfig, USERS};
use pki::{KeyAlgorithm, PRIVATE_MODE};

use crate::api_server::free_port;
use crate::child::Child;
use crate::identity::Identity;
use crate::sample::Stopwatch;

const START_LIMIT: Duration = Duration::from_secs(60);
const START_PAUSE: Duration = Duration::from_millis(50);
/// How much of the log is shown when something is wrong.
const LOG_TAIL_BYTES: usize = 4000;
/// The user of the layout that the scheduler is.
const USER: &str = "scheduler.conf";
/// The counter of attempts in Prometheus' text form.
const ATTEMPTS: &str = "scheduler_schedule_attempts_total{";

/// A running scheduler; it ends with the value.
pub(crate) struct SchedulerProcess {
    process: Child,
    probe: Client,
    log: PathBuf,
}

/// A client of this process, without a rate limit.
pub(crate) fn client(config: ClientConfig, tasks: &TaskGroup) -> Result<Client> {
    let cx = ClientCx::new(SystemClock::shared(), Rng::from_os(), tasks.clone());
    Ok(Client::new(config.with_component("bench").with_rate(-1.0, 1), cx)?)
}

impl SchedulerProcess {
    /// Starts `bin_dir/kube-scheduler` without rate limits, with its files below `directory`.
    pub(crate) async fn start(
        bin_dir: &Path,
        directory: &Path,
        identity: &Identity,
        server: &str,
        tasks: &TaskGroup,
    ) -> Result<Self> {
        let kubeconfig = kubeconfig(directory, identity, server)?.display().to_string();
        let settings = directory.join("scheduler.yaml");
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n  \
             kubeconfig: {kubeconfig}\n  qps: -1\n  burst: 1\nleaderElection:\n  leaderElect: false\n"
        );
        std::fs::write(&settings, text).with_context(|| format!("writing {}", settings.display()))?;
        let port = free_port()?;
        let arguments = [
            format!("--config={}", settings.display()),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics".to_owned(),
        ];
        let log = directory.join("kube-scheduler.log");
        let process = Child::start(&bin_dir.join("kube-scheduler"), arguments, &log)?;
        let mut config = ClientConfig::for_server(format!("https://127.0.0.1:{port}"));
        config.trust = Trust::Insecure;
        let scheduler = Self { process, probe: client(config, tasks)?, log };
        scheduler.wait_until_alive().await?;
        Ok(scheduler)
    }

    async fn wait_until_alive(&self) -> Result<()> {
        let watch = Stopwatch::start();
        while let Err(error) = self.probe.send(Request::get("/livez")).await {
            if watch.elapsed() > START_LIMIT {
                bail!("kube-scheduler is not alive: {error}\n{}", self.log_tail());
            }
            tokio::time::sleep(START_PAUSE).await;
        }
        Ok(())
    }

    /// Its process id, for [`usage`](crate::usage).
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// How many pods it has bound.
    pub(crate) async fn bound(&self) -> Result<usize> {
        let metrics = self.probe.send(Request::get("/metrics").accept("text/plain")).await?;
        Ok(scheduled(&String::from_utf8_lossy(&metrics.body)))
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let tail = text.get(text.len().saturating_sub(LOG_TAIL_BYTES)..).unwrap_or_default();
        String::from_utf8_lossy(tail).into_owned()
    }

    /// Kills it and waits for its end.
    pub(crate) async fn stop(self) -> Result<()> {
        self.process.stop().await
    }
}

/// The counter of bound pods; 0 while it is not there.
fn scheduled(metrics: &str) -> usize {
    let line = metrics.lines().find(|line| line.starts_with(ATTEMPTS) && line.contains("result=\"scheduled\""));
    line.and_then(|line| line.rsplit(' ').next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Makes the scheduler's own user and its kubeconfig.
fn kubeconfig(directory: &Path, identity: &Identity, server: &str) -> Result<PathBuf> {
    let leaf = USERS.iter().find(|user| user.name == USER).context("the layout has no scheduler")?;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut config = PkiConfig::new("bench", loopback, loopback);
    config.key_algorithm = KeyAlgorithm::EcdsaP256;
    let user = pki::issue_user(identity.directory(), leaf, &config, SystemClock.wall(), &Rng::from_os())?;
    let [certificate, key, path] = ["scheduler.crt", "scheduler.key", USER].map(|name| directory.join(name));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: bench\n\
         clusters: [{{name: bench, cluster: {{server: \"{server}\", certificate-authority: \"{}\"}}}}]\n\
         contexts: [{{name: bench, context: {{cluster: bench, user: scheduler}}}}]\n\
         users: [{{name: scheduler, user: {{client-certificate: \"{}\", client-key: \"{}\"}}}}]\n",
        identity.file("ca.crt").display(),
        certificate.display(),
        key.display(),
    );
    for (path, text) in [(&certificate, &user.certificate_pem), (&key, &user.key_pem), (&path, &text)] {
        pki::write_atomically(path, text.as_bytes(), PRIVATE_MODE)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::scheduled;

    #[test]
    fn the_counter_is_found() {
        let text = "# HELP x\nscheduler_schedule_attempts_total{profile=\"p\",result=\"error\"} 3\n\
                    scheduler_schedule_attempts_total{profile=\"p\",result=\"scheduled\"} 42\n";
        assert_eq!((scheduled(text), scheduled("")), (42, 0));
    }
}
