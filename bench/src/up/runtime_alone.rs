//! What the container runtime alone needs for as many pods at once: the peer of `dense-to-running`.
//!
//! In the same cluster, a moment before the kubelet's turn, the same pods are asked of the same runtime by three calls
//! each: run the sandbox (with its network), create the container, start it. Once all at once, as upstream's kubelet asks;
//! and once a few at a time, which is less work for the runtime and how this kubelet asks. The kubelet stands still
//! meanwhile, since it would take away groups and directories that it does not know, and the pods are gone before it
//! goes on. What the kubelet makes for a pod besides (its control group, its directories, the files that are mounted) is
//! not the runtime's work and is there before the clock starts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use node_api::cri::v1::{ContainerFilter, ContainerState, ContainerStateValue};
use node_api::cri::{CriClient, Runtime as _};
use rustix::process::{Pid, Signal, kill_process};
use sys::cgroups::{CgroupPath, Cgroups as _, LinuxCgroups, destroy};
use sys::proc::Proc;

use super::cluster::{Cluster, POD};
use super::pattern::{Pattern, Place};
use crate::figure::Figure;
use crate::sample::Stopwatch;
use crate::usage::MachineMeter;

/// How long a node may be silent before the cluster takes it for lost: the controller manager's default. The lease is
/// the kubelet's to renew, which does so every ten seconds.
const NODE_GRACE: Duration = Duration::from_secs(40);
const RENEWED_EVERY: Duration = Duration::from_secs(10);
/// How long the machine and the kubelet may rest after it, before the kubelet's own turn.
const SETTLE: Duration = Duration::from_secs(20);
/// How long a control group may take to become empty.
const GROUP_LIMIT: Duration = Duration::from_secs(5);
/// How many pods for each processor are asked for at a time where they take turns.
const AT_A_TIME: usize = 2;
const LABEL: (&str, &str) = ("bench", "runtime-alone");

/// What it took from the first call until all containers ran.
pub(super) struct Needed {
    pub(super) seconds: f64,
    /// Of the whole machine, the kernel's own work included.
    pub(super) cpu_seconds: f64,
}

/// How the runtime is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    AtOnce,
    InTurns,
}

/// Has the runtime start so many pods, and takes them away again.
pub(super) async fn measure(cluster: &Cluster, pods: usize, manner: Manner) -> Result<Needed> {
    let runtime = cluster.runtime()?;
    let pattern = Pattern::of(&runtime, POD).await?;
    let twins = (0..pods).map(|number| Twin::of(&pattern, number)).collect::<Result<Vec<_>>>()?;
    let (still, since) = (StandingStill::new(cluster.process("kubelet")?)?, Stopwatch::start());
    let at_a_time = match manner {
        Manner::AtOnce => pods,
        Manner::InTurns => AT_A_TIME * Proc::system().cpus()?,
    };
    let needed = start_all(&runtime, &pattern, &twins, at_a_time).await;
    let removed = remove_all(&runtime, &twins).await;
    let away = since.elapsed();
    drop(still);
    let needed = needed.context("starting pods by the runtime alone")?;
    removed.context("removing them")?;
    let safe = NODE_GRACE.saturating_sub(RENEWED_EVERY);
    if away > safe {
        // Its node may have been taken for lost, so that what follows starts with that.
        Figure::beside_promised("dense-kubelet-stood-still", away.as_secs_f64(), safe.as_secs_f64(), "s").print()?;
    }
    tokio::time::sleep(SETTLE).await;
    Ok(needed)
}

