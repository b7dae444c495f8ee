//! What configurations are refused, and the whole life of two nodes on the real machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_api::cri::v1::{
    ContainerConfig, ContainerMetadata, ImageSpec, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata,
    PortMapping,
};
use node_api::cri::{ClientOptions, CriClient, Runtime};
use sys::exec::Command;

use super::*;

fn networks(texts: &[&str]) -> Vec<Destination> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn impossible_configurations_are_refused() {
    let (root, state) = (Path::new("/var/lib/cx/n"), Path::new("/run/cx/n"));
    let new = |name, root, state, texts| NodeConfig::new(name, root, state, networks(texts));
    assert!(new("n1", root, state, &["10.0.0.0/24", "fd00::/64"]).is_ok());
    let long = PathBuf::from(format!("/run/{}", "x".repeat(100)));
    let cases = [
        ("name", new("N 1", root, state, &["10.0.0.0/24"])),
        ("no name", new("", root, state, &["10.0.0.0/24"])),
        ("no network", new("n1", root, state, &[])),
        ("two of a family", new("n1", root, state, &["10.0.0.0/24", "10.0.1.0/24"])),
        ("long socket", new("n1", root, &long, &["10.0.0.0/24"])),
        ("shallow root", new("n1", Path::new("/var"), state, &["10.0.0.0/24"])),
        ("relative root", new("n1", Path::new("a/b/c"), state, &["10.0.0.0/24"])),
    ];
    for (name, result) in cases {
        assert!(matches!(result, Err(NodeError::Config(_))), "{name}");
    }
    let mut bridge = new("n1", root, state, &["10.0.0.0/24"]).unwrap();
    bridge.bridge = "sixteen-bytes-xx".to_owned();
    assert!(bridge.validate().is_err());
}

#[tokio::test]
async fn the_runtime_is_started_in_the_nodes_surroundings() {
    use sys::cgroups::FakeCgroups;
    use sys::exec::FakeExec;
    use sys::mounts::FakeMounts;
    let dir = tempfile::tempdir().unwrap();
    let (exec, cgroups) = (Arc::new(FakeExec::new()), Arc::new(FakeCgroups::new()));
    let machine = Machine { exec: exec.clone(), mounts: Arc::new(FakeMounts::new()), cgroups: cgroups.clone() };
    let (root, state) = (dir.path().join("root"), dir.path().join("state"));
    let config = NodeConfig {
        netns: Some("dev-1".to_owned()),
        runtime_dir: Some("/opt/newer".into()),
        ..NodeConfig::new("n1", &root, &state, networks(&["10.0.0.0/24"])).unwrap()
    };
    let node = NodeEnvironment::new(config.clone(), machine);
    // The recording fake starts nothing, which is what a runtime that ends at once looks like.
    std::fs::create_dir_all(root.join("log")).unwrap();
    std::fs::write(config.log_file(), "containerd: address in use\n").unwrap();
    let failed = node.start().await;
    assert!(matches!(failed, Err(NodeError::NotReady { log, .. }) if log == "containerd: address in use"));
    let daemon = exec.daemons().remove(0);
    assert_eq!(daemon.command.line(), format!("/opt/newer/containerd --config {}", root.join("config.toml").display()));
    assert_eq!((daemon.hostname.as_deref(), daemon.command.netns), (Some("n1"), Some("/run/netns/dev-1".into())));
    assert!(daemon.command.env[0].1.to_string_lossy().starts_with("/opt/newer:"));
    assert!(cgroups.exists(&config.cgroup_root));
    assert!(root.join("config.toml").exists() && root.join("cni/net.d/10-coxswain.conflist").exists());
    assert!(matches!(node.import_images(dir.path()).await, Err(NodeError::NoImages(_))));
    node.stop().await.unwrap();
    assert!(!root.exists() && !state.exists() && !cgroups.exists(&config.cgroup_root));
}

/// Where `hack/images.sh` puts archives; nothing, with a word about it, where nodes cannot be.
fn images() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("../../target"), PathBuf::from);
    let directory = std::env::var_os("COXSWAIN_IMAGES").map_or_else(|| target.join("images"), PathBuf::from);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let found = |program: &str| ["/usr/bin", "/usr/sbin"].iter().any(|place| Path::new(place).join(program).exists());
    if !is_root {
        test_facts::skipped("needs root");
    } else if let Some(missing) = ["containerd", "runc", "ip", "nft", "iptables"].iter().find(|name| !found(name)) {
        test_facts::skipped(&format!("{missing} is not installed"));
    } else if !directory.join("pause.tar").exists() {
        test_facts::skipped("no image archives (hack/images.sh build)");
    } else {
        return Some(directory);
    }
    None
}

struct Pod {
    sandbox: String,
    container: String,
    ip: String,
}

