//! Decoding and encoding one Pod, JSON beside `k8s-openapi` and `serde_json`, protobuf beside `k8s-pb` and `prost`.
//!
//! Both sides run in this one process, in turns, and are timed by the thread's processor time, so that what else the
//! machine does counts as little as it can. `--quick` does a few rounds only, to see that it works; names of figures
//! restrict the run to these.

mod sides;

use std::hint::black_box;
use std::io::Write as _;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::sides::Sides;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long a round of one side is: long beside the clock's steps, short beside what else goes on.
const ITERATIONS: usize = 200;
const ROUNDS: usize = 101;
const QUICK_ROUNDS: usize = 3;

/// One operation, done by us and by the peer.
struct Contest<'a> {
    name: &'static str,
    ours: Box<dyn Fn() + 'a>,
    peer: Box<dyn Fn() + 'a>,
}

fn main() -> Result<()> {
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let quick = flags.iter().any(|flag| flag == "--quick");
    let sides = Sides::read(include_bytes!("../pod.json"))?;
    sides.check()?;
    let rounds = if quick { QUICK_ROUNDS } else { ROUNDS };
    let is_wanted = |contest: &Contest<'_>| names.is_empty() || names.iter().any(|name| name == contest.name);
    for contest in contests(&sides).into_iter().filter(is_wanted) {
        run(&contest, rounds)?;
    }
    Ok(())
}

fn contests(sides: &Sides) -> Vec<Contest<'_>> {
    vec![
        Contest {
            name: "pod-json-decode",
            ours: Box::new(|| drop(black_box(sides.ours_from_json()))),
            peer: Box::new(|| drop(black_box(sides.peer_from_json()))),
        },
        Contest {
            name: "pod-json-encode",
            ours: Box::new(|| drop(black_box(sides.ours_to_json()))),
            peer: Box::new(|| drop(black_box(sides.peer_to_json()))),
        },
        Contest {
            name: "pod-protobuf-decode",
            ours: Box::new(|| drop(black_box(sides.ours_from_protobuf()))),
            peer: Box::new(|| drop(black_box(sides.peer_from_protobuf()))),
        },
        Contest {
            name: "pod-protobuf-encode",
            ours: Box::new(|| drop(black_box(sides.ours_to_protobuf()))),
            peer: Box::new(|| drop(black_box(sides.peer_to_protobuf()))),
        },
    ]
}

fn run(contest: &Contest<'_>, rounds: usize) -> Result<()> {
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(microseconds_each(&contest.ours));
        peer.push(microseconds_each(&contest.peer));
    }
    let (ours, peer) = (median(ours), median(peer));
    ensure!(peer > 0.0, "the clock does not move");
    let ratio = ours / peer;
    writeln!(std::io::stdout(), "RESULT {} ours={ours:.3} peer={peer:.3} ratio={ratio:.2} unit=us", contest.name)?;
    Ok(())
}

fn microseconds_each(operation: &dyn Fn()) -> f64 {
    let before = thread_seconds();
    for _ in 0..ITERATIONS {
        operation();
    }
    (thread_seconds() - before) * 1e6 / ITERATIONS as f64
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
