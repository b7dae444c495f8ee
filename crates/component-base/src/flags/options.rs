//! The values of flags.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::go::{format_duration, parse_bool, parse_csv, parse_duration, parse_int, parse_uint};
use super::value_error::{NumberFault, ValueError};
use super::{Flag, FlagType};
use crate::version;

/// A value of a flag, by its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A text.
    Text(String),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A number with a fraction.
    Float(f64),
    /// Nanoseconds; may be negative.
    Duration(i64),
    /// Texts.
    List(Vec<String>),
    /// Numbers.
    Ints(Vec<i64>),
    /// An address, or none.
    Ip(Option<IpAddr>),
    /// Pairs, in the order given; a later one of the same key wins.
    Pairs(Vec<(String, String)>),
}

impl Value {
    /// The value of `flag` when it is not used.
    ///
    /// # Errors
    /// When the table's default does not parse.
    pub(super) fn default_of(flag: &Flag) -> Result<Self, ValueError> {
        let empty_list = flag.kind == FlagType::StringArray && flag.default.is_empty();
        let uses: &[&str] = if empty_list { &[] } else { &[flag.default] };
        Self::parse(flag.kind, uses)
    }

    /// The value that these uses of a flag add up to.
    pub(super) fn parse<S: AsRef<str>>(kind: FlagType, uses: &[S]) -> Result<Self, ValueError> {
        let last = uses.last().map_or("", AsRef::as_ref);
        let uses = uses.iter().map(AsRef::as_ref);
        Ok(match kind {
            FlagType::Bool => Self::Bool(parse_bool(last)?),
            FlagType::Version => Self::Text(parse_version(last)?),
            FlagType::String => Self::Text(last.to_owned()),
            FlagType::Int(bits) => Self::Int(parse_int(last, bits)?),
            FlagType::Uint => Self::Uint(parse_uint(last)?),
            FlagType::Float => Self::Float(parse_float(last)?),
            FlagType::Duration => Self::Duration(parse_duration(last)?),
            FlagType::StringArray => Self::List(uses.map(ToOwned::to_owned).collect()),
            FlagType::StringSlice => Self::List(flatten(uses.map(parse_csv))?),
            FlagType::IntSlice => Self::Ints(flatten(uses.map(parse_ints))?),
            FlagType::Ip => Self::Ip(parse_ip(last)?),
            FlagType::Map(separator) => Self::Pairs(flatten(uses.map(|text| parse_pairs(text, separator, None)))?),
            FlagType::MapBareKeys => Self::Pairs(flatten(uses.map(|text| parse_pairs(text, '=', Some(""))))?),
        })
    }
}

impl std::fmt::Display for Value {
    /// As pflag prints values, for the log and for `/flagz`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Duration(value) => f.write_str(&format_duration(*value)),
            Self::List(values) => write!(f, "[{}]", values.join(",")),
            Self::Ints(values) => {
                write!(f, "[{}]", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Ip(None) => f.write_str("<nil>"),
            Self::Ip(Some(value)) => write!(f, "{value}"),
            Self::Pairs(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
                f.write_str(&pairs.join(","))
            }
        }
    }
}

fn flatten<T>(parts: impl Iterator<Item = Result<Vec<T>, ValueError>>) -> Result<Vec<T>, ValueError> {
    Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn parse_version(text: &str) -> Result<String, ValueError> {
    match text {
        "raw" => Ok("raw".to_owned()),
        told if told.starts_with('v') => Ok(version::check(told).map(|()| told.to_owned())?),
        _ => parse_bool(text).map(|on| on.to_string()),
    }
}

fn parse_float(text: &str) -> Result<f64, ValueError> {
    text.parse().map_err(|_| ValueError::number("ParseFloat", text, NumberFault::Syntax))
}

fn parse_ints(text: &str) -> Result<Vec<i64>, ValueError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| parse_int(part, 32)).collect()
}

fn parse_ip(text: &str) -> Result<Option<IpAddr>, ValueError> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| ValueError::Ip(text.to_owned())),
    }
}

fn parse_pairs(text: &str, separator: char, bare: Option<&str>) -> Result<Vec<(String, String)>, ValueError> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let split = |pair: &str| match (pair.split_once(separator), bare) {
        (Some((key, value)), _) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        (None, Some(value)) => Ok((pair.to_owned(), value.to_owned())),
        (None, None) => Err(ValueError::Pair(separator)),
    };
    pairs.map(split).collect()
}

#[derive(Debug, Clone)]
struct Entry {
    flag: &'static Flag,
    value: Value,
    explicit: bool,
}

/// The values of all flags of a component. Asking for a flag that its table does not declare, or as another type, is a
/// mistake in the program and panics; no input can cause it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    entries: BTreeMap<&'static str, Entry>,
    arguments: Vec<String>,
    warnings: Vec<String>,
}

impl Options {
    pub(super) fn insert(&mut self, flag: &'static Flag, value: Value, explicit: bool) {
        if explicit && let Some(advice) = flag.deprecated {
            self.warnings.push(format!("Flag --{} has been deprecated, {advice}", flag.name));
        }
        self.entries.insert(flag.name, Entry { flag, value, explicit });
    }

    pub(super) fn set_arguments(&mut self, arguments: Vec<String>) {
        self.arguments = arguments;
    }

    /// Arguments that are not flags.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// What to tell the user about the flags that were used.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the table has this flag.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Whether the user gave the flag; then it wins over a configuration file.
    #[must_use]
    #[track_caller]
    pub fn is_set(&self, name: &str) -> bool {
        self.entry(name).explicit
    }

