//! kube-scheduler against kube-apiserver. The pods wait before the scheduler starts; what counts is the time from the
//! first to the last bound one, by the scheduler's own counter, which is read now and then because a watch of all pods
//! would compete with the two processes for the machine.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api_machinery::meta::ListOptions;
use api_types::core_v1::{Namespace, Node, Pod};
use client::{Client, ClientError, Request};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::control_plane::Site;
use super::{Plan, Round, workload};
use crate::sample::Stopwatch;
use crate::usage::CpuMeter;

/// Requests under way while objects are made.
const PARALLEL_CREATES: usize = 64;
const POLL: Duration = Duration::from_millis(20);
/// When this is over and pods still wait, something is wrong.
const DEADLINE: Duration = Duration::from_secs(300);
const BOUND: &str = "scheduler_schedule_attempts_total{";

pub(super) async fn measure(plan: &Plan) -> Result<Round> {
    let site = Site::new(&plan.binaries)?;
    let (server, api) = site.start_api_server().await?;
    fill(&api, plan).await?;
    let (scheduler, probe) = site.start_scheduler().await?;
    let first = bound(&probe, |pods| pods > 0).await.with_context(|| site.log_tail("kube-scheduler"))?;
    let (watch, cpu, server_cpu) =
        (Stopwatch::start(), CpuMeter::start(scheduler.pid())?, CpuMeter::start(server.pid())?);
    let last =
        bound(&probe, |pods| pods >= plan.pods).await.with_context(|| site.log_tail("kube-scheduler"))?;
    let (seconds, cpu, server_cpu) = (watch.elapsed().as_secs_f64(), cpu.seconds()?, server_cpu.seconds()?);
    check(&api, plan).await?;
    scheduler.stop().await?;
    server.stop().await?;
    ensure!(last > first, "all pods were bound before the first look: take more of them");
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    let pods = (last - first) as f64;
    Ok(Round {
        pods_per_second: pods / seconds,
        cpu_ms_per_pod: cpu * 1e3 / pods,
        server_cpu_ms_per_pod: Some(server_cpu * 1e3 / pods),
    })
}

/// Makes the nodes and the pods.
async fn fill(api: &Client, plan: &Plan) -> Result<()> {
    let mut namespace = Namespace::default();
    workload::NAMESPACE.clone_into(&mut namespace.metadata.name);
    api.all::<Namespace>().create(&namespace).await?;
    let nodes: Vec<Node> = (0..plan.nodes).map(workload::node).collect::<Result<_>>()?;
    let to = api.all::<Node>();
    all(nodes.iter().map(|node| to.create(node))).await.context("making nodes")?;
    let pods: Vec<Pod> = (0..plan.pods).map(workload::pod).collect::<Result<_>>()?;
    let to = api.namespaced::<Pod>(workload::NAMESPACE);
    all(pods.iter().map(|pod| to.create(pod))).await.context("making pods")
}

async fn all<T>(requests: impl Iterator<Item = impl Future<Output = Result<T, ClientError>>>) -> Result<()> {
    stream::iter(requests).buffer_unordered(PARALLEL_CREATES).try_for_each(|_| async { Ok(()) }).await?;
    Ok(())
}

/// Waits until the number of bound pods is as wanted.
async fn bound(scheduler: &Client, is_enough: impl Fn(usize) -> bool) -> Result<usize> {
    let watch = Stopwatch::start();
    loop {
        let metrics = scheduler.send(Request::get("/metrics").accept("text/plain")).await?;
        let pods = scheduled(&String::from_utf8_lossy(&metrics.body));
        if is_enough(pods) {
            return Ok(pods);
        }
        if watch.elapsed() > DEADLINE {
            bail!("only {pods} pods got a node");
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The counter of bound pods in Prometheus' text form; 0 while it is not there.
fn scheduled(metrics: &str) -> usize {
    let line = metrics.lines().find(|line| line.starts_with(BOUND) && line.contains("result=\"scheduled\""));
    line.and_then(|line| line.rsplit(' ').next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The counter is the scheduler's word; this is the API server's.
async fn check(api: &Client, plan: &Plan) -> Result<()> {
    let pods = api.namespaced::<Pod>(workload::NAMESPACE).list_all(&ListOptions::default()).await?;
    let placed = pods.items.iter().filter(|pod| !pod.spec.node_name.is_empty()).count();
    ensure!(placed == plan.pods, "{placed} of {} pods have a node", plan.pods);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::scheduled;

    #[test]
    fn the_counter_is_found() {
        let text = "# HELP x\nscheduler_schedule_attempts_total{profile=\"p\",result=\"error\"} 3\n\
                    scheduler_schedule_attempts_total{profile=\"p\",result=\"scheduled\"} 42\n";
        assert_eq!((scheduled(text), scheduled("")), (42, 0));
    }
}
