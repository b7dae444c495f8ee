//! What a cluster is to look like, and where its files are.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use pki::layout::PkiConfig;
use sys::exec::ExecError;

use crate::node::{FabricConfig, FabricNode, NodeConfig, NodeError};

/// The most nodes on one machine: the last part of a node's address and the third of its pods'.
const MAX_NODES: u8 = 100;
/// What runs on each node, beside the components of the control plane.
const NODE_AGENTS: [&str; 2] = ["kubelet", "kube-proxy"];

/// How the control plane runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlPlane {
    /// As processes of the machine.
    Processes,
    /// As static Pods of the first node, as kubeadm does it.
    StaticPods,
}

/// What a cluster is to look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The cluster's name: short, as network links carry it.
    pub name: String,
    /// Where everything is kept.
    pub root: PathBuf,
    /// Where sockets and running state are kept; short, and gone after a reboot.
    pub state: PathBuf,
    /// Where the binaries are.
    pub bin_dir: PathBuf,
    /// Where the image archives are that every node gets.
    pub images_dir: PathBuf,
    /// How many nodes; the first lives in the machine's own network.
    pub nodes: u8,
    /// The port of the API server.
    pub api_port: u16,
    /// The nodes' network, a /24.
    pub node_network: Ipv4Addr,
    /// The first two parts of the pods' addresses; each node has a /24 below.
    pub pod_network: [u8; 2],
    /// The services' network.
    pub service_network: String,
    /// The address of the `kubernetes` service, the first of the network.
    pub service_address: Ipv4Addr,
    /// The address of the DNS service, the tenth of the network.
    pub dns_address: Ipv4Addr,
    /// The domain of services.
    pub dns_domain: String,
    /// etcd's endpoints; empty for the store inside the API server.
    pub etcd_servers: String,
    /// How the control plane runs.
    pub control_plane: ControlPlane,
    /// Further flags by component, such as `kube-controller-manager=--node-monitor-grace-period=10s`.
    pub extra_flags: Vec<(String, String)>,
}

