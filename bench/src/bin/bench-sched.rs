//! `bench-sched`: how many pods a second get a node, and what that costs. See [`bench::sched`].

use anyhow::Result;
use bench::cli::{bin_dir, binaries, number, quick, take};
use bench::sched::{Plan, Road, all_shapes};
use clap::{Arg, ArgMatches, Command};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    Command::new("bench-sched")
        .about("Schedules pods onto hollow nodes, in process and over HTTPS")
        .arg(number("nodes", "How many nodes (default: 5000)"))
        .arg(number("pods", "How many pods (default: 10000)"))
        .arg(number("rounds", "How often each is measured; the median counts (default: 3)"))
        .arg(
            Arg::new("road")
                .long("road")
                .value_name("ROAD")
                .help("Only one of the two: inproc or https")
                .value_parser(["inproc", "https"]),
        )
        .arg(
            Arg::new("shape")
                .long("shape")
                .value_name("SHAPE")
                .help("Only one row of the table of shapes: basic, or the name in its figures")
                .value_parser(all_shapes().map(|shape| shown(shape.name)).collect::<Vec<_>>()),
        )
        .arg(bin_dir())
        .arg(quick())
}

/// A row as people name it.
fn shown(name: &'static str) -> &'static str {
    if name.is_empty() { "basic" } else { name }
}

fn plan(matches: &ArgMatches) -> Plan {
    let mut plan = if matches.get_flag("quick") { Plan::quick() } else { Plan::full() };
    take(matches, "nodes", &mut plan.nodes);
    take(matches, "pods", &mut plan.pods);
    take(matches, "rounds", &mut plan.rounds);
    match matches.get_one::<String>("road").map(String::as_str) {
        Some("inproc") => plan.roads = vec![Road::InProcess],
        Some(_) => plan.roads = vec![Road::Https],
        None => {}
    }
    if let Some(name) = matches.get_one::<String>("shape") {
        plan.shapes.retain(|shape| shown(shape.name) == name);
    }
    plan.binaries = binaries(matches);
    plan
}

fn main() -> Result<()> {
    let plan = plan(&command().get_matches());
    component_base::tls::install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench::child::unless_ended(bench::sched::run(&plan)))
}
