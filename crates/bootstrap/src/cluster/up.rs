//! Bringing a cluster up: certificates, kubeconfigs, the control plane, the nodes. Each step looks at what is there and
//! adds what is missing, so that running it again after a reboot or a killed run ends in the same state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Node;
use base::{Rng, SharedClock, SharedRng, TaskGroup};
use client::{Client, ClientConfig, ClientCx, ClientError};
use component_helpers::nodes::is_ready;
use pki::EnsureReport;

use super::processes::Managed;
use super::serving::Issuing;
use super::settings::{ClusterError, ControlPlane, Layout, Settings, file_error};
use super::{COMPONENTS, Progress, addons, nodes, static_pods, write_kubeconfigs};
use crate::node::{Fabric, Machine, NodeEnvironment};

/// A health check that takes longer counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Where, below the images that every node gets, those are that only static Pods of the control plane need.
const CONTROL_PLANE_IMAGES: &str = "control-plane";

/// Makes the certificates that are missing; says which, and which of the others are not valid.
///
/// # Errors
/// A certificate cannot be made, or one that is there cannot be used.
pub fn certificates(settings: &Settings, clock: &SharedClock, rng: &Rng) -> Result<EnsureReport, ClusterError> {
    let pki = Layout::new(&settings.root).pki();
    std::fs::create_dir_all(&pki).map_err(file_error("creating", &pki))?;
    Ok(pki::ensure(&pki, &settings.pki(&settings.node_name(0)), clock.wall(), rng)?)
}

/// Tells the user of the certificates.
pub fn tell(report: &EnsureReport, progress: Progress) {
    report.created().for_each(|name| progress.note(&format!("made {name}")));
    for name in report.expired() {
        progress.note(&format!(
            "{name} is not valid now: `coxswain certs --renew` issues it anew, unless it is an authority"
        ));
    }
}

/// Brings the cluster up and waits until every node is ready.
///
/// # Errors
/// The first step that failed; running it again goes on from there.
pub async fn up(
    settings: &Settings,
    clock: SharedClock,
    rng: SharedRng,
    tasks: &TaskGroup,
    progress: Progress,
) -> Result<(), ClusterError> {
    settings.validate()?;
    let machine = Machine::linux();
    progress.step("certificates and kubeconfigs");
    tell(&certificates(settings, &clock, &rng)?, progress);
    for name in write_kubeconfigs(settings, clock.wall(), &rng)? {
        progress.note(&format!("wrote {name}"));
    }
    let own_rng = Arc::clone(&rng);
    let issuing = Issuing { settings, now: clock.wall(), rng: &own_rng };
    for name in issuing.kubelets()? {
        progress.note(&format!("made {name}"));
    }
    progress.step("network between nodes");
    Fabric::new(settings.fabric(), &machine).up().await?;

    let client = admin_client(settings, ClientCx::new(clock, rng, tasks.clone()))?;
    match settings.control_plane {
        ControlPlane::Processes => start_processes(settings, &machine, &client, progress).await?,
        ControlPlane::StaticPods => start_static_pods(settings, &machine, &client, progress).await?,
    }
    progress.step("roles and addons");
    addons::apply(&client, issuing).await?;
    if nodes::has_cgroup_v1() {
        progress.note("this machine has control groups v1 only: kubelets run with failCgroupV1: false");
    }
    for index in 0..settings.nodes {
        progress.step(&format!("node {}", settings.node_name(index)));
        node_up(settings, index, &machine, &client, progress).await?;
    }
    Ok(())
}

async fn start_processes(
    settings: &Settings,
    machine: &Machine,
    client: &Client,
    progress: Progress,
) -> Result<(), ClusterError> {
    if static_pods::are_installed(settings) {
        return Err(changed("static Pods of the first node"));
    }
    for managed in control_plane(settings) {
        progress.step(&managed.name);
        if !managed.start(settings, machine.exec.as_ref()).await? {
            progress.note("runs already");
        }
        if managed.name == "kube-apiserver" {
            managed.wait_ready(settings, || readyz(client)).await?;
        }
    }
    Ok(())
}

