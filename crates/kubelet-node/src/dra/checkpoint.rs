//! The claims in use, on disk for the next kubelet. The form is upstream's, checksum included, so that either kubelet goes
//! on where the other one stopped.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::claim_infos::{ClaimInfo, ClaimInfos, PreparedDevice};

const FILE: &str = "dra_manager_state";
const KIND: &str = "DRACheckpoint";
const VERSION: &str = "checkpoint.dra.kubelet.k8s.io/v1";
const MODE: u32 = 0o600;
/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Why the claims in use are not known, or cannot be written down.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file is there and cannot be read.
    #[error("could not read checkpoint {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is to be remembered cannot be written.
    #[error("could not write checkpoint {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its content is not what was written.
    #[error("checkpoint {} is corrupted: {why}", path.display())]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The file.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint(PathBuf);

impl Checkpoint {
    pub(super) fn new(root: &Path) -> Self {
        Self(root.join(FILE))
    }

    /// What was saved; nothing where there is no file.
    ///
    /// # Errors
    /// It cannot be told which claims are in use: somebody has to look, as devices may be in use that nobody knows of.
    pub(super) fn load(&self) -> Result<ClaimInfos, StateError> {
        use std::io::Read as _;
        let mut text = String::new();
        match std::fs::File::open(&self.0).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ClaimInfos::default()),
            Err(source) => return Err(StateError::Read { path: self.0.clone(), source }),
        }
        decode(&text).map_err(|why| StateError::Corrupted { path: self.0.clone(), why })
    }

    /// # Errors
    /// The file is as it was.
    pub(super) fn save(&self, infos: &ClaimInfos) -> Result<(), StateError> {
        let made = self.0.parent().map_or(Ok(()), std::fs::create_dir_all);
        let saved = made.and_then(|()| sys::fs::write_atomic(&self.0, encode(infos).as_bytes(), MODE));
        saved.map_err(|source| StateError::Write { path: self.0.clone(), source })
    }
}

fn encode(infos: &ClaimInfos) -> String {
    let device = |device: &PreparedDevice| {
        json!({
            "PoolName": device.pool, "DeviceName": device.device, "ShareID": device.share_id,
            "RequestNames": device.requests, "CDIDeviceIDs": device.cdi_ids,
        })
    };
    let claims = infos.0.iter().map(|((namespace, name), info)| {
        let pods: Map<String, Value> = info.pods.iter().map(|uid| (uid.clone(), json!({}))).collect();
        let drivers = info.drivers.iter().map(|(driver, devices)| {
            let devices: Vec<Value> = devices.iter().map(device).collect();
            (driver.clone(), json!({"Devices": devices}))
        });
        let drivers: Map<String, Value> = drivers.collect();
        json!({
            "ClaimUID": info.uid, "ClaimName": name, "Namespace": namespace, "PodUIDs": pods, "DriverState": drivers,
        })
    });
    let claims: Vec<Value> = claims.collect();
    let data = json!({"kind": KIND, "apiVersion": VERSION, "ClaimInfoStateList": claims}).to_string();
    json!({"Data": data, "Checksum": crc32(data.as_bytes())}).to_string()
}

fn decode(text: &str) -> Result<ClaimInfos, &'static str> {
    let file: Value = serde_json::from_str(text).map_err(|_| "it is no JSON")?;
    let data = file.get("Data").and_then(Value::as_str).ok_or("it has no data")?;
    if file.get("Checksum").and_then(Value::as_u64) != Some(u64::from(crc32(data.as_bytes()))) {
        return Err("its checksum does not match");
    }
    let data: Value = serde_json::from_str(data).map_err(|_| "its data is no JSON")?;
    if data["kind"] != KIND || data["apiVersion"] != VERSION {
        return Err("its version is not known");
    }
    let claims = data["ClaimInfoStateList"].as_array().into_iter().flatten();
    let claims = claims.map(|entry| {
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let key = (text("Namespace")?, text("ClaimName")?);
        let drivers = entry["DriverState"].as_object().into_iter().flatten();
        let drivers = drivers.map(|(driver, state)| (driver.clone(), devices(&state["Devices"])));
        let pods = entry["PodUIDs"].as_object().into_iter().flatten().map(|(uid, _)| uid.clone()).collect();
        Some((key, ClaimInfo { uid: text("ClaimUID")?, pods, drivers: drivers.collect(), prepared: false }))
    });
    claims.collect::<Option<_>>().map(ClaimInfos).ok_or("a claim in it has no name")
}

/// The other kubelet writes nothing at all where there are none.
fn devices(list: &Value) -> Vec<PreparedDevice> {
    let texts =
        |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let device = |device: &Value| {
        let text = |name: &str| device[name].as_str().map(str::to_owned);
        PreparedDevice {
            pool: text("PoolName").unwrap_or_default(),
            device: text("DeviceName").unwrap_or_default(),
            share_id: text("ShareID"),
            requests: texts(&device["RequestNames"]),
            cdi_ids: texts(&device["CDIDeviceIDs"]),
        }
    };
    list.as_array().into_iter().flatten().map(device).collect()
}

/// The sum of IEEE 802.3, bit by bit: there is little to sum up.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let step = |crc: u32, _| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_and_what_is_damaged_is_refused() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of this sum");
        let dir = tempfile::tempdir().unwrap();
        let file = Checkpoint::new(&dir.path().join("root"));
        assert_eq!(file.load().unwrap(), ClaimInfos::default());
        let device = PreparedDevice {
            pool: "pool".into(),
            device: "gpu-0".into(),
            share_id: None,
            requests: vec!["gpu".into()],
            cdi_ids: vec!["example.com/gpu=0".into()],
        };
        let shared = PreparedDevice { share_id: Some("part".into()), ..device.clone() };
        let info = ClaimInfo {
            uid: "c1".into(),
            pods: ["p1".to_owned(), "p2".to_owned()].into(),
            drivers: [("gpu.example.com".to_owned(), vec![device, shared]), ("late".to_owned(), Vec::new())].into(),
            prepared: false,
        };
        let infos = ClaimInfos([(("ns".to_owned(), "claim".to_owned()), info)].into());
        file.save(&infos).unwrap();
        assert_eq!(file.load().unwrap(), infos);

        let path = dir.path().join("root").join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        for (damaged, why) in [
            (text.replace("gpu-0", "gpu-1"), "its checksum does not match"),
            (text.replace("\"Data\"", "\"data\""), "it has no data"),
            (String::new(), "it is no JSON"),
            (json!({"Data": "{}", "Checksum": crc32(b"{}")}).to_string(), "its version is not known"),
        ] {
            std::fs::write(&path, damaged).unwrap();
            let error = file.load().unwrap_err().to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }

    #[test]
    fn a_file_of_the_other_kubelet_is_read() {
        let data = r#"{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[{"ClaimUID":"u","ClaimName":"c","Namespace":"ns","PodUIDs":{"p":{}},"DriverState":{"a":{"Devices":null},"b":{"Devices":[{"PoolName":"p","DeviceName":"d","ShareID":null,"RequestNames":["r"],"CDIDeviceIDs":["x=y"]}]}}}]}"#;
        let infos = decode(&json!({"Data": data, "Checksum": crc32(data.as_bytes())}).to_string()).unwrap();
        let info = &infos.0[&("ns".to_owned(), "c".to_owned())];
        assert!(info.drivers["a"].is_empty() && info.pods.contains("p"));
        assert_eq!(info.drivers["b"][0].cdi_ids, ["x=y"]);
    }
}
