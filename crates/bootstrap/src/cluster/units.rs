//! The control plane and one node as systemd units, with everything that they name: certificates, kubeconfigs and
//! configuration files. The node is this machine; its files are where `coxswain up` has them, so that either can go on
//! with what the other left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, SharedClock, SharedRng, TaskGroup};
use client::ClientCx;
use tokio::time::Instant;

use super::components::{COMPONENTS, Component};
use super::serving::Issuing;
use super::settings::{ClusterError, ControlPlane, Layout, Settings};
use super::{addons, certificates, nodes, up, write_kubeconfigs};
use crate::node::{Fabric, Machine, NodeEnvironment, NodeError};

/// Makes what does not outlive a reboot.
const PREPARE: &str = "coxswain-prepare.service";
const RUNTIME: &str = "coxswain-containerd.service";
const ADDONS: &str = "coxswain-addons.service";
const API_SERVER: &str = "kube-apiserver.service";
/// How long the API server has to answer before the addons' unit fails, and is started again.
const API_DEADLINE: Duration = Duration::from_secs(90);
const API_POLL: Duration = Duration::from_millis(500);

/// Makes what the units name, as far as it is missing; gives the units by file name.
///
/// # Errors
/// The settings cannot be had as units, or a file cannot be written.
pub fn units(settings: &Settings, clock: &SharedClock, rng: &Rng) -> Result<Vec<(String, String)>, ClusterError> {
    settings.validate()?;
    let wrong = |text: &str| Err(ClusterError::Settings(text.to_owned()));
    if settings.nodes > 1 {
        return wrong("units are for this machine as the only node: leave --nodes out");
    }
    if settings.control_plane == ControlPlane::StaticPods {
        return wrong("units run the control plane themselves: leave --static-pods out, or use coxswain manifests");
    }
    certificates(settings, clock, rng)?;
    write_kubeconfigs(settings, clock.wall(), rng)?;
    Issuing { settings, now: clock.wall(), rng }.kubelets()?;
    let environment = environment(settings)?;
    let layout = Layout::new(&settings.root);
    let mut units = vec![prepare_unit(settings), runtime_unit(&environment), addons_unit(settings)];
    units.extend(COMPONENTS.iter().map(|component| control_plane(component, settings, &layout)));
    let kubelet = nodes::kubelet(settings, 0, &environment)?;
    units.push(Unit {
        after: vec![PREPARE, RUNTIME, API_SERVER],
        wants: vec![PREPARE, RUNTIME],
        // Pods outlive their kubelet.
        service: vec!["Delegate=yes".into(), "KillMode=process".into()],
        ..Unit::new("kubelet", "the node agent", kubelet.program, kubelet.arguments)
    });
    let proxy = nodes::kube_proxy(settings, 0, &environment)?;
    units.push(Unit {
        after: vec![PREPARE, API_SERVER],
        wants: vec![PREPARE],
        ..Unit::new("kube-proxy", "the service proxy", proxy.program, proxy.arguments)
    });
    Ok(units.iter().map(|unit| (unit.name.clone(), unit.render())).collect())
}

/// What the units of a machine need after each start of it: the node's network, directories and control groups.
///
/// # Errors
/// Something cannot be made.
pub async fn prepare(settings: &Settings) -> Result<(), ClusterError> {
    settings.validate()?;
    Fabric::new(settings.fabric(), &Machine::linux()).up().await?;
    Ok(environment(settings)?.prepare()?)
}