impl Settings {
    /// A cluster of one node below a root, with everything else as usual.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            name: "coxswain".into(),
            root: root.to_owned(),
            state: "/run/coxswain".into(),
            bin_dir: "target/release".into(),
            images_dir: "target/images".into(),
            nodes: 1,
            api_port: 6443,
            node_network: Ipv4Addr::new(172, 30, 0, 0),
            pod_network: [10, 244],
            service_network: "10.96.0.0/16".into(),
            service_address: Ipv4Addr::new(10, 96, 0, 1),
            dns_address: Ipv4Addr::new(10, 96, 0, 10),
            dns_domain: "cluster.local".into(),
            etcd_servers: String::new(),
            control_plane: ControlPlane::Processes,
            extra_flags: Vec::new(),
        }
    }

    /// Checks what would only fail later and less clearly.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let wrong = |text: String| Err(ClusterError::Settings(text));
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return wrong(format!("--nodes must be between 1 and {MAX_NODES}, not {}", self.nodes));
        }
        if !self.root.is_absolute() || self.root.components().count() < 3 {
            return wrong(format!("--root {} must be an absolute path of at least two parts", self.root.display()));
        }
        let control_plane = super::COMPONENTS.iter().map(|component| component.name);
        let components: Vec<&str> = control_plane.chain(NODE_AGENTS).collect();
        let known = |name: &str| components.contains(&name);
        match self.extra_flags.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => {
                wrong(format!("--extra-flag names {name:?}, which is none of {}", components.join(", ")))
            }
            None => Ok(()),
        }
    }

    /// A component's own flags with those that the user wants it to have: behind them, and in the place of those of the same
    /// name, as kubeadm has it. A flag that is given twice would add to a list.
    #[must_use]
    pub fn with_extra_flags(&self, component: &str, mut own: Vec<String>) -> Vec<String> {
        let further = self.extra_flags.iter().filter(|(name, _)| name == component).map(|(_, flag)| flag);
        own.retain(|flag| !further.clone().any(|other| replaces(other, flag)));
        own.extend(further.cloned());
        own
    }

    /// The address by which nodes and clients reach the API server.
    #[must_use]
    pub fn api_address(&self) -> IpAddr {
        self.fabric().gateway().first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// The API server's URL.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("https://{}:{}", self.api_address(), self.api_port)
    }

    /// The network of all pods.
    #[must_use]
    pub fn cluster_cidr(&self) -> String {
        format!("{}.{}.0.0/16", self.pod_network[0], self.pod_network[1])
    }

    /// The node's name.
    #[must_use]
    pub fn node_name(&self, index: u8) -> String {
        format!("node-{}", index + 1)
    }

    /// What connects the nodes.
    #[must_use]
    pub fn fabric(&self) -> FabricConfig {
        let further = 1..self.nodes;
        FabricConfig {
            cluster: self.name.clone(),
            v4: self.node_network,
            v6: None,
            host_pod_networks: vec![self.pods_of(0)],
            nodes: further.map(|index| FabricNode { number: index, pod_networks: vec![self.pods_of(index)] }).collect(),
        }
    }

    /// The network of a node's pods.
    #[must_use]
    pub fn pods_of(&self, index: u8) -> sys::net::Destination {
        let [first, second] = self.pod_network;
        sys::net::Destination(sys::net::Address { ip: Ipv4Addr::new(first, second, index, 0).into(), prefix: 24 })
    }

    /// A node's own address.
    #[must_use]
    pub fn node_address(&self, index: u8) -> IpAddr {
        let number = if index == 0 { return self.api_address() } else { index };
        self.fabric().addresses(number).first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// The surroundings of a node.
    ///
    /// # Errors
    /// A path is too long for a socket.
    pub fn node_config(&self, index: u8) -> Result<NodeConfig, ClusterError> {
        let name = self.node_name(index);
        let layout = Layout::new(&self.root);
        let mut config =
            NodeConfig::new(&name, &layout.runtime_dir(&name), &self.state.join(&name), vec![self.pods_of(index)])?;
        config.bridge = format!("{}-{index}", self.name.chars().take(10).collect::<String>());
        config.netns = (index > 0).then(|| self.fabric().netns(index));
        config.mounts = sys::exec::MountView::OwnShared;
        Ok(config)
    }

    /// What the certificates are to say.
    #[must_use]
    pub fn pki(&self, node: &str) -> PkiConfig {
        let mut config = PkiConfig::new(node, self.api_address(), IpAddr::V4(self.service_address));
        config.dns_domain.clone_from(&self.dns_domain);
        config.api_server_hosts = vec!["localhost".into(), "127.0.0.1".into()];
        config
    }
}

/// Whether one flag stands for another. A file that says who authorizes stands for the list of authorizers: the API server
/// takes only one of them.
fn replaces(flag: &str, own: &str) -> bool {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().trim_start_matches('-').replace('_', "-");
    let (flag, own) = (name(flag), name(own));
    flag == own || (flag == "authorization-config" && own == "authorization-mode")
}

