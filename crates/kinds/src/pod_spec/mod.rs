//! The rules of a pod's spec, which pods and every template share.

pub(crate) mod defaults;
pub(crate) mod disabled;
mod image_reference;
pub(crate) mod validation;
pub(crate) mod warnings;
