//! A cluster brought up by `coxswain`, and what the machine must have for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sys::exec::{Command, Exec, LinuxExec};
use tokio::time::Instant;

use crate::kubectl::Kubectl;

const UP_DEADLINE: Duration = Duration::from_secs(300);
const FETCH_DEADLINE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(200);
const BINARIES: &[&str] =
    &["coxswain", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];
const PROGRAMS: &[&str] = &["containerd", "runc", "nft", "ip", "curl"];

/// A running cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    root: PathBuf,
    state: PathBuf,
    binaries: PathBuf,
    images: PathBuf,
    nodes: u8,
    exec: Arc<LinuxExec>,
    kubectl: PathBuf,
}

impl Cluster {
    /// Brings a cluster up; nothing where the machine cannot.
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    pub(crate) async fn start(nodes: u8) -> Option<Self> {
        let binaries = binaries();
        let images = binaries.parent()?.join("images");
        let kubectl = program("kubectl-1.36").or_else(|| program("kubectl"));
        let missing = missing(&binaries, &images);
        let (Some(kubectl), None) = (kubectl, &missing) else {
            println!("skipped: {}", missing.unwrap_or_else(|| "kubectl is not there".into()));
            return None;
        };
        let cluster = Self {
            root: PathBuf::from("/var/lib/coxswain-e2e"),
            state: PathBuf::from("/run/coxswain-e2e"),
            binaries,
            images,
            nodes,
            exec: Arc::new(LinuxExec),
            kubectl,
        };
        // What an earlier run that was killed left behind.
        cluster.coxswain("down", &["--purge"]).await;
        let up = cluster.coxswain("up", &[]).await;
        assert!(up.success(), "coxswain up: {}", up.error_text());
        Some(cluster)
    }

    /// Takes it down and checks that nothing is left.
    pub(crate) async fn stop(&self) {
        let down = self.coxswain("down", &["--purge"]).await;
        assert!(down.success(), "coxswain down: {}", down.error_text());
        assert!(!self.root.exists() && !self.state.exists(), "files are left");
        let root = self.root.display().to_string();
        let left = sys::process::Process::with_argument(&root).expect("processes can be listed");
        assert!(left.is_empty(), "processes are left: {left:?}");
    }

    async fn coxswain(&self, what: &str, more: &[&str]) -> sys::exec::Output {
        let mut arguments = vec![
            what.to_owned(),
            format!("--root={}", self.root.display()),
            format!("--state-dir={}", self.state.display()),
            format!("--bin-dir={}", self.binaries.display()),
            format!("--images-dir={}", self.images.display()),
            format!("--nodes={}", self.nodes),
        ];
        arguments.extend(more.iter().map(ToString::to_string));
        let command = Command::new(self.binaries.join("coxswain")).args(arguments).deadline(UP_DEADLINE);
        self.exec.run(&command).await.expect("coxswain starts and ends in time")
    }

    /// `kubectl` for this cluster.
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl {
            program: self.kubectl.clone(),
            kubeconfig: self.root.join("etc/kubernetes/admin.conf"),
            exec: Arc::clone(&self.exec),
        }
    }

    /// A file of the repository.
    pub(crate) fn repository(&self, path: &str) -> String {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).display().to_string()
    }

    /// What a URL answers, tried again until the deadline.
    pub(crate) async fn fetch(&self, url: &str, deadline: Duration) -> String {
        let start = Instant::now();
        loop {
            let command = Command::with("curl", &["-sS", "--max-time", "4", url]).deadline(FETCH_DEADLINE);
            let output = self.exec.run(&command).await.expect("curl starts and ends in time");
            if output.success() {
                return output.text();
            }
            assert!(start.elapsed() < deadline, "{url}: {}", output.error_text());
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Where cargo puts the binaries that belong to this test: beside the directory that the test is in.
fn binaries() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().and_then(Path::parent).map(PathBuf::from).unwrap_or_default()
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let places = path.split(':').chain(["/opt/coxswain/bin", "/usr/sbin", "/sbin"]);
    places.map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// What the machine lacks, if it lacks something.
fn missing(binaries: &Path, images: &Path) -> Option<String> {
    if sys::proc::Proc::system().effective_capabilities().is_ok_and(|bits| bits >> 21 & 1 == 0) {
        return Some("this needs root".into());
    }
    if let Some(name) = PROGRAMS.iter().find(|name| program(name).is_none()) {
        return Some(format!("{name} is not there: make deps installs it"));
    }
    if let Some(name) = BINARIES.iter().find(|name| !binaries.join(name).is_file()) {
        return Some(format!("{name} is not built: make test builds it"));
    }
    let archives = std::fs::read_dir(images).into_iter().flatten().flatten();
    let any = archives.into_iter().any(|entry| entry.path().extension().is_some_and(|kind| kind == "tar"));
    (!any).then(|| format!("no images in {}: make test builds them", images.display()))
}
