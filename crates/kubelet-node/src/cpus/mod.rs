//! Processors for containers of their own, and which ones all others share: the CPU manager.

mod divide;
mod exclusive;
mod machine;
mod options;
mod pick;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use api_types::core_v1::{Container, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sys::cpu_set::CpuSet;

use crate::go_dump::{Member, Shape, members};
use crate::state_file::{ENTRIES, Owner, POD_ENTRIES, Record, StateFile};
use crate::topology::{Answer, NodeSet, OfPod, ResourceCounts, Scope, Share, Source, pod_pool};

pub use exclusive::{Assignments, CpuError, StaticError};
use exclusive::{CPU, Static};
pub use machine::Processors;
pub use options::{AllowedOptions, CpuOptionError, CpuOptions, CpuPolicy};
pub use pick::TooFew;

pub use crate::state_file::StateError;

/// Whose file remembers who has which processors.
pub(crate) static OWNER: Owner = Owner {
    name: "CPU",
    file: "cpu_manager_state",
    plain: Record {
        go_types: ["*state.CPUManagerCheckpoint", "*state.CPUManagerCheckpointV2"],
        members: members! {
            "PolicyName" "string" "policyName" Shape::Plain;
            "DefaultCPUSet" "string" "defaultCpuSet" Shape::Plain;
            "Entries" "map[string]map[string]string" "entries" Shape::Map(&Shape::Map(&Shape::Plain));
            "Checksum" "checksum.Checksum" "checksum" Shape::Unset;
        },
    },
    with_pods: Record {
        go_types: ["*state.CPUManagerCheckpoint", "*state.CPUManagerCheckpointV3"],
        members: members! {
            "PolicyName" "string" "policyName" Shape::Plain;
            "DefaultCPUSet" "string" "defaultCpuSet" Shape::Plain;
            "Entries" "map[string]map[string]string" "entries" Shape::Map(&Shape::Map(&Shape::Plain));
            "PodEntries" "state.PodCPUAssignments" "podEntries" Shape::Map(&Shape::Struct(POD_ENTRY));
            "Checksum" "checksum.Checksum" "checksum" Shape::Unset;
        },
    },
};
/// What a pod has as a whole.
const POD_ENTRY: &[Member] = members! {
    "CPUSet" "cpuset.CPUSet" "cpuSet" Shape::CpuSet;
};
/// The member of it.
const CPU_SET: &str = "cpuSet";

/// What the CPU manager is told.
#[derive(Debug, Clone)]
pub struct CpuSettings {
    pub policy: CpuPolicy,
    /// Thousandths of processors that are kept for the system.
    pub reserved_milli: i64,
    /// `reservedSystemCPUs`: which ones; none for any.
    pub reserved: Option<CpuSet>,
    /// Gate `PodLevelResourceManagers`: pods that say what their containers may have together have processors, too.
    pub pod_level: bool,
}

impl CpuSettings {
    /// Nobody has processors for itself.
    pub const NONE: Self = Self { policy: CpuPolicy::None, reserved_milli: 0, reserved: None, pod_level: false };
}

/// The processors of a node.
pub struct Cpus {
    /// None where nobody has processors for itself.
    policy: Option<Static>,
    assigned: Mutex<Assignments>,
    file: StateFile,
    counts: Arc<dyn ResourceCounts>,
}

impl Cpus {
    /// # Errors
    /// The policy cannot be had on this machine.
    pub fn new(
        root: &Path,
        settings: CpuSettings,
        machine: &Processors,
        counts: Arc<dyn ResourceCounts>,
    ) -> Result<Self, StaticError> {
        let CpuSettings { policy, reserved_milli, reserved, pod_level } = settings;
        let file = StateFile::new(root, &OWNER, policy.name(), pod_level);
        let policy = match policy {
            CpuPolicy::None => None,
            CpuPolicy::Static(options) => {
                let policy = Static::new(machine.clone(), options, reserved_milli, reserved)?;
                Some(Static { pod_level, ..policy })
            }
        };
        Ok(Self { policy, assigned: Mutex::default(), file, counts })
    }

    /// Takes over what an earlier kubelet gave away.
    pub(crate) fn restore(&self) -> Result<(), StateError> {
        match (&self.policy, self.file.load()?) {
            (Some(policy), Some(saved)) => {
                let restored = self.file.decoded(&saved, decode)?;
                check(policy, &restored).map_err(|why| self.file.error(why))?;
                *self.assigned.lock() = restored.assigned;
            }
            // Nobody has anything, and the next kubelet is to find a file that says so.
            (None, Some(saved)) if self.file.is_intact(&saved) => {}
            (_, None) | (None, Some(_)) => self.save().map_err(|error| self.file.error(error))?,
        }
        self.show();
        Ok(())
    }

