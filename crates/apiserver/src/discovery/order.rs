//! The order in which groups and versions are preferred: upstream's table for its own groups, and the rule for others.

use std::cmp::Ordering;

/// The priority of a group, and those of its versions that are not 15.
struct GroupPriority {
    group: &'static str,
    priority: i32,
    versions: &'static [(&'static str, i32)],
}

/// The priority of the core group, which is before all others.
const CORE: i32 = 18000;
/// The priority of groups of custom resources.
const CUSTOM: i32 = 1000;
/// The priority of a version of which nothing else is known.
const VERSION: i32 = 15;

const fn group(group: &'static str, priority: i32) -> GroupPriority {
    GroupPriority { group, priority, versions: &[] }
}

static GROUPS: &[GroupPriority] = &[
    group("apiregistration.k8s.io", 20001),
    group("", CORE),
    group("apps", 17800),
    group("events.k8s.io", 17750),
    group("authentication.k8s.io", 17700),
    group("authorization.k8s.io", 17600),
    GroupPriority { group: "autoscaling", priority: 17500, versions: &[("v2", 30)] },
    group("batch", 17400),
    group("certificates.k8s.io", 17300),
    group("networking.k8s.io", 17200),
    group("policy", 17100),
    group("rbac.authorization.k8s.io", 17000),
    group("storage.k8s.io", 16800),
    group("admissionregistration.k8s.io", 16700),
    group("apiextensions.k8s.io", 16700),
    group("scheduling.k8s.io", 16600),
    group("coordination.k8s.io", 16500),
    group("node.k8s.io", 16300),
    group("discovery.k8s.io", 16200),
    group("resource.k8s.io", 16200),
    group("flowcontrol.apiserver.k8s.io", 16100),
    group("internal.apiserver.k8s.io", 16000),
    group("storagemigration.k8s.io", 15800),
];

/// Compares two groups: the preferred one is less.
pub(super) fn compare_groups(one: &str, other: &str) -> Ordering {
    priority(other).cmp(&priority(one)).then_with(|| one.cmp(other))
}

fn priority(name: &str) -> i32 {
    GROUPS.iter().find(|known| known.group == name).map_or(CUSTOM, |known| known.priority)
}

/// Compares two versions of a group: the preferred one is less.
pub(crate) fn compare_versions(group: &str, one: &str, other: &str) -> Ordering {
    let known = GROUPS.iter().find(|known| known.group == group);
    let priority = |version: &str| {
        let own = known.and_then(|known| known.versions.iter().find(|(name, _)| *name == version));
        own.map_or(VERSION, |(_, priority)| *priority)
    };
    priority(other).cmp(&priority(one)).then_with(|| maturity(other).cmp(&maturity(one))).then_with(|| one.cmp(other))
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
    fn groups_and_versions_are_ordered() {
        let mut groups = ["example.com", "apps", "", "batch", "admissionregistration.k8s.io", "apiextensions.k8s.io"];
        groups.sort_by(|one, other| compare_groups(one, other));
        assert_eq!(
            groups,
            ["", "apps", "batch", "admissionregistration.k8s.io", "apiextensions.k8s.io", "example.com"]
        );
        let mut versions = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1beta1", "v1", "bar"];
        versions.sort_by(|one, other| compare_versions("example.com", one, other));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
