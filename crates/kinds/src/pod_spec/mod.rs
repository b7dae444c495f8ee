//! The rules of a pod's spec, which pods and every template share.

pub(crate) mod defaults;
