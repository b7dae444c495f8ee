//! The rules of a pod's spec, which pods and every template share.

pub(crate) mod defaults;
pub(crate) mod disabled;
pub(crate) mod validation;
pub(crate) mod warnings;