/// kubeadm's file layout below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below `root`; `/` gives kubeadm's own paths.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// `etc/kubernetes`
    #[must_use]
    pub fn kubernetes(&self) -> PathBuf {
        self.root.join("etc/kubernetes")
    }

    /// `etc/kubernetes/pki`
    #[must_use]
    pub fn pki(&self) -> PathBuf {
        self.kubernetes().join("pki")
    }

    /// A kubeconfig, such as `admin.conf`.
    #[must_use]
    pub fn kubeconfig(&self, file: &str) -> PathBuf {
        self.kubernetes().join(file)
    }

    /// The static Pods of a node.
    #[must_use]
    pub fn static_pods(&self, node: &str) -> PathBuf {
        self.node(node).join("etc/kubernetes/manifests")
    }

    /// Where the directories of all nodes are.
    #[must_use]
    pub fn nodes(&self) -> PathBuf {
        self.root.join("nodes")
    }

    /// A node's own directory; what on a real node would be below `/`.
    #[must_use]
    pub fn node(&self, name: &str) -> PathBuf {
        self.nodes().join(name)
    }

    /// The kubelet's directory on a node.
    #[must_use]
    pub fn kubelet(&self, name: &str) -> PathBuf {
        self.node(name).join("var/lib/kubelet")
    }

    /// The container runtime's directory on a node.
    #[must_use]
    pub fn runtime_dir(&self, name: &str) -> PathBuf {
        self.node(name).join("var/lib/containerd")
    }

    /// Where the API server keeps its store when it has no etcd.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.root.join("var/lib/kube-apiserver")
    }

    /// A process's log.
    #[must_use]
    pub fn log(&self, process: &str) -> PathBuf {
        self.root.join("var/log").join(format!("{process}.log"))
    }
}

/// Why a cluster could not be brought up or down.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The settings cannot work.
    #[error("{0}")]
    Settings(String),
    /// A binary is missing.
    #[error("{} is not there: build it first (make build), or name its directory with --bin-dir", .0.display())]
    NoBinary(PathBuf),
    /// A file could not be written or read.
    #[error("{action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Certificates could not be made.
    #[error("making certificates")]
    Pki(#[from] pki::EnsureError),
    /// A process ended instead of becoming ready; the end of its log.
    #[error("{process} is not ready after {seconds} s ({last}); the end of {}:\n{tail}", log.display())]
    NotReady {
        /// The process.
        process: String,
        /// How long it was waited for.
        seconds: u64,
        /// What its health check said last.
        last: String,
        /// Where its log is.
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// A process could not be stopped.
    #[error("stopping {process}")]
    Stop {
        /// The process.
        process: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The rules of Services could not be removed.
    #[error("removing kube-proxy's rules")]
    ServiceRules(#[source] sys::packet_filter::FilterError),
    /// A node's surroundings failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A program could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The API server refused something.
    #[error("{action}")]
    Api {
        /// What was tried.
        action: String,
        /// What it said.
        #[source]
        source: client::ClientError,
    },
    /// A kubeconfig that was just written cannot be used.
    #[error("reading the admin kubeconfig")]
    Config(#[from] client::ConfigError),
}

/// The error for a file.
pub(super) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ClusterError + use<> {
    let path = path.to_owned();
    move |source| ClusterError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_networks_of_their_own() {
        let mut settings = Settings::new(Path::new("/var/lib/coxswain"));
        settings.nodes = 3;
        settings.validate().unwrap();
        assert_eq!(settings.api_url(), "https://172.30.0.254:6443");
        settings.extra_flags = vec![("kubelet".into(), "--v=4".into()), ("kube-proxy".into(), "--v=5".into())];
        settings.validate().unwrap();
        assert_eq!(settings.with_extra_flags("kubelet", vec!["--v=2".into(), "--a".into()]), ["--a", "--v=4"]);
        let networks: Vec<_> = (0..3).map(|index| settings.node_config(index).unwrap().netns).collect();
        assert_eq!(networks, [None, Some("coxswain-1".into()), Some("coxswain-2".into())]);
        assert_eq!(settings.node_address(2).to_string(), "172.30.0.2");
    }

    #[test]
    fn bad_settings_are_named() {
        let good = Settings::new(Path::new("/var/lib/coxswain"));
        for (settings, part) in [
            (Settings { nodes: 0, ..good.clone() }, "--nodes"),
            (Settings { root: "/x".into(), ..good.clone() }, "--root"),
            (Settings { extra_flags: vec![("kube-nothing".into(), "--v=1".into())], ..good.clone() }, "kube-nothing"),
        ] {
            let error = settings.validate().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
