//! Collecting everything that is wrong with a configuration before saying so.

use std::fmt;

/// Problems found so far.
#[derive(Debug, Default)]
pub struct Errors(Vec<String>);

impl Errors {
    /// No problems yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem.
    #[expect(clippy::needless_pass_by_value, reason = "errors are handed over whole: push(error) reads better")]
    pub fn push(&mut self, problem: impl ToString) {
        self.0.push(problem.to_string());
    }

    /// Adds a problem unless `fine`.
    pub fn check(&mut self, fine: bool, problem: impl ToString) {
        if !fine {
            self.push(problem);
        }
    }

    /// The value, or a problem added and nothing.
    pub fn ok<T, E: ToString>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Whether there is no problem.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All problems as one error.
    ///
    /// # Errors
    /// When there is at least one problem.
    pub fn into_result(self) -> Result<(), Invalid> {
        if self.0.is_empty() { Ok(()) } else { Err(Invalid(self.0)) }
    }
}

/// One or more problems with flags or configuration. Shown as upstream shows an aggregate: `[one, two]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(Vec<String>);

impl Invalid {
    /// A single problem.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "errors are handed over whole: map_err(Invalid::one) reads better"
    )]
    pub fn one(problem: impl ToString) -> Self {
        Self(vec![problem.to_string()])
    }

    /// The problems.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}

impl std::error::Error for Invalid {}
