//! The versions of API groups as discovery prefers them: upstream's priorities (`APIServicePriorities`).

use crate::rules::Rules;

/// A version of an API group, with at least one kind.
#[derive(Clone, Copy)]
pub struct Version {
    /// The higher, the earlier its group in discovery; the same for all versions of a group. Groups that come at run time
    /// have 1000.
    pub group_priority: i32,
    /// The higher, the more preferred in its group. Where it is equal, the names decide.
    pub priority: i32,
    /// The rules of each of its kinds.
    pub kinds: &'static [&'static dyn Rules],
}

/// The priority of a version of which nothing else is said.
const PRIORITY: i32 = 15;

impl Version {
    /// A version with the usual priority in its group.
    #[must_use]
    pub const fn of(group_priority: i32, kinds: &'static [&'static dyn Rules]) -> Self {
        Self { group_priority, priority: PRIORITY, kinds }
    }

    /// The group; empty for core.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.kinds[0].info().group
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kinds[0].info().version
    }
}
