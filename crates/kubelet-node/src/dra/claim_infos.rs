//! What is known of the claims that pods of this node use. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api_types::resource_v1::ResourceClaim;
use node_api::dra::v1;

/// Namespace and name of a claim.
pub(super) type ClaimKey = (String, String);

/// A device that a driver has made ready for a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PreparedDevice {
    pub(super) pool: String,
    pub(super) device: String,
    /// The part of the device that the claim has, where others share it.
    pub(super) share_id: Option<String>,
    /// The requests of the claim that it is for; none for all of them.
    pub(super) requests: Vec<String>,
    /// What the runtime gives to containers.
    pub(super) cdi_ids: Vec<String>,
}

impl PreparedDevice {
    /// Whether who refers to this request of the claim has the device; an empty request is all of them.
    pub(super) fn serves(&self, request: &str) -> bool {
        // A driver may name the alternative that was chosen; containers name the request.
        let of = |own: &String| own.split_once('/').map_or(own.as_str(), |(main, _)| main) == request;
        request.is_empty() || self.requests.is_empty() || self.requests.iter().any(of)
    }
}

impl From<v1::Device> for PreparedDevice {
    fn from(device: v1::Device) -> Self {
        Self {
            pool: device.pool_name,
            device: device.device_name,
            share_id: device.share_id,
            requests: device.request_names,
            cdi_ids: device.cdi_device_ids,
        }
    }
}

/// A claim that pods of this node use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClaimInfo {
    pub(super) uid: String,
    /// The uids of the pods.
    pub(super) pods: BTreeSet<String>,
    /// Its devices by driver. A driver without any has not been asked, or has not answered.
    pub(super) drivers: BTreeMap<String, Vec<PreparedDevice>>,
    /// All its drivers have made it ready for this kubelet. What an earlier one had made ready is asked for again, where
    /// another sandbox is made: its driver may have been started anew.
    pub(super) prepared: bool,
}

/// A claim of this name is being used that is another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("old ResourceClaim with same name {name} and different UID {uid} still exists (previous pod force-deleted?!)")]
pub(super) struct Namesake {
    name: String,
    uid: String,
}

/// What one driver is asked about.
pub(super) type Batches = BTreeMap<String, Vec<v1::Claim>>;

/// All claims that pods of this node use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClaimInfos(pub(super) BTreeMap<ClaimKey, ClaimInfo>);

pub(super) fn key_of(claim: &ResourceClaim) -> ClaimKey {
    (claim.metadata.namespace.clone(), claim.metadata.name.clone())
}

/// The drivers that a claim has devices of.
pub(super) fn drivers_of(claim: &ResourceClaim) -> BTreeSet<&str> {
    let allocation = claim.status.allocation.iter();
    allocation.flat_map(|allocation| &allocation.devices.results).map(|result| result.driver.as_str()).collect()
}

impl ClaimInfos {
    /// A pod uses a claim from now on. Returns whether drivers have to be asked to make it ready.
    pub(super) fn refer(&mut self, claim: &ResourceClaim, pod_uid: &str) -> Result<bool, Namesake> {
        let fresh = || ClaimInfo {
            uid: claim.metadata.uid.clone(),
            drivers: drivers_of(claim).into_iter().map(|driver| (driver.to_owned(), Vec::new())).collect(),
            ..ClaimInfo::default()
        };
        let info = self.0.entry(key_of(claim)).or_insert_with(fresh);
        if info.uid != claim.metadata.uid {
            return Err(Namesake { name: claim.metadata.name.clone(), uid: info.uid.clone() });
        }
        info.pods.insert(pod_uid.to_owned());
        Ok(!info.prepared)
    }

    /// The claims that a pod uses.
    pub(super) fn of_pod(&self, pod_uid: &str) -> Vec<ClaimKey> {
        self.0.iter().filter(|(_, info)| info.pods.contains(pod_uid)).map(|(key, _)| key.clone()).collect()
    }

    /// What each driver of these claims is asked about.
    pub(super) fn batches(&self, keys: &[ClaimKey]) -> Batches {
        let mut batches = Batches::new();
        for key in keys {
            let Some(info) = self.0.get(key) else { continue };
            for driver in info.drivers.keys() {
                let (namespace, name) = key.clone();
                let claim = v1::Claim { namespace, name, uid: info.uid.clone() };
                batches.entry(driver.clone()).or_default().push(claim);
            }
        }
        batches
    }

    /// A driver has made a claim ready.
    pub(super) fn set_devices(&mut self, key: &ClaimKey, driver: &str, devices: Vec<PreparedDevice>) {
        if let Some(info) = self.0.get_mut(key) {
            info.drivers.insert(driver.to_owned(), devices);
        }
    }

    /// All drivers of these claims have made them ready; or, from now on, not all any more.
    pub(super) fn set_prepared(&mut self, keys: &[ClaimKey], prepared: bool) {
        for key in keys {
            if let Some(info) = self.0.get_mut(key) {
                info.prepared = prepared;
            }
        }
    }

