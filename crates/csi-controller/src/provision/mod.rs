//! Makes volumes for claims: what upstream's external-provisioner does. A volume's name follows from its claim's uid, so that
//! whoever asks again gets the volume that there is.

mod clones;
mod request;
mod source;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::Value;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::{CSINode, StorageClass, VolumeAttributesClass};
use client::{Informer, ObjectKey, Patch};
use component_helpers::volumes::classes::{class_of_claim, waits_for_consumer};
use component_helpers::volumes::matching::storage;
use component_helpers::volumes::names::{BETA_STORAGE_PROVISIONER, MIGRATED_TO, SELECTED_NODE, STORAGE_PROVISIONER};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::RpcError;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use node_api::csi::v1::{CreateVolumeRequest, DeleteVolumeRequest, GetCapacityRequest};
use parking_lot::Mutex;
use tonic::Code;

use crate::driver::{Driver, Segment, to_topology};
use crate::notice;
use crate::secrets::{self, Purpose};
use crate::settings::{Place, Settings};
use crate::topology::{Wanted, segment_of_node, segments};
use request::{Asking, Said};
use source::Source;
use volume::Made;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-provisioner",
    aliases: &[],
    gates: &[],
    identity: "csi-provisioner",
    event_component: "external-provisioner",
    disabled_by_default: false,
    build,
};

/// How long a node without room leaves a claim that any node may take to the others.
const ELSEWHERE: Duration = Duration::from_secs(20);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    if !driver.can(Can::CreateDeleteVolume) {
        return Err(BuildError::Skipped("the driver makes no volumes".into()));
    }
    let (queue, origins) = (build.queue_with("claims", settings.retry.clone()), build.queue("clones"));
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_self(&queue).enqueue_keys(&origins, clones::origins);
    let provisioner = Arc::new(Provisioner {
        claims: claims.informer(),
        classes: build.watch::<StorageClass>().informer(),
        volumes: build.watch::<PersistentVolume>().informer(),
        nodes: build.watch::<Node>().informer(),
        csi_nodes: build.watch::<CSINode>().informer(),
        unsettled: Mutex::default(),
        driver,
        settings,
    });
    build.run(&origins, 1, Arc::new(clones::Clones { claims: provisioner.claims.clone() }));
    let workers = provisioner.settings.workers;
    build.run(&queue, workers, provisioner);
    Ok(())
}

struct Provisioner {
    driver: Driver,
    settings: Settings,
    claims: Informer<PersistentVolumeClaim>,
    classes: Informer<StorageClass>,
    volumes: Informer<PersistentVolume>,
    nodes: Informer<Node>,
    csi_nodes: Informer<CSINode>,
    /// Claims for which the driver may have made, or may yet make, a volume that the cluster does not know. They are gone
    /// on with when they are deleted, so that the volume is known, and goes.
    unsettled: Mutex<BTreeMap<ObjectKey, Arc<PersistentVolumeClaim>>>,
}

/// Why there is no volume.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The driver has decided; another node may do better.
    #[error("{0}")]
    Elsewhere(String),
    /// It will not happen by itself.
    #[error("{0}")]
    Final(String),
    /// It may still happen, or have happened.
    #[error("{0}")]
    Unsettled(String),
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
}

/// Who is to make a claim's volume.
fn provisioner_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let annotations = &claim.metadata.annotations;
    let named = [MIGRATED_TO, STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER];
    named.into_iter().find_map(|key| annotations.get(key)).map(String::as_str)
}

fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotations.get(SELECTED_NODE).map(String::as_str).filter(|node| !node.is_empty())
}

/// Whether a claim is one that this driver makes a volume for.
fn is_wanted(claim: &PersistentVolumeClaim, driver: &str) -> bool {
    claim.spec.volume_name.is_empty()
        && claim.metadata.deletion_timestamp.is_none()
        && provisioner_of(claim) == Some(driver)
        && Source::of(claim) != Source::Foreign
}

/// Who works on a claim.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Ours,
    /// Somebody else, or nobody yet.
    Others,
    /// Whichever node takes it first.
    Anybodys,
}

fn turn(place: &Place, waits: bool, selected: Option<&str>) -> Turn {
    match (place, selected, waits) {
        (_, None, true) => Turn::Others,
        (Place::Cluster, _, _) => Turn::Ours,
        (Place::Node(own), Some(node), _) if own == node => Turn::Ours,
        (Place::Node(_), Some(_), _) => Turn::Others,
        (Place::Node(_), None, false) => Turn::Anybodys,
    }
}