    /// Writes down who has what.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        self.file.save(encode(self.policy.as_ref(), &self.assigned.lock()))
    }

    /// What one pod has.
    pub(crate) fn of_pod(&self, uid: &str) -> Option<OfPod<CpuSet>> {
        self.assigned.lock().get(uid).cloned()
    }

    /// Gives a pod what it had.
    pub(crate) fn put_back(&self, uid: &str, had: Option<OfPod<CpuSet>>) {
        let mut assigned = self.assigned.lock();
        match had {
            Some(had) => drop(assigned.insert(uid.to_owned(), had)),
            None => drop(assigned.remove(uid)),
        }
        drop(assigned);
        self.show();
    }

    /// Takes back what pods have that are not among these; whether there was something.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) -> bool {
        let mut assigned = self.assigned.lock();
        let before = assigned.len();
        assigned.retain(|uid, _| uids.contains(uid));
        let changed = assigned.len() != before;
        drop(assigned);
        if changed {
            self.show();
        }
        changed
    }

    /// Where a container, or all of a pod, may have its processors.
    pub(crate) fn places(&self, pod: &Pod, container: Option<&Container>) -> Answer {
        let Some(policy) = &self.policy else { return Answer::new() };
        let assigned = self.assigned.lock();
        match container {
            Some(container) => policy.places_of_container(pod, container, &assigned),
            None => policy.places_of_pod(pod, &assigned),
        }
    }

    /// Gives a container the processors that it is to have for itself, near to `nodes` if that can be.
    pub(crate) fn allocate(&self, pod: &Pod, container: &Container, nodes: Option<NodeSet>) -> Result<(), CpuError> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let mut assigned = self.assigned.lock();
        let chosen = match policy.choose(pod, container, nodes, &assigned) {
            Ok(None) => return Ok(()),
            Ok(Some(chosen)) => chosen,
            Err(error) => {
                self.counts.pinned_cpus(false);
                self.not_given(policy, Source::Node);
                if error.is_alignment() {
                    self.counts.aligned(Scope::Container, "physical_cpu", false);
                }
                return Err(error);
            }
        };
        self.counts.pinned_cpus(true);
        if policy.options.full_cores {
            self.counts.aligned(Scope::Container, "physical_cpu", true);
        }
        self.given(policy, &chosen, &[Share::OfNode]);
        let own = assigned.entry(pod.metadata.uid.clone()).or_default();
        own.containers.insert(container.name.clone(), chosen);
        drop(assigned);
        self.show();
        Ok(())
    }

    /// Gives a pod the processors that it is to have as a whole, near to `nodes` if that can be, and each container its part.
    pub(crate) fn allocate_pod(&self, pod: &Pod, nodes: Option<NodeSet>) -> Result<(), CpuError> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let mut assigned = self.assigned.lock();
        let divided = policy.divide(pod, nodes, &assigned).inspect_err(|_| {
            self.counts.pinned_cpus(false);
            self.not_given(policy, Source::Pod);
        });
        let Some(divided) = divided? else { return Ok(()) };
        for _ in divided.shares.iter().filter(|share| **share == Share::OfPod) {
            self.counts.pinned_cpus(true);
        }
        if let Some(whole) = &divided.given.whole {
            self.given(policy, whole, &divided.shares);
        }
        assigned.insert(pod.metadata.uid.clone(), divided.given);
        drop(assigned);
        self.show();
        Ok(())
    }

    /// Processors were taken from the machine, for containers that have them so.
    fn given(&self, policy: &Static, taken: &CpuSet, shares: &[Share]) {
        if policy.options.by_cache {
            self.counts.aligned(Scope::Container, "uncore_cache", policy.shares_cache(taken));
        }
        for share in shares.iter().filter(|_| policy.pod_level) {
            self.counts.given(CPU, *share, 1);
        }
    }

    fn not_given(&self, policy: &Static, source: Source) {
        if policy.pod_level {
            self.counts.not_given(CPU, source);
        }
    }

    fn show(&self) {
        let Some(policy) = &self.policy else { return };
        let assigned = self.assigned.lock();
        let exclusive = exclusive::exclusive(&assigned);
        let by_node = policy.machine.counts(machine::Unit::Node, &exclusive);
        let nodes = policy.machine.nodes().iter().map(|node| (node, by_node.get(&node).copied().unwrap_or_default()));
        self.counts.processors(policy.shared(&assigned).len(), exclusive.len(), &nodes.collect());
    }

    /// The processors that a container runs on: its own, or those that all share. None where nothing is said about that.
    #[must_use]
    pub fn of_container(&self, uid: &str, container: &str) -> Option<CpuSet> {
        let policy = self.policy.as_ref()?;
        let assigned = self.assigned.lock();
        let own = assigned.get(uid).and_then(|own| own.containers.get(container)).cloned();
        Some(own.unwrap_or_else(|| policy.shared(&assigned)))
    }

    /// The processors that nobody outside the container's pod has: its own, or those that it shares with others of the pod.
    #[must_use]
    pub fn exclusive(&self, uid: &str, container: &str) -> CpuSet {
        self.assigned.lock().get(uid).and_then(|own| own.containers.get(container)).cloned().unwrap_or_default()
    }

    /// Whether a container has processors for itself alone.
    #[must_use]
    pub fn is_exclusive(&self, pod: &Pod, container: &Container) -> bool {
        let has = !self.exclusive(&pod.metadata.uid, &container.name).is_empty();
        has && (!pod_pool::has_pod_level_resources(pod)
            || self.policy.as_ref().is_some_and(|policy| policy.wanted(pod, container) > 0))
    }

    /// Whether a container of the pod has processors for itself alone.
    #[must_use]
    pub fn has_exclusive(&self, pod: &Pod) -> bool {
        let mut containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
        containers.any(|container| self.is_exclusive(pod, container))
    }

    /// Whether processors may be given away at all, which is why a guaranteed pod's cannot be changed.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.policy.is_some()
    }

    /// The processors that may be given away, given away or not.
    #[must_use]
    pub fn allocatable(&self) -> CpuSet {
        self.policy.as_ref().map(|policy| policy.machine.all().minus(&policy.reserved)).unwrap_or_default()
    }
}

