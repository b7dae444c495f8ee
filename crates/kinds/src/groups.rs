//! The API groups in the order in which discovery prefers them, each with its versions and their kinds: upstream's
//! priorities of groups and versions (`APIServicePriorities`).

use crate::rules::Rules;
use crate::{
    apiextensions_v1, apps_v1, authentication_v1, authorization_v1, autoscaling_v1, autoscaling_v2, batch_v1,
    certificates_v1, coordination_v1, coordination_v1beta1, core_v1, discovery_v1, events_v1, flowcontrol_v1,
    networking_v1, node_v1, policy_v1, rbac_v1, scheduling_v1, storage_v1,
};

/// A group of the API.
#[derive(Clone, Copy)]
pub struct Group {
    /// The higher, the earlier in discovery. Groups that come at run time have 1000.
    pub priority: i32,
    /// Its versions, each with at least one kind.
    pub versions: &'static [Version],
}

/// A version of a group.
#[derive(Clone, Copy)]
pub struct Version {
    /// The higher, the more preferred in its group. Where it is equal, the names decide.
    pub priority: i32,
    /// The rules of each of its kinds.
    pub kinds: &'static [&'static dyn Rules],
}

/// The priority of a version of which nothing else is said.
const VERSION: i32 = 15;

impl Version {
    const fn of(kinds: &'static [&'static dyn Rules]) -> Self {
        Self { priority: VERSION, kinds }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kinds[0].info().version
    }
}

impl Group {
    /// What it is called; empty for core.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.versions[0].kinds[0].info().group
    }
}

/// Every group.
pub static GROUPS: &[Group] = &[
    Group { priority: 18000, versions: &[Version::of(core_v1::KINDS)] },
    Group { priority: 17800, versions: &[Version::of(apps_v1::KINDS)] },
    Group { priority: 17750, versions: &[Version::of(events_v1::KINDS)] },
    Group { priority: 17700, versions: &[Version::of(authentication_v1::KINDS)] },
    Group { priority: 17600, versions: &[Version::of(authorization_v1::KINDS)] },
    Group {
        priority: 17500,
        versions: &[Version { priority: 30, kinds: autoscaling_v2::KINDS }, Version::of(autoscaling_v1::KINDS)],
    },
    Group { priority: 17400, versions: &[Version::of(batch_v1::KINDS)] },
    Group { priority: 17300, versions: &[Version::of(certificates_v1::KINDS)] },
    Group { priority: 17200, versions: &[Version::of(networking_v1::KINDS)] },
    Group { priority: 17100, versions: &[Version::of(policy_v1::KINDS)] },
    Group { priority: 17000, versions: &[Version::of(rbac_v1::KINDS)] },
    Group { priority: 16800, versions: &[Version::of(storage_v1::KINDS)] },
    Group { priority: 16700, versions: &[Version::of(apiextensions_v1::KINDS)] },
    Group { priority: 16600, versions: &[Version::of(scheduling_v1::KINDS)] },
    Group {
        priority: 16500,
        versions: &[
            Version::of(coordination_v1::KINDS),
            Version::of(coordination_v1beta1::KINDS),
            Version::of(coordination_v1beta1::V1ALPHA2),
        ],
    },
    Group { priority: 16300, versions: &[Version::of(node_v1::KINDS)] },
    Group { priority: 16200, versions: &[Version::of(discovery_v1::KINDS)] },
    Group { priority: 16100, versions: &[Version::of(flowcontrol_v1::KINDS)] },
];

/// The group of a name, where it is built in.
#[must_use]
pub fn group(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_of_one_group_and_version() {
        for group in GROUPS {
            for version in group.versions {
                for rules in version.kinds {
                    let info = rules.info();
                    assert_eq!((info.group, info.version), (group.name(), version.name()), "{}", info.kind);
                }
            }
        }
        let sorted = GROUPS.is_sorted_by_key(|group| std::cmp::Reverse(group.priority));
        assert!(sorted, "groups stand in the order of discovery");
    }
}
