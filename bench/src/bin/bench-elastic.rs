//! `bench-elastic`: metrics-server and autoscalers at size. See [`bench::elastic`].

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use bench::api_server::own_bin_dir;
use bench::elastic::{self, Plan};
use clap::{Arg, ArgAction, Command, value_parser};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").help(help).value_parser(value_parser!(usize))
    };
    Command::new("bench-elastic")
        .about("Measures metrics-server over hollow kubelets, and kube-controller-manager with many autoscalers")
        .arg(number("pods", "Pods that metrics-server tells of (default: 5000)"))
        .arg(number("autoscalers", "Autoscalers, each of a workload with one pod (default: 10000)"))
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
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "hollow-kubelets") {
        return runtime.block_on(elastic::kubelets::serve(rest));
    }
    let matches = command().get_matches();
    let binaries = matches.get_one::<PathBuf>("bin-dir").cloned().unwrap_or_else(own_bin_dir);
    let mut plan = if matches.get_flag("quick") { Plan::quick(binaries) } else { Plan::full(binaries) };
    let number = |name: &str| matches.get_one::<usize>(name).copied();
    plan.pods = number("pods").unwrap_or(plan.pods);
    plan.autoscalers = number("autoscalers").unwrap_or(plan.autoscalers);
    runtime.block_on(bench::child::unless_ended(elastic::run(&plan)))
}
