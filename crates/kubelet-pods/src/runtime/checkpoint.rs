//! Files in which the kubelet remembers over a restart what pods were given and what the runtime was told.
//!
//! The form is upstream's, so that either kubelet goes on where the other one stopped: `data` as text with its checksum,
//! in it each pod's resources by container. An unreadable file is an error at start, so that nothing is resized by
//! mistake.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api_machinery::json::{self, DecodeError};
use api_types::core_v1::ResourceRequirements;
use component_helpers::fnv::fnv32;
use serde_json::{Value, json};

use super::labels::text_checksum;

/// What a pod's containers have, by name; the pod's own under the empty name.
pub type Given = BTreeMap<String, ResourceRequirements>;
/// The same of all pods, by uid.
pub type Entries = BTreeMap<String, Given>;

/// Names in the file.
const ENTRIES: &str = "entries";
const OF_CONTAINERS: &str = "ContainerResources";
const OF_POD: &str = "PodLevelResources";
/// The version that this kubelet's own form, before it was upstream's, said it had.
const OWN_VERSION: u64 = 1;
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
    /// What is to be remembered cannot be written.
    #[error("could not write checkpoint {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Who has processors or memory for itself is not known.
    #[error(transparent)]
    Resources(#[from] kubelet_node::cpus::StateError),
    /// Its content is not what was written.
    #[error("checkpoint {} is corrupted: {why}", path.display())]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Corruption,
    },
}

/// What is wrong with a checkpoint's content.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The text that has been summed up is not there.
    #[error("it has no data")]
    NoData,
    /// It says that it has another form.
    #[error("its version is not known")]
    Version,
    /// It is not what was summed up.
    #[error("its checksum does not match")]
    Checksum,
    /// What a pod was given is none of that type.
    #[error(transparent)]
    Type(#[from] DecodeError),
}

/// One such file.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    path: PathBuf,
}

impl Checkpoint {
    pub fn new(root: &Path, name: &str) -> Self {
        Self { path: root.join(name) }
    }

    /// What was saved; nothing where there is no file.
    pub fn load(&self) -> Result<Entries, CheckpointError> {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        match std::fs::File::open(&self.path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Entries::new()),
            Err(source) => return Err(CheckpointError::Read { path: self.path.clone(), source }),
        }
        decode(&bytes).map_err(|why| CheckpointError::Corrupted { path: self.path.clone(), why })
    }

    /// Saves; after a failure the file is as it was.
    pub fn save(&self, entries: &Entries) -> Result<(), CheckpointError> {
        let made = self.path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let saved = made.and_then(|()| sys::fs::write_atomic(&self.path, encode(entries).as_bytes(), MODE));
        saved.map_err(|source| CheckpointError::Write { path: self.path.clone(), source })
    }

    /// Saves what has happened already: a failure costs at most a resize after the next restart, so it is only told in
    /// the log.
    pub fn note(&self, entries: &Entries) {
        if let Err(error) = self.save(entries) {
            tracing::error!(%error, "Saving a checkpoint failed");
        }
    }
}

fn encode(entries: &Entries) -> String {
    let resources = |given: &ResourceRequirements| -> Value {
        serde_json::from_str(&json::encode(given)).unwrap_or_else(|_| json!({}))
    };
    let pod = |given: &Given| -> Value {
        let containers = given.iter().filter(|(name, _)| !name.is_empty());
        let containers: Value = containers.map(|(name, given)| (name.clone(), resources(given))).collect();
        let mut out = json!({OF_CONTAINERS: containers});
        if let Some(own) = given.get("") {
            out[OF_POD] = resources(own);
        }
        out
    };
    let all: Value = entries.iter().map(|(uid, given)| (uid.clone(), pod(given))).collect();
    let data = json!({ENTRIES: all}).to_string();
    json!({"data": data, "checksum": text_checksum(&data)}).to_string()
}