    /// A pod uses claims no more. Returns those that nobody uses then: they stay until drivers have let go of them, and so
    /// does what this pod has of them.
    pub(super) fn release(&mut self, pod_uid: &str, keys: &[ClaimKey]) -> Vec<ClaimKey> {
        let mut last = Vec::new();
        for key in keys {
            match self.0.get_mut(key) {
                Some(info) if info.pods.len() > 1 => drop(info.pods.remove(pod_uid)),
                Some(info) if info.pods.contains(pod_uid) => last.push(key.clone()),
                _ => {}
            }
        }
        last
    }

    /// The pods that use anything.
    pub(super) fn pods(&self) -> BTreeSet<String> {
        self.0.values().flat_map(|info| &info.pods).cloned().collect()
    }

    /// The pods that use a device of a driver.
    pub(super) fn users(&self, driver: &str, pool: &str, device: &str) -> BTreeSet<String> {
        let has = |info: &&ClaimInfo| {
            let mut devices = info.drivers.get(driver).into_iter().flatten();
            devices.any(|own| own.pool == pool && own.device == device)
        };
        self.0.values().filter(has).flat_map(|info| &info.pods).cloned().collect()
    }

    /// How many claims are in use, by driver.
    pub(super) fn count_by_driver(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for driver in self.0.values().flat_map(|info| info.drivers.keys()) {
            *counts.entry(driver.as_str()).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use api_types::resource_v1::{AllocationResult, DeviceRequestAllocationResult};

    use super::*;

    fn claim(name: &str, uid: &str, drivers: &[&str]) -> ResourceClaim {
        let mut claim = ResourceClaim::default();
        claim.metadata.namespace = "ns".into();
        (claim.metadata.name, claim.metadata.uid) = (name.into(), uid.into());
        let result = |driver: &&str| DeviceRequestAllocationResult {
            driver: (*driver).to_owned(),
            ..DeviceRequestAllocationResult::default()
        };
        let mut allocation = AllocationResult::default();
        allocation.devices.results = drivers.iter().map(result).collect();
        claim.status.allocation = Some(allocation);
        claim
    }

    #[test]
    fn the_last_user_of_a_claim_lets_go_of_it() {
        let mut infos = ClaimInfos::default();
        let shared = claim("shared", "1", &["a", "b", "a"]);
        assert_eq!(infos.refer(&shared, "p1"), Ok(true));
        assert_eq!(infos.refer(&shared, "p2"), Ok(true), "it is not ready yet");
        assert_eq!(infos.refer(&claim("own", "2", &["a"]), "p1"), Ok(true));
        let keys = infos.of_pod("p1");
        let asked = infos.batches(&keys);
        let names = |driver: &str| asked[driver].iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>();
        assert_eq!((names("a"), names("b")), (vec!["own", "shared"], vec!["shared"]));
        assert_eq!(infos.count_by_driver(), [("a", 2), ("b", 1)].into());

        let key = ("ns".to_owned(), "shared".to_owned());
        let device = PreparedDevice { pool: "pool".into(), device: "d".into(), ..PreparedDevice::default() };
        infos.set_devices(&key, "a", vec![device]);
        infos.set_prepared(std::slice::from_ref(&key), true);
        assert_eq!(infos.refer(&shared, "p3"), Ok(false), "it is ready");
        assert_eq!(infos.users("a", "pool", "d").len(), 3);
        assert!(infos.users("b", "pool", "d").is_empty());

        assert_eq!(infos.release("p1", &keys), [("ns".to_owned(), "own".to_owned())]);
        assert_eq!(infos.release("p2", &infos.of_pod("p2")), [] as [ClaimKey; 0]);
        assert_eq!(infos.release("p3", &infos.of_pod("p3")), [key]);
        assert_eq!(infos.pods(), ["p1".to_owned(), "p3".to_owned()].into(), "until the drivers have let go");
        let error = infos.refer(&claim("shared", "9", &["a"]), "p4").unwrap_err().to_string();
        assert!(
            error.starts_with("old ResourceClaim with same name shared and different UID 1 still exists"),
            "{error}"
        );
    }

    #[test]
    fn devices_serve_requests() {
        let device = |requests: &[&str]| PreparedDevice {
            requests: requests.iter().map(|name| (*name).to_owned()).collect(),
            ..PreparedDevice::default()
        };
        for (requests, request, expected) in [
            (&["gpu"][..], "gpu", true),
            (&["gpu"], "", true),
            (&[], "gpu", true),
            (&["nic", "gpu"], "gpu", true),
            (&["nic"], "gpu", false),
            (&["gpu/big"], "gpu", true),
            (&["gpus/big"], "gpu", false),
        ] {
            assert_eq!(device(requests).serves(request), expected, "{requests:?} {request}");
        }
    }
}
