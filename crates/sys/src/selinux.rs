//! Labels of files and processes (SELinux): whether the machine has them, and what files of containers are labelled with.
//! Concept: <https://github.com/SELinuxProject/selinux-notebook>

use std::path::{Path, PathBuf};

/// Who says what containers are labelled with, first come first.
const CONTEXTS: &str = "usr/share/containers/selinux/contexts";
/// Where that is where nobody has said otherwise, below the policy's directory.
const POLICY_CONTEXTS: &str = "contexts/lxc_contexts";

/// The labels of a machine.
#[derive(Debug, Clone)]
pub struct SeLinux {
    root: PathBuf,
}

impl SeLinux {
    /// Those of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// Those of the machine whose files lie below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether there are labels: the kernel's file system for them is mounted and a policy is loaded.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        let own = read(&self.root.join("proc/self/attr/current"));
        let own = own.trim_end_matches(['\0', '\n']);
        self.root.join("sys/fs/selinux/enforce").exists() && !own.is_empty() && own != "kernel"
    }

    /// The label of files of containers, `user:role:type:level`; nothing where the policy does not say.
    #[must_use]
    pub fn container_file_label(&self) -> Option<String> {
        let config = read(&self.root.join("etc/selinux/config"));
        let policy = value(&config, "SELINUXTYPE").unwrap_or("targeted").to_owned();
        let policy = self.root.join("etc/selinux").join(policy).join(POLICY_CONTEXTS);
        let places = [self.root.join(CONTEXTS), policy];
        places.iter().find_map(|place| value(&read(place), "file").map(|label| label.trim_matches('"').to_owned()))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A value of a file of `name = value` lines.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut found = lines.filter(|(own, _)| own.trim() == name).map(|(_, value)| value.trim());
    found.next().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_where_there_are_any() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let machine = SeLinux::at(root.path());
        assert!(!machine.is_enabled() && machine.container_file_label().is_none());
        write("proc/self/attr/current", "kernel\0");
        write("sys/fs/selinux/enforce", "0");
        assert!(!machine.is_enabled(), "no policy is loaded");
        write("proc/self/attr/current", "system_u:system_r:unconfined_service_t:s0\0");
        assert!(machine.is_enabled());
        write("etc/selinux/config", "# file = no\nSELINUX=enforcing\nSELINUXTYPE=strict\n");
        let text = "process = \"system_u:system_r:container_t:s0\"\nfile = \"system_u:object_r:container_file_t:s0\"\n";
        write("etc/selinux/strict/contexts/lxc_contexts", text);
        assert_eq!(machine.container_file_label().unwrap(), "system_u:object_r:container_file_t:s0");
        write("usr/share/containers/selinux/contexts", "file = \"system_u:object_r:other_t:s0\"\n");
        assert_eq!(machine.container_file_label().unwrap(), "system_u:object_r:other_t:s0");
        std::fs::remove_file(root.path().join("sys/fs/selinux/enforce")).unwrap();
        assert!(!machine.is_enabled());
    }
}
