//! What a kubelet takes that has many pods: until all of them run that came at once, and while nothing happens to them.

use std::time::Duration;

use anyhow::{Result, bail};
use api_machinery::meta::ListOptions;
use api_types::core_v1::Pod;
use client::Client;
use serde_json::json;

use super::MIB;
use super::cluster::{Cluster, NAMESPACE, create_pod};
use super::runtime_alone::{self, Manner};
use crate::figure::Figure;
use crate::sample::{Samples, Stopwatch};
use crate::usage::{CpuMeter, MachineMeter};

/// How long all pods may take to run.
const LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(100);
/// How long the pods are left alone before the kubelet is watched, and how long it is watched.
const SETTLE: Duration = Duration::from_secs(45);
const WATCHED: Duration = Duration::from_mins(1);
/// What a kubelet with 90 pods may take of processor time a minute, in seconds, and of memory, in MiB.
const PROMISED_SECONDS: f64 = 0.5;
const PROMISED_MIB: f64 = 24.0;

/// Starts of all pods at once: the kubelet's and those of the runtime alone, in either manner, one of each in every round.
/// The machine is faster in one minute than in another, so that the medians of several rounds count.
#[derive(Default)]
pub(super) struct Bursts {
    in_turns: Samples,
    in_turns_cpu: Samples,
    alone: Samples,
    kubelet: Samples,
    alone_cpu: Samples,
    machine_cpu: Samples,
    kubelet_cpu: Samples,
}

impl Bursts {
    /// The medians.
    pub(super) fn print(&self) -> Result<()> {
        let alone = self.alone.median();
        Figure::alone("dense-runtime-alone", alone, "s").print()?;
        Figure::alone("dense-runtime-alone-in-turns", self.in_turns.median(), "s").print()?;
        Figure::beside("dense-to-running", self.kubelet.median(), alone, "s").print()?;
        Figure::beside("dense-to-running-of-turns", self.kubelet.median(), self.in_turns.median(), "s").print()?;
        let (machine, alone) = (self.machine_cpu.median(), self.alone_cpu.median());
        Figure::beside("dense-to-running-machine-cpu", machine, alone, "s").print()?;
        Figure::beside("dense-to-running-of-turns-machine-cpu", machine, self.in_turns_cpu.median(), "s").print()?;
        Ok(Figure::alone("dense-to-running-kubelet-cpu", self.kubelet_cpu.median(), "s").print()?)
    }
}

/// Has so many pods started, by the runtime alone and then by the kubelet; the latter stay, and may be watched.
pub(super) async fn measure(cluster: &Cluster, pods: usize, bursts: &mut Bursts, is_watched: bool) -> Result<()> {
    let in_turns = runtime_alone::measure(cluster, pods, Manner::InTurns).await?;
    let alone = runtime_alone::measure(cluster, pods, Manner::AtOnce).await?;
    let kubelet = cluster.process("kubelet")?;
    let (busy, machine, since) = (CpuMeter::start(kubelet)?, MachineMeter::start()?, Stopwatch::start());
    run_all(&cluster.client()?, pods).await?;
    let (seconds, cpu_seconds) = (since.elapsed().as_secs_f64(), machine.seconds()?);
    bursts.kubelet_cpu.push(busy.seconds()?);
    bursts.kubelet.push(seconds);
    bursts.machine_cpu.push(cpu_seconds);
    bursts.in_turns.push(in_turns.seconds);
    bursts.in_turns_cpu.push(in_turns.cpu_seconds);
    bursts.alone.push(alone.seconds);
    bursts.alone_cpu.push(alone.cpu_seconds);
    Figure::beside("dense-round", seconds, alone.seconds, "s").print()?;
    Figure::beside("dense-round-of-turns", seconds, in_turns.seconds, "s").print()?;
    if is_watched { watch(cluster, kubelet).await } else { Ok(()) }
}

/// Declares the pods one after the other and waits until all run.
async fn run_all(client: &Client, pods: usize) -> Result<()> {
    let since = Stopwatch::start();
    for number in 0..pods {
        let metadata = json!({"name": format!("dense-{number}"), "labels": {"bench": "dense"}});
        create_pod(client, &metadata).await?;
    }
    while is_waiting(client).await? {
        if since.elapsed() > LIMIT {
            bail!("not all of {pods} pods run after {LIMIT:?}");
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// What the kubelet needs while nothing happens to its pods.
async fn watch(cluster: &Cluster, kubelet: u32) -> Result<()> {
    tokio::time::sleep(SETTLE).await;
    let idle = CpuMeter::start(kubelet)?;
    tokio::time::sleep(WATCHED).await;
    Figure::beside_promised("dense-idle-kubelet-cpu", idle.seconds()?, PROMISED_SECONDS, "s/min").print()?;
    #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
    let memory = cluster.resident("kubelet")? as f64 / MIB;
    Figure::beside_promised("dense-kubelet-memory", memory, PROMISED_MIB, "MiB").print()?;
    Ok(())
}

/// Whether there is a pod that does not run yet; the answer is small, so that asking often disturbs nobody.
async fn is_waiting(client: &Client) -> Result<bool> {
    let options = ListOptions {
        label_selector: "bench=dense".into(),
        field_selector: "status.phase!=Running".into(),
        limit: 1,
        ..ListOptions::default()
    };
    Ok(!client.namespaced::<Pod>(NAMESPACE).list(&options).await?.items.is_empty())
}
