//! From arguments to values.

use std::collections::BTreeMap;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::options::Value;
use super::value_error::ValueError;
use super::{Errors, Flag, FlagSet, Invalid, Options};

/// The positional arguments; no flag can have this name.
const ARGUMENTS: &str = " ";

/// Parses `arguments` (without the program's name) by the table. Flags may stand anywhere; `_` in their names means
/// `-`; a bare `--` ends them.
///
/// # Errors
/// With upstream's texts: unknown flags and missing values at once, bad values all together.
pub fn parse<I>(sets: &[FlagSet], arguments: I) -> Result<Options, Invalid>
where
    I: IntoIterator<Item = String>,
{
    let flags: Vec<&'static Flag> = sets.iter().flat_map(|set| set.flags).collect();
    let matches = command(&flags)
        .try_get_matches_from(normalize(&flags, arguments))
        .map_err(|error| Invalid::one(describe(&error)))?;
    let mut options = Options::default();
    let mut errors = Errors::new();
    for flag in flags {
        match value_of(flag, &matches) {
            Ok((value, explicit)) => options.insert(flag, value, explicit),
            Err(error) => errors.push(error),
        }
    }
    options.set_arguments(matches.get_many::<String>(ARGUMENTS).unwrap_or_default().cloned().collect());
    errors.into_result()?;
    Ok(options)
}

/// Why a flag has no value, in pflag's words.
#[derive(Debug, thiserror::Error)]
enum UseError {
    #[error("invalid argument {last:?} for {flag:?} flag: {source}")]
    Argument { last: String, flag: String, source: ValueError },
    /// The table gives it a default that is none.
    #[error(transparent)]
    Default(#[from] ValueError),
}

fn value_of(flag: &Flag, matches: &ArgMatches) -> Result<(Value, bool), UseError> {
    let uses: Vec<&String> = matches.get_many(flag.name).unwrap_or_default().collect();
    if uses.is_empty() {
        return Ok((Value::default_of(flag)?, false));
    }
    let value = Value::parse(flag.kind, &uses).map_err(|source| {
        let shown = flag.short.map_or(format!("--{}", flag.name), |short| format!("-{short}, --{}", flag.name));
        let last = uses.last().map(|text| (*text).clone()).unwrap_or_default();
        UseError::Argument { last, flag: shown, source }
    })?;
    Ok((value, true))
}

fn command(flags: &[&'static Flag]) -> Command {
    let arguments = Arg::new(ARGUMENTS).num_args(0..).action(ArgAction::Append);
    Command::new("component")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(flags.iter().map(|flag| argument(flag)))
        .arg(arguments)
}

fn argument(flag: &'static Flag) -> Arg {
    let mut argument = Arg::new(flag.name).long(flag.name).action(ArgAction::Append);
    argument = if flag.is_switch() {
        argument.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        argument.num_args(1).allow_hyphen_values(true)
    };
    match flag.short {
        Some(short) => argument.short(short),
        None => argument,
    }
}

/// Replaces `_` by `-` in the names of flags. What follows a flag that takes a value is that value, whatever it looks
/// like, and stays as it is.
fn normalize<I>(flags: &[&'static Flag], arguments: I) -> Vec<String>
where
    I: IntoIterator<Item = String>,
{
    let takes_value: BTreeMap<String, bool> =
        flags.iter().map(|flag| (flag.name.to_owned(), !flag.is_switch())).collect();
    let (mut ended, mut is_value) = (false, false);
    let mut normal = Vec::new();
    for argument in arguments {
        if ended || is_value {
            is_value = false;
            normal.push(argument);
            continue;
        }
        let Some(rest) = argument.strip_prefix("--") else {
            normal.push(argument);
            continue;
        };
        ended = rest.is_empty();
        let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
        let name = name.replace('_', "-");
        is_value = value.is_none() && takes_value.get(&name).copied().unwrap_or(false);
        normal.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
    }
    normal
}

/// clap's complaint in pflag's words.
fn describe(error: &clap::Error) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    // clap shows values with the name: `--v <v>`, `--x=<x>`.
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if name.starts_with("--") => format!("unknown flag: {name}"),
        ErrorKind::UnknownArgument if name.starts_with('-') => {
            let letter: String = name.chars().skip(1).take(1).collect();
            format!("unknown shorthand flag: '{letter}' in {name}")
        }
        ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("flag needs an argument: {name}")
        }
        _ => format!("bad flag syntax: {}", error.to_string().lines().next().unwrap_or_default()),
    }
}