async fn run_echoserver(client: &CriClient, config: &NodeConfig, name: &str, host_port: i32) -> Pod {
    let parent = config.cgroup_root.child("pod1").unwrap();
    let sandbox_config = PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: name.into(),
            uid: name.into(),
            namespace: "default".into(),
            attempt: 0,
        }),
        hostname: name.into(),
        log_directory: config.root.join("log").display().to_string(),
        port_mappings: vec![PortMapping { container_port: 8080, host_port, ..PortMapping::default() }],
        linux: Some(LinuxPodSandboxConfig { cgroup_parent: parent.to_string(), ..LinuxPodSandboxConfig::default() }),
        ..PodSandboxConfig::default()
    };
    let sandbox = client.run_pod_sandbox(sandbox_config.clone(), "").await.unwrap();
    let image = "k8s.gcr.io/echoserver:1.4".to_owned();
    let container_config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "main".into(), attempt: 0 }),
        image: Some(ImageSpec { image, ..ImageSpec::default() }),
        log_path: format!("{name}.log"),
        ..ContainerConfig::default()
    };
    let container = client.create_container(&sandbox, container_config, sandbox_config).await.unwrap();
    client.start_container(&container).await.unwrap();
    let status = client.pod_sandbox_status(&sandbox, false).await.unwrap();
    let ip = status.status.and_then(|status| status.network).map(|network| network.ip).unwrap_or_default();
    Pod { sandbox, container, ip }
}

