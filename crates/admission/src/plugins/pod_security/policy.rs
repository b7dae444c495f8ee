//! What a namespace's labels say.

use std::collections::BTreeMap;
use std::fmt;

use api_machinery::field_path::{ErrorList, Path};

const PREFIX: &str = "pod-security.kubernetes.io/";
/// The newest version that checks know.
const NEWEST: u32 = 35;

/// How strict, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// Of which version of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Latest,
    Minor(u32),
}

/// A level as of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What is refused, and what is warned of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(out, "{level}:latest"),
            Version::Minor(minor) => write!(out, "{level}:v1.{minor}"),
        }
    }
}

impl LevelVersion {
    /// The version by which checks are chosen.
    pub(super) fn minor(&self) -> u32 {
        match self.version {
            Version::Latest => NEWEST,
            Version::Minor(minor) => minor.min(NEWEST),
        }
    }
}

fn level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::Latest);
    }
    let minor = text.strip_prefix("v1.")?;
    let plain = minor == "0" || (!minor.starts_with('0') && minor.bytes().all(|byte| byte.is_ascii_digit()));
    plain.then(|| minor.parse().ok().map(Version::Minor)).flatten()
}

/// Reads the labels of one mode. A level that is none becomes `fallback`.
fn mode(labels: &BTreeMap<String, String>, name: &str, fallback: Level, errors: &mut ErrorList) -> LevelVersion {
    let mut read = LevelVersion { level: Level::Privileged, version: Version::Latest };
    let at = |label: &str| Path::new("metadata").child("labels").key(label);
    let label = format!("{PREFIX}{name}");
    if let Some(text) = labels.get(&label) {
        read.level = level(text).unwrap_or_else(|| {
            errors.push(at(&label).invalid(text, "must be one of privileged, baseline, restricted"));
            fallback
        });
    }
    let label = format!("{PREFIX}{name}-version");
    if let Some(text) = labels.get(&label) {
        read.version = version(text).unwrap_or_else(|| {
            errors.push(at(&label).invalid(text, "must be \"latest\" or \"v1.x\""));
            Version::Latest
        });
    }
    read
}

impl Policy {
    /// The policy by labels; what is wrong with them is added to the errors.
    pub(super) fn of(labels: &BTreeMap<String, String>, errors: &mut ErrorList) -> Self {
        let enforce = mode(labels, "enforce", Level::Restricted, errors);
        mode(labels, "audit", Level::Privileged, errors);
        let mut warn = mode(labels, "warn", Level::Privileged, errors);
        let has = |name: &str| labels.contains_key(&format!("{PREFIX}{name}"));
        let valid = labels.get(&format!("{PREFIX}enforce")).is_some_and(|text| level(text).is_some());
        // Who enforces wants to hear of it where pods are only made later.
        if !has("warn") && valid && enforce.level > warn.level {
            warn.level = enforce.level;
            if !has("warn-version") {
                warn.version = enforce.version;
            }
        }
        Self { enforce, warn }
    }

    /// Whether everything is fine.
    pub(super) fn is_privileged(&self) -> bool {
        self.enforce.level == Level::Privileged && self.warn.level == Level::Privileged
    }
}
