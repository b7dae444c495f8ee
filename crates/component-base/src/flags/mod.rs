//! Command-line flags: one table style for every binary, with pflag's syntax, texts and quirks.
//!
//! A component declares `&[FlagSet]`; [`parse`] turns arguments into [`Options`], reporting every bad value at once.
//! What the values mean together is checked by the component, which collects its findings in [`Errors`].

mod errors;
mod gates;
mod go;
mod help;
mod options;
mod parse;
mod standard;
mod table;
#[cfg(test)]
mod tests;
mod value_error;
mod versions;

pub use errors::{Errors, Invalid};
pub use gates::{check_uid_headers, gates, gates_help};
pub use go::{format_duration, parse_bool, parse_duration};
pub use help::{help, usages};
pub use options::{Options, Value};
pub use parse::parse;
pub use standard::{FEATURE_GATES, GLOBAL, LOGS, METRICS};
pub use table::{Flag, FlagSet, FlagType, check_table};
pub use value_error::{NumberFault, ValueError};
pub use versions::{VERSIONS, Versions};
