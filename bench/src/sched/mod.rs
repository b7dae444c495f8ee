//! Scheduling throughput: hollow nodes (Node objects that no kubelet stands behind) and pods that wait for one.
//!
//! *In process* is the scheduler alone: queue, cache, decision and binding task, with the API server's answer given at
//! once by a function. *Over HTTPS* is the real kube-scheduler binary against the real kube-apiserver binary with its
//! embedded store. Both are measured from the first create to the last bind, for each row of [`shapes`].

mod https;
mod in_process;
mod objects;
mod shapes;
mod workload;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::figure::Figure;
use crate::sample::Samples;
use crate::usage::load_average;

pub use shapes::{MIXED, SHAPES, Shape, WITH_OBJECTS, all as all_shapes};

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
    /// Which rows of the table.
    pub shapes: Vec<Shape>,
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
            shapes: all_shapes().collect(),
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
        for shape in plan.shapes.iter().filter(|shape| *road == Road::InProcess || shape.needs.is_none()) {
            measure(plan, *road, shape).await?;
        }
    }
    Ok(())
}

async fn measure(plan: &Plan, road: Road, shape: &Shape) -> Result<()> {
    let [mut rate, mut cpu, mut server_cpu, mut events] = [(); 4].map(|()| Samples::default());
    for _ in 0..plan.rounds {
        let round = match road {
            Road::InProcess => in_process::measure(plan, shape).await,
            Road::Https => https::measure(plan, shape).await,
        };
        let round = round.with_context(|| format!("pods of shape {:?}", shape.name))?;
        rate.push(round.pods_per_second);
        cpu.push(round.cpu_ms_per_pod);
        server_cpu.push(round.server_cpu_ms_per_pod.unwrap_or(0.0));
        events.push(count(round.events.unwrap_or(0)));
    }
    let road_name = match road {
        Road::InProcess => "sched-inproc",
        Road::Https => "sched-https",
    };
    let is_plain = shape.name.is_empty();
    let name = if is_plain { road_name.to_owned() } else { format!("{road_name}-{}", shape.name) };
    match shape.published {
        Some(published) => Figure::beside_published(&name, rate.median(), published, "pods/s").print()?,
        None => Figure::alone(&name, rate.median(), "pods/s").print()?,
    }
    // What a pod costs is published for plain ones only.
    let cpu_name = format!("{name}-cpu");
    if is_plain {
        Figure::beside_published(cpu_name, cpu.median(), UPSTREAM_CPU_MS, "ms/pod").print()?;
    } else {
        Figure::alone(cpu_name, cpu.median(), "ms/pod").print()?;
    }
    if road == Road::Https {
        let pods = count(shape.pods(plan.pods));
        Figure::beside_promised(format!("{name}-events"), events.median(), pods, "events").print()?;
        Figure::alone(format!("{name}-apiserver-cpu"), server_cpu.median(), "ms/pod").print()?;
    }
    Ok(Figure::alone(format!("{name}-load"), load_average(), "runnable").print()?)
}