    /// Takes a value from a configuration file unless the user gave the flag.
    ///
    /// # Errors
    /// When the text does not parse as the flag's type.
    #[track_caller]
    pub fn set_from_file(&mut self, name: &str, text: &str) -> Result<(), ValueError> {
        let entry = self.entries.get_mut(name).unwrap_or_else(|| panic!("flag --{name} is not declared"));
        if !entry.explicit {
            entry.value = Value::parse(entry.flag.kind, &[text])?;
        }
        Ok(())
    }

    /// Takes a value from a configuration file that counts whatever the user gave, and as if he had given it; without one
    /// the flag has its default. A flag that the user gave is told to be ignored.
    ///
    /// # Errors
    /// When the text does not parse as the flag's type.
    #[track_caller]
    pub fn replace_from_file(&mut self, name: &str, text: Option<&str>) -> Result<(), ValueError> {
        let entry = self.entries.get_mut(name).unwrap_or_else(|| panic!("flag --{name} is not declared"));
        entry.value = match text {
            Some(text) => Value::parse(entry.flag.kind, &[text])?,
            None => Value::default_of(entry.flag)?,
        };
        if std::mem::replace(&mut entry.explicit, text.is_some()) {
            self.warn(format!("Flag --{name} is ignored, as there is a configuration file"));
        }
        Ok(())
    }

    /// Takes a text that is a list from a configuration file, behind what the user gave.
    ///
    /// # Errors
    /// When the text does not parse as the flag's type.
    #[track_caller]
    pub fn join_from_file(&mut self, name: &str, text: &str) -> Result<(), ValueError> {
        let given = if self.is_set(name) { self.string(name) } else { "" };
        let parts: Vec<&str> = [given, text].into_iter().filter(|part| !part.is_empty()).collect();
        let joined = parts.join(",");
        if let Some(entry) = self.entries.get_mut(name) {
            entry.value = Value::parse(entry.flag.kind, &[&joined])?;
        }
        Ok(())
    }

    /// Something that the user should be told before the log begins.
    pub fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    /// Takes the pairs of a map from a configuration file; those that the user gave win key by key.
    ///
    /// # Errors
    /// When the flag is not a map.
    #[track_caller]
    pub fn merge_from_file(&mut self, name: &str, pairs: Vec<(String, String)>) -> Result<(), ValueError> {
        let entry = self.entries.get_mut(name).unwrap_or_else(|| panic!("flag --{name} is not declared"));
        match &mut entry.value {
            Value::Pairs(given) if entry.explicit => given.splice(0..0, pairs).for_each(drop),
            Value::Pairs(given) => *given = pairs,
            _ => return Err(ValueError::NoMap(entry.flag.name)),
        }
        Ok(())
    }

    /// Every flag with its value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Flag, &Value)> {
        self.entries.values().map(|entry| (entry.flag, &entry.value))
    }

    /// A switch.
    #[must_use]
    #[track_caller]
    pub fn bool(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Bool(value) => *value,
            other => wrong(name, "bool", other),
        }
    }

    /// A text.
    #[must_use]
    #[track_caller]
    pub fn string(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(value) => value,
            other => wrong(name, "string", other),
        }
    }

    /// A signed number of any size.
    #[must_use]
    #[track_caller]
    pub fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Int(value) => *value,
            other => wrong(name, "int", other),
        }
    }

    /// An unsigned number.
    #[must_use]
    #[track_caller]
    pub fn uint(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Uint(value) => *value,
            other => wrong(name, "uint", other),
        }
    }

    /// A number with a fraction.
    #[must_use]
    #[track_caller]
    pub fn float(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Float(value) => *value,
            other => wrong(name, "float", other),
        }
    }

    /// A duration; a negative one counts as zero (see [`Self::duration_ns`]).
    #[must_use]
    #[track_caller]
    pub fn duration(&self, name: &str) -> Duration {
        Duration::from_nanos(u64::try_from(self.duration_ns(name)).unwrap_or(0))
    }

    /// A duration in nanoseconds, for flags where a negative value means something or must be refused.
    #[must_use]
    #[track_caller]
    pub fn duration_ns(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Duration(value) => *value,
            other => wrong(name, "duration", other),
        }
    }

    /// The texts of a list.
    #[must_use]
    #[track_caller]
    pub fn strings(&self, name: &str) -> &[String] {
        match self.value(name) {
            Value::List(values) => values,
            other => wrong(name, "list", other),
        }
    }

    /// The numbers of a list.
    #[must_use]
    #[track_caller]
    pub fn ints(&self, name: &str) -> &[i64] {
        match self.value(name) {
            Value::Ints(values) => values,
            other => wrong(name, "int list", other),
        }
    }

    /// An address, if there is one.
    #[must_use]
    #[track_caller]
    pub fn ip(&self, name: &str) -> Option<IpAddr> {
        match self.value(name) {
            Value::Ip(value) => *value,
            other => wrong(name, "ip", other),
        }
    }

    /// The pairs of a map, in the order given.
    #[must_use]
    #[track_caller]
    pub fn pairs(&self, name: &str) -> &[(String, String)] {
        match self.value(name) {
            Value::Pairs(pairs) => pairs,
            other => wrong(name, "map", other),
        }
    }

    /// The pairs of a map; of equal keys the last one counts.
    #[must_use]
    #[track_caller]
    pub fn map(&self, name: &str) -> BTreeMap<String, String> {
        self.pairs(name).iter().cloned().collect()
    }

    #[track_caller]
    fn value(&self, name: &str) -> &Value {
        &self.entry(name).value
    }

    #[track_caller]
    fn entry(&self, name: &str) -> &Entry {
        self.entries.get(name).unwrap_or_else(|| panic!("flag --{name} is not declared"))
    }
}

#[track_caller]
fn wrong(name: &str, wanted: &str, value: &Value) -> ! {
    panic!("flag --{name} is read as {wanted} but declared otherwise: {value:?}")
}
