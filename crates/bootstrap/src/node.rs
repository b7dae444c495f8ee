//! The surroundings that a kubelet and a kube-proxy find on a node: a containerd with directories, sockets, pod network
//! and control groups of its own, so that any number of nodes share one machine without touching each other or the
//! machine's own containerd.
//!
//! The first node of a cluster lives in the machine's own network; each further one in a namespace that a [`Fabric`]
//! connects. Everything can be taken down again from the configuration alone, also by another process after a crash.

mod cni;
mod containerd;
mod environment;
mod fabric;
mod hostport;
mod teardown;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::cgroups::{CgroupError, CgroupPath, Cgroups, LinuxCgroups};
use sys::exec::{Exec, ExecError, LinuxExec, MountView};
use sys::mounts::{LinuxMounts, MountError, Mounts};
use sys::net::{Destination, NetError};
use sys::packet_filter::FilterError;

pub use environment::NodeEnvironment;
pub use fabric::{Fabric, FabricConfig, FabricNode};

/// The pause image that the runtime is told to use; one of the names that `hack/images.sh` gives it.
pub const DEFAULT_SANDBOX_IMAGE: &str = "registry.k8s.io/pause:3.10.1";
/// The kernel's bound for the name of a link, without the closing zero.
const LINK_NAME_MAX: usize = 15;
/// A unix socket's path must fit 108 bytes, and containerd appends to it.
const SOCKET_PATH_MAX: usize = 100;

/// One node's surroundings. Two nodes must differ in everything but the runtime's programs and the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// The node's name: its host name, unless it lives in the machine's own network.
    pub name: String,
    /// Where images, containers and logs are kept; on a disk.
    pub root: PathBuf,
    /// Where sockets and running state are kept; short, and gone after a reboot, such as `/run/coxswain/NAME`.
    pub state: PathBuf,
    /// The pods' networks, at most one of each family.
    pub pod_networks: Vec<Destination>,
    /// The namespace it lives in, by name; the machine's own if absent.
    pub netns: Option<String>,
    /// The bridge that pods are plugged into; at most 15 bytes and unique in the node's network.
    pub bridge: String,
    /// The top of its control groups, for the kubelet's `cgroupRoot`.
    pub cgroup_root: CgroupPath,
    /// A directory whose containerd, shim and runc are preferred over those in `PATH`.
    pub runtime_dir: Option<PathBuf>,
    /// Where the CNI plugins are.
    pub cni_dir: PathBuf,
    pub sandbox_image: String,
    pub snapshotter: String,
    /// Which mounts the runtime sees. With [`MountView::OwnShared`] mount propagation into pods works on machines whose
    /// root is not shared, and the kubelet has to run in [`NodeEnvironment::mount_namespace`].
    pub mounts: MountView,
}

impl NodeConfig {
    /// A node called `name` below `root` and `state`, in the machine's own network, with Debian's places for programs.
    ///
    /// # Errors
    /// The name is not a host name, or the state directory's path is too long for a socket.
    pub fn new(name: &str, root: &Path, state: &Path, pod_networks: Vec<Destination>) -> Result<Self, NodeError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let bad = || NodeError::Config(format!("node name {name:?} is not a host name"));
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) || name.starts_with(['-', '.']) {
            return Err(bad());
        }
        let config = Self {
            name: name.to_owned(),
            root: root.to_owned(),
            state: state.to_owned(),
            pod_networks,
            netns: None,
            bridge: format!("cni-{name}").chars().take(LINK_NAME_MAX).collect(),
            cgroup_root: CgroupPath::new(&format!("coxswain-{name}")).ok_or_else(bad)?,
            runtime_dir: None,
            cni_dir: PathBuf::from("/usr/lib/cni"),
            sandbox_image: DEFAULT_SANDBOX_IMAGE.to_owned(),
            snapshotter: "overlayfs".to_owned(),
            mounts: MountView::Caller,
        };
        config.validate()?;
        Ok(config)
    }

    /// Checks what the kernel and the runtime would only refuse later and less clearly.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), NodeError> {
        let wrong = |text: String| Err(NodeError::Config(text));
        if self.socket().as_os_str().len() > SOCKET_PATH_MAX {
            return wrong(format!("socket path {} is too long", self.socket().display()));
        }
        if self.bridge.is_empty() || self.bridge.len() > LINK_NAME_MAX {
            return wrong(format!("bridge name {:?} must have 1 to {LINK_NAME_MAX} bytes", self.bridge));
        }
        let count = |v6| self.pod_networks.iter().filter(|network| network.is_v6() == v6).count();
        if self.pod_networks.is_empty() || count(false) > 1 || count(true) > 1 {
            return wrong("a node needs one pod network, or one of each family".to_owned());
        }
        for path in [&self.root, &self.state] {
            // Teardown removes these trees.
            if !path.is_absolute() || path.components().count() < 3 {
                return wrong(format!("{} must be an absolute path of at least two parts", path.display()));
            }
        }
        Ok(())
    }

    /// The runtime's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state.join("c.sock")
    }

    /// The runtime's socket as the kubelet's `containerRuntimeEndpoint`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    fn pidfile(&self) -> PathBuf {
        self.state.join("containerd.pid")
    }

    /// The runtime's log.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.root.join("log/containerd.log")
    }

    fn netns_path(&self) -> Option<PathBuf> {
        self.netns.as_deref().map(sys::netns::path_of)
    }
}

/// What of the machine a node's surroundings are made of.
#[derive(Clone)]
pub struct Machine {
    pub exec: Arc<dyn Exec>,
    pub mounts: Arc<dyn Mounts>,
    pub cgroups: Arc<dyn Cgroups>,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn linux() -> Self {
        Self { exec: Arc::new(LinuxExec), mounts: Arc::new(LinuxMounts), cgroups: Arc::new(LinuxCgroups::detect()) }
    }
}

/// Why a node's surroundings could not be made or taken away.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration cannot work.
    #[error("{0}")]
    Config(String),
    /// A file or directory could not be written or removed.
    #[error("{action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The runtime ended or did not answer in time; the end of its log.
    #[error("containerd of node {node} did not become ready: {log}")]
    NotReady { node: String, log: String },
    /// The runtime does not take an image archive; its words.
    #[error("importing {}", archive.display())]
    Import {
        archive: PathBuf,
        #[source]
        source: ExecError,
    },
    /// There is nothing to import.
    #[error("no image archives in {}: build them with hack/images.sh", .0.display())]
    NoImages(PathBuf),
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NodeError + use<> {
    let path = path.to_owned();
    move |source| NodeError::File { action, path, source }
}

#[cfg(test)]
#[path = "node/tests.rs"]
mod tests;
