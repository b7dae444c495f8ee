//! The kinds of scheduling.k8s.io/v1.

mod priority_class;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<priority_class::PriorityClassRules>::new()];
