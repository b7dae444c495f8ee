//! `bench-api`: the API server beside the limits of the machine. See [`bench::api`].

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use bench::api::{self, Only, Options};
use bench::api_server::own_bin_dir;
use bench::child::unless_ended;
use clap::{Arg, ArgAction, Command, value_parser};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

/// As many as give a 99th percentile that means something.
const MAX_RENEWALS: usize = 2_000;

fn command() -> Command {
    let path = |name: &'static str, kind: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(kind).help(help).value_parser(value_parser!(PathBuf))
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help).action(ArgAction::SetTrue);
    Command::new("bench-api")
        .about("Measures the API server beside raw etcd transactions and a bare HTTPS server with the same bytes")
        .arg(path("bin-dir", "DIR", "Where kube-apiserver is (default: beside this program)"))
        .arg(path("etcd", "FILE", "The etcd to use (default: the one that make deps installs)"))
        .arg(flag("quick", "Small numbers, to see that it works"))
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("PART")
                .help("Only this part")
                .value_parser(Only::ALL.map(|(name, _)| name)),
        )
        .arg(
            Arg::new("lease")
                .long("lease")
                .value_name("PODS")
                .help("Instead, how long a lease renewal takes while so many pods are listed, compressed, again and again")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("definitions")
                .long("definitions")
                .value_name("COUNT")
                .help("Instead, what so many definitions of custom resources take that are installed at once")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("overload")
                .long("overload")
                .value_name("TIMES")
                .help("Instead, how long so many lease renewals and gets take while another tenant lists far too much")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("policies")
                .long("policies")
                .value_name("PODS")
                .help("Instead, what ten policies, a webhook and the audit log add to so many creates")
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("soak")
                .long("soak")
                .value_name("ROUNDS")
                .help("Instead, how much the server keeps after so many rounds of pods that come, change and go")
                .value_parser(value_parser!(usize)),
        )
}

/// What the servers that this program starts of itself run on.
fn threads() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn main() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.split_first().and_then(|(first, rest)| Some((first.to_str()?, rest))) {
        Some(("bare-server", rest)) => return threads()?.block_on(api::bare::serve(rest)),
        Some(("bare-webhook", rest)) => return threads()?.block_on(api::webhook::serve(rest)),
        _ => {}
    }
    let matches = command().get_matches();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let (bin_dir, etcd) = (path("bin-dir").unwrap_or_else(own_bin_dir), bench::etcd::find(path("etcd")));
    let mut options =
        if matches.get_flag("quick") { Options::quick(bin_dir, etcd) } else { Options::full(bin_dir, etcd) };
    options.only = matches.get_one::<String>("only").and_then(|name| Only::named(name));
    // One thread, as a peer of a server on the same machine should have: what it uses is not there for the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(&pods) = matches.get_one("lease") {
        let renewals = options.pods.min(MAX_RENEWALS);
        return runtime.block_on(unless_ended(api::beside_lists(&Options { pods, ..options }, renewals)));
    }
    if let Some(&count) = matches.get_one("definitions") {
        return runtime.block_on(unless_ended(api::definitions(&options, count)));
    }
    if let Some(&times) = matches.get_one("overload") {
        return runtime.block_on(unless_ended(api::overload(&options, times)));
    }
    if let Some(&creates) = matches.get_one("policies") {
        return runtime.block_on(unless_ended(api::policies(&options, creates)));
    }
    match matches.get_one("soak") {
        Some(rounds) => runtime.block_on(unless_ended(api::soak(&options, *rounds))),
        None => runtime.block_on(unless_ended(api::run(&options))),
    }
}
