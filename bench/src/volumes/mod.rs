//! How long pods take from the first create to the last that runs, each with a volume that is made where it goes, beside the
//! same pods without: kube-apiserver, kube-scheduler and kube-controller-manager as processes, hollow nodes and a hollow
//! driver of volumes in this one. What those do they do at once, but that each pod takes half a second to start, so that what
//! volumes add is what the three do and wait for.
//!
//! Both at a pace that two processors keep up with, so that it shows what is waited for, and all at once, so that it shows
//! what the work takes: a volume is four times the writes of a pod.

mod hollow;
mod objects;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use api_types::core_v1::{Namespace, Node, PersistentVolumeClaim, Pod};
use api_types::storage_v1::StorageClass;
use base::TaskGroup;
use client::{Client, ClientConfig};

use self::hollow::Hollow;
use crate::api_server::{ApiServer, HOLLOW, Storage};
use crate::controller_manager::ControllerManager;
use crate::figure::Figure;
use crate::identity::Identity;
use crate::requests::all;
use crate::sample::{Samples, Stopwatch};
use crate::scheduler_process::{SchedulerProcess, client};
use crate::usage::{CpuMeter, load_average};

const CONTROLLERS: &[&str] = &[
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
];
const DRAIN: Duration = Duration::from_secs(5);

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the binaries are.
    pub binaries: PathBuf,
    /// How many pods are created in each round.
    pub pods: usize,
    /// How many nodes there are; each has room for 110 pods.
    pub nodes: usize,
    /// How many of them a second, where they do not come all at once.
    pub per_second: usize,
    /// How often each kind of pods is measured, in turn.
    pub rounds: usize,
}

impl Plan {
    /// The run that figures are published from.
    #[must_use]
    pub fn full(binaries: PathBuf) -> Self {
        Self { binaries, pods: 500, nodes: 10, per_second: 100, rounds: 5 }
    }

    /// A run that shows that everything works; its figures mean nothing.
    #[must_use]
    pub fn quick(binaries: PathBuf) -> Self {
        Self { binaries, pods: 20, nodes: 2, per_second: 100, rounds: 1 }
    }
}

/// What the rounds gave, in seconds.
#[derive(Debug, Default)]
struct Sides {
    /// From the first create until the last pod ran.
    to_running: Samples,
    /// From the moment when a pod was to be created until it ran, for the pod in the middle.
    pod_to_running: Samples,
    server_cpu: Samples,
    scheduler_cpu: Samples,
    controllers_cpu: Samples,
}

/// When the pods of a round are created.
#[derive(Debug, Clone, Copy)]
enum Pace {
    AtOnce,
    PerSecond(usize),
}

impl Pace {
    /// How long after the first this one comes.
    fn after(self, number: usize) -> Duration {
        match self {
            Self::AtOnce => Duration::ZERO,
            #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
            Self::PerSecond(pods) => Duration::from_secs_f64(number as f64 / pods as f64),
        }
    }
}

/// Measures and prints the figures.
///
/// # Errors
/// A process did not start, or not every pod ran in time.
pub async fn run(plan: &Plan) -> Result<()> {
    for (name, pace) in [("volumes-paced", Pace::PerSecond(plan.per_second)), ("volumes", Pace::AtOnce)] {
        let [mut plain, mut with] = [(); 2].map(|()| Sides::default());
        for _ in 0..plan.rounds {
            round(plan, pace, false, &mut plain).await.context("pods without volumes")?;
            round(plan, pace, true, &mut with).await.context("pods with volumes")?;
        }
        for (what, ours, peer) in [
            ("to-running", &with.to_running, &plain.to_running),
            ("pod-to-running", &with.pod_to_running, &plain.pod_to_running),
            ("apiserver-cpu", &with.server_cpu, &plain.server_cpu),
            ("scheduler-cpu", &with.scheduler_cpu, &plain.scheduler_cpu),
            ("controllers-cpu", &with.controllers_cpu, &plain.controllers_cpu),
        ] {
            Figure::beside(format!("{name}-{what}"), ours.median(), peer.median(), "s").print()?;
        }
    }
    Ok(Figure::alone("volumes-load", load_average(), "runnable").print()?)
}

