//! Arguments that several benchmarks have.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::api_server::own_bin_dir;

/// A number of something.
#[must_use]
pub fn number(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("N").help(help).value_parser(value_parser!(usize))
}

/// `--quick`.
#[must_use]
pub fn quick() -> Arg {
    Arg::new("quick").long("quick").help("Small numbers, to see that it works").action(ArgAction::SetTrue)
}

/// `--bin-dir`.
#[must_use]
pub fn bin_dir() -> Arg {
    let help = "Where the binaries are (default: beside this program)";
    Arg::new("bin-dir").long("bin-dir").value_name("DIR").help(help).value_parser(value_parser!(PathBuf))
}

/// The directory of the binaries.
#[must_use]
pub fn binaries(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<PathBuf>("bin-dir").cloned().unwrap_or_else(own_bin_dir)
}

/// Puts the number of this name in place of another, if it was given.
pub fn take(matches: &ArgMatches, name: &str, into: &mut usize) {
    if let Some(given) = matches.get_one::<usize>(name) {
        *into = *given;
    }
}
