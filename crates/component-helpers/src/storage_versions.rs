//! What API servers tell of the versions that they store, one StorageVersion for each resource: its name, and what follows
//! from the words of all servers. The servers write it, and a controller does when one of them is gone. See KEP-2339.

use api_machinery::time::Time;
use api_types::apiserverinternal_v1alpha1::{StorageVersion, StorageVersionCondition, StorageVersionStatus};

use crate::conditions;

/// The condition that says whether all servers store the same version.
pub const ALL_ENCODING_VERSIONS_EQUAL: &str = "AllEncodingVersionsEqual";
/// What the core group is called in names.
const CORE: &str = "core";

/// The name of a resource's object, such as `apps.deployments` or `core.pods`.
#[must_use]
pub fn object_name(group: &str, resource: &str) -> String {
    let group = if group.is_empty() { CORE } else { group };
    format!("{group}.{resource}")
}

/// The version that all servers store; nothing where they differ, and where none has said so yet.
#[must_use]
pub fn agreed(status: &StorageVersionStatus) -> Option<&str> {
    let mut stored = status.storage_versions.iter().map(|server| server.encoding_version.as_str());
    let first = stored.next()?;
    stored.all(|other| other == first).then_some(first)
}

/// Sets the common version, and the condition that tells of it. The condition is as new as the version: it has changed
/// where servers have come to agree on another one, too.
pub fn set_common_version(object: &mut StorageVersion, now: Time) {
    let former = object.status.common_encoding_version.take();
    let common = agreed(&object.status).map(str::to_owned);
    let (status, reason, message) = match &common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let has_moved = former.is_some() && common.is_some() && former != common;
    object.status.common_encoding_version = common;
    let all = &mut object.status.conditions;
    let condition = StorageVersionCondition {
        type_: ALL_ENCODING_VERSIONS_EQUAL.to_owned(),
        status: status.to_owned(),
        observed_generation: object.metadata.generation,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..StorageVersionCondition::default()
    };
    conditions::set(all, condition, now);
    if has_moved {
        let own = all.iter_mut().filter(|own| own.type_ == ALL_ENCODING_VERSIONS_EQUAL);
        own.for_each(|own| own.last_transition_time = now);
    }
}

#[cfg(test)]
mod tests {
    use api_types::apiserverinternal_v1alpha1::ServerStorageVersion;

    use super::*;

    /// What is told where servers store these, and when that was last different.
    fn told(object: &mut StorageVersion, stored: &[&str], now: i64) -> (Option<String>, String, i64) {
        let server = |version: &&str| ServerStorageVersion {
            encoding_version: (*version).to_owned(),
            ..ServerStorageVersion::default()
        };
        object.status.storage_versions = stored.iter().map(server).collect();
        set_common_version(object, Time::from_unix_seconds(now));
        let [condition] = &object.status.conditions[..] else { panic!("{:?}", object.status.conditions) };
        let told = format!("{} {}: {}", condition.status, condition.reason, condition.message);
        let since = condition.last_transition_time.unix_seconds().unwrap();
        (object.status.common_encoding_version.clone(), told, since)
    }

    #[test]
    fn servers_agree_or_differ() {
        let set = "True CommonEncodingVersionSet: Common encoding version set";
        let unset = "False CommonEncodingVersionUnset: Common encoding version unset";
        let mut object = StorageVersion::default();
        for (stored, now, expected) in [
            (&[][..], 1, (None, unset, 1)),
            (&["v1"], 2, (Some("v1"), set, 2)),
            (&["v1", "v1"], 3, (Some("v1"), set, 2)),
            (&["v2", "v2"], 4, (Some("v2"), set, 4)),
            (&["v2", "v1"], 5, (None, unset, 5)),
            (&[], 6, (None, unset, 5)),
        ] {
            let (common, condition, since) = told(&mut object, stored, now);
            assert_eq!((common.as_deref(), condition.as_str(), since), expected, "{stored:?}");
        }
    }

    #[test]
    fn the_core_group_has_a_name_here() {
        assert_eq!(object_name("", "pods"), "core.pods");
        assert_eq!(object_name("storage.k8s.io", "csinodes"), "storage.k8s.io.csinodes");
    }
}
