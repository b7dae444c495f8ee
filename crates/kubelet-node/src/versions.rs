//! Which of two states of an object is the later one.

use api_machinery::meta::ObjectMeta;

/// Whether one state of an object is newer than another. Versions are counters (KEP-5504); one that is none is older than
/// all.
pub fn is_newer(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let version = |meta: &ObjectMeta| meta.resource_version.parse::<u64>().ok();
    version(one) > version(other)
}
