//! The control plane under faults, on paused time: a Deployment is scaled and rolled beside a StatefulSet and a Job while
//! requests get lost, doubled and delayed, watches break, and components and the API server crash. What must hold at
//! every moment is checked on the way; once the faults end, the cluster must come to what is declared.
//! Everything follows from a seed, and a seed replays: two runs make the same requests at the same times.

mod app;
mod healed;
mod observer;
mod story;
mod trouble;

use std::time::Duration;

use testing::{Cluster, Part};

use story::{Run, converged};

/// How many seeds are run where `COXSWAIN_SIM_SEEDS` does not say; `COXSWAIN_SIM_SEED` plays a single one again.
const SEEDS: u64 = 25;

/// Runs a future to its end on a runtime of its own, on paused time.
fn simulate<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn a_deployment_becomes_available() {
    simulate(async {
        let cluster = Cluster::new(1).await.expect("the cluster starts");
        app::create(cluster.admin(), 3, "web:1").await;
        let left = converged(&cluster, 3, "web:1", Duration::from_secs(60)).await;
        assert_eq!(left, Vec::<String>::new());
        cluster.shutdown().await;
    });
}

/// The check can fail: what it waits for does not come by itself.
#[test]
fn without_a_scheduler_nothing_converges() {
    simulate(async {
        let cluster = Cluster::new(2).await.expect("the cluster starts");
        cluster.stop(Part::Scheduler(0));
        app::create(cluster.admin(), 3, "web:1").await;
        let left = converged(&cluster, 3, "web:1", Duration::from_secs(60)).await;
        assert!(left.iter().any(|line| line.contains("does not run")), "{left:?}");
        cluster.shutdown().await;
    });
}

#[test]
fn what_is_declared_comes_about_after_faults() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let one = number("COXSWAIN_SIM_SEED");
    let seeds = one.map_or(1..=number("COXSWAIN_SIM_SEEDS").unwrap_or(SEEDS), |seed| seed..=seed);
    let mut failures = Vec::new();
    for seed in seeds {
        let run = simulate(Run::of(seed));
        assert!(run.lost() > 0, "seed {seed}: no fault has hit");
        assert!(run.events > 0, "seed {seed}: no event was checked");
        let (lost, well) = (run.lost(), run.left.is_empty());
        println!("seed {seed}: {} requests, {lost} lost, {} events, converged: {well}", run.requests, run.events);
        if one.is_some() {
            run.exchanges.iter().for_each(|exchange| println!("{exchange}"));
        }
        if !run.left.is_empty() {
            failures.push(format!("seed {seed}: {:#?}\nafter {:#?}", run.left, run.steps));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_seed_replays() {
    // Not one with a disk: its writer is a thread, which takes real time.
    for seed in 103..=105 {
        let (one, two) = (simulate(Run::of(seed)), simulate(Run::of(seed)));
        assert_eq!(one.steps, two.steps);
        let both = one.exchanges.iter().zip(&two.exchanges);
        if let Some((index, (left, right))) = both.enumerate().find(|(_, (left, right))| left != right) {
            let before = one.exchanges.iter().take(index).skip(index.saturating_sub(5));
            let before: Vec<String> = before.map(ToString::to_string).collect();
            panic!("seed {seed}, request {index} differs:\n{left}\n{right}\nafter\n{}", before.join("\n"));
        }
        assert_eq!(one.requests, two.requests);
    }
}
