//! What one gate is: a name, who defines it, and a history that says its stage and default in each version.

use std::fmt;

/// `major.minor` of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MinorVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl MinorVersion {
    /// A release of the first major version, as all are.
    #[must_use]
    pub const fn one(minor: u32) -> Self {
        Self { major: 1, minor }
    }
}

impl fmt::Display for MinorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The release that the binaries are of, which the table describes.
pub const BINARY: MinorVersion = MinorVersion::one(36);

/// How mature a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Off by default, may change.
    Alpha,
    /// Usually on by default.
    Beta,
    /// Generally available.
    Ga,
    /// Kept for a while, off later.
    Deprecated,
}

impl Stage {
    /// As in texts for users and in the label of `kubernetes_feature_enabled`; empty for what is generally available.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

/// The upstream library that a gate comes with. A binary knows the gates of the libraries that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinedIn {
    /// What only the binaries of Kubernetes itself have.
    Kubernetes,
    /// The library of API servers.
    ApiServer,
    /// Custom resources.
    ApiExtensionsServer,
    /// The client.
    Client,
    /// What all components share.
    ComponentBase,
    /// What both controller managers share.
    ControllerManager,
}

/// What a gate is from a version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The first version.
    pub since: MinorVersion,
    /// The stage.
    pub stage: Stage,
    /// Whether it is on when nobody says otherwise.
    pub default: bool,
    /// Whether users may no longer change it.
    pub locked: bool,
}

impl Step {
    /// The same step, which users may not change.
    pub(crate) const fn locked(mut self) -> Self {
        self.locked = true;
        self
    }
}

const fn step(minor: u32, stage: Stage, default: bool) -> Step {
    Step { since: MinorVersion::one(minor), stage, default, locked: false }
}

pub(crate) const fn alpha(minor: u32, default: bool) -> Step {
    step(minor, Stage::Alpha, default)
}

pub(crate) const fn beta(minor: u32, default: bool) -> Step {
    step(minor, Stage::Beta, default)
}

pub(crate) const fn ga(minor: u32, default: bool) -> Step {
    step(minor, Stage::Ga, default)
}

pub(crate) const fn deprecated(minor: u32, default: bool) -> Step {
    step(minor, Stage::Deprecated, default)
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The name that users write.
    pub name: &'static str,
    /// Where it is defined.
    pub defined_in: &'static [DefinedIn],
    /// What it was and is, oldest first.
    pub history: &'static [Step],
    /// Gates without which it may not be on.
    pub needs: &'static [&'static str],
}

pub(crate) const fn gate(name: &'static str, defined_in: &'static [DefinedIn], history: &'static [Step]) -> Gate {
    Gate { name, defined_in, history, needs: &[] }
}

impl Gate {
    pub(crate) const fn needs(mut self, needs: &'static [&'static str]) -> Self {
        self.needs = needs;
        self
    }

    /// What it is in a version; nothing where it came later.
    #[must_use]
    pub fn at(&self, version: MinorVersion) -> Option<&'static Step> {
        self.history.iter().rev().find(|step| step.since <= version)
    }
}
