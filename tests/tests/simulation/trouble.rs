//! What breaks in a story: each kind of trouble is a row, and is over when the story goes on, but for clocks and faults of
//! one part, which last until the faults end.

use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::ConfigMap;
use base::Rng;
use client::Faults;
use testing::{ClockFault, Cluster, Part};

use crate::workloads::{NAMESPACE, Workload, pick};

/// The furthest that a clock goes wrong by itself.
const DRIFT: Duration = Duration::from_secs(60);
/// How far one is that somebody has set wrong, or that has lost its battery: ten years.
const JUMP: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Longer than it takes until the pods of a node that is not heard of are evicted: 40 s until it counts as lost, and the
/// five minutes that pods tolerate it.
const LOSS: Duration = Duration::from_secs(400);
/// The longest that a part stands still: longer than any lease.
const STALL: Duration = Duration::from_secs(60);
/// The longest that a request is under way. Who takes over from a scheduler that has crashed has to wait as long, as it does
/// for the lease: else a late binding takes room that was given away meanwhile, which only a kubelet can refuse.
pub(crate) const UNDER_WAY: Duration = Duration::from_secs(5);

/// How often a store is asked whether its disk has room again, and how long is waited between: ten minutes in all.
const PROBES: u32 = 6000;
const PROBE_PAUSE: Duration = Duration::from_millis(100);

/// Makes one trouble, and says which.
pub(crate) async fn make(cluster: &Cluster, workloads: &mut [Box<dyn Workload>], rng: &Rng, pause: Duration) -> String {
    let parts = cluster.parts();
    let part = pick(&parts, rng).copied().unwrap_or(Part::Controllers(0));
    let lasts = pause.mul_f64(rng.unit());
    match rng.below(12) {
        0..6 => crash(cluster, part, lasts).await,
        6..8 => {
            let by = if rng.below(3) == 0 { JUMP } else { DRIFT.mul_f64(rng.unit()) };
            let faults = [ClockFault::Ahead(by), ClockFault::Behind(by), ClockFault::Stands(cluster.now())];
            let fault = pick(&faults, rng).copied().unwrap_or_default();
            cluster.set_clock(part, fault);
            format!("the clock of {part} is {fault:?}")
        }
        8..9 => {
            let faults = Faults { drop_response: 0.3, cut_watch: 0.3, repeat_watch: 0.5, ..Faults::default() };
            cluster.set_faults_of(part, &faults);
            format!("{part} has faults of its own")
        }
        9..10 => {
            let bear_late_bindings = workloads.iter().all(|own| own.bears_late_bindings());
            stall(cluster, part, STALL.mul_f64(rng.unit()), bear_late_bindings).await
        }
        10..11 if rng.below(3) == 0 => {
            let node = Part::Node(0);
            workloads.iter_mut().for_each(|own| own.lose(&node.to_string()));
            crash(cluster, node, LOSS).await
        }
        _ => disk(cluster, rng, part, lasts).await,
    }
}

async fn crash(cluster: &Cluster, part: Part, lasts: Duration) -> String {
    let lasts = if matches!(part, Part::Scheduler(_)) { lasts.max(UNDER_WAY) } else { lasts };
    cluster.stop(part);
    tokio::time::sleep(lasts).await;
    cluster.start(part).expect("it starts again");
    cluster.wait_serving().await.expect("the API server answers");
    format!("{part} crashed and is back after {lasts:?}")
}

/// A part stands still and goes on where it was. One of several schedulers crashes instead where the workloads do not bear
/// that what it was about to bind is bound when it goes on, whoever leads by then.
async fn stall(cluster: &Cluster, part: Part, lasts: Duration, bear_late_bindings: bool) -> String {
    let is_one_of_several = matches!(part, Part::Scheduler(_)) && cluster.parts().contains(&Part::Scheduler(1));
    if (is_one_of_several && !bear_late_bindings) || matches!(part, Part::ApiServer(_)) {
        return crash(cluster, part, lasts).await;
    }
    cluster.stall(part, true);
    tokio::time::sleep(lasts).await;
    cluster.stall(part, false);
    format!("{part} stood still for {lasts:?}")
}

/// A disk that is full for a while, fails to sync or loses power; a crash where the store has no disk.
async fn disk(cluster: &Cluster, rng: &Rng, part: Part, lasts: Duration) -> String {
    if !cluster.has_faulty_disk() {
        return crash(cluster, part, lasts).await;
    }
    let which = rng.below(3);
    if which == 0 {
        cluster.set_writes_left(Some(rng.below(4)));
        tokio::time::sleep(lasts).await;
        cluster.set_writes_left(None);
        until_written(cluster).await;
        return format!("the disk was full for {lasts:?}");
    }
    if which == 1 {
        cluster.fail_syncs();
        tokio::time::sleep(lasts).await;
    }
    cluster.cut_power().await.expect("what was acknowledged is there after a power cut");
    cluster.wait_serving().await.expect("the API server answers");
    if which == 1 { format!("the disk could not sync for {lasts:?}") } else { "the power failed".to_owned() }
}

/// Waits until a disk that was full takes writes: its writer finds out by itself, on a thread of its own.
async fn until_written(cluster: &Cluster) {
    let probes = cluster.admin().namespaced::<ConfigMap>(NAMESPACE);
    let mut probe = ConfigMap::default();
    probe.metadata.generate_name = "probe-".to_owned();
    for _ in 0..PROBES {
        if let Ok(made) = probes.create(&probe).await {
            let gone = probes.delete(&made.metadata.name, &DeleteOptions::default()).await;
            gone.expect("a disk that takes writes goes on to");
            return;
        }
        tokio::time::sleep(PROBE_PAUSE).await;
    }
    panic!("the store takes no writes although its disk has room");
}

/// Ends all trouble.
pub(crate) fn end(cluster: &Cluster) {
    cluster.set_faults(&Faults::default());
    for part in cluster.parts() {
        cluster.set_clock(part, ClockFault::Right);
        // A leader that lost its lease has ended, as its process does; something starts it again.
        if !cluster.is_running(part) {
            cluster.start(part).expect("it starts again");
        }
    }
}
