//! A cluster brought up by `coxswain`, and what the machine must have for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sys::exec::{Command, Exec, LinuxExec, Output};
use sys::process::Process;
use tests::kubectl::{Kubectl, binaries, program};
use tokio::time::Instant;

use crate::machine::{self, Machine};

const UP_DEADLINE: Duration = Duration::from_secs(300);
const FETCH_DEADLINE: Duration = Duration::from_secs(8);
const RETRY: Duration = Duration::from_millis(200);
const BINARIES: &[&str] = &[
    "cloud-controller-manager",
    "coxswain",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
];
const PROGRAMS: &[&str] = &["containerd", "ctr", "runc", "nft", "ip", "curl"];
pub(crate) const KUBECTL: [&str; 2] = ["1.36", "1.32"];

/// Upstream's timings, shortened: a node counts as lost seconds after its kubelet is gone, and its pods soon after.
const SHORT_TIMINGS: &[&str] = &[
    "kube-apiserver=--default-not-ready-toleration-seconds=3",
    "kube-apiserver=--default-unreachable-toleration-seconds=3",
    "kube-controller-manager=--node-monitor-grace-period=12s",
    "kube-controller-manager=--node-monitor-period=1s",
    "kube-controller-manager=--node-startup-grace-period=12s",
    "kubelet=--node-status-update-frequency=2s",
];
/// Fields of the kubelet's configuration that have no flag.
const KUBELET_DROP_IN: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nnodeLeaseDurationSeconds: 8\nsyncFrequency: 10s\n";

/// What kind of cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Processes { nodes: u8 },
    StaticPods,
}

/// A cluster, running or not.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) binaries: PathBuf,
    images: PathBuf,
    shape: Shape,
    pub(crate) exec: Arc<LinuxExec>,
    /// What the machine was like before.
    before: Arc<parking_lot::Mutex<Machine>>,
}

impl Cluster {
    /// A cluster of this shape, unless the machine lacks something.
    pub(crate) fn prepare(shape: Shape) -> Result<Self, String> {
        let binaries = binaries();
        let mut images = binaries.clone();
        images.set_file_name("images");
        if let Some(missing) = missing(&binaries, &images, shape) {
            return Err(missing);
        }
        Ok(Self {
            root: PathBuf::from("/var/lib/coxswain-e2e"),
            state: PathBuf::from("/run/coxswain-e2e"),
            binaries,
            images,
            shape,
            exec: Arc::new(LinuxExec),
            before: Arc::default(),
        })
    }

    /// Brings it up, on a machine without what an earlier run that was killed left behind.
    pub(crate) async fn start(&self) {
        if !keep() {
            self.coxswain("down", &["--purge"]).await;
            let before = Machine::look(&self.exec).await;
            *self.before.lock() = before;
        }
        std::fs::create_dir_all(self.drop_ins()).expect("the root can be made");
        std::fs::write(self.drop_ins().join("10-lease.conf"), KUBELET_DROP_IN).expect("a file can be written");
        self.up().await;
    }

    /// `coxswain up`; safe to run again.
    pub(crate) async fn up(&self) {
        let up = self.coxswain("up", &[]).await;
        assert!(up.success(), "coxswain up: {}", up.error_text());
    }

    /// Takes it down and checks that the machine is as it was.
    pub(crate) async fn stop(&self) {
        if keep() {
            return;
        }
        let sockets = machine::shim_sockets(&self.state);
        let down = self.coxswain("down", &["--purge"]).await;
        assert!(down.success(), "coxswain down: {}", down.error_text());
        assert!(!self.root.exists() && !self.state.exists(), "files are left");
        for place in [&self.root, &self.state] {
            let left = machine::processes_of(place);
            assert!(left.is_empty(), "processes are left: {left:?}");
        }
        let left: Vec<_> = sockets.iter().filter(|path| path.exists()).collect();
        assert!(left.is_empty(), "sockets are left: {left:?}");
        let before = self.before.lock().clone();
        let after = Machine::look(&self.exec).await;
        assert_eq!(after.beyond(&before), Vec::<String>::new(), "things are left behind");
        assert!(!sockets.is_empty(), "no shim was seen, so that nothing was said of their sockets");
    }

    /// `coxswain` with this cluster's settings.
    pub(crate) async fn coxswain(&self, what: &str, more: &[&str]) -> Output {
        let mut arguments = vec![
            what.to_owned(),
            format!("--root={}", self.root.display()),
            format!("--state-dir={}", self.state.display()),
            format!("--bin-dir={}", self.binaries.display()),
            format!("--images-dir={}", self.images.display()),
        ];
        match self.shape {
            Shape::Processes { nodes } => arguments.push(format!("--nodes={nodes}")),
            Shape::StaticPods => arguments.push("--static-pods".to_owned()),
        }
        arguments.extend(SHORT_TIMINGS.iter().map(|flag| format!("--extra-flag={flag}")));
        arguments.push(format!("--extra-flag=kubelet=--config-dir={}", self.drop_ins().display()));
        arguments.extend(more.iter().map(ToString::to_string));
        let command = Command::new(self.binaries.join("coxswain")).args(arguments).deadline(UP_DEADLINE);
        self.exec.run(&command).await.expect("coxswain starts and ends in time")
    }

    fn drop_ins(&self) -> PathBuf {
        self.root.join("etc/kubelet.conf.d")
    }

