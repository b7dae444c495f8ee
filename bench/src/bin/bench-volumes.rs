//! `bench-volumes`: pods with volumes beside pods without. See [`bench::volumes`].

use anyhow::Result;
use bench::cli::{bin_dir, binaries, number, quick, take};
use bench::volumes::{self, Plan};
use clap::Command;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    Command::new("bench-volumes")
        .about("Measures from create to running: pods with a volume each beside the same pods without")
        .arg(number("pods", "Pods of a round (default: 500)"))
        .arg(number("per-second", "How many of them a second where they do not come all at once (default: 100)"))
        .arg(number("rounds", "How often both are measured, in turn (default: 5)"))
        .arg(bin_dir())
        .arg(quick())
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let matches = command().get_matches();
    let binaries = binaries(&matches);
    let mut plan = if matches.get_flag("quick") { Plan::quick(binaries) } else { Plan::full(binaries) };
    take(&matches, "pods", &mut plan.pods);
    take(&matches, "per-second", &mut plan.per_second);
    take(&matches, "rounds", &mut plan.rounds);
    runtime.block_on(bench::child::unless_ended(volumes::run(&plan)))
}
