//! What a kubelet takes that has many pods: until all of them run that came at once, and while nothing happens to them.

use std::time::Duration;

use anyhow::{Result, bail};
use api_machinery::meta::ListOptions;
use api_types::core_v1::Pod;
use client::Client;
use serde_json::json;

use super::MIB;
use super::cluster::{Cluster, NAMESPACE, create_pod};
use crate::figure::Figure;
use crate::sample::Stopwatch;
use crate::usage::CpuMeter;

/// How long all pods may take to run.
const LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(250);
/// How long the pods are left alone before the kubelet is watched, and how long it is watched.
const SETTLE: Duration = Duration::from_secs(45);
const WATCHED: Duration = Duration::from_mins(1);
/// What a kubelet with 90 pods may take of processor time a minute, in seconds, and of memory, in MiB.
const PROMISED_SECONDS: f64 = 0.5;
const PROMISED_MIB: f64 = 24.0;

/// Declares so many pods at once and watches their kubelet.
pub(super) async fn measure(cluster: &Cluster, client: &Client, pods: usize) -> Result<()> {
    let kubelet = cluster.process("kubelet")?;
    let (busy, since) = (CpuMeter::start(kubelet)?, Stopwatch::start());
    for number in 0..pods {
        let metadata = json!({"name": format!("dense-{number}"), "labels": {"bench": "dense"}});
        create_pod(client, &metadata).await?;
    }
    while running(client).await? < pods {
        if since.elapsed() > LIMIT {
            bail!("{} of {pods} pods run after {LIMIT:?}", running(client).await?);
        }
        tokio::time::sleep(POLL).await;
    }
    Figure::alone("dense-to-running", since.elapsed().as_secs_f64(), "s").print()?;
    Figure::alone("dense-to-running-kubelet-cpu", busy.seconds()?, "s").print()?;
    tokio::time::sleep(SETTLE).await;
    let idle = CpuMeter::start(kubelet)?;
    tokio::time::sleep(WATCHED).await;
    Figure::beside_promised("dense-idle-kubelet-cpu", idle.seconds()?, PROMISED_SECONDS, "s/min").print()?;
    #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
    let memory = cluster.resident("kubelet")? as f64 / MIB;
    Figure::beside_promised("dense-kubelet-memory", memory, PROMISED_MIB, "MiB").print()?;
    Ok(())
}

async fn running(client: &Client) -> Result<usize> {
    let options = ListOptions { label_selector: "bench=dense".into(), ..ListOptions::default() };
    let list = client.namespaced::<Pod>(NAMESPACE).list(&options).await?;
    Ok(list.items.iter().filter(|pod| pod.status.phase == "Running").count())
}
