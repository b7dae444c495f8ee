//! A node of the cluster: its kubelet and kube-proxy, with their configuration files.

use std::path::Path;

use sys::cgroups::{Cgroups as _, LinuxCgroups};

use super::processes::Managed;
use super::serving::kubelet_files;
use super::settings::{ClusterError, Layout, Settings, file_error};
use crate::node::NodeEnvironment;

const CONFIG_MODE: u32 = 0o644;

/// Whether the machine has the first version of control groups only, which the kubelet refuses by default.
pub(super) fn has_cgroup_v1() -> bool {
    LinuxCgroups::detect().version() == sys::cgroups::Version::V1
}

/// The kubelet of a node. Its configuration file is written, whatever was there.
pub(super) fn kubelet(settings: &Settings, index: u8, environment: &NodeEnvironment) -> Result<Managed, ClusterError> {
    let layout = Layout::new(&settings.root);
    let node = settings.node_name(index);
    let home = layout.kubelet(&node);
    let config = home.join("config.yaml");
    write(&config, &kubelet_config(settings, &layout, index, environment))?;
    // A kubelet complains of a directory that is not there for as long as it runs.
    let manifests = layout.static_pods(&node);
    std::fs::create_dir_all(&manifests).map_err(file_error("creating", &manifests))?;
    let kubeconfig = layout.node(&node).join("etc/kubernetes/kubelet.conf");
    let arguments = vec![
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--hostname-override={node}"),
        format!("--node-ip={}", settings.node_address(index)),
        format!("--root-dir={}", home.display()),
        format!("--cert-dir={}", home.join("pki").display()),
    ];
    Ok(Managed {
        name: format!("kubelet-{node}"),
        program: settings.bin_dir.join("kubelet"),
        arguments: settings.with_extra_flags("kubelet", arguments),
        netns: environment.config().netns.as_deref().map(sys::netns::path_of),
        mount_ns: environment.mount_namespace(),
        hostname: (index > 0).then(|| node.clone()),
    })
}

fn kubelet_config(settings: &Settings, layout: &Layout, index: u8, environment: &NodeEnvironment) -> String {
    let node = settings.node_name(index);
    let home = layout.node(&node);
    let [certificate, key] = kubelet_files(layout, &node);
    let lines = [
        "apiVersion: kubelet.config.k8s.io/v1beta1".to_owned(),
        "kind: KubeletConfiguration".to_owned(),
        "authentication:\n  anonymous:\n    enabled: false\n  webhook:\n    enabled: true".to_owned(),
        format!("  x509:\n    clientCAFile: {}", layout.pki().join("ca.crt").display()),
        "authorization:\n  mode: Webhook".to_owned(),
        "cgroupDriver: cgroupfs".to_owned(),
        format!("cgroupRoot: {}", environment.config().cgroup_root),
        format!("clusterDNS:\n- {}", settings.dns_address),
        format!("clusterDomain: {}", settings.dns_domain),
        format!("containerRuntimeEndpoint: {}", environment.config().endpoint()),
        // The disk is the machine's, and others fill it too: pods that are evicted for it would not make it emptier.
        "evictionHard:\n  memory.available: 100Mi\n  nodefs.available: 0%\n  nodefs.inodesFree: 0%\n  \
         imagefs.available: 0%\n  imagefs.inodesFree: 0%\nimageGCHighThresholdPercent: 100"
            .to_owned(),
        format!("failCgroupV1: {}", !has_cgroup_v1()),
        // Every node of one machine that shares its network needs a port of its own; others have a network each.
        "healthzBindAddress: 127.0.0.1\nhealthzPort: 10248".to_owned(),
        format!("podLogsDir: {}", home.join("var/log/pods").display()),
        "rotateCertificates: true".to_owned(),
        format!("staticPodPath: {}", layout.static_pods(&node).display()),
        format!("tlsCertFile: {}", certificate.display()),
        format!("tlsPrivateKeyFile: {}", key.display()),
    ];
    lines.join("\n") + "\n"
}

/// The kube-proxy of a node. Its configuration file is written, whatever was there.
pub(super) fn kube_proxy(
    settings: &Settings,
    index: u8,
    environment: &NodeEnvironment,
) -> Result<Managed, ClusterError> {
    let layout = Layout::new(&settings.root);
    let node = settings.node_name(index);
    let config = layout.node(&node).join("var/lib/kube-proxy/config.yaml");
    let text = format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nbindAddress: \
         0.0.0.0\nclientConnection:\n  kubeconfig: {}\nclusterCIDR: {}\nhostnameOverride: {node}\nmode: nftables\n",
        layout.kubeconfig("kube-proxy.conf").display(),
        settings.cluster_cidr(),
    );
    write(&config, &text)?;
    let arguments = vec![format!("--config={}", config.display())];
    Ok(Managed {
        name: format!("kube-proxy-{node}"),
        program: settings.bin_dir.join("kube-proxy"),
        arguments: settings.with_extra_flags("kube-proxy", arguments),
        netns: environment.config().netns.as_deref().map(sys::netns::path_of),
        mount_ns: None,
        hostname: None,
    })
}

fn write(path: &Path, text: &str) -> Result<(), ClusterError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(file_error("creating", parent))?;
    }
    sys::fs::write_atomic(path, text.as_bytes(), CONFIG_MODE).map_err(file_error("writing", path))
}
