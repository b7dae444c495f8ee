//! What pods need besides nodes: volumes and devices, and the writer that answers as the API server and the binder of
//! volumes do, at once.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use api_machinery::json;
use api_machinery::object::{Kind, Object};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::resource_v1::{DeviceClass, ResourceClaim, ResourceSlice};
use api_types::storage_v1::{CSINode, StorageClass};
use async_trait::async_trait;
use scheduler::{Listers, NotFound, ObjectWriter, WriteError};
use serde_json::{Value, json};

use super::workload::NAMESPACE;

/// The class of volumes that are made once their pod has a node.
const DELAYED: &str = "delayed";
const DRIVER: &str = "csi.bench.test";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Volumes that can be attached to a node, as with upstream's.
const ATTACHABLE: i32 = 39;

fn read<T: Kind + Object + Default>(manifest: &Value) -> Result<Arc<T>> {
    let mut object = T::default();
    json::decode(manifest.to_string().as_bytes(), &mut object).map_err(|error| anyhow!("{error}"))?;
    Ok(Arc::new(object))
}

fn put<T: Kind + Object + Default>(listers: &Listers, manifest: &Value) -> Result<()> {
    listers.of::<T>().put(read(manifest)?);
    Ok(())
}

fn claim_name(number: usize) -> String {
    format!("claim-{number:05}")
}

/// A pod's volume of a claim of its own.
pub(super) fn volume(number: usize) -> Value {
    json!({"name": "data", "persistentVolumeClaim": {"claimName": claim_name(number)}})
}

/// A pod's entry for a claim of devices of its own.
pub(super) fn device(number: usize) -> Value {
    json!({"name": "device", "resourceClaimName": claim_name(number)})
}

fn volume_claim(number: usize, class: &str, bound_to: Option<&str>) -> Value {
    let name = claim_name(number);
    let mut claim = json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    if let Some(volume) = bound_to {
        claim["metadata"]["annotations"] = json!({BIND_COMPLETED: "yes"});
        claim["spec"]["volumeName"] = json!(volume);
    }
    claim
}

fn persistent_volume(name: &str, claim: &str, class: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": "1"}, "status": {"phase": "Bound"}, "spec": {
        "storageClassName": class, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"namespace": NAMESPACE, "name": claim, "uid": format!("uid-{claim}")}}})
}

/// A volume for each pod, made and bound before, and nodes that take so many; `SchedulingCSIPVs` of `scheduler_perf`.
pub(super) fn bound_volumes(Written { listers, .. }: &Written, nodes: usize, pods: usize) -> Result<()> {
    for number in 0..nodes {
        let drivers = json!([{"name": DRIVER, "nodeID": "bench", "allocatable": {"count": ATTACHABLE}}]);
        let name = format!("node-{number:05}");
        put::<CSINode>(listers, &json!({"metadata": {"name": name}, "spec": {"drivers": drivers}}))?;
    }
    put::<StorageClass>(
        listers,
        &json!({"metadata": {"name": "bound"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"}),
    )?;
    for number in 0..pods {
        let name = format!("volume-{number:05}");
        put::<PersistentVolumeClaim>(listers, &volume_claim(number, "bound", Some(&name)))?;
        put::<PersistentVolume>(listers, &persistent_volume(&name, &claim_name(number), "bound"))?;
    }
    Ok(())
}

/// A claim for each pod whose volume is made where the pod goes; upstream's benchmark has none of these.
pub(super) fn delayed_volumes(written: &Written, _nodes: usize, pods: usize) -> Result<()> {
    let class =
        json!({"metadata": {"name": DELAYED}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"});
    put::<StorageClass>(&written.listers, &class)?;
    for number in 0..pods {
        put::<PersistentVolumeClaim>(&written.listers, &volume_claim(number, DELAYED, None))?;
        let claim = claim_name(number);
        put::<PersistentVolume>(&written.to_be_made, &persistent_volume(&volume_for(&claim), &claim, DELAYED))?;
    }
    Ok(())
}

/// The volume that is made for a claim.
fn volume_for(claim: &str) -> String {
    format!("volume-of-{claim}")
}

/// Devices on every node, and a claim for one of them for each pod, so many that none is left;
/// `SchedulingWithResourceClaimTemplate` of `scheduler_perf`, after the claims were made of their template.
pub(super) fn devices(Written { listers, .. }: &Written, nodes: usize, pods: usize) -> Result<()> {
    let selector = json!({"cel": {"expression": format!("device.driver == '{DRIVER}'")}});
    put::<DeviceClass>(listers, &json!({"metadata": {"name": "bench"}, "spec": {"selectors": [selector]}}))?;
    for number in 0..nodes {
        let node = format!("node-{number:05}");
        let devices: Vec<Value> =
            (0..pods.div_ceil(nodes)).map(|device| json!({"name": format!("device-{device:02}")})).collect();
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": DRIVER, "nodeName": node, "devices": devices, "pool": pool});
        put::<ResourceSlice>(listers, &json!({"metadata": {"name": node}, "spec": spec}))?;
    }
    for number in 0..pods {
        let name = claim_name(number);
        let request =
            json!({"name": "r", "exactly": {"deviceClassName": "bench", "allocationMode": "ExactCount", "count": 1}});
        let metadata =
            json!({"name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "resourceVersion": "1"});
        put::<ResourceClaim>(listers, &json!({"metadata": metadata, "spec": {"devices": {"requests": [request]}}}))?;
    }
    Ok(())
}

/// Writes what plugins write into what they read.
pub(super) struct Written {
    /// What they read.
    pub(super) listers: Arc<Listers>,
    /// Volumes that are made once their pods have nodes, made before: that is not the scheduler's work.
    to_be_made: Listers,
}

impl Written {
    /// There is nothing yet.
    pub(super) fn nothing() -> Self {
        Self { listers: Arc::new(Listers::in_memory()), to_be_made: Listers::in_memory() }
    }

    /// The object as it lies there once it is written.
    fn write<T: Kind + Object>(&self, mut object: T) -> Arc<T> {
        let version: u64 = object.meta().resource_version.parse().unwrap_or(0);
        object.meta_mut().resource_version = (version + 1).to_string();
        let written = Arc::new(object);
        self.listers.of::<T>().put(Arc::clone(&written));
        written
    }
}

#[async_trait]
impl ObjectWriter for Written {
    /// The node is chosen: the volume is made, and the claim bound.
    async fn update_claim(&self, claim: &PersistentVolumeClaim) -> Result<PersistentVolumeClaim, WriteError> {
        let written = self.write(claim.clone());
        let name = volume_for(&claim.metadata.name);
        let made = self.to_be_made.of::<PersistentVolume>().get("", &name);
        let made = made.map_err(|error| WriteError::Failed(error.to_string()))?;
        self.listers.of::<PersistentVolume>().put(made);
        let mut bound = (*written).clone();
        bound.spec.volume_name = name;
        bound.metadata.annotations.insert(BIND_COMPLETED.into(), "yes".into());
        self.write(bound);
        Ok(Arc::unwrap_or_clone(written))
    }

    async fn device_claim(&self, namespace: &str, name: &str) -> Result<ResourceClaim, WriteError> {
        let found = self.listers.of::<ResourceClaim>().get(namespace, name);
        found.map(|claim| (*claim).clone()).map_err(|error: NotFound| WriteError::NotFound(error.to_string()))
    }

    async fn update_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        Ok(Arc::unwrap_or_clone(self.write(claim.clone())))
    }

    async fn update_device_claim_status(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        Ok(Arc::unwrap_or_clone(self.write(claim.clone())))
    }
}
