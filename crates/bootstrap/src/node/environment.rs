//! Starting a node's runtime and giving it images.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node_api::cri::{ClientOptions, CriClient, Runtime};
use sys::exec::{Command, Daemon, MountView};
use sys::proc::Proc;
use sys::process::Process;
use tokio::time::Instant;

use super::containerd::{self, Features};
use super::{Machine, NodeConfig, NodeError, cni, file_error, teardown};

/// A cold start takes a second; a machine under load takes longer.
const READY_DEADLINE: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_millis(50);
/// Unpacking a large image on a slow disk.
const IMPORT_DEADLINE: Duration = Duration::from_secs(300);
/// How much of the runtime's log an error shows.
const LOG_TAIL_BYTES: usize = 2000;
/// Bit of CAP_SYS_RESOURCE in the capability sets of `/proc/PID/status`.
const CAP_SYS_RESOURCE: u32 = 24;

/// A node's surroundings on a machine.
pub struct NodeEnvironment {
    config: NodeConfig,
    machine: Machine,
}

impl NodeEnvironment {
    /// Surroundings that may or may not run yet.
    #[must_use]
    pub fn new(config: NodeConfig, machine: Machine) -> Self {
        Self { config, machine }
    }

    #[must_use]
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Starts the runtime, unless it runs, and waits until it answers and its pod network is ready.
    ///
    /// # Errors
    /// Something cannot be written or started, or the runtime does not become ready.
    pub async fn start(&self) -> Result<(), NodeError> {
        self.config.validate()?;
        if self.process().is_some() {
            return self.wait_ready().await;
        }
        self.prepare()?;
        let process = self.machine.exec.spawn(&self.daemon()).await?;
        tracing::info!(node = self.config.name, pid = process.pid(), "started containerd");
        self.wait_ready().await
    }

    /// Writes what the runtime reads and makes the node's control groups, so that somebody else may start the runtime.
    ///
    /// # Errors
    /// Something cannot be written or made.
    pub fn prepare(&self) -> Result<(), NodeError> {
        self.config.validate()?;
        self.write_files()?;
        Ok(self.machine.cgroups.create(&self.config.cgroup_root)?)
    }

    /// The runtime's command line.
    #[must_use]
    pub fn runtime_command(&self) -> (PathBuf, Vec<String>) {
        (self.program("containerd"), vec!["--config".to_owned(), self.config.config_file().display().to_string()])
    }

    /// Imports every image archive (`*.tar`) in a directory.
    ///
    /// # Errors
    /// There is none, or the runtime refuses one.
    pub async fn import_images(&self, directory: &Path) -> Result<usize, NodeError> {
        let entries = fs::read_dir(directory).map_err(file_error("reading", directory))?;
        let mut archives: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        archives.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
        archives.sort();
        if archives.is_empty() {
            return Err(NodeError::NoImages(directory.to_owned()));
        }
        for archive in &archives {
            let command = self.ctr(&["images", "import"]).arg(archive).deadline(IMPORT_DEADLINE);
            let imported = self.machine.exec.run_ok(&command).await;
            imported.map_err(|source| NodeError::Import { archive: archive.clone(), source })?;
        }
        Ok(archives.len())
    }

    /// Takes everything away: pods, processes, mounts, control groups, links, rules and directories. Fine if there is
    /// nothing; goes on after a failure and reports the first.
    ///
    /// # Errors
    /// Something could not be taken away.
    pub async fn stop(&self) -> Result<(), NodeError> {
        teardown::run(&self.config, &self.machine).await
    }

    /// The runtime's process, if it runs.
    #[must_use]
    pub fn process(&self) -> Option<Process> {
        Process::from_pidfile(&self.config.pidfile(), &self.config.config_file().display().to_string())
    }

    /// The mount namespace that the node's kubelet has to join; `None` if it is the machine's own, or nothing runs.
    #[must_use]
    pub fn mount_namespace(&self) -> Option<PathBuf> {
        let process = self.process().filter(|_| self.config.mounts == MountView::OwnShared)?;
        Some(PathBuf::from(format!("/proc/{}/ns/mnt", process.pid())))
    }

