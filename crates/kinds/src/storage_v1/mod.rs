//! The kinds of storage.k8s.io/v1.

mod storage_class;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<storage_class::StorageClassRules>::new()];
