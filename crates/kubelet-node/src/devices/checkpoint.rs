//! Which container has which devices, on disk for the next kubelet. Form and checksum are upstream's, so that either kubelet
//! goes on where the other one stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node_api::device_plugin::v1beta1::ContainerAllocateResponse;
use prost::Message as _;
use serde_json::{Map, Value, json};

use super::pool::{Assignment, Pool, Slot};
use crate::go_dump::{self, Member, Shape, members};

const FILE: &str = "kubelet_internal_checkpoint";
/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// The record in Go.
const GO_TYPE: &str = "checkpoint.checkpointData";
const DATA: &[Member] = members! {
    "PodDeviceEntries" "[]checkpoint.PodDevicesEntry" "PodDeviceEntries" Shape::List(&Shape::Struct(ENTRY));
    "RegisteredDevices" "map[string][]string" "RegisteredDevices" Shape::Map(&Shape::List(&Shape::Plain));
};
const ENTRY: &[Member] = members! {
    "PodUID" "string" "PodUID" Shape::Plain;
    "ContainerName" "string" "ContainerName" Shape::Plain;
    "ResourceName" "string" "ResourceName" Shape::Plain;
    "DeviceIDs" "checkpoint.DevicesPerNUMA" "DeviceIDs" Shape::Numbered(&Shape::List(&Shape::Plain));
    "AllocResp" "[]uint8" "AllocResp" Shape::Bytes;
};

/// Whether an earlier kubelet knew of devices whose plugins have their sockets in this directory.
#[must_use]
pub fn were_known(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

/// What is in the file: assignments, and the resources that were registered.
pub(super) type Restored = (BTreeMap<Slot, Assignment>, Vec<String>);

/// The file.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint(PathBuf);

impl Checkpoint {
    pub(super) fn new(directory: &Path) -> Self {
        Self(directory.join(FILE))
    }

    /// What was saved. What cannot be read is told in the log, as upstream does: devices of plugins that come back are
    /// known again, and who has them is not.
    pub(super) fn load(&self) -> Restored {
        use std::io::Read as _;
        let mut text = String::new();
        match std::fs::File::open(&self.0).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Restored::default(),
            Err(error) => {
                tracing::error!(path = %self.0.display(), %error, "The checkpoint of devices cannot be read");
                return Restored::default();
            }
        }
        decode(&text).unwrap_or_else(|| {
            tracing::error!(path = %self.0.display(), "The checkpoint of devices is corrupted; nobody has any");
            Restored::default()
        })
    }

    /// # Errors
    /// The file is as it was.
    pub(super) fn save(&self, pool: &Pool) -> std::io::Result<()> {
        sys::fs::write_atomic(&self.0, encode(pool).as_bytes(), 0o600)
    }
}

fn encode(pool: &Pool) -> String {
    let answered = pool.assigned.iter().filter_map(|(slot, had)| Some((slot, had, had.response.as_ref()?)));
    let entries: Vec<Value> = answered
        .map(|(slot, had, response)| {
            json!({
                "PodUID": slot.uid, "ContainerName": slot.container, "ResourceName": slot.resource,
                "DeviceIDs": had.devices, "AllocResp": STANDARD.encode(response.encode_to_vec()),
            })
        })
        .collect();
    let registered: BTreeMap<&String, Vec<&String>> =
        pool.resources.iter().map(|(name, resource)| (name, resource.healthy().collect())).collect();
    // A list without entries is none for upstream, in the file and in the sum.
    let entries = if entries.is_empty() { Value::Null } else { entries.into() };
    let data = json!({"PodDeviceEntries": entries, "RegisteredDevices": registered});
    let sum = go_dump::checksum(GO_TYPE, DATA, &data);
    json!({"Data": data, "Checksum": sum}).to_string()
}

fn decode(text: &str) -> Option<Restored> {
    let file: Value = serde_json::from_str(text).ok()?;
    let data = file.get("Data")?;
    if file.get("Checksum")?.as_u64()? != u64::from(go_dump::checksum(GO_TYPE, DATA, data)?) {
        return None;
    }
    let mut assigned = BTreeMap::new();
    for entry in data["PodDeviceEntries"].as_array().into_iter().flatten() {
        let member = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
        let slot =
            Slot { uid: member("PodUID")?, container: member("ContainerName")?, resource: member("ResourceName")? };
        let devices = serde_json::from_value::<BTreeMap<String, Vec<String>>>(entry.get("DeviceIDs")?.clone()).ok()?;
        let devices = devices.into_iter().map(|(node, ids)| Some((node.parse().ok()?, ids)));
        let response = STANDARD.decode(member("AllocResp")?).ok()?;
        let response = ContainerAllocateResponse::decode(response.as_slice()).ok()?;
        let devices = devices.collect::<Option<_>>()?;
        assigned.insert(slot, Assignment { devices, response: Some(response) });
    }
    let names = data["RegisteredDevices"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
    Some((assigned, names))
}

#[cfg(test)]
mod tests {
    use node_api::device_plugin::v1beta1::{Device, ListAndWatchResponse};

    use super::*;

    #[test]
    fn what_is_saved_is_read_and_what_is_damaged_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = Checkpoint::new(dir.path());
        assert_eq!(file.load(), Restored::default());
        let mut pool = Pool::default();
        let device = Device { id: "0".into(), health: "Healthy".into(), topology: None };
        pool.list("example.com/gpu", ListAndWatchResponse { devices: vec![device] });
        let slot = Slot { uid: "u".into(), container: "c".into(), resource: "example.com/gpu".into() };
        pool.assign(&slot, &["0".to_owned()].into());
        let response = ContainerAllocateResponse { envs: [("A".into(), "b".into())].into(), ..Default::default() };
        pool.assigned.get_mut(&slot).unwrap().response = Some(response);
        file.save(&pool).unwrap();
        assert_eq!(file.load(), (pool.assigned.clone(), vec!["example.com/gpu".to_owned()]));

        let path = dir.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["Data"]["PodDeviceEntries"][0]["DeviceIDs"], json!({"-1": ["0"]}));
        for damaged in [text.replace("\"u\"", "\"v\""), text.replace("Checksum", "Sum"), String::new(), "[]".into()] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(file.load(), Restored::default());
        }
    }

    /// Files that upstream's kubelets left on nodes.
    #[test]
    fn files_of_other_kubelets_are_read() {
        let none = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}},"Checksum":3952659280}"#;
        assert_eq!(decode(none), Some((BTreeMap::new(), vec!["nvidia.com/gpu".to_owned()])));
        let one = r#"{"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283185c3","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum":3660592824}"#;
        let (assigned, _) = decode(one).unwrap();
        let response = assigned.values().next().and_then(|had| had.response.clone()).unwrap();
        assert_eq!(response.envs, [("NVIDIA_VISIBLE_DEVICES".to_owned(), "tegra".to_owned())].into());
        let mut pool = Pool::default();
        let devices = vec![Device { id: "tegra".into(), health: "Healthy".into(), topology: None }];
        pool.list("nvidia.com/gpu", ListAndWatchResponse { devices });
        pool.assigned = assigned;
        let (own, theirs): (Value, Value) =
            (serde_json::from_str(&encode(&pool)).unwrap(), serde_json::from_str(one).unwrap());
        assert_eq!(own, theirs, "written alike");
        pool.assigned.clear();
        assert_eq!(decode(&encode(&pool)), Some((BTreeMap::new(), vec!["nvidia.com/gpu".to_owned()])));
    }
}
