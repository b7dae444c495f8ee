//! What happens where a policy cannot be evaluated.

/// A policy's `failurePolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    /// The request is refused; also where nothing is said.
    Fail,
    /// The policy does not count.
    Ignore,
    /// Nobody knows it; the request is refused, and told why.
    Unknown(String),
}

impl FailurePolicy {
    pub(crate) fn named(name: Option<&str>) -> Self {
        match name {
            None | Some("Fail") => Self::Fail,
            Some("Ignore") => Self::Ignore,
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }

    /// What is said of a failure; nothing where the request goes on.
    pub(crate) fn judge(&self, failure: String) -> Option<String> {
        match self {
            Self::Fail => Some(failure),
            Self::Ignore => None,
            Self::Unknown(name) => Some(format!("unrecognized failure policy: '{name}'")),
        }
    }
}