async fn start_all(runtime: &CriClient, pattern: &Pattern, twins: &[Twin], at_a_time: usize) -> Result<Needed> {
    let groups = LinuxCgroups::detect();
    for twin in twins {
        groups.create(&twin.group)?;
        std::fs::create_dir_all(twin.logs.join(pattern.container_name()))?;
    }
    let (cpu, since) = (MachineMeter::start()?, Stopwatch::start());
    // All are awaited, also after one has failed: what is still being made could not be removed.
    let starting = twins.iter().map(|twin| start(runtime, pattern, twin));
    let started: Vec<_> = stream::iter(starting).buffer_unordered(at_a_time.max(1)).collect().await;
    let running = running(runtime).await?;
    let needed = Needed { seconds: since.elapsed().as_secs_f64(), cpu_seconds: cpu.seconds()? };
    let containers = started.into_iter().collect::<Result<Vec<_>>>()?;
    ensure!(running == twins.len(), "{running} of {} containers run", twins.len());
    if let Some(container) = containers.first() {
        pattern.check(runtime, container).await?;
    }
    Ok(needed)
}

/// One pod as the kubelet starts it, without what the kubelet looks at on the way; the container's id.
async fn start(runtime: &CriClient, pattern: &Pattern, twin: &Twin) -> Result<String> {
    let sandbox = pattern.sandbox(&twin.place());
    let id = runtime.run_pod_sandbox(sandbox.clone(), "").await?;
    let container = runtime.create_container(&id, pattern.container(LABEL), sandbox).await?;
    runtime.start_container(&container).await?;
    Ok(container)
}

async fn running(runtime: &CriClient) -> Result<usize> {
    let filter = ContainerFilter {
        state: Some(ContainerStateValue { state: ContainerState::ContainerRunning.into() }),
        label_selector: HashMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())]),
        ..ContainerFilter::default()
    };
    Ok(runtime.list_containers(Some(filter)).await?.len())
}

/// Takes away all that there is of the twins, also of those that did not start.
async fn remove_all(runtime: &CriClient, twins: &[Twin]) -> Result<()> {
    let sandboxes = runtime.list_pod_sandboxes(None).await?;
    let own = sandboxes.iter().filter(|sandbox| {
        let uid = sandbox.metadata.as_ref().map(|metadata| metadata.uid.as_str());
        twins.iter().any(|twin| Some(twin.uid.as_str()) == uid)
    });
    let removing = own.map(async |sandbox| {
        runtime.stop_pod_sandbox(&sandbox.id).await?;
        runtime.remove_pod_sandbox(&sandbox.id).await
    });
    let removed = join_all(removing).await;
    let groups = LinuxCgroups::detect();
    for twin in twins {
        destroy(&groups, &twin.group, GROUP_LIMIT).await?;
        std::fs::remove_dir_all(&twin.logs).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    Ok(removed.into_iter().collect::<Result<Vec<()>, _>>().map(drop)?)
}

/// What one of the pods has for itself.
struct Twin {
    name: String,
    uid: String,
    group: CgroupPath,
    logs: PathBuf,
}

impl Twin {
    /// The names are as long as a pod's, and lie beside those of the pattern.
    fn of(pattern: &Pattern, number: usize) -> Result<Self> {
        let (name, uid) = (format!("alone-{number}"), format!("00000000-0000-0000-0000-{number:012}"));
        let (class, _) = pattern.cgroup_parent().rsplit_once('/').context("the pod has no group of its own")?;
        let group = CgroupPath::new(&format!("{class}/pod{uid}")).context("the group has no name")?;
        let logs = Path::new(pattern.log_directory()).with_file_name(format!("bench_{name}_{uid}"));
        Ok(Self { name, uid, group, logs })
    }

    fn place(&self) -> Place {
        Place {
            name: self.name.clone(),
            uid: self.uid.clone(),
            cgroup_parent: self.group.to_string(),
            log_directory: self.logs.display().to_string(),
        }
    }
}

/// A process that does nothing as long as this is there.
struct StandingStill(Pid);

impl StandingStill {
    fn new(process: u32) -> Result<Self> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).context("no process number")?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for StandingStill {
    fn drop(&mut self) {
        // It has ended, then, and its cluster will tell.
        let _ = kill_process(self.0, Signal::CONT);
    }
}
