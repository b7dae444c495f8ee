//! Semantic versions.
//!
//! <https://semver.org>

use std::cmp::Ordering;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{Opaque, Value};

/// Semantic versions.
pub const SEMVER: Library = Library { name: "semver", functions: FUNCTIONS, types: &[NAME], macros: NO_MACROS };

const NAME: &str = "kubernetes.Semver";
const ONE: Cost = Cost::Fixed(1);
const READ: Cost = Cost::Reads(0, 1);

/// A version as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemverValue {
    core: [u64; 3],
    pre: Vec<Part>,
}

/// A part of what comes before a release; numbers are below names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Name(String),
}

impl Opaque for SemverValue {
    fn type_name(&self) -> &'static str {
        NAME
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }
}

const FUNCTIONS: &[Overload] = &[
    overload("string_to_semver", "semver(string) -> kubernetes.Semver", READ, make),
    overload("string_bool_to_semver", "semver(string, bool) -> kubernetes.Semver", READ, make),
    overload("is_semver_string", "isSemver(string) -> bool", READ, |args| Ok(Value::Bool(make(args).is_ok()))),
    overload("is_semver_string_bool", "isSemver(string, bool) -> bool", READ, |args| {
        Ok(Value::Bool(make(args).is_ok()))
    }),
    overload("semver_major", "kubernetes.Semver::major() -> int", ONE, |args| number(args, 0)),
    overload("semver_minor", "kubernetes.Semver::minor() -> int", ONE, |args| number(args, 1)),
    overload("semver_patch", "kubernetes.Semver::patch() -> int", ONE, |args| number(args, 2)),
    overload("semver_is_less_than", "kubernetes.Semver::isLessThan(kubernetes.Semver) -> bool", ONE, |args| {
        Ok(Value::Bool(compare(args)? == Ordering::Less))
    }),
    overload("semver_is_greater_than", "kubernetes.Semver::isGreaterThan(kubernetes.Semver) -> bool", ONE, |args| {
        Ok(Value::Bool(compare(args)? == Ordering::Greater))
    }),
    overload("semver_compare_to", "kubernetes.Semver::compareTo(kubernetes.Semver) -> int", ONE, |args| {
        Ok(Value::Int(i64::from(compare(args)? as i8)))
    }),
];

fn make<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let normalise = matches!(args.get(1), Value::Bool(true));
    let text = if normalise { normalised(args.str(0))? } else { args.str(0).to_owned() };
    SemverValue::parse(&text).map(Value::opaque).map_err(EvalError::Failed)
}

/// Without a leading `v` and leading zeros, with three parts.
fn normalised(text: &str) -> Out<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<&str> = text.splitn(3, '.').collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(EvalError::failed("short version cannot contain PreRelease/Build meta data"));
    }
    parts.resize(3, "0");
    let bare = |part: &&str| {
        let rest = part.trim_start_matches('0');
        let keeps = part.len() > rest.len() && !rest.starts_with(|c: char| c.is_ascii_digit());
        if keeps { format!("0{rest}") } else { rest.to_owned() }
    };
    Ok(parts.iter().map(bare).collect::<Vec<_>>().join("."))
}

impl SemverValue {
    /// Reads a version of three numbers with what may follow them.
    ///
    /// # Errors
    /// Why the text is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let numbers: Vec<&str> = core.split('.').collect();
        let [major, minor, patch] = numbers.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let mut parts = Vec::new();
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            check(part, "Prerelease")?;
            let is_number = part.bytes().all(|b| b.is_ascii_digit());
            parts.push(if is_number { Part::Number(digits(part)?) } else { Part::Name(part.to_owned()) });
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            check(part, "Build meta data")?;
        }
        Ok(Self { core: [digits(major)?, digits(minor)?, digits(patch)?], pre: parts })
    }

    fn order(&self, other: &Self) -> Ordering {
        // A release is above all that comes before it.
        let release = self.pre.is_empty().cmp(&other.pre.is_empty());
        self.core.cmp(&other.core).then(release).then_with(|| self.pre.cmp(&other.pre))
    }
}

fn check(part: &str, what: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err(format!("{what} is empty"));
    }
    let plain = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if plain { Ok(()) } else { Err(format!("Invalid character(s) found in {} {part:?}", what.to_lowercase())) }
}

fn digits(text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("Numeric version must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("number {text:?} is out of range"))
}

fn version<'c>(args: &'c Args<'_, '_>, index: usize) -> Out<&'c SemverValue> {
    args.get(index).as_opaque().ok_or(EvalError::NoSuchOverload)
}

fn number<'v>(args: &Args<'_, 'v>, index: usize) -> Out<Value<'v>> {
    let number = version(args, 0)?.core.get(index).copied().unwrap_or(0);
    i64::try_from(number).map(Value::Int).map_err(|_| EvalError::Overflow)
}

fn compare(args: &Args<'_, '_>) -> Out<Ordering> {
    Ok(version(args, 0)?.order(version(args, 1)?))
}