/// What a running API server and container runtime are given: the first objects, and the images that are there.
///
/// # Errors
/// The API server does not answer in time, or refuses something.
pub async fn apply_addons(
    settings: &Settings,
    clock: SharedClock,
    rng: SharedRng,
    tasks: &TaskGroup,
) -> Result<(), ClusterError> {
    let client = up::admin_client(settings, ClientCx::new(Arc::clone(&clock), Arc::clone(&rng), tasks.clone()))?;
    let start = Instant::now();
    while let Err(problem) = up::readyz(&client).await {
        if start.elapsed() > API_DEADLINE {
            return Err(ClusterError::Settings(format!("the API server does not answer: {problem}")));
        }
        tokio::time::sleep(API_POLL).await;
    }
    addons::apply(&client, Issuing { settings, now: clock.wall(), rng: &rng }).await?;
    if !settings.images_dir.is_dir() {
        return Ok(());
    }
    match environment(settings)?.import_images(&settings.images_dir).await {
        // Images may just as well come from a registry.
        Ok(_) | Err(NodeError::NoImages(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn environment(settings: &Settings) -> Result<NodeEnvironment, ClusterError> {
    Ok(NodeEnvironment::new(settings.node_config(0)?, Machine::linux()))
}

/// A service of systemd.
struct Unit {
    name: String,
    what: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    after: Vec<&'static str>,
    wants: Vec<&'static str>,
    /// `simple`, `notify` or `oneshot`.
    kind: &'static str,
    /// Further lines of its `[Service]`.
    service: Vec<String>,
}

impl Unit {
    fn new(name: &str, what: &'static str, program: PathBuf, arguments: Vec<String>) -> Self {
        let (after, wants, service) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: format!("{name}.service"), what, program, arguments, after, wants, kind: "simple", service }
    }

    fn render(&self) -> String {
        let Self { name, what, program, kind, .. } = self;
        let command: Vec<String> = std::iter::once(quoted(&program.display().to_string()))
            .chain(self.arguments.iter().map(|argument| quoted(argument)))
            .collect();
        let mut lines = vec![
            "[Unit]".to_owned(),
            format!("Description={}, {what}", name.trim_end_matches(".service")),
            "Documentation=https://kubernetes.io/docs/".to_owned(),
        ];
        // What it wants may fail at first and be tried again, as this is. Were it required, systemd would give this up
        // for good with the first failure.
        for (key, own) in [("Wants", &self.wants), ("After", &self.after)] {
            lines.push(format!("{key}={}", [&["network-online.target"], own.as_slice()].concat().join(" ")));
        }
        lines.extend(["StartLimitIntervalSec=0", "", "[Service]"].map(str::to_owned));
        lines.push(format!("Type={kind}"));
        lines.push(format!("ExecStart={}", command.join(" \\\n  ")));
        // One that has done its work counts as running; one that failed is tried again either way.
        let restart = if *kind == "oneshot" { "RemainAfterExit=yes\nRestart=on-failure" } else { "Restart=always" };
        lines.extend([restart, "RestartSec=5", "LimitNOFILE=1048576"].map(str::to_owned));
        lines.extend(self.service.iter().cloned());
        lines.extend(["", "[Install]", "WantedBy=multi-user.target"].map(str::to_owned));
        lines.join("\n") + "\n"
    }
}

fn prepare_unit(settings: &Settings) -> Unit {
    let arguments = own_arguments("prepare", settings);
    let program = settings.bin_dir.join("coxswain");
    let name = PREPARE.trim_end_matches(".service");
    Unit { kind: "oneshot", ..Unit::new(name, "what a node needs after a start", program, arguments) }
}

fn addons_unit(settings: &Settings) -> Unit {
    let mut arguments = own_arguments("addons", settings);
    arguments.push(format!("--images-dir={}", settings.images_dir.display()));
    let program = settings.bin_dir.join("coxswain");
    let name = ADDONS.trim_end_matches(".service");
    Unit {
        kind: "oneshot",
        after: vec![API_SERVER, RUNTIME],
        ..Unit::new(name, "the first objects of the cluster", program, arguments)
    }
}

/// The command line of this program.
fn own_arguments(command: &str, settings: &Settings) -> Vec<String> {
    let directory = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![command.to_owned(), directory("root", &settings.root), directory("state-dir", &settings.state)]
}

fn runtime_unit(environment: &NodeEnvironment) -> Unit {
    let (program, arguments) = environment.runtime_command();
    let name = RUNTIME.trim_end_matches(".service");
    Unit {
        kind: "notify",
        after: vec![PREPARE],
        wants: vec![PREPARE],
        // Containers outlive their runtime.
        service: ["Delegate=yes", "KillMode=process", "TasksMax=infinity"].map(str::to_owned).to_vec(),
        ..Unit::new(name, "the container runtime", program, arguments)
    }
}

fn control_plane(component: &Component, settings: &Settings, layout: &Layout) -> Unit {
    let is_api_server = component.kubeconfig.is_empty();
    let (program, arguments) = (settings.bin_dir.join(component.name), component.arguments(settings, layout));
    Unit {
        kind: if is_api_server { "notify" } else { "simple" },
        after: if is_api_server { vec![PREPARE] } else { vec![API_SERVER] },
        // It tells its address to others, which the machine has by then.
        wants: if is_api_server { vec![PREPARE] } else { Vec::new() },
        ..Unit::new(component.name, "part of the control plane", program, arguments)
    }
}

/// systemd expands `%` and `$` in commands.
fn quoted(argument: &str) -> String {
    let escaped = argument.replace('%', "%%").replace('$', "$$");
    if escaped.contains([' ', '"', '\'', '\\']) { format!("{escaped:?}") } else { escaped }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
