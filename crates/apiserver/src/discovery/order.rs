//! The order in which groups and versions are preferred: by the priorities of those that are built in, and by the rule
//! for others.

use std::cmp::Ordering;

use kinds::VERSIONS;

/// The priority of groups of custom resources.
const CUSTOM: i32 = 1000;
/// The priority of their versions.
const VERSION: i32 = 15;

/// The priority of a group of which no APIService says another.
pub(super) fn group_priority(name: &str) -> i32 {
    VERSIONS.iter().find(|known| known.group() == name).map_or(CUSTOM, |known| known.group_priority)
}

/// The priority of a version of which no APIService says another.
pub(crate) fn version_priority(group: &str, version: &str) -> i32 {
    let own = VERSIONS.iter().find(|own| (own.group(), own.name()) == (group, version));
    own.map_or(VERSION, |own| own.priority)
}

/// Compares two versions of a group: the preferred one is less.
pub(crate) fn compare_versions(group: &str, one: &str, other: &str) -> Ordering {
    let priority = |version: &str| version_priority(group, version);
    priority(other).cmp(&priority(one)).then_with(|| compare_names(one, other))
}

/// Compares two versions by what their names say.
pub(super) fn compare_names(one: &str, other: &str) -> Ordering {
    maturity(other).cmp(&maturity(one)).then_with(|| one.cmp(other))
}

/// What a version name says: stable before beta before alpha, then the numbers; nothing for other names, which are last.
fn maturity(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at_checked(digits)?;
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stage, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (_, Some(minor)) => (0, minor),
        _ => return None,
    };
    Some((stage, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_groups_come_before_those_of_run_time() {
        for version in VERSIONS {
            assert!(version.group_priority > CUSTOM, "{}/{}", version.group(), version.name());
        }
    }

    #[test]
    fn groups_and_versions_are_ordered() {
        let mut groups = ["example.com", "apps", "", "batch", "storage.k8s.io", "apiextensions.k8s.io"];
        groups.sort_by_key(|name| (std::cmp::Reverse(group_priority(name)), *name));
        assert_eq!(groups, ["", "apps", "batch", "storage.k8s.io", "apiextensions.k8s.io", "example.com"]);
        let mut versions = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1beta1", "v1", "bar"];
        versions.sort_by(|one, other| compare_versions("example.com", one, other));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
