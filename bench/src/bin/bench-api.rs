//! `bench-api [--quick] [--bin-dir DIR] [--etcd FILE]`: the API server beside the limits of the machine.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use bench::api::{self, Options};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // One thread, as a peer of a server on the same machine should have: what it uses is not there for the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "bare-server") {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return threads.block_on(api::bare::serve(rest));
    }
    runtime.block_on(api::run(&options(arguments)?))
}

fn options(arguments: Vec<OsString>) -> Result<Options> {
    let (mut quick, mut bin_dir, mut etcd) = (false, bench::api_server::own_bin_dir(), None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match (argument.to_str(), &argument) {
            (Some("--quick"), _) => quick = true,
            (Some("--bin-dir"), _) => bin_dir = arguments.next().map(PathBuf::from).unwrap_or_default(),
            (Some("--etcd"), _) => etcd = arguments.next().map(PathBuf::from),
            _ => bail!("unknown argument {argument:?}; want [--quick] [--bin-dir DIR] [--etcd FILE]"),
        }
    }
    let etcd = bench::etcd::find(etcd);
    Ok(if quick { Options::quick(bin_dir, etcd) } else { Options::full(bin_dir, etcd) })
}
