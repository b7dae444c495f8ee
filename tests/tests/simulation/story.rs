//! One seed's story: what is changed and what breaks, when, and what came of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_types::core_v1::Pod;
use base::Rng;
use client::Faults;
use http::StatusCode;
use testing::{Cluster, Container, Exchange, Shape, Store};
use tokio::time::Instant;

use crate::healed::Healed;
use crate::observer::Observer;
use crate::trouble;
use crate::workloads::{self, NAMESPACE, Workload, pick};
use crate::writes;

const STEPS: u64 = 10;
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

/// Whether anything breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// The same changes are made at the same times, and nothing breaks.
    Fair,
    Foul,
}

/// What came of a seed.
pub(crate) struct Run {
    /// What was done, with the time.
    pub(crate) steps: Vec<String>,
    /// All requests.
    pub(crate) exchanges: Vec<Exchange>,
    /// How many requests there were.
    pub(crate) requests: usize,
    /// How many events were checked on the way.
    pub(crate) events: usize,
    /// What was violated on the way, and in what the cluster differs from what is declared at the end.
    pub(crate) left: Vec<String>,
}

/// A story under way.
struct Story {
    cluster: Cluster,
    workloads: Vec<Box<dyn Workload>>,
    weather: Weather,
    /// What is changed follows from the one, what breaks from the other.
    changes: base::SharedRng,
    troubles: base::SharedRng,
    start: Instant,
    steps: Vec<String>,
    left: Vec<String>,
}

impl Run {
    /// Plays a seed's story.
    pub(crate) async fn of(seed: u64, weather: Weather) -> Self {
        let healed = Healed::default();
        let _heard = tracing::subscriber::set_default(healed.clone());
        let home = tempfile::tempdir().expect("a directory");
        let start = Instant::now();
        let (store, shape) = surroundings(seed, home.path());
        let cluster = Cluster::over(&store, shape, seed, |_| {}).await.expect("the cluster starts");
        let (changes, troubles) = (cluster.split_rng(), cluster.split_rng());
        let mut observer = Observer::start(cluster.admin());
        let mut workloads = workloads::draw(seed, &changes);
        workloads.iter_mut().for_each(|own| own.begin(&cluster, &mut observer));
        let (steps, left) = (Vec::new(), Vec::new());
        let mut story = Story { cluster, workloads, weather, changes, troubles, start, steps, left };
        story.play().await;
        story.end().await;
        let Story { cluster, workloads, steps, mut left, .. } = story;
        left.extend(workloads.iter().flat_map(|own| own.violations()));
        left.extend(observer.violations());
        if weather == Weather::Fair {
            left.extend(observer.over_quota());
        }
        if !cluster.may_bind_late() {
            left.extend(observer.overcommitted());
        }
        left.extend(observer.unpaid(cluster.trace()));
        left.extend(cluster.trace().violations());
        left.extend(observer.lost(&cluster.trace().acknowledged()));
        left.extend(observer.hidden(&cluster.trace().absent()));
        if healed.by_timeout() > 0 {
            left.push(format!("{} expectations expired", healed.by_timeout()));
        }
        if cluster.bound_after_flush() > 0 {
            left.push(format!("{} pods were bound only after the scheduler's flush", cluster.bound_after_flush()));
        }
        left.extend(observer.differences(cluster.admin()).await.expect("all can be listed"));
        let events = observer.events();
        let (exchanges, requests) = (cluster.trace().exchanges(), cluster.trace().total());
        cluster.shutdown().await;
        Self { steps, exchanges, requests, events, left }
    }

    /// How many requests were lost.
    pub(crate) fn lost(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.status.is_none()).count()
    }

    /// How much components have written.
    pub(crate) fn writes(&self) -> usize {
        writes::of_components(&self.exchanges).count()
    }
}

impl Story {
    fn note(&mut self, what: &str) {
        self.steps.push(format!("{:.3} {what}", self.start.elapsed().as_secs_f64()));
    }

    /// Declares all, and lets changes and troubles come.
    async fn play(&mut self) {
        for own in &mut self.workloads {
            own.declare(self.cluster.admin()).await;
        }
        if self.weather == Weather::Foul {
            self.cluster.set_faults(&faults(&self.troubles));
        }
        for number in 1..=STEPS {
            tokio::time::sleep(PAUSE.mul_f64(self.changes.unit())).await;
            let what = self.step(number).await;
            self.note(&what);
            self.left.extend(run_twice(&self.cluster));
        }
    }

