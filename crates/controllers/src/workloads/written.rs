//! The guard against stale caches: a controller does not look at a cache that has not yet caught up with what the
//! controller itself wrote. Adds to expectations, which know of creations and deletions only. Each controller has it by a gate
//! of its own (KEP-5647).

use std::collections::BTreeMap;

use api_machinery::meta::ObjectMeta;
use client::ObjectKey;
use component_base::Feature;
use component_base::metrics::{Counters, Desc, Stability};
use controller::{Build, ReconcileError};
use parking_lot::Mutex;

/// The gate of daemon sets.
pub(crate) const OF_DAEMON_SETS: Feature = Feature::named("StaleControllerConsistencyDaemonSet");
/// The gate of jobs.
pub(crate) const OF_JOBS: Feature = Feature::named("StaleControllerConsistencyJob");
/// The gate of replica sets.
pub(crate) const OF_REPLICA_SETS: Feature = Feature::named("StaleControllerConsistencyReplicaSet");
/// The gate of stateful sets.
pub(crate) const OF_STATEFUL_SETS: Feature = Feature::named("StaleControllerConsistencyStatefulSet");

/// The gates of all controllers that have the guard.
pub(crate) const GATES: &[Feature] = &[OF_DAEMON_SETS, OF_JOBS, OF_REPLICA_SETS, OF_STATEFUL_SETS];

/// The newest versions that were written, by owner and resource. Bounded by the number of owners.
pub(crate) struct Written {
    /// None where a cache may be behind.
    records: Option<Mutex<BTreeMap<ObjectKey, Record>>>,
    /// How often a look was put off, by the group and resource of the cache.
    skips: Option<Counters>,
}

impl Default for Written {
    fn default() -> Self {
        Self { records: Some(Mutex::default()), skips: None }
    }
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
    /// One that counts looks that are put off; where its gate is off, one that puts off none.
    pub(crate) fn gated(build: &Build<'_>, gate: Feature, skips: &'static Desc) -> Self {
        if !build.gates().enabled(gate) {
            return Self { records: None, skips: None };
        }
        Self { skips: Some(build.metrics().counters(skips)), ..Self::default() }
    }

    /// An object of `resource` (such as `pods` or `replicasets.apps`) was written for `owner`.
    pub(crate) fn note(&self, owner: &ObjectMeta, resource: &'static str, version: &str) {
        let (Some(records), Ok(version)) = (&self.records, version.parse::<u64>()) else { return };
        let mut records = records.lock();
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
        let Some(records) = &self.records else { return Ok(()) };
        let mut records = records.lock();
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
        self.records.iter().for_each(|records| drop(records.lock().remove(owner)));
    }
}

#[cfg(test)]
mod tests {
    use component_base::Gates;
    use controller::Descriptor;
    use serde_json::json;

    use super::super::fixtures::{Ahead, Running, run_until_idle};
    use super::super::{daemon_set, job, replica_set, stateful_set};
    use super::*;
    use crate::Settings;

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

    #[tokio::test(start_paused = true)]
    async fn each_controller_has_the_guard_by_its_own_gate() {
        const CASES: [(&[Descriptor], Feature, &str, &str, &str); 4] = [
            (&[daemon_set::DESCRIPTOR], OF_DAEMON_SETS, "apps/v1", "DaemonSet", "daemonset"),
            (&[job::DESCRIPTOR], OF_JOBS, "batch/v1", "Job", "job"),
            (&[replica_set::DESCRIPTOR], OF_REPLICA_SETS, "apps/v1", "ReplicaSet", "replicaset"),
            (&[stateful_set::DESCRIPTOR], OF_STATEFUL_SETS, "apps/v1", "StatefulSet", "statefulset"),
        ];
        for (known, gate, version, kind, name) in CASES {
            for on in [true, false] {
                let gates = GATES.iter().fold(Gates::default(), |gates, own| gates.with(*own, (*own == gate) == on));
                let running = Running::start_all(known, gates, Settings::default(), Ahead::over);
                let labels = json!({"app": "web"});
                running.server.put(
                    &format!("{version}/{name}s"),
                    json!({"apiVersion": version, "kind": kind,
                        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "generation": 1, "labels": labels},
                        "spec": {"replicas": 1, "parallelism": 1, "completions": 1, "selector": {"matchLabels": labels},
                            "podManagementPolicy": "OrderedReady", "updateStrategy": {"type": "OnDelete"},
                            "template": {"metadata": {"labels": labels},
                                "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
                );
                running.server.put("v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
                run_until_idle().await;
                assert_eq!(running.count("v1/pods"), 1, "{kind}, {on}");
                let start = format!("{name}_controller_stale_sync_skips_total{{group=\"\",resource=\"pods\"}}");
                assert_eq!(running.shows(&start), on, "{kind}");
            }
        }
    }
}
