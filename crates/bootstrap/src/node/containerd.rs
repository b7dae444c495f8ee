//! The runtime's configuration file. It is of version 2, which containerd 1.6 and 1.7 read and 2.x migrates by itself.

use std::fmt::Write as _;
use std::path::Path;

use super::NodeConfig;

/// Plugins that need what a plain machine lacks (other filesystems, collectors), or that open sockets in shared places.
const DISABLED_PLUGINS: &[&str] = &[
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.differ.v1.erofs",
    "io.containerd.tracing.processor.v1.otlp",
    "io.containerd.internal.v1.tracing",
    "io.containerd.nri.v1.nri",
];

/// What the machine has, as far as the runtime must be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) apparmor: bool,
    /// Whether there is a huge page controller; without one its limits are an error unless the runtime ignores them.
    pub(super) huge_pages: bool,
    /// Whether the out-of-memory score may be lowered; without that every sandbox fails, as it asks for -998.
    pub(super) lower_oom_score: bool,
}

/// The file's text. Everything that containerd by default keeps in a place shared by all instances gets its own.
pub(super) fn render(config: &NodeConfig, features: Features) -> String {
    let mut out = Toml::default();
    let (root, state) = (&config.root, &config.state);
    out.line("version = 2");
    out.path("root", &root.join("containerd"));
    out.path("state", &state.join("containerd"));
    // A value below the parent's would need a capability that this process may not have.
    out.line("oom_score = 0");
    out.line(&format!(
        "disabled_plugins = [{}]",
        DISABLED_PLUGINS.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ")
    ));
    out.table("grpc");
    out.path("address", &config.socket());
    out.table("ttrpc");
    out.path("address", &state.join("c.sock.ttrpc"));
    out.table(r#"plugins."io.containerd.internal.v1.opt""#);
    out.path("path", &root.join("opt"));
    cri(&mut out, config, features);
    out.text
}

fn cri(out: &mut Toml, config: &NodeConfig, features: Features) {
    const CRI: &str = r#"plugins."io.containerd.grpc.v1.cri""#;
    out.table(CRI);
    out.string("sandbox_image", &config.sandbox_image);
    out.flag("restrict_oom_score_adj", !features.lower_oom_score);
    out.flag("disable_apparmor", !features.apparmor);
    out.flag("disable_hugetlb_controller", !features.huge_pages);
    out.flag("tolerate_missing_hugetlb_controller", true);
    out.flag("enable_selinux", false);
    out.flag("netns_mounts_under_state_dir", true);
    out.string("stream_server_address", "127.0.0.1");
    out.string("stream_server_port", "0");
    out.table(&format!("{CRI}.registry"));
    out.path("config_path", &config.root.join("certs.d"));
    out.table(&format!("{CRI}.cni"));
    out.path("bin_dir", &config.cni_dir);
    out.path("conf_dir", &config.root.join("cni/net.d"));
    out.table(&format!("{CRI}.containerd"));
    out.string("snapshotter", &config.snapshotter);
    out.string("default_runtime_name", "runc");
    out.flag("discard_unpacked_layers", false);
    out.table(&format!("{CRI}.containerd.runtimes.runc"));
    out.string("runtime_type", "io.containerd.runc.v2");
    out.table(&format!("{CRI}.containerd.runtimes.runc.options"));
    out.string("BinaryName", &runc(config));
    out.path("Root", &config.state.join("runc"));
    out.flag("SystemdCgroup", false);
}

/// An own runc if the runtime's directory has one, else the one in `PATH`.
fn runc(config: &NodeConfig) -> String {
    let own = config.runtime_dir.as_ref().map(|directory| directory.join("runc")).filter(|path| path.exists());
    own.map_or_else(|| "runc".to_owned(), |path| path.display().to_string())
}

#[derive(Default)]
struct Toml {
    text: String,
}

impl Toml {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    fn table(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n[{name}]");
    }

    fn string(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.text, "{key} = {}", quote(value));
    }

    fn path(&mut self, key: &str, value: &Path) {
        self.string(key, &value.display().to_string());
    }

    fn flag(&mut self, key: &str, value: bool) {
        let _ = writeln!(self.text, "{key} = {value}");
    }
}

/// A TOML basic string.
fn quote(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Features = Features { apparmor: true, huge_pages: true, lower_oom_score: true };

    fn config() -> NodeConfig {
        let networks = vec!["10.244.0.0/24".parse().unwrap()];
        NodeConfig::new("n1", Path::new("/var/lib/cx/n1"), Path::new("/run/cx/n1"), networks).unwrap()
    }

    /// The value of a key within a table.
    fn value<'a>(text: &'a str, table: &str, key: &str) -> Option<&'a str> {
        let start = text.find(&format!("[{table}]\n"))?;
        let body = text.get(start..)?.lines().skip(1).take_while(|line| !line.starts_with('['));
        body.filter_map(|line| line.split_once(" = ")).find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    #[test]
    fn every_place_is_the_nodes_own() {
        let text = render(&config(), ALL);
        for line in text.lines().filter(|line| line.contains("\"/") && !line.contains("bin_dir")) {
            assert!(line.contains("\"/var/lib/cx/n1/") || line.contains("\"/run/cx/n1/"), "{line}");
        }
        assert_eq!(value(&text, "grpc", "address"), Some("\"/run/cx/n1/c.sock\""));
    }

    #[test]
    fn what_the_machine_lacks_is_turned_off() {
        let cri = r#"plugins."io.containerd.grpc.v1.cri""#;
        let cases = [
            ("restrict_oom_score_adj", Features { lower_oom_score: false, ..ALL }),
            ("disable_apparmor", Features { apparmor: false, ..ALL }),
            ("disable_hugetlb_controller", Features { huge_pages: false, ..ALL }),
        ];
        for (key, lacking) in cases {
            assert_eq!(value(&render(&config(), ALL), cri, key), Some("false"), "{key}");
            assert_eq!(value(&render(&config(), lacking), cri, key), Some("true"), "{key}");
        }
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quote("a\"b\\c\n"), r#""a\"b\\c\u000A""#);
    }
}
