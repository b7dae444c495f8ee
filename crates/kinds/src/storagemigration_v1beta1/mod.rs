//! The kinds of storagemigration.k8s.io/v1beta1.

mod storage_version_migration;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<storage_version_migration::StorageVersionMigrationRules>::new()];
