//! Durations in flags.

use std::time::Duration;

use component_base::flags::{Errors, Options};

/// A duration that must not be negative.
pub(super) fn not_negative(options: &Options, name: &str, errors: &mut Errors) -> Duration {
    errors.check(options.duration_ns(name) >= 0, format!("--{name} can not be negative value"));
    options.duration(name)
}
