//! Telling the user what is going on, a line for each step.

use std::io::Write as _;

/// Where progress goes: standard error, so that standard output stays for results.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    silent: bool,
}

impl Progress {
    /// Says nothing; for tests.
    #[must_use]
    pub fn silent() -> Self {
        Self { silent: true }
    }

    /// Says what is being done.
    pub fn step(&self, text: &str) {
        self.line(&format!("==> {text}"));
    }

    /// Says something about the step.
    pub fn note(&self, text: &str) {
        self.line(&format!("    {text}"));
    }

    /// Says why it failed, with the causes.
    pub fn failure(&self, error: &dyn std::error::Error) {
        self.line(&format!("error: {error}"));
        let mut cause = error.source();
        while let Some(error) = cause {
            self.line(&format!("  because: {error}"));
            cause = error.source();
        }
    }

    /// Prints the result, on standard output.
    pub fn result(&self, text: &str) {
        if !self.silent {
            // A closed pipe is no reason to fail.
            let _ = write!(std::io::stdout(), "{text}");
        }
    }

    fn line(&self, text: &str) {
        if !self.silent {
            // A closed terminal is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
}
