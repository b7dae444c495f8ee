//! The scheduler alone. Bindings are answered by a function, which confirms each one as the watch would.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_types::core_v1::{Pod, PodStatus};
use async_trait::async_trait;
use base::{Rng, SystemClock, TaskGroup};
use component_base::metrics::{Metrics, MetricsOptions};
use scheduler::framework::BuildCx;
use scheduler::{
    ALL, ClusterWriter, Listers, NoEvents, Parallelism, SchedulerOptions, QueueOptions, Scheduler, SchedulerMetrics, WriteError,
    build_profiles, default_configuration,
};
use tokio::sync::Notify;

use super::{Plan, Round, workload};
use crate::sample::Stopwatch;
use crate::usage::CpuMeter;

/// When this is over and pods still wait, something is wrong.
const DEADLINE: Duration = Duration::from_secs(300);
const DRAIN: Duration = Duration::from_secs(5);

/// Stands for the API server and for the watch that brings the news back.
struct Confirming {
    scheduler: OnceLock<Weak<Scheduler>>,
    bound: AtomicUsize,
    wanted: usize,
    done: Notify,
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

    async fn patch_status(&self, pod: &Pod, _: &PodStatus) -> Result<(), WriteError> {
        Err(WriteError::Failed(format!("{} found no node", pod.metadata.name)))
    }

    async fn delete(&self, _: &Pod) -> Result<(), WriteError> {
        Err(WriteError::Failed("nothing is to be evicted".into()))
    }
}

fn scheduler(writer: Arc<Confirming>) -> Result<Arc<Scheduler>> {
    let metrics = Arc::new(SchedulerMetrics::new(&Metrics::new(MetricsOptions::default())));
    let parallelism = Parallelism::of_machine(default_configuration().parallelism.unwrap_or(1));
    let cx = BuildCx {
        listers: Arc::new(Listers::in_memory()),
        writer: writer.clone(),
        gate: Arc::default(),
        waiting: Arc::default(),
        metrics,
        tasks: TaskGroup::new("bench-plugins"),
        parallelism,
    };
    let profiles = build_profiles(&default_configuration(), ALL, &cx).context("building the default profile")?;
    let parts = SchedulerOptions {
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
    let scheduler = Scheduler::new(parts).context("the default configuration has a profile")?;
    writer.scheduler.set(Arc::downgrade(&scheduler)).ok().context("a writer serves one scheduler")?;
    Ok(scheduler)
}

pub(super) async fn measure(plan: &Plan) -> Result<Round> {
    let writer = Arc::new(Confirming {
        scheduler: OnceLock::new(),
        bound: AtomicUsize::new(0),
        wanted: plan.pods,
        done: Notify::new(),
    });
    let scheduler = scheduler(Arc::clone(&writer))?;
    for number in 0..plan.nodes {
        scheduler.node_added(&Arc::new(workload::node(number)?));
    }
    for number in 0..plan.pods {
        let mut pod = workload::pod(number)?;
        pod.metadata.uid = format!("uid-{number}");
        pod.metadata.resource_version = "1".into();
        scheduler.pod_added(&Arc::new(pod));
    }
    let tasks = TaskGroup::new("bench");
    let (meter, watch) = (CpuMeter::start(std::process::id())?, Stopwatch::start());
    tasks.spawn("scheduler", scheduler.run(tasks.clone(), tasks.token()));
    let finished = tokio::time::timeout(DEADLINE, writer.done.notified()).await;
    let (seconds, cpu) = (watch.elapsed().as_secs_f64(), meter.seconds()?);
    tasks.shutdown(DRAIN).await;
    ensure!(finished.is_ok(), "only {} of {} pods got a node", writer.bound.load(Ordering::Relaxed), plan.pods);
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    let pods = plan.pods as f64;
    Ok(Round {
        pods_per_second: pods / seconds,
        cpu_ms_per_pod: cpu * 1e3 / pods,
        server_cpu_ms_per_pod: None,
        events: None,
    })
}