    /// A process of the cluster by the name of its log, such as `kubelet-node-1`.
    pub(crate) fn process(&self, name: &str) -> Process {
        let pidfile = match name.strip_prefix("containerd-") {
            Some(node) => self.state.join(node).join("containerd.pid"),
            None => self.state.join(format!("{name}.pid")),
        };
        Process::from_pidfile(&pidfile, "").unwrap_or_else(|| panic!("{name} does not run"))
    }

    /// `kubectl` of a version for this cluster, in a namespace.
    pub(crate) fn kubectl(&self, version: &str, namespace: &str) -> Kubectl {
        let program = program(&format!("kubectl-{version}")).expect("checked before the cluster was brought up");
        Kubectl {
            program,
            kubeconfig: self.root.join("etc/kubernetes/admin.conf"),
            cache: self.root.join("kubectl-cache"),
            namespace: namespace.to_owned(),
            flags: vec![format!("--namespace={namespace}")],
            exec: Arc::clone(&self.exec),
        }
    }

    /// The newer `kubectl` in a namespace made for a story.
    pub(crate) async fn story_namespace(&self, namespace: &str) -> Kubectl {
        let kubectl = self.kubectl(KUBECTL[0], namespace);
        kubectl.ok(&format!("create namespace {namespace}")).await;
        kubectl
    }

    /// The containers that a node's runtime runs, with the ids of their processes.
    pub(crate) async fn tasks(&self, node: &str) -> String {
        let socket = self.state.join(node).join("c.sock").display().to_string();
        let list = Command::with("ctr", &["--address", &socket, "--namespace", "k8s.io", "tasks", "list"]);
        let output = self.exec.run(&list).await.expect("ctr starts and ends in time");
        assert!(output.success(), "ctr tasks list: {}", output.error_text());
        let text = output.text();
        // The columns are as wide as what else is listed makes them.
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let running = text.lines().skip(1).filter(|line| line.contains("RUNNING"));
        let mut lines: Vec<String> = running.map(words).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    /// One try to get what a URL answers, as a shell command's outcome.
    pub(crate) async fn try_fetch(&self, url: &str) -> Output {
        let command = Command::with("curl", &["-fsS", "--max-time", "5", url]).deadline(FETCH_DEADLINE);
        self.exec.run(&command).await.expect("curl starts and ends in time")
    }

    /// What a URL answers, tried again until the deadline.
    pub(crate) async fn fetch(&self, url: &str, deadline: Duration) -> String {
        let start = Instant::now();
        loop {
            let output = self.try_fetch(url).await;
            if output.success() {
                return output.text();
            }
            assert!(start.elapsed() < deadline, "{url}: {}", output.error_text());
            tokio::time::sleep(RETRY).await;
        }
    }

    /// No component may have panicked, whatever the stories did.
    pub(crate) async fn check_logs(&self) {
        for (path, text) in self.logs() {
            let panic = text.lines().find(|line| line.contains("panicked at"));
            assert_eq!(panic, None, "{} tells of a panic", path.display());
        }
    }

    fn logs(&self) -> Vec<(PathBuf, String)> {
        let entries = std::fs::read_dir(self.root.join("var/log")).into_iter().flatten().flatten();
        let read = |path: PathBuf| Some((path.clone(), std::fs::read_to_string(path).ok()?));
        entries.filter_map(|entry| read(entry.path())).collect()
    }

    /// What helps to understand a failure; the logs are copied to where they outlive the cluster.
    #[expect(clippy::print_stdout, reason = "explains a failed test")]
    pub(crate) async fn show_state(&self) {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-logs");
        let _ = std::fs::create_dir_all(&target);
        for (path, text) in self.logs() {
            let _ = std::fs::write(target.join(path.file_name().unwrap_or_default()), text);
        }
        println!("logs of the failed cluster: {}", target.display());
        let kubectl = self.kubectl(KUBECTL[0], "default");
        for line in ["get nodes,pods,services -A -o wide", "get events -A"] {
            println!("$ kubectl {line}\n{}", kubectl.run(line).await.text());
        }
    }
}

/// Whether the cluster is to be taken as found and left as it is, for those who write stories.
fn keep() -> bool {
    std::env::var_os("COXSWAIN_E2E_KEEP").is_some()
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).display().to_string()
}

/// A manifest of the stories.
pub(crate) fn manifest(name: &str) -> String {
    repository(&format!("tests/tests/e2e/manifests/{name}"))
}

/// What the machine lacks, if it lacks something.
fn missing(binaries: &Path, images: &Path, shape: Shape) -> Option<String> {
    if sys::proc::Proc::system().effective_capabilities().is_ok_and(|bits| bits >> 21 & 1 == 0) {
        return Some("this needs root".into());
    }
    let kubectl = KUBECTL.iter().map(|version| format!("kubectl-{version}"));
    if let Some(name) = PROGRAMS.iter().map(ToString::to_string).chain(kubectl).find(|name| program(name).is_none()) {
        return Some(format!("{name} is not there: make deps installs it"));
    }
    if let Some(name) = BINARIES.iter().find(|name| !binaries.join(name).is_file()) {
        return Some(format!("{name} is not built: make test builds it"));
    }
    let mut places = vec![images.to_owned()];
    if shape == Shape::StaticPods {
        places.push(images.join("control-plane"));
    }
    let is_archive = |path: PathBuf| path.extension().is_some_and(|kind| kind == "tar");
    let has_archive = |place: &PathBuf| {
        std::fs::read_dir(place).into_iter().flatten().flatten().any(|entry| is_archive(entry.path()))
    };
    let empty = places.iter().find(|place| !has_archive(place))?;
    Some(format!("no images in {}: make test builds them", empty.display()))
}