    /// Does one thing, and says what.
    async fn step(&mut self, number: u64) -> String {
        match self.changes.below(10) {
            0..5 => {
                let count = u64::try_from(self.workloads.len()).unwrap_or(1);
                let at = usize::try_from(self.changes.below(count)).unwrap_or(0);
                self.workloads[at].change(self.cluster.admin(), &self.changes, number).await
            }
            5..6 => delete_a_pod(&self.cluster, &self.changes).await,
            _ if self.weather == Weather::Foul => self.make_trouble().await,
            _ => "nothing broke".to_owned(),
        }
    }

    /// Breaks something, now and then of a workload.
    async fn make_trouble(&mut self) -> String {
        let rng = &self.troubles;
        let is_own = rng.below(3) == 0;
        let own = self.workloads.iter_mut().filter(|_| is_own).find_map(|own| own.break_own(rng));
        match own {
            Some(what) => what,
            None => trouble::make(&self.cluster, &mut self.workloads, rng, PAUSE).await,
        }
    }

    /// Ends the trouble, and sees what comes of it: the cluster must come to what is declared, stay there, and rest.
    async fn end(&mut self) {
        for own in &mut self.workloads {
            own.settle(self.cluster.admin()).await;
        }
        trouble::end(&self.cluster);
        self.note("the faults end");
        if self.weather == Weather::Foul {
            tokio::time::sleep(AFTERMATH).await;
        }
        let mut left = converged(&self.cluster, &self.workloads, SETTLE).await;
        if left.is_empty() {
            self.note("converged");
            for own in &mut self.workloads {
                left.extend(own.try_out(self.cluster.admin()).await);
            }
            left.extend(converged(&self.cluster, &self.workloads, STABLE).await);
            let so_far = self.cluster.trace().total();
            tokio::time::sleep(STABLE).await;
            left.extend(now(&self.cluster, &self.workloads).await);
            let since = self.cluster.trace().exchanges();
            let since = since.get(so_far..).unwrap_or_default();
            left.extend(writes::of_components(since).map(|write| format!("nothing was to be done, and {write}")));
        }
        self.left.extend(left);
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
        delay_limit: trouble::UNDER_WAY.mul_f64(rng.unit()),
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
        outlive: upto(0.3),
        stalled: false,
    }
}

/// The pods whose containers run in two places, or of two pods of one name: at most one may have an identity.
fn run_twice(cluster: &Cluster) -> Vec<String> {
    let (mut seen, mut twice) = (BTreeSet::new(), Vec::new());
    for container in cluster.containers() {
        let Container { node, pod, uid, .. } = container;
        if !seen.insert(pod.clone()) {
            twice.push(format!("containers of {pod} run twice, once more on {node} ({uid})"));
        }
    }
    twice
}

/// What the story is played on: most on memory with one of each part, some with two controller managers and schedulers
/// that are elected, some with two API servers, some on the built-in store with a disk that fails.
fn surroundings(seed: u64, home: &Path) -> (Store, Shape) {
    let several = |is: bool| if is { 2 } else { 1 };
    let (elected, balanced) = (several(seed % 4 == 1), several(seed.is_multiple_of(3)));
    let shape = Shape { api_servers: balanced, controllers: elected, schedulers: elected };
    let store = if seed % 5 == 2 { Store::Faulty(home.to_owned()) } else { Store::Memory };
    (store, shape)
}

/// Deletes a pod that something makes again.
async fn delete_a_pod(cluster: &Cluster, rng: &Rng) -> String {
    let pods = cluster.admin().namespaced::<Pod>(NAMESPACE);
    let all = pods.list_all(&ListOptions::default()).await.expect("pods can be listed").items;
    let owned: Vec<Pod> = all.into_iter().filter(|pod| !pod.metadata.owner_references.is_empty()).collect();
    let Some(pod) = pick(&owned, rng) else { return "there was no pod to delete".to_owned() };
    let name = &pod.metadata.name;
    match pods.delete(name, &DeleteOptions::default()).await {
        Ok(_) => format!("deleted {name}"),
        Err(error) if error.is_not_found() => format!("{name} was gone already"),
        Err(error) => panic!("deleting {name}: {error}"),
    }
}

/// Waits until the cluster has come to what is declared; what is still missing at the limit.
pub(crate) async fn converged(cluster: &Cluster, declared: &[Box<dyn Workload>], limit: Duration) -> Vec<String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = now(cluster, declared).await;
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn now(cluster: &Cluster, declared: &[Box<dyn Workload>]) -> Vec<String> {
    let mut left = Vec::new();
    for own in declared {
        left.extend(own.differences(cluster.admin()).await.expect("the administrator has no faults"));
    }
    left
}
