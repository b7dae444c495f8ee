//! The control plane and the node agents as systemd units.

use super::components::{COMPONENTS, Component};
use super::settings::{Layout, Settings};

/// The units by file name.
#[must_use]
pub fn units(settings: &Settings) -> Vec<(String, String)> {
    let layout = Layout::new(&settings.root);
    let mut units: Vec<(String, String)> =
        COMPONENTS.iter().map(|component| control_plane(component, settings, &layout)).collect();
    let config = |path: &str| settings.root.join(path).display().to_string();
    let kubelet = [
        format!("--config={}", config("var/lib/kubelet/config.yaml")),
        format!("--bootstrap-kubeconfig={}", layout.kubeconfig("bootstrap-kubelet.conf").display()),
        format!("--kubeconfig={}", layout.kubeconfig("kubelet.conf").display()),
    ];
    units.push(unit(settings, "kubelet", "the node agent", "containerd.service", &kubelet));
    let proxy = [format!("--config={}", config("var/lib/kube-proxy/config.yaml"))];
    units.push(unit(settings, "kube-proxy", "the service proxy", "", &proxy));
    units
}

fn control_plane(component: &Component, settings: &Settings, layout: &Layout) -> (String, String) {
    let after = if component.kubeconfig.is_empty() { "" } else { "kube-apiserver.service" };
    unit(settings, component.name, "part of the control plane", after, &component.arguments(settings, layout))
}

fn unit(settings: &Settings, name: &str, what: &str, after: &str, arguments: &[String]) -> (String, String) {
    let program = settings.bin_dir.join(name);
    let command: Vec<String> = std::iter::once(program.display().to_string())
        .chain(arguments.iter().map(|argument| quoted(argument)))
        .collect();
    let text = format!(
        "[Unit]\nDescription={name}, {what}\nDocumentation=https://kubernetes.io/docs/\nWants=network-online.target\n\
         After=network-online.target{}{after}\nStartLimitIntervalSec=0\n\n[Service]\nType={}\nExecStart={}\nRestart=always\n\
         RestartSec=5\nLimitNOFILE=1048576\nDelegate={}\nKillMode=process\n\n[Install]\nWantedBy=multi-user.target\n",
        if after.is_empty() { "" } else { " " },
        if name == "kube-apiserver" { "notify" } else { "simple" },
        command.join(" \\\n  "),
        if name == "kubelet" { "yes" } else { "no" },
    );
    (format!("{name}.service"), text)
}

/// systemd expands `%` and `$` in commands.
fn quoted(argument: &str) -> String {
    let escaped = argument.replace('%', "%%").replace('$', "$$");
    if escaped.contains([' ', '"', '\'', '\\']) { format!("{escaped:?}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_unit_starts_its_binary() {
        let mut settings = Settings::new(Path::new("/var/lib/coxswain"));
        settings.bin_dir = "/usr/bin".into();
        let units = units(&settings);
        assert_eq!(units.len(), 5);
        for (file, text) in units {
            let name = file.strip_suffix(".service").unwrap();
            assert!(text.contains(&format!("ExecStart=/usr/bin/{name}")), "{text}");
        }
        assert_eq!(quoted("--x=100% $HOME"), "\"--x=100%% $$HOME\"");
    }
}
