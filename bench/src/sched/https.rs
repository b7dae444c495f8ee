//! kube-scheduler against kube-apiserver. The scheduler runs when the pods are made; what counts is the time from the first
//! create to the last bind, by the scheduler's own counter, which is read now and then because a watch of all pods would
//! compete with the two processes for the machine.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api_machinery::meta::ListOptions;
use api_types::core_v1::{Namespace, Node, Pod};
use api_types::events_v1::Event;
use base::TaskGroup;
use client::{Client, ClientConfig};

use super::{Plan, Round, Shape, workload};
use crate::api_server::{ApiServer, HOLLOW, Storage};
use crate::identity::Identity;
use crate::requests::all;
use crate::sample::Stopwatch;
use crate::scheduler_process::{SchedulerProcess, client};
use crate::usage::CpuMeter;

/// When no event came for so long, none comes any more.
const EVENTS_PAUSE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
/// When this is over and pods still wait, something is wrong.
const DEADLINE: Duration = Duration::from_secs(300);
const DRAIN: Duration = Duration::from_secs(5);

pub(super) async fn measure(plan: &Plan, shape: &Shape) -> Result<Round> {
    let directory = tempfile::tempdir().context("making a directory")?;
    let pki = directory.path().join("pki");
    std::fs::create_dir_all(&pki)?;
    let identity = Identity::create(&pki)?;
    let server = ApiServer::start(&plan.binaries, directory.path(), &identity, Storage::Embedded, HOLLOW).await?;
    let tasks = TaskGroup::new("bench");
    let api = client(ClientConfig::from_kubeconfig_file(&identity.kubeconfig(&server.url())?)?, &tasks)?;
    make_nodes(&api, plan).await?;
    let scheduler = SchedulerProcess::start(&plan.binaries, directory.path(), &identity, &server.url(), &tasks).await?;
    let round = follow(plan, shape, &api, (&scheduler, &server)).await.with_context(|| scheduler.log_tail())?;
    let wanted = shape.pods(plan.pods);
    check(&api, wanted).await?;
    let round = Round { events: Some(events(&api, wanted).await?), ..round };
    tasks.shutdown(DRAIN).await;
    scheduler.stop().await?;
    server.stop().await?;
    Ok(round)
}

/// From the first create to the last bind.
async fn follow(
    plan: &Plan,
    shape: &Shape,
    api: &Client,
    (scheduler, server): (&SchedulerProcess, &ApiServer),
) -> Result<Round> {
    let pods = shape.all_pods(plan.pods)?;
    let to = api.namespaced::<Pod>(workload::NAMESPACE);
    let (cpu, server_cpu) = (CpuMeter::start(scheduler.pid())?, CpuMeter::start(server.pid())?);
    let watch = Stopwatch::start();
    all(pods.iter().map(|pod| to.create(pod))).await.context("making pods")?;
    let bound = wait_for(scheduler, shape.pods(plan.pods)).await?;
    let (seconds, cpu, server_cpu) = (watch.elapsed().as_secs_f64(), cpu.seconds()?, server_cpu.seconds()?);
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    let pods = bound as f64;
    Ok(Round {
        pods_per_second: pods / seconds,
        cpu_ms_per_pod: cpu * 1e3 / pods,
        server_cpu_ms_per_pod: Some(server_cpu * 1e3 / pods),
        events: None,
    })
}

/// Waits until so many pods are bound.
async fn wait_for(scheduler: &SchedulerProcess, enough: usize) -> Result<usize> {
    let watch = Stopwatch::start();
    loop {
        let pods = scheduler.bound().await?;
        if pods >= enough {
            return Ok(pods);
        }
        if watch.elapsed() > DEADLINE {
            bail!("only {pods} pods got a node");
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn make_nodes(api: &Client, plan: &Plan) -> Result<()> {
    let mut namespace = Namespace::default();
    workload::NAMESPACE.clone_into(&mut namespace.metadata.name);
    api.all::<Namespace>().create(&namespace).await?;
    let nodes: Vec<Node> = (0..plan.nodes).map(workload::node).collect::<Result<_>>()?;
    let to = api.all::<Node>();
    all(nodes.iter().map(|node| to.create(node))).await.context("making nodes")
}

/// How many pods an event tells of, once there is one for each. They are waited for as long as more of them come.
async fn events(api: &Client, wanted: usize) -> Result<usize> {
    let of_scheduler = ListOptions { field_selector: "reason=Scheduled".into(), ..ListOptions::default() };
    let events = api.namespaced::<Event>(workload::NAMESPACE);
    let mut found = 0;
    loop {
        let listed = events.list_all(&of_scheduler).await?.items;
        let pods: BTreeSet<&str> = listed.iter().map(|event| event.regarding.name.as_str()).collect();
        if pods.len() == wanted || pods.len() == found {
            return Ok(pods.len());
        }
        found = pods.len();
        tokio::time::sleep(EVENTS_PAUSE).await;
    }
}

/// The counter is the scheduler's word; this is the API server's.
async fn check(api: &Client, wanted: usize) -> Result<()> {
    let pods = api.namespaced::<Pod>(workload::NAMESPACE).list_all(&ListOptions::default()).await?;
    let placed = pods.items.iter().filter(|pod| !pod.spec.node_name.is_empty()).count();
    ensure!(placed == wanted, "{placed} pods have a node, not {wanted}");
    Ok(())
}