#[async_trait::async_trait]
impl Controller for Provisioner {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let known = self.claims.get(key);
        let unsettled = self.unsettled.lock().get(key).cloned();
        let claim = match (unsettled, known) {
            // The volume of the former one comes first, should there be another of the same name by now.
            (Some(former), Some(now)) if former.metadata.uid == now.metadata.uid => now,
            (Some(former), _) => former,
            (None, Some(now)) if is_wanted(&now, &self.driver.name) => now,
            (None, _) => return Ok(Next::Done),
        };
        let volume = format!("pvc-{}", claim.metadata.uid);
        if self.volumes.find("", &volume).is_some() || !claim.spec.volume_name.is_empty() {
            self.settle(cx, key);
            return Ok(Next::Done);
        }
        let class = self.class(cx, &claim)?;
        let waits = waits_for_consumer(&class).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        match turn(&self.settings.place, waits, selected_node(&claim)) {
            Turn::Ours => {}
            Turn::Others => return Ok(Next::Done),
            Turn::Anybodys => return self.take(cx, &claim, &class).await,
        }
        notice::normal(
            cx,
            &*claim,
            "Provisioning",
            format!("External provisioner is provisioning volume for claim \"{key}\""),
        );
        match self.provision(cx, key, &claim, &class, &volume).await {
            Ok(()) => {
                self.settle(cx, key);
                let message = format!("Successfully provisioned volume {volume}");
                notice::normal(cx, &*claim, "ProvisioningSucceeded", message);
                Ok(Next::Done)
            }
            Err(failure) => self.failed(cx, key, (&claim, &class), failure).await,
        }
    }
}

impl Provisioner {
    fn class(&self, cx: &Cx, claim: &PersistentVolumeClaim) -> Result<Arc<StorageClass>, ReconcileError> {
        let name = class_of_claim(claim);
        let class = self.classes.find("", name).filter(|class| class.provisioner == self.driver.name);
        class.ok_or_else(|| {
            let reason = format!("storageclass.storage.k8s.io \"{name}\" not found");
            notice::warning(cx, claim, "ProvisioningFailed", reason.clone());
            ReconcileError::failed(reason)
        })
    }

    /// There is no volume that nobody knows. Should another claim have the name by now, it is its turn.
    fn settle(&self, cx: &Cx, key: &ObjectKey) {
        let former = self.unsettled.lock().remove(key);
        let is_another = |former: &Arc<PersistentVolumeClaim>| {
            self.claims.get(key).is_some_and(|now| now.metadata.uid != former.metadata.uid)
        };
        if former.as_ref().is_some_and(is_another) {
            cx.queue.add(key.clone());
        }
    }

    /// Says what went wrong, and whether and where it is tried again.
    async fn failed(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        (claim, class): (&PersistentVolumeClaim, &StorageClass),
        failure: Failure,
    ) -> Result<Next, ReconcileError> {
        let reason = format!("failed to provision volume with StorageClass \"{}\": {failure}", class.metadata.name);
        notice::warning(cx, claim, "ProvisioningFailed", reason.clone());
        match failure {
            Failure::Unsettled(_) => return Err(ReconcileError::failed(reason)),
            Failure::Elsewhere(_) if selected_node(claim).is_some() => {
                self.unsettled.lock().remove(key);
                self.select(cx, claim, None).await?;
                return Ok(Next::Done);
            }
            Failure::Reconcile(error) => return Err(error),
            Failure::Elsewhere(_) | Failure::Final(_) => self.settle(cx, key),
        }
        // A claim that is gone has nobody who would try again.
        if self.claims.get(key).is_none() { Ok(Next::Done) } else { Err(ReconcileError::failed(reason)) }
    }

