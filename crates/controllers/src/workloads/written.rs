//! The guard against stale caches: a controller does not look at a cache that has not yet caught up with what the
//! controller itself wrote. Adds to expectations, which know of creations and deletions only.

use std::collections::BTreeMap;

use api_machinery::meta::ObjectMeta;
use client::ObjectKey;
use component_base::metrics::{Counters, Desc, Stability};
use controller::{Build, ReconcileError};
use parking_lot::Mutex;

/// The newest versions that were written, by owner and resource. Bounded by the number of owners.
#[derive(Default)]
pub(crate) struct Written {
    records: Mutex<BTreeMap<ObjectKey, Record>>,
    /// How often a look was put off, by the group and resource of the cache.
    skips: Option<Counters>,
}

/// The family that counts looks of a controller that were put off.
pub(crate) const fn skips(name: &'static str) -> Desc {
    Desc::new(name, "Looks that were put off because a cache was behind.", Stability::Alpha)
        .labels(&["group", "resource"])
}

struct Record {
    uid: String,
    versions: BTreeMap<&'static str, u64>,
}

impl Written {
    /// One that counts looks that are put off.
    pub(crate) fn counted(build: &Build<'_>, skips: &'static Desc) -> Self {
        Self { skips: Some(build.metrics().counters(skips)), ..Self::default() }
    }

    /// An object of `resource` (such as `pods` or `replicasets.apps`) was written for `owner`.
    pub(crate) fn note(&self, owner: &ObjectMeta, resource: &'static str, version: &str) {
        let Ok(version) = version.parse::<u64>() else { return };
        let mut records = self.records.lock();
        let fresh = || Record { uid: owner.uid.clone(), versions: BTreeMap::new() };
        let record = records.entry(ObjectKey::of(owner)).or_insert_with(fresh);
        if record.uid != owner.uid {
            *record = fresh();
        }
        let newest = record.versions.entry(resource).or_default();
        *newest = version.max(*newest);
    }

    /// Whether the caches, given by resource and version, are as new as what was written. Drops the record if so. A
    /// cache whose version cannot be compared does not block.
    ///
    /// # Errors
    /// Which cache is behind; time will tell.
    pub(crate) fn check(&self, owner: &ObjectKey, caches: &[(&'static str, String)]) -> Result<(), ReconcileError> {
        let mut records = self.records.lock();
        let Some(record) = records.get(owner) else { return Ok(()) };
        for (resource, read) in caches {
            let Some(written) = record.versions.get(resource) else { continue };
            if read.parse::<u64>().is_ok_and(|read| read < *written) {
                if let Some(skips) = &self.skips {
                    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
                    skips.with(&[group, resource]).inc();
                }
                return Err(ReconcileError::failed(format!(
                    "read version: {read} is not as new as written version: {written} for group resource {resource}"
                )));
            }
        }
        records.remove(owner);
        Ok(())
    }

    /// Forgets an owner that is gone; another of the same name keeps its record.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.records.lock().remove(owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_must_catch_up() {
        let written = Written::default();
        let owner = ObjectMeta { name: "web".into(), namespace: "ns".into(), uid: "u".into(), ..Default::default() };
        let key = ObjectKey::of(&owner);
        let check = |pods: &str, sets: &str| written.check(&key, &[("pods", pods.into()), ("sets", sets.into())]);
        assert!(check("1", "1").is_ok());
        written.note(&owner, "pods", "10");
        written.note(&owner, "pods", "9");
        written.note(&owner, "sets", "12");
        let stale = check("9", "12").unwrap_err().to_string();
        assert_eq!(stale, "read version: 9 is not as new as written version: 10 for group resource pods");
        assert!(check("10", "11").is_err());
        assert!(check("10", "12").is_ok());
        assert!(check("1", "1").is_ok(), "the record is dropped");
        written.note(&owner, "pods", "10");
        assert!(check("", "").is_ok(), "an unknown version does not block");
    }
}
