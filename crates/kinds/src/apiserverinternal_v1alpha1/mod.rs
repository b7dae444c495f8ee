//! The kinds of internal.apiserver.k8s.io/v1alpha1.

mod storage_version;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<storage_version::StorageVersionRules>::new()];
