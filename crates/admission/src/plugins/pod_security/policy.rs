//! What a namespace's labels say.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use api_machinery::field_path::{ErrorList, Path};

const PREFIX: &str = "pod-security.kubernetes.io/";
/// The newest version that checks know.
const NEWEST: u32 = 35;

/// How strict, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

/// Of which version of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Version {
    #[default]
    Latest,
    Minor(u32),
}

/// A level as of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What is refused, what is noted, and what is warned of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

/// The names of the parts of a policy.
pub(super) const MODES: [&str; 3] = ["enforce", "audit", "warn"];

impl fmt::Display for LevelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level.name();
        match self.version {
            Version::Latest => write!(out, "{level}:latest"),
            Version::Minor(minor) => write!(out, "{level}:v1.{minor}"),
        }
    }
}

impl Level {
    /// As labels and texts have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

impl LevelVersion {
    /// The version that was asked for, unless that is the newest. What is allowed anything has no version.
    pub(super) fn named_minor(&self) -> Option<u32> {
        match self.version {
            Version::Minor(minor) if self.level != Level::Privileged => Some(minor),
            _ => None,
        }
    }

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

/// Texts by name, the names' prefix, and where a name is found.
struct Texts<'a, F> {
    texts: &'a BTreeMap<String, String>,
    prefix: &'a str,
    at: F,
}

impl<F: Fn(&str) -> Path> Texts<'_, F> {
    /// Reads one mode. A level that is none becomes `fallback`.
    fn mode(&self, name: &str, default: LevelVersion, fallback: Level, errors: &mut ErrorList) -> LevelVersion {
        let mut read = default;
        let key = format!("{}{name}", self.prefix);
        if let Some(text) = self.texts.get(&key) {
            read.level = level(text).unwrap_or_else(|| {
                errors.push((self.at)(&key).invalid(text, "must be one of privileged, baseline, restricted"));
                fallback
            });
        }
        let key = format!("{}{name}-version", self.prefix);
        if let Some(text) = self.texts.get(&key) {
            read.version = version(text).unwrap_or_else(|| {
                errors.push((self.at)(&key).invalid(text, "must be \"latest\" or \"v1.x\""));
                Version::Latest
            });
        }
        read
    }
}

impl Policy {
    /// A policy by texts, and by the defaults where they say nothing; what is wrong with them is added to the errors.
    pub(super) fn read(
        texts: &BTreeMap<String, String>,
        prefix: &str,
        defaults: &Self,
        at: impl Fn(&str) -> Path,
        errors: &mut ErrorList,
    ) -> Self {
        let texts = Texts { texts, prefix, at };
        Self {
            enforce: texts.mode("enforce", defaults.enforce, Level::Restricted, errors),
            audit: texts.mode("audit", defaults.audit, Level::Privileged, errors),
            warn: texts.mode("warn", defaults.warn, Level::Privileged, errors),
        }
    }

    /// The policy by a namespace's labels.
    pub(super) fn of(labels: &BTreeMap<String, String>, defaults: &Self, errors: &mut ErrorList) -> Self {
        // Most namespaces say nothing, and every pod asks.
        let mut said = labels.range::<str, _>((Bound::Included(PREFIX), Bound::Unbounded));
        if !said.next().is_some_and(|(label, _)| label.starts_with(PREFIX)) {
            return *defaults;
        }
        let at = |label: &str| Path::new("metadata").child("labels").key(label);
        let mut policy = Self::read(labels, PREFIX, defaults, at, errors);
        let label = |name: &str| labels.get(&format!("{PREFIX}{name}"));
        let valid = label("enforce").is_some_and(|text| level(text).is_some());
        // Who enforces wants to hear of it where pods are only made later.
        if label("warn").is_none() && valid && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if label("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        policy
    }

    /// Whether everything is fine.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }

    /// The parts that labels ask for, as far as they forbid anything: `enforce=baseline:latest, warn=...`.
    pub(super) fn labelled(&self, labels: &BTreeMap<String, String>) -> String {
        let modes = MODES.into_iter().zip([self.enforce, self.audit, self.warn]);
        let given = modes
            .filter(|(name, mode)| mode.level != Level::Privileged && labels.contains_key(&format!("{PREFIX}{name}")));
        given.map(|(name, mode)| format!("{name}={mode}")).collect::<Vec<_>>().join(", ")
    }
}
