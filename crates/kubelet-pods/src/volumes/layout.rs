//! Where things of pods are below the root directory. The layout is upstream's: other tools and an upstream kubelet that
//! takes over look there.

use std::path::{Path, PathBuf};

/// Paths below the root directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

/// The kind of a volume, as it is part of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    EmptyDir,
    ConfigMap,
    Secret,
    DownwardApi,
    Projected,
    Local,
    Nfs,
    /// Of a driver.
    Csi,
    /// The same two as block devices.
    LocalBlock,
    CsiBlock,
    /// Without a directory of its own.
    HostPath,
}

impl Plugin {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::EmptyDir,
        Self::ConfigMap,
        Self::Secret,
        Self::DownwardApi,
        Self::Projected,
        Self::Local,
        Self::Nfs,
        Self::Csi,
        Self::LocalBlock,
        Self::CsiBlock,
        Self::HostPath,
    ];

    /// The one that has this directory below a pod's volumes.
    pub fn of_directory(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| !plugin.is_block() && plugin.directory() == name)
    }

    /// The one that has this directory below a pod's block devices.
    pub fn of_device_directory(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.is_block() && plugin.directory() == name)
    }

    /// Whether containers have its volumes as block devices.
    pub fn is_block(self) -> bool {
        matches!(self, Self::LocalBlock | Self::CsiBlock)
    }

    /// The name of its directory; the plugin's own name has a slash for the tilde.
    pub fn directory(self) -> &'static str {
        match self {
            Self::EmptyDir => "kubernetes.io~empty-dir",
            Self::ConfigMap => "kubernetes.io~configmap",
            Self::Secret => "kubernetes.io~secret",
            Self::DownwardApi => "kubernetes.io~downward-api",
            Self::Projected => "kubernetes.io~projected",
            Self::Local | Self::LocalBlock => "kubernetes.io~local-volume",
            Self::Nfs => "kubernetes.io~nfs",
            Self::Csi | Self::CsiBlock => "kubernetes.io~csi",
            Self::HostPath => "kubernetes.io~host-path",
        }
    }
}

impl Layout {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub fn pod(&self, uid: &str) -> PathBuf {
        self.pods().join(safe(uid))
    }

    pub fn volumes(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volumes")
    }

    pub fn volume(&self, uid: &str, plugin: Plugin, name: &str) -> PathBuf {
        self.volumes(uid).join(plugin.directory()).join(safe(name))
    }

    pub fn plugins(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("plugins")
    }

    /// The mark that a volume was set up, also by an earlier process.
    pub fn ready_mark(&self, uid: &str, name: &str) -> PathBuf {
        self.plugins(uid).join(Plugin::EmptyDir.directory()).join(safe(name)).join("ready")
    }

    /// The mark that a mounted volume was given to the pod's group.
    pub fn given_mark(&self, uid: &str, plugin: Plugin, name: &str) -> PathBuf {
        self.plugins(uid).join(plugin.directory()).join(safe(name)).join("given")
    }

    /// What drivers' volumes have in common.
    pub fn csi_root(&self) -> PathBuf {
        self.root.join("plugins/kubernetes.io/csi")
    }

    /// What pods share of a driver's volume.
    pub fn csi_device(&self, driver: &str, handle: &str) -> PathBuf {
        self.csi_root().join(safe(driver)).join(kubelet_node::csi::hash(&[handle]))
    }

    /// The block devices of a pod, as links.
    pub fn devices(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volumeDevices")
    }

    pub fn device(&self, uid: &str, plugin: Plugin, name: &str) -> PathBuf {
        self.devices(uid).join(plugin.directory()).join(safe(name))
    }

    /// A pod's device among those of a volume that are bound below `map`.
    pub fn bound_device(&self, map: &Path, uid: &str) -> PathBuf {
        map.join(safe(uid))
    }

    /// Where devices behind local volumes are mounted.
    pub fn local_devices(&self) -> PathBuf {
        self.root.join("plugins/kubernetes.io/local-volume/mounts")
    }

    /// Where that of one is.
    pub fn local_device(&self, volume: &str) -> PathBuf {
        self.local_devices().join(safe(volume))
    }

    /// Where the devices of a local volume are bound, one for each pod.
    pub fn local_block(&self, volume: &str) -> PathBuf {
        self.root.join("plugins/kubernetes.io~local-volume/volumeDevices").join(safe(volume))
    }

    /// What drivers' volumes that are block devices have in common.
    pub fn csi_block_root(&self) -> PathBuf {
        self.csi_root().join("volumeDevices")
    }

    /// One of them: its data, and where its devices are bound.
    pub fn csi_block(&self, volume: &str) -> PathBuf {
        self.csi_block_root().join(safe(volume))
    }

    /// Where it is staged.
    pub fn csi_block_staging(&self, volume: &str) -> PathBuf {
        self.csi_block_root().join("staging").join(safe(volume))
    }

    /// Where it is published for a pod.
    pub fn csi_block_published(&self, volume: &str, uid: &str) -> PathBuf {
        self.csi_block_root().join("publish").join(safe(volume)).join(safe(uid))
    }

    pub fn sub_paths(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volume-subpaths")
    }

    pub fn sub_path(&self, uid: &str, volume: &str, container: &str, index: usize) -> PathBuf {
        self.sub_paths(uid).join(safe(volume)).join(safe(container)).join(index.to_string())
    }

    pub fn hosts_file(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("etc-hosts")
    }

    /// The directories that the kubelet needs before anything else.
    pub fn top_directories(&self) -> [PathBuf; 6] {
        let names = ["pods", "plugins", "plugins_registry", "pod-resources", "device-plugins", "checkpoints"];
        names.map(|name| self.root.join(name))
    }
}

/// A name as one element of a path. Names come validated from the API server; from static pods and from old files they
/// might hold anything.
fn safe(name: &str) -> String {
    match name {
        "" | "." | ".." => "_".to_owned(),
        name => name.replace(['/', '\0'], "~"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_upstreams_and_stay_below_the_root() {
        let layout = Layout::new("/var/lib/kubelet");
        let cases = [
            (layout.volume("u1", Plugin::Secret, "s"), "/var/lib/kubelet/pods/u1/volumes/kubernetes.io~secret/s"),
            (layout.ready_mark("u1", "d"), "/var/lib/kubelet/pods/u1/plugins/kubernetes.io~empty-dir/d/ready"),
            (layout.sub_path("u1", "v", "c", 2), "/var/lib/kubelet/pods/u1/volume-subpaths/v/c/2"),
            (
                layout.csi_device("d.example.com", "abc"),
                "/var/lib/kubelet/plugins/kubernetes.io/csi/d.example.com/\
                 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                layout.device("u1", Plugin::CsiBlock, "pv"),
                "/var/lib/kubelet/pods/u1/volumeDevices/kubernetes.io~csi/pv",
            ),
            (
                layout.csi_block_published("pv", "u1"),
                "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pv/u1",
            ),
            (layout.local_block("pv"), "/var/lib/kubelet/plugins/kubernetes.io~local-volume/volumeDevices/pv"),
            (layout.local_device("pv"), "/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts/pv"),
            (layout.pod("../../etc"), "/var/lib/kubelet/pods/..~..~etc"),
            (layout.pod(".."), "/var/lib/kubelet/pods/_"),
        ];
        for (path, expected) in cases {
            assert_eq!(path, Path::new(expected));
        }
    }
}