/// A member by name, whatever its case, as Go reads.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let members = object.as_object()?;
    members.get(name).or_else(|| members.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

fn decode(bytes: &[u8]) -> Result<Entries, Corruption> {
    let outer: Value = serde_json::from_slice(bytes)?;
    let data = outer.get("data").and_then(Value::as_str).ok_or(Corruption::NoData)?;
    let inner: Value = serde_json::from_str(data)?;
    let checksum = match inner.get("version").map(Value::as_u64) {
        None => text_checksum(data),
        Some(Some(OWN_VERSION)) => fnv32(data.as_bytes()),
        Some(_) => return Err(Corruption::Version),
    };
    if outer.get("checksum").and_then(Value::as_u64) != Some(u64::from(checksum)) {
        return Err(Corruption::Checksum);
    }
    let all = member(&inner, ENTRIES).and_then(Value::as_object);
    all.into_iter().flatten().map(|(uid, pod)| Ok((uid.clone(), decode_pod(pod)?))).collect()
}

fn decode_pod(pod: &Value) -> Result<Given, Corruption> {
    let mut out = Given::new();
    let mut take = |name: &str, value: &Value| {
        let mut given = ResourceRequirements::default();
        json::decode(value.to_string().as_bytes(), &mut given)?;
        out.insert(name.to_owned(), given);
        Ok::<_, DecodeError>(())
    };
    let containers = member(pod, OF_CONTAINERS);
    // The older form has the containers where the newer one says what they are.
    for (name, value) in containers.unwrap_or(pod).as_object().into_iter().flatten() {
        take(name, value)?;
    }
    if let Some(own) = member(pod, OF_POD).filter(|own| containers.is_some() && !own.is_null()) {
        take("", own)?;
    }
    Ok(out)
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
        file.save(&entries).unwrap();
        assert_eq!(file.load().unwrap(), entries);
        let text = std::fs::read_to_string(&file.path).unwrap();
        for bad in [text.replace("250m", "251m"), "{}".into(), "no".into()] {
            std::fs::write(&file.path, bad).unwrap();
            assert!(matches!(file.load(), Err(CheckpointError::Corrupted { .. })));
        }
    }

    #[test]
    fn the_form_is_upstreams() {
        let resources = |cpu: &str| {
            let mut given = ResourceRequirements::default();
            given.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
            given
        };
        let given: Given = [("main".to_owned(), resources("250m")), (String::new(), resources("1"))].into();
        let entries: Entries = [("u1".to_owned(), given)].into();
        let outer: Value = serde_json::from_str(&encode(&entries)).unwrap();
        let data = outer["data"].as_str().unwrap();
        let wanted = r#"{"entries":{"u1":{"ContainerResources":{"main":{"requests":{"cpu":"250m"}}},"PodLevelResources":{"requests":{"cpu":"1"}}}}}"#;
        assert_eq!(data, wanted);
        assert_eq!(outer["checksum"], text_checksum(wanted));

        let file = |data: &str, checksum: u32| json!({"data": data, "checksum": checksum}).to_string();
        let by_upstream = r#"{"entries":{"u1":{"ContainerResources":{"main":{"requests":{"cpu":"250m"}}},"podLevelResources":{"requests":{"cpu":"1"}}}}}"#;
        assert_eq!(decode(file(by_upstream, text_checksum(by_upstream)).as_bytes()).unwrap(), entries);
        let older = r#"{"entries":{"u1":{"main":{"requests":{"cpu":"250m"}},"":{"requests":{"cpu":"1"}}}}}"#;
        assert_eq!(decode(file(older, text_checksum(older)).as_bytes()).unwrap(), entries);
        let own = format!("{},\"version\":1}}", older.strip_suffix('}').unwrap());
        assert_eq!(decode(file(&own, fnv32(own.as_bytes())).as_bytes()).unwrap(), entries);
        assert!(decode(file(by_upstream, fnv32(by_upstream.as_bytes())).as_bytes()).is_err());
    }

    #[test]
    fn a_full_disk_keeps_what_was_saved_before() {
        let Some(disk) = crate::small_disk::SmallDisk::new() else { return };
        let file = Checkpoint::new(disk.path(), "state");
        let entries = |count: usize| -> Entries {
            let uids = (0..count).map(|number| format!("uid-{number}"));
            uids.map(|uid| (uid, [("main".to_owned(), ResourceRequirements::default())].into())).collect()
        };
        file.save(&entries(1)).unwrap();
        disk.fill();
        assert!(matches!(file.save(&entries(500)), Err(CheckpointError::Write { .. })));
        assert_eq!(file.load().unwrap(), entries(1));
        disk.make_room();
        file.save(&entries(500)).unwrap();
        assert_eq!(file.load().unwrap(), entries(500));
        let names: Vec<_> = std::fs::read_dir(disk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["state"], "nothing half-written is left");
    }
}
