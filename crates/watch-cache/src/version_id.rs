//! A conversion of a resource's objects into another API version.

use std::sync::atomic::{AtomicU32, Ordering};

/// Says which conversion a converted object or frame came of. No two conversions have the same, so that nothing is taken
/// for what a former one made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionId(u32);

impl VersionId {
    /// One that nobody has had.
    #[must_use]
    pub fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
