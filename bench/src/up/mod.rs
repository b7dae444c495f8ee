//! How fast a cluster comes up, and how much memory its processes need.
//!
//! Each round brings a cluster of one node up in directories of its own, declares one pod, and waits for it to run; the
//! clock starts with `coxswain up`. The memory is that of the idle processes some seconds later, beside the limits that
//! the project has set itself. Then the node gets many pods at once, beside what its container runtime alone needs for
//! them; the kubelet of the last round is watched while nothing happens to its pods.

mod cluster;
mod dense;
mod pattern;
mod runtime_alone;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::figure::Figure;
use crate::sample::Samples;
use cluster::Cluster;
use dense::Bursts;

/// How long a cluster is left alone before its memory counts: what only the start needed is let go of after a minute.
const SETTLE: Duration = Duration::from_secs(75);
const MIB: f64 = 1024.0 * 1024.0;

/// What is measured together, with the limit in MiB.
const LIMITS: &[(&str, &[&str], f64)] = &[
    ("control-plane-memory", &["kube-apiserver", "kube-controller-manager", "kube-scheduler"], 100.0),
    ("kubelet-memory", &["kubelet"], 25.0),
    ("kube-proxy-memory", &["kube-proxy"], 25.0),
];

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where `coxswain` and the components are.
    pub binaries: PathBuf,
    /// Where the images of the nodes are.
    pub images: PathBuf,
    /// How often a cluster is brought up.
    pub rounds: usize,
    /// How many pods each of them gets then at once; none to leave that out.
    pub pods: usize,
}

/// Measures and prints.
///
/// # Errors
/// A cluster does not come up or does not run a pod.
pub async fn run(plan: &Plan) -> Result<()> {
    let (mut up, mut pod, mut bursts) = (Samples::default(), Samples::default(), Bursts::default());
    let mut memory = vec![Samples::default(); LIMITS.len()];
    for round in 1..=plan.rounds {
        let cluster = Cluster::new(plan);
        let mut outcome = measure(&cluster, &mut up, &mut pod, &mut memory).await;
        if outcome.is_ok() && plan.pods > 0 {
            let is_watched = round == plan.rounds;
            outcome = dense::measure(&cluster, plan.pods, &mut bursts, is_watched).await.and(outcome);
        }
        cluster.down().await?;
        Figure::alone(format!("up-round-{round}"), outcome?, "s").print()?;
    }
    Figure::alone("up", up.median(), "s").print()?;
    Figure::alone("up-to-first-pod", pod.median(), "s").print()?;
    for ((name, _, limit), samples) in LIMITS.iter().zip(&memory) {
        Figure::beside_promised(*name, samples.median(), *limit, "MiB").print()?;
    }
    if plan.pods > 0 {
        bursts.print()?;
    }
    Ok(())
}

/// One round; how many seconds `coxswain up` took.
async fn measure(cluster: &Cluster, up: &mut Samples, pod: &mut Samples, memory: &mut [Samples]) -> Result<f64> {
    let started = cluster.up().await?;
    let seconds = started.elapsed().as_secs_f64();
    up.push(seconds);
    cluster.run_a_pod().await?;
    pod.push(started.elapsed().as_secs_f64());
    tokio::time::sleep(SETTLE).await;
    for ((_, names, _), samples) in LIMITS.iter().zip(memory) {
        let mut bytes = 0;
        for name in *names {
            bytes += cluster.resident(name)?;
        }
        #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
        samples.push(bytes as f64 / MIB);
    }
    Ok(seconds)
}
