//! `bench-elastic`: metrics-server and autoscalers at size. See [`bench::elastic`].

use std::ffi::OsString;

use anyhow::Result;
use bench::cli::{bin_dir, binaries, number, quick, take};
use bench::elastic::{self, Plan};
use clap::Command;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    Command::new("bench-elastic")
        .about("Measures metrics-server over hollow kubelets, and kube-controller-manager with many autoscalers")
        .arg(number("pods", "Pods that metrics-server tells of (default: 5000)"))
        .arg(number("autoscalers", "Autoscalers, each of a workload with one pod (default: 10000)"))
        .arg(bin_dir())
        .arg(quick())
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "hollow-kubelets") {
        return runtime.block_on(elastic::kubelets::serve(rest));
    }
    let matches = command().get_matches();
    let binaries = binaries(&matches);
    let mut plan = if matches.get_flag("quick") { Plan::quick(binaries) } else { Plan::full(binaries) };
    take(&matches, "pods", &mut plan.pods);
    take(&matches, "autoscalers", &mut plan.autoscalers);
    runtime.block_on(bench::child::unless_ended(elastic::run(&plan)))
}
