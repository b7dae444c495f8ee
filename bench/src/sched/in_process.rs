//! The scheduler alone. Bindings are answered by a function, which confirms each one as the watch would.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_types::core_v1::{Node, Pod, PodStatus};
use async_trait::async_trait;
use base::{Rng, SystemClock, TaskGroup};
use component_base::Gates;
use component_base::metrics::{Metrics, MetricsOptions};
use scheduler::framework::BuildCx;
use scheduler::{
    ALL, ClusterWriter, NoEvents, Parallelism, QueueOptions, Scheduler, SchedulerMetrics, SchedulerOptions, WriteError,
    build_profiles, default_configuration,
};
use tokio::sync::Notify;

use super::objects::Written;
use super::{Plan, Round, Shape, workload};
use crate::sample::Stopwatch;
use crate::usage::CpuMeter;

/// When this is over and pods still wait, something is wrong.
const DEADLINE: Duration = Duration::from_secs(300);
const DRAIN: Duration = Duration::from_secs(5);
/// The reason that a pod has no node where that is not for want of room.
const SCHEDULER_ERROR: &str = "SchedulerError";

/// Stands for the API server and for the watch that brings the news back.
#[derive(Default)]
struct Confirming {
    scheduler: OnceLock<Weak<Scheduler>>,
    bound: AtomicUsize,
    wanted: usize,
    done: Notify,
    /// The first thing that went wrong, and had to be tried again: no figure is to hide that.
    failure: OnceLock<String>,
}

#[async_trait]
impl ClusterWriter for Confirming {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
        let gone = || WriteError::Failed("the scheduler is gone".into());
        let scheduler = self.scheduler.get().and_then(Weak::upgrade).ok_or_else(gone)?;
        let (old, mut new) = (Arc::new(pod.clone()), pod.clone());
        node.clone_into(&mut new.spec.node_name);
        scheduler.pod_updated(&old, &Arc::new(new));
        if self.bound.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted {
            self.done.notify_one();
        }
        Ok(())
    }

    /// Only pods that nothing waits for get no node; any other is missed in the end.
    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        if let Some(failed) = status.conditions.iter().find(|condition| condition.reason == SCHEDULER_ERROR) {
            self.failure.get_or_init(|| format!("{}: {}", pod.metadata.name, failed.message));
        }
        Ok(())
    }

    async fn delete(&self, _: &Pod) -> Result<(), WriteError> {
        Err(WriteError::Failed("nothing is to be evicted".into()))
    }
}

fn scheduler(writer: Arc<Confirming>, objects: &Arc<Written>) -> Result<Arc<Scheduler>> {
    let metrics = Arc::new(SchedulerMetrics::new(&Metrics::new(MetricsOptions::default())));
    let parallelism = Parallelism::of_machine(default_configuration().parallelism.unwrap_or(1));
    let cx = BuildCx {
        listers: Arc::clone(&objects.listers),
        gates: Gates::default(),
        writer: writer.clone(),
        objects: objects.clone(),
        events: Arc::new(NoEvents),
        gate: Arc::default(),
        waiting: Arc::default(),
        groups: Arc::default(),
        metrics,
        clock: SystemClock::shared(),
        rng: Rng::seeded(1),
        tasks: TaskGroup::new("bench-plugins"),
        proxies: Arc::default(),
        parallelism,
    };
    let profiles = build_profiles(&default_configuration(), ALL, &cx).context("building the default profile")?;
    let options = SchedulerOptions {
        profiles,
        percentage_of_nodes_to_score: 0,
        queue: QueueOptions {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_in_unschedulable: DEADLINE,
        },
        cx,
        events: Arc::new(NoEvents),
        clock: SystemClock::shared(),
        rng: Rng::seeded(1),
    };
    let scheduler = Scheduler::new(options).context("the default configuration has a profile")?;
    writer.scheduler.set(Arc::downgrade(&scheduler)).ok().context("a writer serves one scheduler")?;
    Ok(scheduler)
}

pub(super) async fn measure(plan: &Plan, shape: &Shape) -> Result<Round> {
    let (nodes, wanted) = (shape.nodes(plan.nodes), shape.pods(plan.pods));
    let writer = Arc::new(Confirming { wanted, ..Confirming::default() });
    let objects = Arc::new(Written::nothing());
    if let Some(needs) = shape.needs {
        needs(&objects, nodes, wanted)?;
    }
    let scheduler = scheduler(Arc::clone(&writer), &objects)?;
    for number in 0..nodes {
        let node = Arc::new(workload::node(number)?);
        objects.listers.of::<Node>().put(Arc::clone(&node));
        scheduler.node_added(&node);
    }
    let mut pods = shape.all_pods(plan.pods)?;
    for pod in &mut pods {
        pod.metadata.uid = format!("uid-{}", pod.metadata.name);
        pod.metadata.resource_version = "1".into();
    }
    let pods: Vec<Arc<Pod>> = pods.into_iter().map(Arc::new).collect();
    pods.iter().for_each(|pod| objects.listers.of::<Pod>().put(Arc::clone(pod)));
    let tasks = TaskGroup::new("bench");
    tasks.spawn("scheduler", Arc::clone(&scheduler).run(tasks.clone(), tasks.token()));
    let (meter, watch) = (CpuMeter::start(std::process::id())?, Stopwatch::start());
    for pod in &pods {
        scheduler.pod_added(pod);
    }
    let finished = tokio::time::timeout(DEADLINE, writer.done.notified()).await;
    let (seconds, cpu) = (watch.elapsed().as_secs_f64(), meter.seconds()?);
    tasks.shutdown(DRAIN).await;
    ensure!(finished.is_ok(), "only {} of {wanted} pods got a node", writer.bound.load(Ordering::Relaxed));
    ensure!(writer.failure.get().is_none(), "not all went well: {:?}", writer.failure.get());
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    let pods = wanted as f64;
    Ok(Round {
        pods_per_second: pods / seconds,
        cpu_ms_per_pod: cpu * 1e3 / pods,
        server_cpu_ms_per_pod: None,
        events: None,
    })
}
