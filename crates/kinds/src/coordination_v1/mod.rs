//! The kinds of coordination.k8s.io/v1.

mod lease;

use crate::rules::{Rules, Typed};
pub(crate) use lease::validate_strategy;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<lease::LeaseRules>::new()];
