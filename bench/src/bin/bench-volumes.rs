//! `bench-volumes`: pods with volumes beside pods without. See [`bench::volumes`].

use std::path::PathBuf;

use anyhow::Result;
use bench::api_server::own_bin_dir;
use bench::volumes::{self, Plan};
use clap::{Arg, ArgAction, Command, value_parser};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").help(help).value_parser(value_parser!(usize))
    };
    Command::new("bench-volumes")
        .about("Measures from create to running: pods with a volume each beside the same pods without")
        .arg(number("pods", "Pods of a round (default: 500)"))
        .arg(number("rounds", "How often both are measured, in turn (default: 5)"))
        .arg(
            Arg::new("bin-dir")
                .long("bin-dir")
                .value_name("DIR")
                .help("Where the binaries are (default: beside this program)")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("quick").long("quick").help("Small numbers, to see that it works").action(ArgAction::SetTrue))
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let matches = command().get_matches();
    let binaries = matches.get_one::<PathBuf>("bin-dir").cloned().unwrap_or_else(own_bin_dir);
    let mut plan = if matches.get_flag("quick") { Plan::quick(binaries) } else { Plan::full(binaries) };
    let number = |name: &str| matches.get_one::<usize>(name).copied();
    plan.pods = number("pods").unwrap_or(plan.pods);
    plan.rounds = number("rounds").unwrap_or(plan.rounds);
    runtime.block_on(bench::child::unless_ended(volumes::run(&plan)))
}