    /// Chooses a node for a claim, or lets the scheduler choose another.
    async fn select(&self, cx: &Cx, claim: &PersistentVolumeClaim, node: Option<&str>) -> Result<(), ReconcileError> {
        let mut body = Value::Object(Default::default());
        body["metadata"]["resourceVersion"] = claim.metadata.resource_version.clone().into();
        body["metadata"]["annotations"][SELECTED_NODE] = node.map_or(Value::Null, Into::into);
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        match api.patch(&claim.metadata.name, &Patch::Merge(body)).await {
            // Somebody was faster, or the claim is gone.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    /// Takes a claim for this node that any may take, where there is room.
    async fn take(&self, cx: &Cx, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<Next, ReconcileError> {
        let Some(node) = self.settings.place.node() else { return Ok(Next::Done) };
        let segment = self.segment(node).map_err(|error| ReconcileError::failed(error.to_string()))?;
        let wanted = Wanted {
            allowed: &class.allowed_topologies,
            chosen: Some((node, segment.clone())),
            everywhere: BTreeSet::new(),
            is_strict: true,
            tells_cluster: false,
            claim: &claim.metadata.name,
        };
        if wanted.requirement().is_err() {
            return Ok(Next::Done);
        }
        if self.driver.can(Can::GetCapacity) {
            let request = GetCapacityRequest {
                accessible_topology: Some(to_topology(&segment)),
                ..GetCapacityRequest::default()
            };
            let room = self.driver.calls.capacity(request).await;
            let room = room.map_err(|error| ReconcileError::failed(error.to_string()))?.available_capacity;
            if room < storage(&claim.spec.resources.requests).value() {
                return Ok(Next::After(ELSEWHERE));
            }
        }
        self.select(cx, claim, Some(node)).await?;
        Ok(Next::Done)
    }

    fn segment(&self, node: &str) -> Result<Segment, Failure> {
        let found = self.nodes.find("", node);
        let found = found
            .ok_or_else(|| Failure::Elsewhere(format!("error getting selected node: node \"{node}\" not found")))?;
        let csi = self.csi_nodes.find("", node);
        // The kubelet may not have told of the driver yet.
        segment_of_node(&self.driver.name, &found, csi.as_deref()).map_err(|error| Failure::Final(error.to_string()))
    }

    /// Where the driver is to make the volume.
    fn place(&self, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<Requirement, Failure> {
        if !self.driver.has_topology {
            return Ok(None);
        }
        let chosen = match selected_node(claim) {
            Some(node) => Some((node, self.segment(node)?)),
            None => None,
        };
        let nodes = self.nodes.list();
        let csi: Vec<_> = nodes.iter().map(|node| self.csi_nodes.find("", &node.metadata.name)).collect();
        let everywhere =
            segments(&self.driver.name, nodes.iter().map(|node| &**node).zip(csi.iter().map(Option::as_deref)));
        let wanted = Wanted {
            allowed: &class.allowed_topologies,
            chosen,
            everywhere,
            is_strict: self.settings.strict_topology,
            tells_cluster: self.settings.immediate_topology,
            claim: &claim.metadata.name,
        };
        wanted.requirement().map_err(|error| Failure::Elsewhere(error.to_string()))
    }

    async fn provision(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        claim: &Arc<PersistentVolumeClaim>,
        class: &StorageClass,
        volume: &str,
    ) -> Result<(), Failure> {
        let said = request::said(class, volume, claim).map_err(|error| Failure::Final(error.to_string()))?;
        let fs_type = said.fs_type.clone().unwrap_or_else(|| self.settings.default_fs_type.clone());
        let request = self.request(cx, (claim, class, volume), (&said, &fs_type)).await?;
        let required_bytes = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
        self.unsettled.lock().insert(key.clone(), Arc::clone(claim));
        // What is copied may be another node's, whose driver is another.
        let may_be_afar = request.volume_content_source.is_some() && self.settings.place != Place::Cluster;
        let answer = self.driver.calls.create_volume(request.clone()).await;
        let answer = answer.map_err(|error| judged(&error, may_be_afar))?;
        let made = match volume::check(&request, answer.volume.clone()) {
            Ok(made) => made,
            Err(error) => {
                self.undo(answer.volume.unwrap_or_default().volume_id, &request).await?;
                return Err(Failure::Final(error.to_string()));
            }
        };
        let driver = self.driver.name.as_str();
        let made = Made {
            name: volume,
            driver,
            claim,
            class,
            fs_type: &fs_type,
            secrets: &said.secrets,
            volume: made,
            required_bytes,
        };
        match cx.client.all::<PersistentVolume>().create(&made.build()).await {
            // An earlier try came through.
            Err(error) if error.is_already_exists() => Ok(()),
            created => Ok(created.map(drop).map_err(ReconcileError::from)?),
        }
    }

    async fn request(
        &self,
        cx: &Cx,
        (claim, class, volume): (&PersistentVolumeClaim, &StorageClass, &str),
        (said, fs_type): (&Said, &str),
    ) -> Result<CreateVolumeRequest, Failure> {
        let asking = Asking {
            claim,
            class,
            volume,
            fs_type,
            tells_names: self.settings.tells_names,
            tells_writers: self.driver.can(Can::SingleNodeMultiWriter),
        };
        let mut request = asking.request(&said.parameters).map_err(|error| Failure::Final(error.to_string()))?;
        request.accessibility_requirements = self.place(claim, class)?;
        request.secrets = secrets::read(cx, said.secrets.get(&Purpose::Provision)).await?;
        request.volume_content_source = source::find(cx, &self.driver.name, claim).await?;
        if let Some(name) = claim.spec.volume_attributes_class_name.as_deref().filter(|name| !name.is_empty()) {
            let attributes = cx.client.all::<VolumeAttributesClass>().get(name).await.map_err(ReconcileError::from)?;
            request.mutable_parameters = attributes.parameters.into_iter().collect();
        }
        Ok(request)
    }

    /// Removes what the driver made and should not have.
    async fn undo(&self, volume_id: String, request: &CreateVolumeRequest) -> Result<(), Failure> {
        if volume_id.is_empty() {
            return Ok(());
        }
        let request = DeleteVolumeRequest { volume_id, secrets: request.secrets.clone() };
        let removed = self.driver.calls.delete_volume(request).await;
        removed.map(drop).map_err(|error| Failure::Unsettled(format!("deleting what was made wrongly: {error}")))
    }
}

/// What is asked of the driver for a place.
type Requirement = Option<node_api::csi::v1::TopologyRequirement>;

/// What an error of the driver says of the volume.
fn judged(error: &RpcError, may_be_afar: bool) -> Failure {
    match error.code {
        Code::ResourceExhausted => Failure::Elsewhere(error.to_string()),
        Code::NotFound if may_be_afar => Failure::Elsewhere(error.to_string()),
        _ if error.is_final() => Failure::Final(error.to_string()),
        _ => Failure::Unsettled(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_wanted_by_its_driver_alone() {
        let mut claim = PersistentVolumeClaim::default();
        assert!(!is_wanted(&claim, "d"), "nobody has said who is to make it");
        claim.metadata.annotations.insert(BETA_STORAGE_PROVISIONER.into(), "d".into());
        assert!(is_wanted(&claim, "d") && !is_wanted(&claim, "e"));
        claim.metadata.annotations.insert(STORAGE_PROVISIONER.into(), "e".into());
        assert!(is_wanted(&claim, "e") && !is_wanted(&claim, "d"), "the newer name counts");
        claim.spec.volume_name = "pv".into();
        assert!(!is_wanted(&claim, "e"), "it has a volume");
    }

    #[test]
    fn whose_turn_it_is() {
        let node = Place::Node("a".into());
        for (place, waits, selected, expected) in [
            (&Place::Cluster, true, None, Turn::Others),
            (&Place::Cluster, true, Some("b"), Turn::Ours),
            (&Place::Cluster, false, None, Turn::Ours),
            (&node, true, None, Turn::Others),
            (&node, true, Some("a"), Turn::Ours),
            (&node, true, Some("b"), Turn::Others),
            (&node, false, None, Turn::Anybodys),
            (&node, false, Some("b"), Turn::Others),
        ] {
            assert_eq!(turn(place, waits, selected), expected, "{place:?} {waits} {selected:?}");
        }
    }

    #[test]
    fn errors_say_whether_there_may_be_a_volume() {
        let judged = |code| judged(&RpcError::new(code, ""), false);
        assert!(matches!(judged(Code::ResourceExhausted), Failure::Elsewhere(_)));
        assert!(matches!(judged(Code::InvalidArgument), Failure::Final(_)));
        assert!(matches!(judged(Code::DeadlineExceeded), Failure::Unsettled(_)));
        assert!(matches!(judged(Code::Aborted), Failure::Unsettled(_)));
        let not_found = RpcError::new(Code::NotFound, "");
        assert!(matches!(super::judged(&not_found, false), Failure::Final(_)));
        assert!(matches!(super::judged(&not_found, true), Failure::Elsewhere(_)), "what is copied is on another node");
    }
}