/// Fetches a URL from within a container, trying for a few seconds while the server starts.
async fn fetch(client: &CriClient, pod: &Pod, url: &str) -> String {
    let command = [
        "sh",
        "-c",
        &format!("for i in 1 2 3 4 5 6 7 8 9 10; do timeout 3 wget -qO- {url} && exit; sleep 0.3; done; exit 1"),
    ];
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let answer = client.exec_sync(&pod.container, command, Duration::from_secs(40)).await.unwrap();
    assert_eq!(answer.exit_code, 0, "{url}: {}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

/// What the nodes have where all runtimes of the machine have theirs, and where nothing says whose it is once they are gone.
#[derive(Debug)]
struct Shared {
    sockets: BTreeSet<PathBuf>,
    chains: BTreeSet<String>,
}

impl Shared {
    async fn of(machine: &Machine, nodes: &[NodeEnvironment]) -> Self {
        let rules = nat_rules(machine).await;
        let (mut sockets, mut chains) = (BTreeSet::new(), BTreeSet::new());
        for config in nodes.iter().map(NodeEnvironment::config) {
            let bundles = config.state.join("containerd/io.containerd.runtime.v2.task/k8s.io");
            let bundles = std::fs::read_dir(bundles).unwrap().map(|entry| entry.unwrap().path().join("address"));
            let addresses = bundles.map(|path| std::fs::read_to_string(path).unwrap());
            sockets.extend(addresses.map(|text| PathBuf::from(text.trim().strip_prefix("unix://").unwrap())));
            let mark = format!("name: \\\"{}\\\"", cni::network_name(config));
            let ours = rules.lines().filter(|line| line.contains(&mark));
            let words = ours.flat_map(|line| line.split(' ')).filter(|word| word.starts_with("CNI-DN-"));
            chains.extend(words.map(str::to_owned));
        }
        Self { sockets, chains }
    }

    /// What is there of it.
    async fn left(&self, machine: &Machine) -> Vec<String> {
        let sockets = self.sockets.iter().filter(|path| path.exists()).map(|path| path.display().to_string());
        let rules = nat_rules(machine).await;
        let is_ours = |line: &&str| line.split([' ', ':']).any(|word| self.chains.contains(word));
        sockets.chain(rules.lines().filter(is_ours).map(str::to_owned)).collect()
    }
}

async fn nat_rules(machine: &Machine) -> String {
    let save = Command::with("sh", &["-c", "iptables-save -t nat; ip6tables-save -t nat"]);
    machine.exec.run(&save).await.unwrap().text()
}

/// What a node must not leave behind: anything that bears the test's name, and chains that nobody uses.
async fn traces(machine: &Machine, mark: &str) -> BTreeMap<&'static str, String> {
    let script = |text: &str| Command::with("sh", &["-c", text, mark]);
    let looks = [
        ("mounts", "grep -F \"$0\" /proc/self/mountinfo"),
        ("namespaces", "ip netns list | grep -F \"$0\""),
        ("links", "ip -o link show | grep -F \"$0\""),
        ("routes", "ip route | grep -F 10.231."),
        ("rules", "nft list ruleset | grep -F \"$0\"; iptables-save | grep -F \"$0\""),
        (
            "chains",
            "iptables-save -t nat | grep -q '^-A CNI-HOSTPORT-DNAT' || iptables-save -t nat | grep -F CNI-HOSTPORT-",
        ),
        ("groups", "find /sys/fs/cgroup -type d -name \"*$0*\""),
        (
            "processes",
            "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -F \"/run/$0\"; done | grep -v 'sh -c'",
        ),
        ("results", "ls /var/lib/cni/results | grep -F \"$0\""),
        ("files", "ls -d \"/run/$0\"* \"/var/lib/$0\"*"),
    ];
    let mut found = BTreeMap::new();
    for (name, text) in looks {
        let output = machine.exec.run(&script(text)).await.unwrap().text();
        if !output.trim().is_empty() {
            found.insert(name, output);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_live_and_leave_nothing() {
    let Some(images) = images() else { return };
    let mark = format!("cxt{}", std::process::id() % 100_000);
    let machine = Machine::linux();
    let host_networks = networks(&["10.231.0.0/24", "fd31:0:0:1::/64"]);
    let node_networks = networks(&["10.231.1.0/24", "fd31:0:0:2::/64"]);
    let fabric_config = FabricConfig {
        cluster: mark.clone(),
        v4: [172, 31, 250, 0].into(),
        v6: "fd31:0:0:f::".parse().ok(),
        host_pod_networks: host_networks.clone(),
        nodes: vec![FabricNode { number: 1, pod_networks: node_networks.clone() }],
    };
    let place =
        |name: &str| (PathBuf::from(format!("/var/lib/{mark}/{name}")), PathBuf::from(format!("/run/{mark}/{name}")));
    let node = |name: &str, pods: Vec<Destination>| {
        let (root, state) = place(name);
        NodeConfig::new(&format!("{mark}-{name}"), &root, &state, pods).unwrap()
    };
    let first = node("a", host_networks);
    // The second node differs in all that may differ: another network, its own view of mounts, a newer runtime if there.
    let newer = PathBuf::from("/opt/coxswain/pkgs/trixie/containerd/usr/bin");
    let second = NodeConfig {
        netns: Some(fabric_config.netns(1)),
        mounts: MountView::OwnShared,
        runtime_dir: Some(newer).filter(|directory| directory.join("containerd").exists()),
        ..node("b", node_networks)
    };
    let fabric = Fabric::new(fabric_config.clone(), &machine);
    let nodes = [first, second].map(|config| NodeEnvironment::new(config, machine.clone()));

    let life = async {
        live(&fabric, &fabric_config, &nodes, &images).await;
        let shared = Shared::of(&machine, &nodes).await;
        // The first node's runtime dies without cleaning up; its shims, containers and rules are left to the teardown.
        nodes[0].process().unwrap().stop(Duration::ZERO).await.unwrap();
        assert_eq!(nodes[0].process(), None);
        shared
    };
    let lived = tokio::time::timeout(Duration::from_secs(120), life);
    let lived = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(lived)).await;
    for node in &nodes {
        node.stop().await.unwrap();
        node.stop().await.unwrap();
    }
    fabric.down().await.unwrap();
    fabric.down().await.unwrap();
    for parent in [format!("/var/lib/{mark}"), format!("/run/{mark}")] {
        std::fs::remove_dir(parent).unwrap();
    }
    let shared = lived.unwrap().unwrap();
    assert!(shared.sockets.len() >= 2 && !shared.chains.is_empty(), "{shared:?}");
    assert_eq!(shared.left(&machine).await, [""; 0]);
    assert_eq!(traces(&machine, &mark).await, BTreeMap::new());
}

async fn live(fabric: &Fabric, fabric_config: &FabricConfig, nodes: &[NodeEnvironment; 2], images: &Path) {
    fabric.up().await.unwrap();
    fabric.up().await.unwrap();
    let mut pods = Vec::new();
    for (node, host_port) in nodes.iter().zip([31_801, 31_802]) {
        node.start().await.unwrap();
        let process = node.process();
        node.start().await.unwrap();
        assert_eq!(node.process(), process, "a second start changes nothing");
        assert!(node.import_images(images).await.unwrap() >= 3);
        let client = CriClient::connect(&ClientOptions::new(&node.config().endpoint())).await.unwrap();
        let pod = run_echoserver(&client, node.config(), &format!("pod-{host_port}"), host_port).await;
        pods.push((client, pod));
    }
    let [(near, pod_a), (far, pod_b)] = pods.try_into().unwrap_or_else(|_| unreachable!("two nodes were started"));
    let gateway = fabric_config.gateway()[0];
    let node_b = fabric_config.addresses(1)[0];
    assert_eq!(fetch(&near, &pod_a, &format!("http://{}:8080/hostname", pod_b.ip)).await, "pod-31802");
    let seen = fetch(&far, &pod_b, &format!("http://{}:8080/clientip", pod_a.ip)).await;
    assert!(seen.starts_with(&format!("{}:", pod_b.ip)), "the source address is kept: {seen}");
    assert_eq!(fetch(&far, &pod_b, &format!("http://{gateway}:31801/hostname")).await, "pod-31801");
    assert_eq!(fetch(&near, &pod_a, &format!("http://{node_b}:31802/hostname")).await, "pod-31802");
    far.pod_sandbox_status(&pod_b.sandbox, false).await.unwrap();
    assert_eq!(nodes[0].mount_namespace(), None);
    assert_ne!(
        std::fs::read_link(nodes[1].mount_namespace().unwrap()).ok(),
        std::fs::read_link("/proc/self/ns/mnt").ok()
    );
}