/// What is on disk.
struct Restored {
    shared: CpuSet,
    assigned: Assignments,
}

fn encode(policy: Option<&Static>, assigned: &Assignments) -> Value {
    let shared = policy.map(|policy| policy.shared(assigned).to_string()).unwrap_or_default();
    let mut state = json!({"defaultCpuSet": shared});
    if !assigned.is_empty() {
        let texts = |own: &OfPod<CpuSet>| -> BTreeMap<String, String> {
            own.containers.iter().map(|(container, cpus)| (container.clone(), cpus.to_string())).collect()
        };
        state[ENTRIES] = json!(assigned.iter().map(|(uid, own)| (uid.clone(), texts(own))).collect::<BTreeMap<_, _>>());
    }
    let whole =
        |(uid, own): (&String, &OfPod<CpuSet>)| Some((uid.clone(), json!({CPU_SET: own.whole.as_ref()?.to_string()})));
    let pods: BTreeMap<String, Value> = assigned.iter().filter_map(whole).collect();
    if !pods.is_empty() {
        state[POD_ENTRIES] = json!(pods);
    }
    state
}

fn decode(state: &Value) -> Option<Restored> {
    let shared = state["defaultCpuSet"].as_str()?.parse().ok()?;
    let mut assigned = Assignments::new();
    for (uid, own) in state[ENTRIES].as_object().into_iter().flatten() {
        for (container, cpus) in own.as_object()? {
            let cpus = cpus.as_str()?.parse().ok()?;
            assigned.entry(uid.clone()).or_default().containers.insert(container.clone(), cpus);
        }
    }
    for (uid, own) in state[POD_ENTRIES].as_object().into_iter().flatten() {
        let cpus = own[CPU_SET].as_str().unwrap_or_default().parse().ok()?;
        assigned.entry(uid.clone()).or_default().whole = Some(cpus);
    }
    Some(Restored { shared, assigned })
}

/// Whether what is on disk can be on this machine.
fn check(policy: &Static, restored: &Restored) -> Result<(), String> {
    let Restored { shared, assigned } = restored;
    let (all, own) = (policy.machine.all(), exclusive::exclusive(assigned));
    let (strict, reserved) = (policy.options.strict, &policy.reserved);
    if !strict && !reserved.is_subset(shared) {
        return Err(format!(
            "not all reserved cpus: {reserved:?} are present in defaultCpuSet: {shared:?}",
            reserved = reserved.to_string(),
            shared = shared.to_string()
        ));
    }
    if strict && !reserved.and(shared).is_empty() {
        return Err(format!(
            "some of strictly reserved cpus: {:?} are present in defaultCpuSet: {:?}",
            reserved.and(shared).to_string(),
            shared.to_string()
        ));
    }
    if let Some((uid, name, cpus)) = overlap(assigned, shared) {
        return Err(format!(
            "pod: {uid}, container: {name} cpuset: {:?} overlaps with default cpuset {:?}",
            cpus.to_string(),
            shared.to_string()
        ));
    }
    let expected = if strict { all.minus(reserved) } else { all };
    let known = shared.union(&own);
    if known != expected {
        return Err(format!(
            "current set of available CPUs {:?} doesn't match with CPUs in state {:?}",
            expected.to_string(),
            known.to_string()
        ));
    }
    Ok(())
}

