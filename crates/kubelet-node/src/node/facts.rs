//! What the machine is and has.

use std::collections::BTreeMap;
use std::path::Path;

use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::{NodeSwapStatus, NodeSystemInfo, ResourceList};
use node_api::cri::v1::VersionResponse;
use sys::proc::Proc;

use super::NodeSettings;
use crate::resources::container::size_name;

/// A file system, counted in bytes and inodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSystem {
    pub capacity: u64,
    pub available: u64,
    pub inodes: u64,
    pub inodes_free: u64,
}

/// The file system that holds `path`.
pub fn filesystem(path: &Path) -> std::io::Result<FileSystem> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(FileSystem {
        capacity: stat.f_blocks.saturating_mul(stat.f_frsize),
        available: stat.f_bavail.saturating_mul(stat.f_frsize),
        inodes: stat.f_files,
        inodes_free: stat.f_ffree,
    })
}

/// Reads the machine.
#[derive(Debug, Clone)]
pub struct Facts {
    proc: Proc,
    sys: std::path::PathBuf,
}

impl Facts {
    /// This machine.
    pub fn system() -> Self {
        Self { proc: Proc::system(), sys: "/sys".into() }
    }

    #[cfg(any(test, feature = "fake"))]
    pub fn at(root: &Path) -> Self {
        Self { proc: Proc::at(root), sys: root.join("sys") }
    }

    pub fn proc(&self) -> &Proc {
        &self.proc
    }

    /// Huge pages by size in bytes: how many there are.
    pub fn huge_pages(&self) -> BTreeMap<u64, u64> {
        sys::topology::huge_pages(&self.sys.join("kernel/mm/hugepages"))
    }

    /// Huge page sizes in the kernel's words.
    pub fn huge_page_names(&self) -> Vec<String> {
        self.huge_pages().into_keys().map(size_name).collect()
    }

    /// What the machine has. What cannot be read counts as nothing.
    pub fn capacity(&self, settings: &NodeSettings) -> ResourceList {
        let cpus = i64::try_from(self.proc.cpus().unwrap_or_default()).unwrap_or_default();
        let memory = self.proc.memory().map(|memory| memory.total_bytes).unwrap_or_default();
        let disk = filesystem(&settings.root_dir).unwrap_or_default().capacity;
        let bytes = |bytes: u64| Quantity::from_value(i64::try_from(bytes).unwrap_or(i64::MAX), Format::BinarySi);
        let number = |value: i64| Quantity::from_value(value, Format::DecimalSi);
        let mut list = ResourceList::new();
        list.insert("cpu".to_owned(), number(cpus));
        list.insert("memory".to_owned(), bytes(memory));
        list.insert("ephemeral-storage".to_owned(), bytes(disk));
        list.insert("pods".to_owned(), number(max_pods(settings, cpus)));
        for (size, count) in self.huge_pages() {
            let name = Quantity::from_value(i64::try_from(size).unwrap_or_default(), Format::BinarySi);
            list.insert(format!("hugepages-{name}"), bytes(size.saturating_mul(count)));
        }
        list
    }

    /// What the machine is.
    pub fn system_info(&self, runtime: Option<&VersionResponse>) -> NodeSystemInfo {
        let swap = self.proc.memory().map(|memory| memory.swap_total_bytes).unwrap_or_default();
        let swap = i64::try_from(swap).ok().filter(|bytes| *bytes > 0);
        let release = self.proc.os_release();
        let os_image = release.get("PRETTY_NAME").or_else(|| release.get("NAME")).cloned().unwrap_or_default();
        NodeSystemInfo {
            machine_id: self.proc.machine_id(),
            system_uuid: self.proc.system_uuid(),
            boot_id: self.proc.boot_id().unwrap_or_default(),
            kernel_version: self.proc.kernel_version().unwrap_or_default(),
            os_image: if os_image.is_empty() { "Unknown".to_owned() } else { os_image },
            container_runtime_version: runtime
                .map(|version| format!("{}://{}", version.runtime_name, version.runtime_version))
                .unwrap_or_default(),
            kubelet_version: component_base::version::git_version().to_owned(),
            kube_proxy_version: String::new(),
            operating_system: std::env::consts::OS.to_owned(),
            architecture: architecture().to_owned(),
            swap: swap.map(|bytes| NodeSwapStatus { capacity: Some(bytes) }),
        }
    }
}

/// The architecture by its name in Go.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

fn max_pods(settings: &NodeSettings, cpus: i64) -> i64 {
    match settings.pods_per_core {
        0 => settings.max_pods,
        per_core => settings.max_pods.min(cpus.saturating_mul(per_core)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_read() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/stat", "cpu  1\ncpu0 1\ncpu1 1\n");
        put("proc/meminfo", "MemTotal:        1024 kB\nSwapTotal:        4 kB\n");
        put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n");
        put("etc/os-release", "PRETTY_NAME=\"Test 1\"\n");
        let facts = Facts::at(root.path());
        let settings = NodeSettings { max_pods: 110, root_dir: root.path().into(), ..NodeSettings::default() };
        let list = facts.capacity(&settings);
        let text = |name: &str| list[name].to_string();
        assert_eq!((text("cpu"), text("memory"), text("pods")), ("2".into(), "1Mi".into(), "110".into()));
        assert_eq!(text("hugepages-2Mi"), "6Mi");
        assert!(list["ephemeral-storage"].value() > 0);
        assert_eq!(facts.huge_page_names(), ["2MB"]);
        let few = NodeSettings { pods_per_core: 10, ..settings };
        assert_eq!(facts.capacity(&few)["pods"].value(), 20);
        let version =
            VersionResponse { runtime_name: "containerd".into(), runtime_version: "v2".into(), ..Default::default() };
        let info = facts.system_info(Some(&version));
        assert_eq!((info.os_image.as_str(), info.container_runtime_version.as_str()), ("Test 1", "containerd://v2"));
        assert_eq!(info.swap.unwrap().capacity, Some(4096));
    }
}