    fn write_files(&self) -> Result<(), NodeError> {
        let NodeConfig { root, state, .. } = &self.config;
        for directory in
            [root.join("cni/net.d"), root.join("log"), root.join("opt"), root.join("certs.d"), state.clone()]
        {
            fs::create_dir_all(&directory).map_err(file_error("creating", &directory))?;
        }
        let network = root.join("cni/net.d/10-coxswain.conflist");
        let files = [
            (self.config.config_file(), containerd::render(&self.config, self.features())),
            (network, format!("{:#}\n", cni::render(&self.config))),
        ];
        for (path, text) in files {
            sys::fs::write_atomic(&path, text.as_bytes(), 0o644).map_err(file_error("writing", &path))?;
        }
        Ok(())
    }

    fn features(&self) -> Features {
        let enabled = |path: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == "Y");
        Features {
            apparmor: enabled("/sys/module/apparmor/parameters/enabled"),
            huge_pages: self.machine.cgroups.controllers().contains("hugetlb"),
            lower_oom_score: has_capability(CAP_SYS_RESOURCE),
        }
    }

    fn daemon(&self) -> Daemon {
        let (program, arguments) = self.runtime_command();
        let mut command = Command::new(program).args(arguments);
        if let Some(directory) = &self.config.runtime_dir {
            // containerd looks its shim up in PATH.
            let path = std::env::var("PATH").unwrap_or_default();
            command = command.env("PATH", format!("{}:{path}", directory.display()));
        }
        let command = command.netns(self.config.netns_path());
        // The mounts of containers that outlived an earlier runtime are in its view only.
        let (command, mounts) = match self.surviving_mounts() {
            Some(namespace) => (command.mount_ns(namespace), MountView::Caller),
            None => (command, self.config.mounts),
        };
        let daemon = Daemon::new(command, self.config.log_file()).pidfile(self.config.pidfile()).mounts(mounts);
        // In the machine's own network the node is the machine, and goes by its name.
        if self.config.netns.is_some() { daemon.hostname(&self.config.name) } else { daemon }
    }

    /// The mount namespace of an earlier runtime that was killed, as long as one of its containers runs.
    fn surviving_mounts(&self) -> Option<PathBuf> {
        if self.config.mounts != MountView::OwnShared {
            return None;
        }
        let shims = Process::with_argument(&self.config.socket().display().to_string()).ok()?;
        Some(PathBuf::from(format!("/proc/{}/ns/mnt", shims.first()?.pid())))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.config.runtime_dir.as_ref().map_or_else(|| name.into(), |directory| directory.join(name))
    }

    fn ctr(&self, args: &[&str]) -> Command {
        Command::new(self.program("ctr"))
            .arg("--address")
            .arg(self.config.socket())
            .args(["--namespace", "k8s.io"])
            .args(args)
    }

    async fn wait_ready(&self) -> Result<(), NodeError> {
        let deadline = Instant::now() + READY_DEADLINE;
        while Instant::now() < deadline {
            if self.is_ready().await {
                return Ok(());
            }
            if self.process().is_none() {
                break;
            }
            tokio::time::sleep(READY_POLL).await;
        }
        Err(NodeError::NotReady { node: self.config.name.clone(), log: self.log_tail() })
    }

    /// Whether the runtime answers and says that every condition (runtime, network) holds.
    async fn is_ready(&self) -> bool {
        if !self.config.socket().exists() {
            return false;
        }
        let Ok(client) = CriClient::connect(&ClientOptions::new(&self.config.endpoint())).await else { return false };
        let Ok(answer) = client.status(false).await else { return false };
        answer
            .status
            .is_some_and(|status| !status.conditions.is_empty() && status.conditions.iter().all(|each| each.status))
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.config.log_file()).unwrap_or_default();
        let tail = log.get(log.len().saturating_sub(LOG_TAIL_BYTES)..).unwrap_or_default();
        String::from_utf8_lossy(tail).trim().to_owned()
    }
}

/// Whether this process has a capability in effect.
fn has_capability(bit: u32) -> bool {
    let sets = Proc::system().effective_capabilities().unwrap_or(0);
    sets & (1 << bit) != 0
}