fn overlap<'a>(assigned: &'a Assignments, shared: &CpuSet) -> Option<(&'a str, &'a str, &'a CpuSet)> {
    let all = assigned
        .iter()
        .flat_map(|(uid, own)| own.containers.iter().map(move |(name, cpus)| (uid.as_str(), name.as_str(), cpus)));
    all.into_iter().find(|(_, _, cpus)| !cpus.and(shared).is_empty())
}

#[cfg(test)]
mod tests {
    use super::machine::fixtures::{DUAL, SINGLE, Shape};
    use super::*;
    use crate::topology::fixtures::{Counted, guaranteed};

    fn cpus(root: &Path, shape: &Shape, strict: bool) -> Cpus {
        let options = CpuOptions { strict, ..CpuOptions::default() };
        let settings =
            CpuSettings { policy: CpuPolicy::Static(options), reserved_milli: 1000, reserved: None, pod_level: false };
        Cpus::new(root, settings, &shape.processors(), Arc::new(Counted::default())).unwrap()
    }

    #[test]
    fn a_restart_forgets_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let own = cpus(dir.path(), &SINGLE, false);
        own.restore().unwrap();
        let pod = guaranteed("u", &[("main", "2", "1Gi")]);
        own.allocate(&pod, &pod.spec.containers[0], None).unwrap();
        own.save().unwrap();
        let text = std::fs::read_to_string(dir.path().join("cpu_manager_state")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["defaultCpuSet"], &value["entries"]), (&json!("0,2-4,6-7"), &json!({"u": {"main": "1,5"}})));
        let next = cpus(dir.path(), &SINGLE, false);
        next.restore().unwrap();
        assert_eq!(next.exclusive("u", "main").to_string(), "1,5");
        assert_eq!(next.of_container("v", "other").unwrap().to_string(), "0,2-4,6-7");
        assert!(next.has_exclusive(&pod) && !next.has_exclusive(&guaranteed("v", &[("main", "2", "1Gi")])));
        assert_eq!(next.allocatable().to_string(), "1-7");
        assert!(next.keep(&BTreeSet::new()) && !next.keep(&BTreeSet::new()));
        assert_eq!(next.of_container("u", "main").unwrap().to_string(), "0-7");
    }

    #[test]
    fn what_does_not_fit_the_machine_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = cpus(dir.path(), &SINGLE, false);
        own.restore().unwrap();
        let error = cpus(dir.path(), &DUAL, false).restore().unwrap_err().to_string();
        let text = "current set of available CPUs \"0-11\" doesn't match with CPUs in state \"0-7\"";
        assert!(error.contains(text), "{error}");
        let error = cpus(dir.path(), &SINGLE, true).restore().unwrap_err().to_string();
        assert!(
            error.contains("some of strictly reserved cpus: \"0\" are present in defaultCpuSet: \"0-7\""),
            "{error}"
        );
        let write = |shared: &str, entries: Value| {
            own.file.save(json!({"defaultCpuSet": shared, "entries": entries})).unwrap();
            own.restore().map_err(|error| error.to_string())
        };
        assert_eq!(write("0-6", json!({"u": {"c": "7"}})), Ok(()));
        for (shared, entries, expected) in [
            ("1-7", json!({"u": {"c": "0"}}), "not all reserved cpus: \"0\" are present in defaultCpuSet: \"1-7\""),
            (
                "0-7",
                json!({"u": {"c": "7"}}),
                "pod: u, container: c cpuset: \"7\" overlaps with default cpuset \"0-7\"",
            ),
            ("0-6", json!({}), "doesn't match with CPUs in state \"0-6\""),
            ("", json!({}), "not all reserved cpus: \"0\" are present in defaultCpuSet: \"\""),
            ("0-7", json!({"u": 7}), "checkpoint is corrupted"),
            ("zero", json!({}), "checkpoint is corrupted"),
        ] {
            let error = write(shared, entries).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn without_a_policy_nothing_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let none =
            Cpus::new(dir.path(), CpuSettings::NONE, &SINGLE.processors(), Arc::new(Counted::default())).unwrap();
        let path = dir.path().join("cpu_manager_state");
        std::fs::write(&path, r#"{"policyName":"none","defaultCpuSet":"","checksum":1353318690}"#).unwrap();
        none.restore().unwrap();
        let known = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, r#"{"policyName":"none","defaultCpuSet":"","checksum":1}"#).unwrap();
        none.restore().unwrap();
        let renewed: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(renewed, serde_json::from_str::<Value>(&known).unwrap(), "what the next kubelet reads");
        let pod = guaranteed("u", &[("main", "2", "1Gi")]);
        none.allocate(&pod, &pod.spec.containers[0], None).unwrap();
        assert_eq!((none.of_container("u", "main"), none.has_exclusive(&pod)), (None, false));
        assert!(none.places(&pod, None).is_empty() && none.allocatable().is_empty());
    }
}
