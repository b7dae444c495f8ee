use std::os::unix::fs::PermissionsExt as _;

use base::SystemClock;
use sys::exec::{Command, Exec as _, LinuxExec};

use super::*;

/// The units of a cluster below a directory, whose programs are there.
fn written(directory: &Path) -> (Settings, Vec<(String, String)>) {
    let mut settings = Settings::new(&directory.join("root"));
    settings.state = directory.join("run");
    settings.bin_dir = directory.join("bin");
    std::fs::create_dir_all(&settings.bin_dir).unwrap();
    for name in COMPONENTS.iter().map(|component| component.name).chain(["kubelet", "kube-proxy", "coxswain"]) {
        let program = settings.bin_dir.join(name);
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let units = units(&settings, &SystemClock::shared(), &Rng::seeded(1)).unwrap();
    (settings, units)
}

#[test]
fn everything_that_a_unit_names_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, units) = written(directory.path());
    assert_eq!(units.len(), 8);
    // These are made when the units start: by the API server, by the kubelet, and by the first unit.
    let layout = Layout::new(&settings.root);
    let later =
        [layout.store(), layout.kubelet("node-1").join("pki"), settings.state.clone(), settings.images_dir.clone()];
    let config = environment(&settings).unwrap().runtime_command().1.pop().unwrap();
    let own = directory.path().display().to_string();
    let mut seen = 0;
    for (file, text) in &units {
        for (start, _) in text.match_indices(&own) {
            let path: String = text[start..].chars().take_while(|c| !c.is_whitespace() && *c != ',').collect();
            let path = Path::new(&path);
            let is_later = later.iter().any(|one| path.starts_with(one)) || path == Path::new(&config);
            assert!(is_later || path.exists(), "{file} names {}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} paths were looked at");
}

#[test]
fn what_the_configuration_of_the_agents_names_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, _) = written(directory.path());
    let node = Layout::new(&settings.root).node("node-1");
    let read = |path: &str| std::fs::read_to_string(node.join(path)).unwrap();
    let named = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": ").map(str::to_owned));
        PathBuf::from(line.unwrap_or_else(|| panic!("no {key} in {text}")))
    };
    assert!(named(&read("var/lib/kubelet/config.yaml"), "clientCAFile").exists());
    assert!(named(&read("var/lib/kube-proxy/config.yaml"), "kubeconfig").exists());
    assert!(read("etc/kubernetes/kubelet.conf").contains("user: system:node:node-1"));
}

#[test]
fn units_are_for_one_node() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    for settings in [
        Settings { nodes: 2, ..Settings::new(&root) },
        Settings { control_plane: ControlPlane::StaticPods, ..Settings::new(&root) },
    ] {
        units(&settings, &SystemClock::shared(), &Rng::seeded(1)).unwrap_err();
    }
    assert!(!root.exists(), "nothing was written");
    assert_eq!(quoted("--x=100% $HOME"), "\"--x=100%% $$HOME\"");
}

/// systemd's own opinion, where it is installed; it need not run.
#[tokio::test]
async fn systemd_finds_nothing_wrong() {
    if !Path::new("/usr/bin/systemd-analyze").exists() || !Path::new("/usr/bin/containerd").exists() {
        println!("skipped: systemd-analyze or containerd is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (_, units) = written(directory.path());
    let mut files = Vec::new();
    for (name, text) in units {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        files.push(path);
    }
    let verify = Command::with("systemd-analyze", &["verify", "--man=no"]).args(&files);
    let verified = LinuxExec.run(&verify).await.unwrap();
    let own = directory.path().display().to_string();
    // A setting that it does not know is only a warning to it.
    let complaints: Vec<String> =
        verified.error_text().lines().filter(|line| line.contains(&own)).map(str::to_owned).collect();
    assert!(verified.success() && complaints.is_empty(), "{}", verified.error_text());
}
