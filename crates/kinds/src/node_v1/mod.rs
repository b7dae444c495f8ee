//! The kinds of node.k8s.io/v1.

mod runtime_class;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<runtime_class::RuntimeClassRules>::new()];
