//! `bench-soak`: the API server under the same load again and again. See [`bench::api::soak`].

use std::path::PathBuf;

use anyhow::Result;
use bench::api::{self, Options};
use bench::api_server::own_bin_dir;
use clap::{Arg, ArgAction, Command, value_parser};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn command() -> Command {
    Command::new("bench-soak")
        .about(
            "Creates, changes and deletes pods under watch, round after round, and measures what the API server keeps",
        )
        .arg(
            Arg::new("bin-dir")
                .long("bin-dir")
                .value_name("DIR")
                .help("Where kube-apiserver is (default: beside this program)")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("N")
                .help("How often everything comes and goes")
                .default_value("20")
                .value_parser(value_parser!(usize)),
        )
        .arg(Arg::new("quick").long("quick").help("Small numbers, to see that it works").action(ArgAction::SetTrue))
}

fn main() -> Result<()> {
    let matches = command().get_matches();
    let bin_dir = matches.get_one("bin-dir").cloned().unwrap_or_else(own_bin_dir);
    let rounds = matches.get_one("rounds").copied().unwrap_or(1);
    let options = match matches.get_flag("quick") {
        true => Options::quick(bin_dir, None),
        false => Options { rounds, watchers: 100, ..Options::full(bin_dir, None) },
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(api::soak(&options))
}