/// The first node's kubelet comes before the API server that it will register with.
async fn start_static_pods(
    settings: &Settings,
    machine: &Machine,
    client: &Client,
    progress: Progress,
) -> Result<(), ClusterError> {
    if control_plane(settings).iter().any(|managed| managed.process(settings).is_some()) {
        return Err(changed("processes of the machine"));
    }
    progress.step("control plane as static Pods");
    let environment = NodeEnvironment::new(settings.node_config(0)?, machine.clone());
    environment.start().await?;
    environment.import_images(&settings.images_dir).await?;
    environment.import_images(&settings.images_dir.join(CONTROL_PLANE_IMAGES)).await?;
    static_pods::install(settings)?;
    let kubelet = start_kubelet(settings, 0, &environment, machine).await?;
    kubelet.wait_ready(settings, || readyz(client)).await
}

fn changed(now: &str) -> ClusterError {
    ClusterError::Settings(format!(
        "the control plane of this cluster runs as {now}: take the cluster down first, or bring it up the same way"
    ))
}

/// Starts a node's kubelet. One that sees other mounts than the runtime does is replaced: the volumes that it mounts would
/// be empty in containers.
async fn start_kubelet(
    settings: &Settings,
    index: u8,
    environment: &NodeEnvironment,
    machine: &Machine,
) -> Result<Managed, ClusterError> {
    let kubelet = nodes::kubelet(settings, index, environment)?;
    let mounts = |path: &Path| std::fs::read_link(path).ok();
    if let (Some(process), Some(wanted)) = (kubelet.process(settings), &kubelet.mount_ns)
        && mounts(Path::new(&format!("/proc/{}/ns/mnt", process.pid()))) != mounts(wanted)
    {
        kubelet.stop(settings).await?;
    }
    kubelet.start(settings, machine.exec.as_ref()).await?;
    Ok(kubelet)
}

async fn node_up(
    settings: &Settings,
    index: u8,
    machine: &Machine,
    client: &Client,
    progress: Progress,
) -> Result<(), ClusterError> {
    let environment = NodeEnvironment::new(settings.node_config(index)?, machine.clone());
    environment.start().await?;
    let images = environment.import_images(&settings.images_dir).await?;
    progress.note(&format!("container runtime is up with {images} images"));
    let kubelet = start_kubelet(settings, index, &environment, machine).await?;
    let name = settings.node_name(index);
    kubelet.wait_ready(settings, || node_ready(client, name.clone())).await?;
    let proxy = nodes::kube_proxy(settings, index, &environment)?;
    proxy.start(settings, machine.exec.as_ref()).await?;
    progress.note("ready");
    Ok(())
}

/// The processes of the control plane, in starting order.
pub(super) fn control_plane(settings: &Settings) -> Vec<Managed> {
    let layout = Layout::new(&settings.root);
    let managed = |component: &super::Component| Managed {
        name: component.name.to_owned(),
        program: settings.bin_dir.join(component.name),
        arguments: component.arguments(settings, &layout),
        netns: None,
        mount_ns: None,
        hostname: None,
    };
    COMPONENTS.iter().map(managed).collect()
}

/// A client with every right, for the first objects.
pub(super) fn admin_client(settings: &Settings, cx: ClientCx) -> Result<Client, ClusterError> {
    let path = Layout::new(&settings.root).kubeconfig("super-admin.conf");
    let config = ClientConfig::from_kubeconfig_file(&path)?.with_timeout(CHECK_TIMEOUT);
    Ok(Client::new(config, cx)?)
}

/// Why something is not ready yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("node {0} is registered but not ready")]
    Node(String),
}

pub(super) async fn readyz(client: &Client) -> Result<(), NotReady> {
    client.send(client::Request::get("/readyz")).await?;
    Ok(())
}

async fn node_ready(client: &Client, name: String) -> Result<(), NotReady> {
    let node = client.all::<Node>().get(&name).await?;
    if is_ready(&node) { Ok(()) } else { Err(NotReady::Node(name)) }
}

/// What the user does next.
#[must_use]
pub fn usage(settings: &Settings) -> String {
    let kubeconfig = Layout::new(&settings.root).kubeconfig("admin.conf");
    format!(
        "The cluster is up. To use it:\n\n  export KUBECONFIG={}\n  kubectl get nodes\n  kubectl apply -f \
         manifests/examples/echo.yaml\n",
        kubeconfig.display()
    )
}
