//! Scheduling throughput: hollow nodes (Node objects that no kubelet stands behind) and pods that wait for one.
//!
//! *In process* is the scheduler alone: queue, cache, decision and binding task, with the API server's answer given at
//! once by a function. *Over HTTPS* is the real kube-scheduler binary against the real kube-apiserver binary with its
//! embedded store. Both are measured from the first to the last bound pod.

mod https;
mod in_process;
mod scheduler_process;
mod workload;

use std::path::PathBuf;

use anyhow::Result;

use crate::figure::Figure;
use crate::sample::Samples;
use crate::usage::load_average;

/// What upstream's scheduler reaches on two cores.
const UPSTREAM_PODS_PER_SECOND: f64 = 127.0;
/// What a pod costs upstream's scheduler, in milliseconds of processor time.
const UPSTREAM_CPU_MS: f64 = 13.0;

/// A way from the scheduler to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Road {
    /// A function call.
    InProcess,
    /// Two processes and HTTPS.
    Https,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many pods get a node in each round.
    pub pods: usize,
    /// How often each road is measured.
    pub rounds: usize,
    /// Which roads, in this order in each round.
    pub roads: Vec<Road>,
    /// Where the binaries are.
    pub binaries: PathBuf,
}

impl Plan {
    /// The numbers that figures are published for.
    #[must_use]
    pub fn full() -> Self {
        Self {
            nodes: 5000,
            pods: 10_000,
            rounds: 3,
            roads: vec![Road::InProcess, Road::Https],
            binaries: PathBuf::new(),
        }
    }

    /// A smoke test.
    #[must_use]
    pub fn quick() -> Self {
        Self { nodes: 50, pods: 200, rounds: 1, ..Self::full() }
    }
}

/// What one round gave.
#[derive(Debug, Clone, Copy)]
struct Round {
    pods_per_second: f64,
    /// Processor time of the scheduler for a pod.
    cpu_ms_per_pod: f64,
    /// Processor time of the API server for a pod; none where it is a function.
    server_cpu_ms_per_pod: Option<f64>,
    /// Events that tell of a pod that got a node; none where there is no API server.
    events: Option<usize>,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Measures and prints the figures.
///
/// # Errors
/// A process did not start, or not every pod got a node in time.
pub async fn run(plan: &Plan) -> Result<()> {
    for road in &plan.roads {
        let [mut rate, mut cpu, mut server_cpu, mut events] = [(); 4].map(|()| Samples::default());
        for _ in 0..plan.rounds {
            let round = match road {
                Road::InProcess => in_process::measure(plan).await?,
                Road::Https => https::measure(plan).await?,
            };
            rate.push(round.pods_per_second);
            cpu.push(round.cpu_ms_per_pod);
            server_cpu.push(round.server_cpu_ms_per_pod.unwrap_or(0.0));
            events.push(count(round.events.unwrap_or(0)));
        }
        let name = match road {
            Road::InProcess => "sched-inproc",
            Road::Https => "sched-https",
        };
        Figure::beside_published(name, rate.median(), UPSTREAM_PODS_PER_SECOND, "pods/s").print()?;
        Figure::beside_published(format!("{name}-cpu"), cpu.median(), UPSTREAM_CPU_MS, "ms/pod").print()?;
        if *road == Road::Https {
            Figure::beside(format!("{name}-events"), events.median(), count(plan.pods), "events").print()?;
            Figure::alone(format!("{name}-apiserver-cpu"), server_cpu.median(), "ms/pod").print()?;
        }
        Figure::alone(format!("{name}-load"), load_average(), "runnable").print()?;
    }
    Ok(())
}
