//! Starting, finding and stopping the cluster's processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sys::exec::{Command, Daemon, Exec};
use sys::process::Process;
use tokio::time::Instant;

use super::settings::{ClusterError, Layout, Settings, file_error};
use super::up::NotReady;

/// How long a process gets to end by itself.
const STOP_GRACE: Duration = Duration::from_secs(20);
/// How long a process gets to become ready.
const READY_DEADLINE: Duration = Duration::from_secs(90);
const READY_POLL: Duration = Duration::from_millis(100);
/// The variable of servers that are reached without a proxy.
const NO_PROXY: &str = "NO_PROXY";
/// How much of a log an error shows.
const LOG_TAIL_BYTES: usize = 2000;

/// A process of the cluster, running or not.
pub(super) struct Managed {
    /// Its name: the component, with the node behind where there is one for each.
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) netns: Option<PathBuf>,
    pub(super) mount_ns: Option<PathBuf>,
    /// Set for processes that tell themselves apart by host name.
    pub(super) hostname: Option<String>,
}

impl Managed {
    fn pidfile(&self, settings: &Settings) -> PathBuf {
        settings.state.join(format!("{}.pid", self.name))
    }

    /// The process, if it runs, wherever the program was that it was started from.
    pub(super) fn process(&self, settings: &Settings) -> Option<Process> {
        let name = self.program.file_name().unwrap_or_default();
        Process::from_pidfile(&self.pidfile(settings), &format!("/{}", name.display()))
    }

    /// Starts it unless it runs; says whether it had to be started.
    pub(super) async fn start(&self, settings: &Settings, exec: &dyn Exec) -> Result<bool, ClusterError> {
        if self.process(settings).is_some() {
            return Ok(false);
        }
        if !self.program.exists() {
            return Err(ClusterError::NoBinary(self.program.clone()));
        }
        let log = Layout::new(&settings.root).log(&self.name);
        for directory in [log.parent(), Some(settings.state.as_path())].into_iter().flatten() {
            std::fs::create_dir_all(directory).map_err(file_error("creating", directory))?;
        }
        let mut command = Command::new(&self.program).args(self.arguments.iter().cloned()).netns(self.netns.clone());
        if let Some(namespace) = &self.mount_ns {
            command = command.mount_ns(namespace);
        }
        if let Some(list) = unproxied(settings, |name| std::env::var(name).ok()) {
            command = command.env(NO_PROXY, list);
        }
        let mut daemon = Daemon::new(command, log).pidfile(self.pidfile(settings));
        if let Some(hostname) = &self.hostname {
            daemon = daemon.hostname(hostname);
        }
        exec.spawn(&daemon).await?;
        Ok(true)
    }

    /// Waits until `check` says nothing is wrong, or the process ends or takes too long.
    pub(super) async fn wait_ready<F>(&self, settings: &Settings, check: impl Fn() -> F) -> Result<(), ClusterError>
    where
        F: Future<Output = Result<(), NotReady>>,
    {
        let start = Instant::now();
        let mut last = String::from("no answer yet");
        while start.elapsed() < READY_DEADLINE {
            match check().await {
                Ok(()) => return Ok(()),
                Err(problem) => last = problem.to_string(),
            }
            if self.process(settings).is_none() {
                last = format!("it ended; before that: {last}");
                break;
            }
            tokio::time::sleep(READY_POLL).await;
        }
        let log = Layout::new(&settings.root).log(&self.name);
        let (process, seconds, tail) = (self.name.clone(), start.elapsed().as_secs(), tail(&log));
        Err(ClusterError::NotReady { process, seconds, last, log, tail })
    }

    /// Stops it, if it runs; says whether it did.
    pub(super) async fn stop(&self, settings: &Settings) -> Result<bool, ClusterError> {
        let Some(process) = self.process(settings) else { return Ok(false) };
        let stopped = process.stop(STOP_GRACE).await;
        stopped.map_err(|source| ClusterError::Stop { process: self.name.clone(), source })?;
        // A stale pidfile does no harm: it names the program that must run under the number.
        let _ = std::fs::remove_file(self.pidfile(settings));
        Ok(true)
    }
}

/// The servers that components reach without a proxy, the cluster's own among them, where the environment has a proxy at all.
fn unproxied(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let either =
        |name: &str| variable(name).or_else(|| variable(&name.to_ascii_lowercase())).filter(|value| !value.is_empty());
    either("HTTPS_PROXY").or_else(|| either("HTTP_PROXY"))?;
    let own = [format!("{}/24", settings.node_network), settings.cluster_cidr(), settings.service_network.clone()];
    let names = [".svc", ".cluster.local"].map(str::to_owned);
    Some(either(NO_PROXY).into_iter().chain(own).chain(names).collect::<Vec<_>>().join(","))
}

fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let from = text.len().saturating_sub(LOG_TAIL_BYTES);
    String::from_utf8_lossy(text.get(from..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sys::exec::LinuxExec;

    use super::*;

    #[tokio::test]
    async fn a_process_is_known_wherever_its_program_is_now() {
        let place = tempfile::tempdir().unwrap();
        let settings = Settings { state: place.path().join("state"), ..Settings::new(place.path()) };
        let managed = |directory: &str, program: &str| Managed {
            name: "kubelet".into(),
            program: place.path().join(directory).join(program),
            arguments: vec!["60".into()],
            netns: None,
            mount_ns: None,
            hostname: None,
        };
        std::fs::create_dir(place.path().join("one")).unwrap();
        symlink("/bin/sleep", place.path().join("one/sleep")).unwrap();
        assert!(managed("one", "sleep").start(&settings, &LinuxExec).await.unwrap());
        assert!(managed("other", "awake").process(&settings).is_none());
        assert!(managed("other", "sleep").stop(&settings).await.unwrap());
        assert!(managed("one", "sleep").process(&settings).is_none());
    }

    #[test]
    fn components_reach_each_other_without_a_proxy() {
        let settings = Settings::new(Path::new("/var/lib/coxswain"));
        let own = "172.30.0.0/24,10.244.0.0/16,10.96.0.0/16,.svc,.cluster.local";
        for (environment, expected) in [
            (&[][..], None),
            (&[("NO_PROXY", "a")], None),
            (&[("HTTPS_PROXY", "http://p")], Some(own.to_owned())),
            (&[("http_proxy", "p"), ("no_proxy", "a,b")], Some(format!("a,b,{own}"))),
        ] {
            let variable = |wanted: &str| {
                let found = environment.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(unproxied(&settings, variable), expected, "{environment:?}");
        }
    }
}