async fn round(plan: &Plan, pace: Pace, has_volumes: bool, sides: &mut Sides) -> Result<()> {
    let directory = tempfile::tempdir().context("making a directory")?;
    let identity = Identity::create(&directory.path().join("pki"))?;
    let server = ApiServer::start(&plan.binaries, directory.path(), &identity, Storage::Embedded, HOLLOW).await?;
    let (tasks, kubeconfig) = (TaskGroup::new("volumes"), identity.kubeconfig(&server.url())?);
    let api = client(ClientConfig::from_kubeconfig_file(&kubeconfig)?, &tasks)?;
    surroundings(&api, plan, has_volumes).await?;
    let controllers =
        ControllerManager::start(&plan.binaries, directory.path(), &identity, &kubeconfig, CONTROLLERS, &[])?;
    let scheduler = SchedulerProcess::start(&plan.binaries, directory.path(), &identity, &server.url(), &tasks).await?;
    let hollow = Hollow::start(&api).await;

    let pods = (0..plan.pods).map(|number| objects::pod(number, has_volumes)).collect::<Result<Vec<Pod>>>()?;
    let meters = [server.pid(), scheduler.pid(), controllers.process().pid()].map(CpuMeter::start);
    let [server_cpu, scheduler_cpu, controllers_cpu] = meters;
    let watch = Stopwatch::start();
    let created = async { create(&api, &pods, pace, watch).await.context("making pods") };
    let run = async { hollow.until_running(plan.pods, watch).await.with_context(|| scheduler.log_tail()) };
    let ((), ran) = tokio::try_join!(created, run).with_context(|| format!("see {}", controllers.log().display()))?;
    sides.to_running.push(watch.elapsed().as_secs_f64());
    sides.pod_to_running.push(middle_pod(&pods, pace, &ran));
    sides.server_cpu.push(server_cpu?.seconds()?);
    sides.scheduler_cpu.push(scheduler_cpu?.seconds()?);
    sides.controllers_cpu.push(controllers_cpu?.seconds()?);
    tasks.shutdown(DRAIN).await;
    scheduler.stop().await?;
    controllers.stop().await?;
    server.stop().await
}

/// Creates the pods, each when its time has come.
async fn create(api: &Client, pods: &[Pod], pace: Pace, watch: Stopwatch) -> Result<()> {
    let to = api.namespaced::<Pod>(objects::NAMESPACE);
    let creates = pods.iter().enumerate().map(|(number, pod)| {
        let to = &to;
        async move {
            tokio::time::sleep(pace.after(number).saturating_sub(watch.elapsed())).await;
            to.create(pod).await
        }
    });
    all(creates).await
}

/// How many seconds the pod in the middle took; `ran` tells when each ran.
fn middle_pod(pods: &[Pod], pace: Pace, ran: &BTreeMap<String, Duration>) -> f64 {
    let mut each = Samples::default();
    for (number, pod) in pods.iter().enumerate() {
        let at = ran.get(&pod.metadata.name).copied().unwrap_or_default();
        each.push(at.saturating_sub(pace.after(number)).as_secs_f64());
    }
    each.median()
}

/// What is there before the pods: nodes, and claims that wait for them.
async fn surroundings(api: &Client, plan: &Plan, has_volumes: bool) -> Result<()> {
    let mut namespace = Namespace::default();
    objects::NAMESPACE.clone_into(&mut namespace.metadata.name);
    api.all::<Namespace>().create(&namespace).await?;
    let nodes = (0..plan.nodes).map(objects::node).collect::<Result<Vec<Node>>>()?;
    all(nodes.iter().map(|node| async { api.all::<Node>().create(node).await })).await?;
    api.all::<StorageClass>().create(&objects::class()?).await?;
    if has_volumes {
        let claims = (0..plan.pods).map(objects::claim).collect::<Result<Vec<PersistentVolumeClaim>>>()?;
        let to = api.namespaced::<PersistentVolumeClaim>(objects::NAMESPACE);
        all(claims.iter().map(|claim| to.create(claim))).await?;
    }
    Ok(())
}
