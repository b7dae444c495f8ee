//! Files in which a manager of resources remembers over a restart who has what: JSON with a checksum.
//!
//! Form and checksum are upstream's, so that either kubelet goes on where the other one stopped.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::go_dump::{self, Member};

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;
const MODE: u32 = 0o600;
const CHECKSUM: &str = "checksum";
const POLICY: &str = "policyName";
/// Who has what.
pub(crate) const ENTRIES: &str = "entries";
/// Which pods have what as a whole (gate `PodLevelResourceManagers`).
pub(crate) const POD_ENTRIES: &str = "podEntries";

/// Who writes such a file.
#[derive(Debug)]
pub(crate) struct Owner {
    /// As errors name it.
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    /// Where only containers have something.
    pub(crate) plain: Record,
    /// Where pods have something as a whole, too.
    pub(crate) with_pods: Record,
}

/// A record in Go.
#[derive(Debug)]
pub(crate) struct Record {
    /// Its names in the checksum: as all kubelets accept it, and as only some releases do.
    pub(crate) go_types: [&'static str; 2],
    pub(crate) members: &'static [Member],
}

/// Why what is remembered cannot be taken over, in upstream's words. Somebody has to decide what becomes of the pods.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not restore state from checkpoint: {why}, please drain this node and delete the {} manager checkpoint file \
     {path:?} before restarting Kubelet", .owner.name
)]
pub struct StateError {
    owner: &'static Owner,
    path: String,
    why: String,
}

/// One such file.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    owner: &'static Owner,
    policy: &'static str,
    path: PathBuf,
    /// Whether pods have something as a whole.
    with_pods: bool,
}

impl StateFile {
    pub(crate) fn new(root: &Path, owner: &'static Owner, policy: &'static str, with_pods: bool) -> Self {
        Self { owner, policy, path: root.join(owner.file), with_pods }
    }

    pub(crate) fn error(&self, why: impl ToString) -> StateError {
        StateError { owner: self.owner, path: self.path.display().to_string(), why: why.to_string() }
    }

    /// What was saved; nothing where there is no file.
    pub(crate) fn load(&self) -> Result<Option<Value>, StateError> {
        let mut text = String::new();
        match std::fs::File::open(&self.path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(error)),
        }
        let value: Value = serde_json::from_str(&text).map_err(|error| self.error(error))?;
        let (wanted, found) = (self.policy, value[POLICY].as_str().unwrap_or_default());
        if found != wanted {
            return Err(
                self.error(format!("configured policy {wanted:?} differs from state checkpoint policy {found:?}"))
            );
        }
        Ok(Some(value))
    }

    /// What was loaded, as its owner reads it.
    pub(crate) fn decoded<T>(&self, state: &Value, decode: fn(&Value) -> Option<T>) -> Result<T, StateError> {
        let decoded = if self.is_intact(state) { decode(state) } else { None };
        decoded.ok_or_else(|| self.error("checkpoint is corrupted"))
    }

    /// Whether what was loaded is what was saved.
    pub(crate) fn is_intact(&self, state: &Value) -> bool {
        self.owner.vouches_for(state, self.with_pods)
    }

    /// Saves what a JSON object has. After a failure the file is as it was.
    pub(crate) fn save(&self, mut state: Value) -> std::io::Result<()> {
        state[POLICY] = json!(self.policy);
        let record = if self.with_pods { &self.owner.with_pods } else { &self.owner.plain };
        state[CHECKSUM] = json!(record.sums(&state)[0]);
        sys::fs::write_atomic(&self.path, state.to_string().as_bytes(), MODE)
    }
}

impl Owner {
    /// Whether a state is what was saved. Files without a sum are from before there were any. What pods have as a whole is
    /// taken over only where they may have something so.
    fn vouches_for(&self, state: &Value, with_pods: bool) -> bool {
        let has_pods = state[POD_ENTRIES].as_object().is_some_and(|pods| !pods.is_empty());
        if has_pods && !with_pods {
            return false;
        }
        let found = state[CHECKSUM].as_u64().unwrap_or_default();
        let is_of = |record: &Record| record.sums(state).into_iter().flatten().any(|sum| u64::from(sum) == found);
        found == 0 || is_of(&self.with_pods) || !has_pods && is_of(&self.plain)
    }
}

