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

/// Who writes such a file.
#[derive(Debug)]
pub(crate) struct Owner {
    /// As errors name it.
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    /// The record in Go: as all kubelets of the same and of older releases accept its name in the checksum, then as
    /// early ones of v1.36 write it.
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
}

impl StateFile {
    pub(crate) fn new(root: &Path, owner: &'static Owner, policy: &'static str) -> Self {
        Self { owner, policy, path: root.join(owner.file) }
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
        self.owner.vouches_for(state)
    }

    /// Saves what a JSON object has. After a failure the file is as it was.
    pub(crate) fn save(&self, mut state: Value) -> std::io::Result<()> {
        state[POLICY] = json!(self.policy);
        state[CHECKSUM] = json!(self.owner.sum(self.owner.go_types[0], &state));
        sys::fs::write_atomic(&self.path, state.to_string().as_bytes(), MODE)
    }
}

impl Owner {
    /// Whether a state is what was saved. Files without a sum are from before there were any.
    fn vouches_for(&self, state: &Value) -> bool {
        let found = state[CHECKSUM].as_u64().unwrap_or_default();
        found == 0 || self.go_types.iter().any(|name| self.sum(name, state).map(u64::from) == Some(found))
    }

    fn sum(&self, go_type: &str, state: &Value) -> Option<u32> {
        let mut state = state.clone();
        // The record starts with no entries, and a file that names none leaves it so.
        if let Some(members) = state.as_object_mut() {
            members.entry(ENTRIES).or_insert_with(|| json!({}));
        }
        go_dump::checksum(go_type, self.members, &state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cpus, memory};

    #[test]
    fn what_is_saved_is_loaded_and_another_policy_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(dir.path(), &cpus::OWNER, "static");
        assert!(file.load().unwrap().is_none());
        file.save(json!({"defaultCpuSet": "0", "entries": {"u": {"c": "1"}}})).unwrap();
        let loaded = file.load().unwrap().unwrap();
        assert_eq!(loaded["entries"]["u"]["c"].as_str(), Some("1"));
        let error = StateFile::new(dir.path(), &cpus::OWNER, "none").load().unwrap_err().to_string();
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
            assert_eq!(
                owner.sum(owner.go_types[0], &state).map(Value::from).as_ref(),
                Some(&state[CHECKSUM]),
                "{text}"
            );
            let by_early_releases = owner.sum(owner.go_types[1], &state);
            for (sum, good) in
                [(Some(0), true), (by_early_releases, true), (by_early_releases.map(|sum| sum ^ 1), false)]
            {
                let mut state = state.clone();
                state[CHECKSUM] = json!(sum);
                assert_eq!(owner.vouches_for(&state), good, "{text}");
            }
        }
    }
}
