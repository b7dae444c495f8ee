//! The kinds of coordination.k8s.io/v1.

mod lease;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<lease::LeaseRules>::new()];
