//! The kinds of discovery.k8s.io/v1.

mod endpoint_slice;
mod slice_validation;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<endpoint_slice::EndpointSliceRules>::new()];
