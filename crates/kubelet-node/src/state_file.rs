//! Files in which a manager of resources remembers over a restart who has what: JSON with a checksum.
//!
//! The form is upstream's, but for the checksum, which upstream takes over a dump of its process's memory: here it is over
//! the text of everything else. A file of the other kubelet does not match, so that its node has to be drained first.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;
const MODE: u32 = 0o600;
const CHECKSUM: &str = "checksum";
const POLICY: &str = "policyName";

/// Who writes such a file, as errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Cpu,
    Memory,
}

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "memory",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Cpu => "cpu_manager_state",
            Self::Memory => "memory_manager_state",
        }
    }
}

/// Why what is remembered cannot be taken over, in upstream's words. Somebody has to decide what becomes of the pods.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not restore state from checkpoint: {why}, please drain this node and delete the {} manager checkpoint file \
     {path:?} before restarting Kubelet", .owner.name()
)]
pub struct StateError {
    owner: Owner,
    path: String,
    why: String,
}

/// One such file.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    owner: Owner,
    policy: &'static str,
    path: PathBuf,
}

impl StateFile {
    pub(crate) fn new(root: &Path, owner: Owner, policy: &'static str) -> Self {
        Self { owner, policy, path: root.join(owner.file()) }
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

    /// Saves what a JSON object has. After a failure the file is as it was.
    pub(crate) fn save(&self, mut state: Value) -> std::io::Result<()> {
        state[POLICY] = json!(self.policy);
        state[CHECKSUM] = json!(sum_of(&state));
        sys::fs::write_atomic(&self.path, state.to_string().as_bytes(), MODE)
    }
}

/// Whether what was loaded is what was saved.
pub(crate) fn is_intact(state: &Value) -> bool {
    state[CHECKSUM].as_u64() == Some(sum_of(state))
}

/// Of everything but the checksum itself.
fn sum_of(state: &Value) -> u64 {
    let mut bare = state.clone();
    if let Some(members) = bare.as_object_mut() {
        members.remove(CHECKSUM);
    }
    checksum(&bare)
}

/// Of a value as this kubelet writes it: members in order of their names. Every reader of JSON takes it as a number.
pub(crate) fn checksum(value: &Value) -> u64 {
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest.iter().take(6).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded_and_another_policy_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(dir.path(), Owner::Cpu, "static");
        assert!(file.load().unwrap().is_none());
        file.save(json!({"entries": {"u": {"c": "1"}}})).unwrap();
        let loaded = file.load().unwrap().unwrap();
        assert_eq!((loaded["entries"]["u"]["c"].as_str(), is_intact(&loaded)), (Some("1"), true));
        let mut damaged = loaded.clone();
        damaged["entries"]["u"]["c"] = json!("2");
        assert!(!is_intact(&damaged) && !is_intact(&json!({})));
        let error = StateFile::new(dir.path(), Owner::Cpu, "none").load().unwrap_err().to_string();
        let path = dir.path().join("cpu_manager_state");
        assert_eq!(
            error,
            format!(
                "could not restore state from checkpoint: configured policy \"none\" differs from state checkpoint policy \
                 \"static\", please drain this node and delete the CPU manager checkpoint file {path:?} before restarting \
                 Kubelet"
            )
        );
        std::fs::write(&path, "{").unwrap();
        assert!(file.load().is_err());
    }
}
