//! One seed's story: what is changed and what breaks, when, and what came of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::Pod;
use base::Rng;
use client::Faults;
use http::StatusCode;
use testing::{Cluster, Container, Exchange, Shape, Store};
use tokio::time::Instant;

use crate::app;
use crate::healed::Healed;
use crate::observer::Observer;
use crate::trouble;

const STEPS: u64 = 8;
/// The longest pause between two steps.
const PAUSE: Duration = Duration::from_secs(12);
/// How long what was noticed late goes on: retries of watches are up to a minute apart, and a node whose lease nobody
/// could read for so long counts as lost.
const AFTERMATH: Duration = Duration::from_secs(120);
/// How long the cluster may take to converge once the faults have ended. Retries back off to as long as the faults
/// lasted, and a node that was lost takes up to six minutes to be given up.
const SETTLE: Duration = Duration::from_secs(600);
/// How long it must stay converged.
const STABLE: Duration = Duration::from_secs(60);
const REPLICAS: i32 = 3;

/// What came of a seed.
pub(crate) struct Run {
    /// What was done, with the time.
    pub(crate) steps: Vec<String>,
    /// All requests.
    pub(crate) exchanges: Vec<Exchange>,
    /// How many requests there were.
    pub(crate) requests: usize,
    /// How many events of pods were checked on the way.
    pub(crate) events: usize,
    /// What was violated on the way, and in what the cluster differs from what is declared at the end.
    pub(crate) left: Vec<String>,
}

impl Run {
    /// Plays a seed's story.
    pub(crate) async fn of(seed: u64) -> Self {
        let start = Instant::now();
        let healed = Healed::default();
        let _heard = tracing::subscriber::set_default(healed.clone());
        let home = tempfile::tempdir().expect("a directory");
        let (store, shape) = surroundings(seed, home.path());
        let cluster = Cluster::over(&store, shape, seed, |_| {}).await.expect("the cluster starts");
        let rng = cluster.split_rng();
        let observer = Observer::start(cluster.admin());
        let (mut steps, mut twice) = (Vec::new(), Vec::new());
        app::create(cluster.admin(), REPLICAS, "web:0").await;
        cluster.set_faults(&faults(&rng));
        let mut image = "web:0".to_owned();
        for number in 1..=STEPS {
            tokio::time::sleep(PAUSE.mul_f64(rng.unit())).await;
            let step = step(&cluster, &rng, number, &mut image).await;
            steps.push(format!("{:.3} {step}", start.elapsed().as_secs_f64()));
            twice.extend(run_twice(&cluster));
        }
        app::scale(cluster.admin(), REPLICAS.unsigned_abs().into()).await;
        trouble::end(&cluster);
        steps.push(format!("{:.3} the faults end", start.elapsed().as_secs_f64()));
        tokio::time::sleep(AFTERMATH).await;
        let mut left = converged(&cluster, REPLICAS, &image, SETTLE).await;
        if left.is_empty() {
            steps.push(format!("{:.3} converged", start.elapsed().as_secs_f64()));
            tokio::time::sleep(STABLE).await;
            left = now(&cluster, REPLICAS, &image).await;
        }
        left.extend(observer.violations());
        left.extend(cluster.trace().violations());
        left.extend(observer.lost(&cluster.trace().acknowledged()));
        left.extend(twice);
        if healed.by_timeout() > 0 {
            left.push(format!("{} expectations expired", healed.by_timeout()));
        }
        if cluster.bound_after_flush() > 0 {
            left.push(format!("{} pods were bound only after the scheduler's flush", cluster.bound_after_flush()));
        }
        left.extend(observer.differences(cluster.admin()).await.expect("pods can be listed"));
        let events = observer.events();
        let (exchanges, requests) = (cluster.trace().exchanges(), cluster.trace().total());
        cluster.shutdown().await;
        Self { steps, exchanges, requests, events, left }
    }

    /// How many requests were lost.
    pub(crate) fn lost(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.status.is_none()).count()
    }
}

/// Faults of all kinds; how often each comes is the seed's.
fn faults(rng: &Rng) -> Faults {
    let upto = |most: f64| most * rng.unit();
    Faults {
        drop_request: 0.01 + upto(0.09),
        drop_response: 0.01 + upto(0.09),
        duplicate: upto(0.1),
        delay: upto(0.5),
        delay_limit: Duration::from_secs(5).mul_f64(rng.unit()),
        error: upto(0.1),
        statuses: vec![
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ],
        cut_watch: upto(0.1),
        late_response: upto(0.3),
        late_watch: upto(0.2),
        repeat_watch: upto(0.2),
        stalled: false,
    }
}

/// Does one thing, and says what.
async fn step(cluster: &Cluster, rng: &Rng, number: u64, image: &mut String) -> String {
    match rng.below(10) {
        0..3 => {
            let replicas = rng.below(6);
            app::scale(cluster.admin(), replicas).await;
            format!("scaled to {replicas}")
        }
        3..5 => {
            *image = format!("web:{number}");
            app::roll(cluster.admin(), image).await;
            format!("rolled to {image}")
        }
        5..6 => delete_a_pod(cluster, rng).await,
        _ => trouble::make(cluster, rng, PAUSE).await,
    }
}

/// The pods whose containers run in two places, or of two pods of one name: at most one may have an identity.
fn run_twice(cluster: &Cluster) -> Vec<String> {
    let (mut seen, mut twice) = (BTreeSet::new(), Vec::new());
    for container in cluster.containers() {
        let Container { node, pod, uid } = container;
        if !seen.insert(pod.clone()) {
            twice.push(format!("containers of {pod} run twice, once more on {node} ({uid})"));
        }
    }
    twice
}

/// What the story is played on: most on memory with one of each part, some with two controller managers and schedulers
/// that are elected, some on the built-in store with a disk that fails.
fn surroundings(seed: u64, home: &Path) -> (Store, Shape) {
    let shape = match seed % 4 {
        1 => Shape { controllers: 2, schedulers: 2, ..Shape::SINGLE },
        _ => Shape::SINGLE,
    };
    let store = if seed % 5 == 2 { Store::Faulty(home.to_owned()) } else { Store::Memory };
    (store, shape)
}

async fn delete_a_pod(cluster: &Cluster, rng: &Rng) -> String {
    let names = app::pods(cluster.admin()).await.expect("pods can be listed");
    let Some(name) = pick(&names, rng) else { return "there was no pod to delete".to_owned() };
    let pods = cluster.admin().namespaced::<Pod>("default");
    match pods.delete(name, &DeleteOptions::default()).await {
        Ok(_) => format!("deleted {name}"),
        Err(error) if error.is_not_found() => format!("{name} was gone already"),
        Err(error) => panic!("deleting {name}: {error}"),
    }
}

pub(crate) fn pick<'a, T>(from: &'a [T], rng: &Rng) -> Option<&'a T> {
    let count = u64::try_from(from.len()).unwrap_or(u64::MAX);
    from.get(usize::try_from(rng.below(count)).unwrap_or(0))
}

/// Waits until the cluster has come to what is declared; what is still missing at the limit.
pub(crate) async fn converged(cluster: &Cluster, replicas: i32, image: &str, limit: Duration) -> Vec<String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = now(cluster, replicas, image).await;
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn now(cluster: &Cluster, replicas: i32, image: &str) -> Vec<String> {
    app::differences(cluster.admin(), replicas, image).await.expect("the administrator has no faults")
}
