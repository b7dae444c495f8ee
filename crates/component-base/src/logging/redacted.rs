//! Values that must not show up in a log.

use std::fmt;

/// Holds a secret; printing it shows a placeholder.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Wraps a secret.
    pub const fn new(secret: T) -> Self {
        Self(secret)
    }

    /// The secret itself.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The secret itself, owned.
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--- REDACTED ---")
    }
}

impl<T> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--- REDACTED ---")
    }
}
