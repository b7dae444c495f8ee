//! `bench-up`: from `coxswain up` to the first running pod, the memory of idle processes, and a node with many pods. See [`bench::up`].

use std::path::PathBuf;

use anyhow::Result;
use bench::api_server::own_bin_dir;
use bench::up::Plan;
use clap::{Arg, Command, value_parser};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn command() -> Command {
    let directory = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("DIR").help(help).value_parser(value_parser!(PathBuf))
    };
    Command::new("bench-up")
        .about("Brings clusters up, runs a pod on each, and measures time and memory; needs root and containerd")
        .arg(directory("bin-dir", "Where coxswain and the components are (default: beside this program)"))
        .arg(directory("images-dir", "Where the images are (default: images beside --bin-dir)"))
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("N")
                .help("How many clusters; the medians count")
                .default_value("5")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("pods")
                .long("pods")
                .value_name("N")
                .help("How many pods each cluster gets at once, beside the runtime alone; the last kubelet is watched for two minutes then; 0 for none")
                .default_value("90")
                .value_parser(value_parser!(usize)),
        )
}

fn main() -> Result<()> {
    let matches = command().get_matches();
    // Processes are known by where their programs are.
    let path = |name: &str| matches.get_one::<PathBuf>(name).map(std::path::absolute).transpose();
    let binaries = path("bin-dir")?.unwrap_or_else(own_bin_dir);
    let images = path("images-dir")?.unwrap_or_else(|| binaries.with_file_name("images"));
    let number = |name: &str| matches.get_one::<usize>(name).copied();
    let plan = Plan { binaries, images, rounds: number("rounds").unwrap_or(1), pods: number("pods").unwrap_or(0) };
    component_base::tls::install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench::up::run(&plan))
}
