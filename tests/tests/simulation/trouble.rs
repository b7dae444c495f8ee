//! What breaks in a story: each kind of trouble is a row, and is over when the story goes on, but for clocks and faults of
//! one part, which last until the faults end.

use std::time::Duration;

use base::Rng;
use client::Faults;
use testing::{ClockFault, Cluster, Part};

use crate::story::pick;

/// The furthest that a clock is off.
const CLOCK: Duration = Duration::from_secs(60);
/// Longer than it takes until the pods of a node that is not heard of are evicted: 40 s until it counts as lost, and the
/// five minutes that pods tolerate it.
const LOSS: Duration = Duration::from_secs(400);

/// Makes one trouble, and says which.
pub(crate) async fn make(cluster: &Cluster, rng: &Rng, pause: Duration) -> String {
    let parts = cluster.parts();
    let part = pick(&parts, rng).copied().unwrap_or(Part::Controllers(0));
    let lasts = pause.mul_f64(rng.unit());
    match rng.below(10) {
        0..6 => crash(cluster, part, lasts).await,
        6..7 => {
            let by = CLOCK.mul_f64(rng.unit());
            let faults = [ClockFault::Ahead(by), ClockFault::Behind(by), ClockFault::Stands(cluster.now())];
            let fault = pick(&faults, rng).copied().unwrap_or_default();
            cluster.set_clock(part, fault);
            format!("the clock of {part} is {fault:?}")
        }
        7..8 => {
            let faults = Faults { drop_response: 0.3, cut_watch: 0.3, repeat_watch: 0.5, ..Faults::default() };
            cluster.set_faults_of(part, &faults);
            format!("{part} has faults of its own")
        }
        8..9 if rng.below(3) == 0 => crash(cluster, Part::Node(0), LOSS).await,
        _ => disk(cluster, rng, part, lasts).await,
    }
}

async fn crash(cluster: &Cluster, part: Part, lasts: Duration) -> String {
    cluster.stop(part);
    tokio::time::sleep(lasts).await;
    cluster.start(part).expect("it starts again");
    cluster.wait_serving().await.expect("the API server answers");
    format!("{part} crashed and is back after {lasts:?}")
}

/// A disk that is full for a while, or loses power; a crash where the store has no disk.
async fn disk(cluster: &Cluster, rng: &Rng, part: Part, lasts: Duration) -> String {
    if !cluster.has_faulty_disk() {
        return crash(cluster, part, lasts).await;
    }
    if rng.below(2) == 0 {
        cluster.set_writes_left(Some(rng.below(4)));
        tokio::time::sleep(lasts).await;
        cluster.set_writes_left(None);
        return format!("the disk was full for {lasts:?}");
    }
    cluster.cut_power().await.expect("what was acknowledged is there after a power cut");
    cluster.wait_serving().await.expect("the API server answers");
    "the power failed".to_owned()
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
