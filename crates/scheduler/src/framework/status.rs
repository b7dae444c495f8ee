//! What a plugin says of a pod, a node or a step: result codes and reasons.

use std::borrow::Cow;
use std::fmt;

/// Why something did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Unexpected: retried after the back-off of errors.
    Error,
    /// Rejected; removing pods from the node may help.
    Unschedulable,
    /// Rejected; removing pods does not help.
    UnschedulableAndUnresolvable,
    /// Rejected, but without a penalty when the pod comes back.
    Pending,
}

impl Code {
    /// As metrics show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Self::Pending => "Pending",
        }
    }

    /// Whether the pod was rejected, as opposed to something having gone wrong.
    #[must_use]
    pub const fn is_rejection(self) -> bool {
        !matches!(self, Self::Error)
    }
}

/// A reason; most are constants, so that rejecting a node allocates nothing.
pub type Reason = Cow<'static, str>;

/// A result other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The kind of result.
    pub code: Code,
    /// The plugin that gave it; empty where it was the core.
    pub plugin: &'static str,
    reasons: Reasons,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reasons {
    One(Reason),
    Many(Vec<Reason>),
}

impl Status {
    /// A result with one reason.
    pub fn new(code: Code, reason: impl Into<Reason>) -> Self {
        Self { code, plugin: "", reasons: Reasons::One(reason.into()) }
    }

    /// A result with several reasons.
    #[must_use]
    pub fn with_reasons(code: Code, reasons: Vec<Reason>) -> Self {
        Self { code, plugin: "", reasons: Reasons::Many(reasons) }
    }

    /// Rejected; preemption may help.
    pub fn unschedulable(reason: impl Into<Reason>) -> Self {
        Self::new(Code::Unschedulable, reason)
    }

    /// Rejected; preemption does not help.
    pub fn unresolvable(reason: impl Into<Reason>) -> Self {
        Self::new(Code::UnschedulableAndUnresolvable, reason)
    }

    /// Something went wrong.
    pub fn error(reason: impl Into<Reason>) -> Self {
        Self::new(Code::Error, reason)
    }

    /// The same with the name of the plugin that said so.
    #[must_use]
    pub fn by(mut self, plugin: &'static str) -> Self {
        self.plugin = plugin;
        self
    }

    /// The reasons one by one.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        match &self.reasons {
            Reasons::One(reason) => std::slice::from_ref(reason),
            Reasons::Many(reasons) => reasons,
        }
    }

    /// The reasons joined.
    #[must_use]
    pub fn message(&self) -> String {
        self.reasons().join(", ")
    }

    /// How metrics call an outcome.
    pub(crate) fn label<T>(outcome: &Result<T, Self>) -> &'static str {
        outcome.as_ref().err().map_or("Success", |status| status.code.name())
    }

    /// The same as an error whose message tells what failed.
    #[must_use]
    pub fn wrap(&self, what: &str) -> Self {
        Self { code: Code::Error, plugin: self.plugin, reasons: Reasons::One(format!("{what}: {self}").into()) }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message())
    }
}

impl std::error::Error for Status {}

/// Success, or why not.
pub type StatusResult = Result<(), Status>;
