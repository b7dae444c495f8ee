//! Files in which the kubelet remembers over a restart what pods were given and what the runtime was told.
//!
//! The outer form is upstream's (`data` as text, and its checksum); the inner one is this kubelet's own and carries a
//! version. An unreadable file is an error at start, so that nothing is resized by mistake.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api_machinery::json;
use api_types::core_v1::ResourceRequirements;
use serde_json::{Value, json};

use super::labels::fnv32;

/// Resources by name, in groups: containers in pods, or one value for each container id.
pub(crate) type Entries = BTreeMap<String, BTreeMap<String, ResourceRequirements>>;

const VERSION: u64 = 1;
const MODE: u32 = 0o600;
/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file is there and cannot be read.
    #[error("could not read checkpoint {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Its content is not what was written.
    #[error("checkpoint {} is corrupted: {why}", path.display())]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// One such file.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    path: PathBuf,
}

impl Checkpoint {
    pub(crate) fn new(root: &Path, name: &str) -> Self {
        Self { path: root.join(name) }
    }

    /// What was saved; nothing where there is no file.
    pub(crate) fn load(&self) -> Result<Entries, CheckpointError> {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        match std::fs::File::open(&self.path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Entries::new()),
            Err(source) => return Err(CheckpointError::Read { path: self.path.clone(), source }),
        }
        decode(&bytes).map_err(|why| CheckpointError::Corrupted { path: self.path.clone(), why })
    }

    /// Saves. A failure costs at most a resize after the next restart, so it is only told in the log.
    pub(crate) fn save(&self, entries: &Entries) {
        let made = self.path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let saved = made.and_then(|()| sys::fs::write_atomic(&self.path, encode(entries).as_bytes(), MODE));
        if let Err(error) = saved {
            tracing::error!(path = %self.path.display(), %error, "Saving a checkpoint failed");
        }
    }
}

fn encode(entries: &Entries) -> String {
    let resources = |given: &ResourceRequirements| -> Value {
        serde_json::from_str(&json::encode(given)).unwrap_or_else(|_| json!({}))
    };
    let group = |group: &BTreeMap<String, ResourceRequirements>| -> Value {
        group.iter().map(|(name, given)| (name.clone(), resources(given))).collect()
    };
    let all: Value = entries.iter().map(|(key, of)| (key.clone(), group(of))).collect();
    let data = json!({"version": VERSION, "entries": all}).to_string();
    json!({"checksum": fnv32(data.as_bytes()), "data": data}).to_string()
}

fn decode(bytes: &[u8]) -> Result<Entries, String> {
    let outer: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let data = outer.get("data").and_then(Value::as_str).ok_or("it has no data")?;
    if outer.get("checksum").and_then(Value::as_u64) != Some(u64::from(fnv32(data.as_bytes()))) {
        return Err("its checksum does not match".to_owned());
    }
    let inner: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
    if inner.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err("its version is not known".to_owned());
    }
    let mut entries = Entries::new();
    for (key, group) in inner.get("entries").and_then(Value::as_object).into_iter().flatten() {
        let own = entries.entry(key.clone()).or_default();
        for (name, value) in group.as_object().into_iter().flatten() {
            let mut given = ResourceRequirements::default();
            json::decode(value.to_string().as_bytes(), &mut given).map_err(|error| error.to_string())?;
            own.insert(name.clone(), given);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;

    use super::*;

    #[test]
    fn what_is_saved_is_loaded_and_damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = Checkpoint::new(&dir.path().join("new"), "state");
        assert!(file.load().unwrap().is_empty());
        let mut given = ResourceRequirements::default();
        given.requests.insert("cpu".into(), Quantity::parse("250m").unwrap());
        let entries: Entries = [("uid".to_owned(), [("main".to_owned(), given)].into())].into();
        file.save(&entries);
        assert_eq!(file.load().unwrap(), entries);
        let text = std::fs::read_to_string(&file.path).unwrap();
        for bad in [text.replace("250m", "251m"), "{}".into(), "no".into()] {
            std::fs::write(&file.path, bad).unwrap();
            assert!(matches!(file.load(), Err(CheckpointError::Corrupted { .. })));
        }
    }

    #[test]
    fn a_full_disk_keeps_what_was_saved_before() {
        let Some(disk) = crate::small_disk::SmallDisk::new() else { return };
        let file = Checkpoint::new(disk.path(), "state");
        let entries = |count: usize| -> Entries {
            let uids = (0..count).map(|number| format!("uid-{number}"));
            uids.map(|uid| (uid, [("main".to_owned(), ResourceRequirements::default())].into())).collect()
        };
        file.save(&entries(1));
        disk.fill();
        file.save(&entries(500));
        assert_eq!(file.load().unwrap(), entries(1));
        disk.make_room();
        file.save(&entries(500));
        assert_eq!(file.load().unwrap(), entries(500));
        let names: Vec<_> = std::fs::read_dir(disk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["state"], "nothing half-written is left");
    }
}
