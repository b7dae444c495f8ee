//! `--help`, laid out as pflag lays it out when the output is not a terminal: one line per flag, columns aligned.

use std::fmt::Write as _;

use feature_gates::Known;

use super::options::Value;
use super::{Flag, FlagSet, FlagType, gates_help};

/// The whole text: what the component is, how it is called, and the flags by section. `gates` are listed under
/// `--feature-gates`.
#[must_use]
pub fn help(name: &str, about: &str, sets: &[FlagSet], gates: &Known) -> String {
    let mut text = format!("{about}\n\nUsage:\n  {name} [flags]\n");
    let mut titles: Vec<&str> = Vec::new();
    for set in sets {
        if !titles.contains(&set.title) {
            titles.push(set.title);
        }
    }
    for title in titles {
        let flags: Vec<&Flag> = sets.iter().filter(|set| set.title == title).flat_map(|set| set.flags).collect();
        let usages = usages(&flags, gates);
        if !usages.is_empty() {
            let _ = write!(text, "\n{} flags:\n\n{usages}", capitalized(title));
        }
    }
    text
}

/// The lines for these flags, sorted by name.
#[must_use]
pub fn usages(flags: &[&Flag], gates: &Known) -> String {
    let mut flags: Vec<&Flag> = flags.iter().copied().filter(|flag| !flag.hidden).collect();
    flags.sort_by_key(|flag| flag.name);
    let left: Vec<String> = flags.iter().map(|flag| left_column(flag)).collect();
    let width = left.iter().map(|column| column.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (flag, left) in flags.iter().zip(left) {
        let help = match flag.name {
            "feature-gates" => format!("{} Options are:\n{}", flag.help, gates_help(gates)),
            _ => flag.help.to_owned(),
        };
        // Lines after the first of a help text start under its first.
        let indented = help.replace('\n', &format!("\n{:indent$}", "", indent = width + 3));
        let _ = writeln!(text, "{left:width$}   {indented}{}{}", default_note(flag), deprecation_note(flag));
    }
    text
}

fn left_column(flag: &Flag) -> String {
    let mut column = match flag.short {
        Some(short) => format!("  -{short}, --{}", flag.name),
        None => format!("      --{}", flag.name),
    };
    if !flag.value_name.is_empty() {
        let _ = write!(column, " {}", flag.value_name);
    }
    if flag.kind == FlagType::Version {
        column.push_str("[=true]");
    }
    column
}

/// Zero values are not worth a mention.
fn default_note(flag: &Flag) -> String {
    match Value::default_of(flag) {
        Ok(Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) | Value::Ip(None)) | Err(_) => {
            String::new()
        }
        Ok(Value::Float(0.0)) => String::new(),
        Ok(Value::Text(text)) if text.is_empty() || flag.kind == FlagType::Version => String::new(),
        Ok(Value::Text(text)) if flag.value_name == "string" => format!(" (default {text:?})"),
        Ok(Value::List(list)) if list.is_empty() => String::new(),
        Ok(Value::Ints(list)) if list.is_empty() => String::new(),
        Ok(Value::Pairs(pairs)) if pairs.is_empty() => String::new(),
        Ok(value) => format!(" (default {value})"),
    }
}

fn deprecation_note(flag: &Flag) -> String {
    flag.deprecated.map(|advice| format!(" (DEPRECATED: {advice})")).unwrap_or_default()
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}