impl Record {
    /// The checksums of a state, by the names of the record.
    fn sums(&self, state: &Value) -> [Option<u32>; 2] {
        let mut state = state.clone();
        // The record starts with no entries, and a file that names none leaves it so.
        if let Some(object) = state.as_object_mut() {
            for entries in [ENTRIES, POD_ENTRIES] {
                object.entry(entries).or_insert_with(|| json!({}));
            }
        }
        self.go_types.map(|name| go_dump::checksum(name, self.members, &state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cpus, memory};

    #[test]
    fn what_is_saved_is_loaded_and_another_policy_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(dir.path(), &cpus::OWNER, "static", false);
        assert!(file.load().unwrap().is_none());
        file.save(json!({"defaultCpuSet": "0", "entries": {"u": {"c": "1"}}})).unwrap();
        let loaded = file.load().unwrap().unwrap();
        assert_eq!(loaded["entries"]["u"]["c"].as_str(), Some("1"));
        let error = StateFile::new(dir.path(), &cpus::OWNER, "none", false).load().unwrap_err().to_string();
        let path = dir.path().join("cpu_manager_state");
        assert_eq!(
            error,
            format!(
                "could not restore state from checkpoint: configured policy \"none\" differs from state checkpoint policy \
                 \"static\", please drain this node and delete the CPU manager checkpoint file {path:?} before restarting \
                 Kubelet"
            )
        );
        let mut damaged = loaded.clone();
        damaged["entries"]["u"]["c"] = json!("2");
        assert!(file.is_intact(&loaded) && !file.is_intact(&damaged));
        std::fs::write(&path, "{").unwrap();
        assert!(file.load().is_err());
    }

    /// Files that upstream's kubelets of several releases left on nodes.
    #[test]
    fn files_of_other_kubelets_are_read_and_written_alike() {
        let processors = [
            r#"{"policyName":"none","defaultCpuSet":"","checksum":1353318690}"#,
            r#"{"policyName":"static","defaultCpuSet":"2-15,17-31,34-47,49-63","checksum":4141502832}"#,
            r#"{"policyName":"static","defaultCpuSet":"0,10-15,25-31","entries":{"777870b5-c64f-42f5-9296-688b9dc212ba":{"container-1":"16-24"},"fb15e10a-b6a5-4aaa-8fcd-76c1aa64e6fd":{"container-1":"1-9"}},"checksum":318470969}"#,
        ];
        let memory = [
            r#"{"policyName":"None","machineState":{},"checksum":4236770233}"#,
            r#"{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}},"checksum":4215593881}"#,
        ];
        let files = processors.map(|text| (&cpus::OWNER, text)).into_iter();
        for (owner, text) in files.chain(memory.map(|text| (&memory::OWNER, text))) {
            let state: Value = serde_json::from_str(text).unwrap();
            let [sum, by_early_releases] = owner.plain.sums(&state);
            assert_eq!(sum.map(Value::from).as_ref(), Some(&state[CHECKSUM]), "{text}");
            for (sum, good) in
                [(Some(0), true), (by_early_releases, true), (by_early_releases.map(|sum| sum ^ 1), false)]
            {
                let mut state = state.clone();
                state[CHECKSUM] = json!(sum);
                for with_pods in [false, true] {
                    assert_eq!(owner.vouches_for(&state, with_pods), good, "{text}");
                }
            }
        }
    }

    /// Files of upstream's kubelets with the gate `PodLevelResourceManagers`.
    #[test]
    fn what_pods_have_as_a_whole_is_taken_over_with_the_gate_alone() {
        let processors = r#"{"policyName":"static","defaultCpuSet":"1-2","entries":{"pod1":{"container1":"5-6","container2":"3-4"}},"podEntries":{"pod2":{"cpuSet":"7-9"}},"checksum":2284712151}"#;
        let memory = r#"{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}},"podEntries":{"pod":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":512}]}},"checksum":1278640530}"#;
        for (owner, text) in [(&cpus::OWNER, processors), (&memory::OWNER, memory)] {
            let mut state: Value = serde_json::from_str(text).unwrap();
            assert!(owner.vouches_for(&state, true) && !owner.vouches_for(&state, false), "{text}");
            state[CHECKSUM] = json!(0);
            assert!(owner.vouches_for(&state, true) && !owner.vouches_for(&state, false), "{text}");
            state[CHECKSUM] = json!(1);
            assert!(!owner.vouches_for(&state, true), "{text}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = |with_pods| StateFile::new(dir.path(), &cpus::OWNER, "static", with_pods);
        for (written, read) in [(true, false), (false, true)] {
            file(written).save(json!({"defaultCpuSet": "0"})).unwrap();
            let state = file(read).load().unwrap().unwrap();
            assert!(file(read).is_intact(&state), "no pod has anything, so either kubelet goes on with it");
        }
    }
}
