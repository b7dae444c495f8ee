//! How flags are declared.

use super::options::Value;

/// What a flag's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagType {
    /// `--x`, `--x=false`.
    Bool,
    /// Any text.
    String,
    /// A signed number of this many bits.
    Int(u32),
    /// An unsigned number.
    Uint,
    /// A number with a fraction.
    Float,
    /// `1h30m`.
    Duration,
    /// Texts, comma separated with CSV quoting; repeats add.
    StringSlice,
    /// Texts, one per use.
    StringArray,
    /// Numbers, comma separated; repeats add.
    IntSlice,
    /// An IP address, or nothing.
    Ip,
    /// `key=value` pairs (with this character between), comma separated; repeats add.
    Map(char),
    /// As `Map('=')`, where a bare key stands for an empty value.
    MapBareKeys,
    /// `--version`, `--version=raw`, `--version=v1.36.3-custom`.
    Version,
}

/// One flag. Built by a constructor for its type and refined by the methods, all `const`:
/// `Flag::duration("request-timeout", "1m0s").help("...")`.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The name without dashes.
    pub name: &'static str,
    /// One-letter form.
    pub short: Option<char>,
    /// What its value is.
    pub kind: FlagType,
    /// The default, written as a user would write it.
    pub default: &'static str,
    /// What it does, for `--help`.
    pub help: &'static str,
    /// Set for deprecated flags: what to do instead. Using one warns.
    pub deprecated: Option<&'static str>,
    /// Whether `--help` leaves it out.
    pub hidden: bool,
    /// The word for the value in `--help`.
    pub value_name: &'static str,
}

impl Flag {
    const fn new(name: &'static str, kind: FlagType, default: &'static str, value_name: &'static str) -> Self {
        Self { name, short: None, kind, default, help: "", deprecated: None, hidden: false, value_name }
    }

    /// Another value than the default, for tests that every flag is obeyed.
    #[must_use]
    pub fn other_value(&self) -> &'static str {
        match self.kind {
            FlagType::Bool if self.default == "true" => "false",
            FlagType::Bool => "true",
            FlagType::Int(_) | FlagType::Uint | FlagType::IntSlice => "7",
            FlagType::Float => "0.7",
            FlagType::Duration => "7s",
            FlagType::Ip => "127.0.0.7",
            FlagType::Map(_) | FlagType::MapBareKeys => "key=value",
            FlagType::String | FlagType::StringSlice | FlagType::StringArray | FlagType::Version => "other",
        }
    }

    /// A switch; `default` is `true` or `false`.
    #[must_use]
    pub const fn bool(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Bool, default, "")
    }

    /// A text.
    #[must_use]
    pub const fn string(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::String, default, "string")
    }

    /// A signed 64-bit number.
    #[must_use]
    pub const fn int(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Int(64), default, "int")
    }

    /// A signed 32-bit number.
    #[must_use]
    pub const fn int32(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Int(32), default, "int32")
    }

    /// An unsigned number.
    #[must_use]
    pub const fn uint(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Uint, default, "uint")
    }

    /// A number with a fraction (`float64`).
    #[must_use]
    pub const fn float(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Float, default, "float")
    }

    /// A Go duration.
    #[must_use]
    pub const fn duration(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Duration, default, "duration")
    }

    /// A list of texts, comma separated; `default` likewise.
    #[must_use]
    pub const fn string_slice(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::StringSlice, default, "strings")
    }

    /// A list of texts, one per use. The default, unless empty, is one text.
    #[must_use]
    pub const fn string_array(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::StringArray, default, "stringArray")
    }

    /// A list of numbers, comma separated.
    #[must_use]
    pub const fn int_slice(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::IntSlice, default, "int32Slice")
    }

    /// An IP address; the default may be empty.
    #[must_use]
    pub const fn ip(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Ip, default, "ip")
    }

    /// `key=value` pairs.
    #[must_use]
    pub const fn map(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::Map('='), default, "mapStringString")
    }

    /// Pairs with another character between key and value (`--eviction-hard memory.available<100Mi`).
    #[must_use]
    pub const fn map_with(name: &'static str, separator: char, default: &'static str) -> Self {
        Self::new(name, FlagType::Map(separator), default, "mapStringString")
    }

    /// `key=value` pairs where a key may stand alone (`--runtime-config api/all`).
    #[must_use]
    pub const fn map_bare_keys(name: &'static str, default: &'static str) -> Self {
        Self::new(name, FlagType::MapBareKeys, default, "mapStringString")
    }

    /// The `--version` flag.
    #[must_use]
    pub const fn version() -> Self {
        Self::new("version", FlagType::Version, "false", "version")
    }

    /// What it does.
    #[must_use]
    pub const fn help(mut self, text: &'static str) -> Self {
        self.help = text;
        self
    }

    /// Its one-letter form.
    #[must_use]
    pub const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    /// The word for its value in `--help`, where it is not the type's usual one.
    #[must_use]
    pub const fn value_name(mut self, word: &'static str) -> Self {
        self.value_name = word;
        self
    }

    /// Deprecated: using it warns with `advice`, and `--help` leaves it out.
    #[must_use]
    pub const fn deprecated(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self.hidden = true;
        self
    }

    /// Left out of `--help`.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// In `--help` although it is deprecated, as the kubelet does it.
    #[must_use]
    pub const fn shown(mut self) -> Self {
        self.hidden = false;
        self
    }

    /// Whether a value need not follow.
    pub(super) const fn is_switch(&self) -> bool {
        matches!(self.kind, FlagType::Bool | FlagType::Version)
    }
}

/// Flags under one title of `--help`. Sets of the same title are shown together.
#[derive(Debug, Clone, Copy)]
pub struct FlagSet {
    /// The title, as upstream's flag sets are named (`secure serving`); shown with a capital and ` flags:`.
    pub title: &'static str,
    /// The flags, in any order.
    pub flags: &'static [Flag],
}

/// What is wrong with a table: names that are there twice, defaults that do not parse, help that is missing. Every
/// component has a test that expects nothing.
#[must_use]
pub fn check_table(sets: &[FlagSet]) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut problems = Vec::new();
    for flag in sets.iter().flat_map(|set| set.flags) {
        if !seen.insert(flag.name.to_owned()) || flag.short.is_some_and(|short| !seen.insert(format!("-{short}"))) {
            problems.push(format!("--{} is declared twice", flag.name));
        }
        if let Err(error) = Value::default_of(flag) {
            problems.push(format!("--{}: default: {error}", flag.name));
        }
        if flag.name.contains('_') {
            problems.push(format!("--{} is not in its normal form, with dashes", flag.name));
        }
        if flag.help.is_empty() {
            problems.push(format!("--{} has no help", flag.name));
        }
    }
    problems
}
