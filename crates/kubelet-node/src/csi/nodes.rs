//! What the API knows of the drivers of this node: the CSINode, an annotation of the node, and labels for where a driver's
//! volumes can be reached.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, OwnerReference};
use api_machinery::value::Value;
use api_types::core_v1::Node;
use api_types::storage_v1::{CSINode, CSINodeDriver, VolumeNodeResources};
use base::Backoff;
use client::{Client, ClientError, Patch};
use node_api::csi::v1::NodeGetInfoResponse;
use serde_json::json;

/// What each driver calls the node, as JSON.
const NODE_IDS: &str = "csi.volume.kubernetes.io/nodeid";
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// The plugins that were in the tree and that drivers have taken over from.
const MIGRATED: &str = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,\
                        kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";
/// Attempts to write the CSINode against others who write it, and the pauses between.
const TRIES: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: f64 = 5.0;
/// Pauses between attempts to make the CSINode.
const FIRST_RETRY: Duration = Duration::from_millis(30);
const RETRY_FACTOR: f64 = 8.0;
const LAST_RETRY: Duration = Duration::from_secs(1);
/// What the node's condition says until there is a CSINode.
pub const UNINITIALIZED: &str = "CSINode is not yet initialized";

/// Why the API does not know of a driver.
#[derive(Debug, thiserror::Error)]
pub enum CsiNodeError {
    #[error("error adding CSI driver node info: driverNodeID must not be empty")]
    NoNodeId,
    #[error("error updating Node object with CSI driver node info: {0}")]
    Node(ClientError),
    #[error(
        "error updating Node object with CSI driver node info: detected topology value collision: driver reported \
         {key:?}:{value:?} but existing label is {key:?}:{present:?}"
    )]
    Topology { key: String, value: String, present: String },
    #[error("error updating CSINode object with CSI driver node info: {0}")]
    CsiNode(ClientError),
}

/// Writes what the API knows of the node's drivers.
pub struct CsiNodes {
    client: Client,
    node: String,
    /// The annotation is read and written: one at a time.
    turn: tokio::sync::Mutex<()>,
}

impl CsiNodes {
    pub fn new(client: &Client, node: &str) -> Self {
        Self { client: client.clone(), node: node.to_owned(), turn: tokio::sync::Mutex::default() }
    }

    /// Makes the CSINode, or brings the one that is there up to date. One that another node of the name left is replaced.
    ///
    /// # Errors
    /// The API does not take it, or knows no such node.
    pub async fn initialize(&self) -> Result<(), ClientError> {
        self.present().await.map(drop)
    }

    /// The CSINode of this node, made if need be.
    async fn present(&self) -> Result<CSINode, ClientError> {
        let (api, node) = (self.client.all::<CSINode>(), self.client.all::<Node>().get(&self.node).await?);
        if let Some(found) = api.get_opt(&self.node).await? {
            let foreign = |owner: &OwnerReference| owner.kind == "Node" && owner.uid != node.metadata.uid;
            if !found.metadata.owner_references.iter().any(foreign) {
                return self.mark(found).await;
            }
            api.delete_this(&found.metadata, DeleteOptions::default()).await?;
        }
        let mut new = CSINode::default();
        new.metadata.name.clone_from(&self.node);
        new.metadata.annotations.insert(MIGRATED_PLUGINS.to_owned(), MIGRATED.to_owned());
        new.metadata.owner_references.push(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.node.clone(),
            uid: node.metadata.uid,
            controller: None,
            block_owner_deletion: None,
        });
        api.create(&new).await
    }

    async fn mark(&self, mut found: CSINode) -> Result<CSINode, ClientError> {
        let marked = found.metadata.annotations.insert(MIGRATED_PLUGINS.to_owned(), MIGRATED.to_owned());
        if marked.as_deref() == Some(MIGRATED) {
            return Ok(found);
        }
        self.client.all::<CSINode>().update(&found).await
    }

    /// A driver has come.
    ///
    /// # Errors
    /// Its word about the node is no good, or the API does not take it.
    pub async fn install(&self, driver: &str, info: &NodeGetInfoResponse) -> Result<(), CsiNodeError> {
        if info.node_id.is_empty() {
            return Err(CsiNodeError::NoNodeId);
        }
        let _turn = self.turn.lock().await;
        let topology = info.accessible_topology.iter().flat_map(|topology| &topology.segments);
        let topology: BTreeMap<&String, &String> = topology.collect();
        let node = self.client.all::<Node>().get(&self.node).await.map_err(CsiNodeError::Node)?;
        for (key, value) in &topology {
            if let Some(present) = node.metadata.labels.get(*key).filter(|present| present != value) {
                let (key, value, present) = ((*key).clone(), (*value).clone(), present.clone());
                return Err(CsiNodeError::Topology { key, value, present });
            }
        }
        self.annotate(&node, driver, Some(&info.node_id), &topology).await.map_err(CsiNodeError::Node)?;
        let entry = CSINodeDriver {
            name: driver.to_owned(),
            node_id: info.node_id.clone(),
            topology_keys: topology.into_keys().cloned().collect(),
            allocatable: allocatable(info.max_volumes_per_node),
        };
        self.change(|drivers| {
            drivers.retain(|other| other.name != driver);
            drivers.push(entry.clone());
        })
        .await
        .map_err(CsiNodeError::CsiNode)
    }

    /// How many volumes of a driver fit the node, where the API knows that driver.
    ///
    /// # Errors
    /// The API does not take it.
    pub async fn recount(&self, driver: &str, max_volumes: i64) -> Result<(), CsiNodeError> {
        let _turn = self.turn.lock().await;
        let count = |drivers: &mut Vec<CSINodeDriver>| {
            for own in drivers.iter_mut().filter(|own| own.name == driver) {
                own.allocatable = allocatable(max_volumes);
            }
        };
        self.change(count).await.map_err(CsiNodeError::CsiNode)
    }

    /// A driver is gone. Labels stay: volumes may still be reached where it was.
    ///
    /// # Errors
    /// The API does not take it.
    pub async fn uninstall(&self, driver: &str) -> Result<(), CsiNodeError> {
        let _turn = self.turn.lock().await;
        let removed = self.change(|drivers| drivers.retain(|other| other.name != driver)).await;
        removed.map_err(CsiNodeError::CsiNode)?;
        let node = self.client.all::<Node>().get(&self.node).await.map_err(CsiNodeError::Node)?;
        self.annotate(&node, driver, None, &BTreeMap::new()).await.map_err(CsiNodeError::Node)
    }

    /// Writes what a driver calls the node, or takes it away.
    async fn annotate(
        &self,
        node: &Node,
        driver: &str,
        id: Option<&str>,
        labels: &BTreeMap<&String, &String>,
    ) -> Result<(), ClientError> {
        let present = node.metadata.annotations.get(NODE_IDS);
        // What somebody else wrote there and is no map is written anew.
        let ids = present.and_then(|text| serde_json::from_str::<BTreeMap<String, String>>(text).ok());
        let mut ids = ids.unwrap_or_default();
        match id {
            Some(id) => drop(ids.insert(driver.to_owned(), id.to_owned())),
            None => drop(ids.remove(driver)),
        }
        let text = if ids.is_empty() { Value::Null } else { json!(ids).to_string().into() };
        let labelled = labels.keys().all(|key| node.metadata.labels.contains_key(*key));
        if labelled && present.map(String::as_str) == text.as_str() {
            return Ok(());
        }
        let patch = json!({"metadata": {"annotations": {NODE_IDS: text}, "labels": labels}});
        self.client.all::<Node>().patch_status(&self.node, &Patch::Strategic(patch)).await.map(drop)
    }

    /// Changes the drivers of the CSINode; where others write it too, once more.
    async fn change(&self, change: impl Fn(&mut Vec<CSINodeDriver>)) -> Result<(), ClientError> {
        let mut pause = Backoff::new(FIRST_PAUSE, PAUSE_FACTOR, Duration::MAX, 0.1);
        let mut tries = TRIES;
        loop {
            let error = match self.try_change(&change).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            tokio::time::sleep(pause.step(self.client.rng())).await;
        }
    }

    async fn try_change(&self, change: &impl Fn(&mut Vec<CSINodeDriver>)) -> Result<(), ClientError> {
        let mut node = self.present().await?;
        let before = node.spec.drivers.clone();
        change(&mut node.spec.drivers);
        if node.spec.drivers == before {
            return Ok(());
        }
        self.client.all::<CSINode>().update(&node).await.map(drop)
    }
}

/// How many volumes a node can have of a driver; no limit where the driver says none.
fn allocatable(max_volumes: i64) -> Option<VolumeNodeResources> {
    let count = i32::try_from(max_volumes.min(i64::from(i32::MAX))).ok().filter(|count| *count > 0)?;
    Some(VolumeNodeResources { count: Some(count) })
}

/// Sees to it that there is a CSINode. What `tell` is told last keeps the node from being ready.
pub async fn initialize(nodes: &CsiNodes, tell: impl Fn(Option<String>)) {
    let mut pause = Backoff::new(FIRST_RETRY, RETRY_FACTOR, LAST_RETRY, 0.1);
    while let Err(error) = nodes.initialize().await {
        // Until the node itself is registered there is nothing to say.
        if !error.is_not_found() {
            tracing::warn!(%error, "Making the CSINode failed");
            tell(Some(format!("failed to initialize CSINode: {error}")));
        }
        tokio::time::sleep(pause.step(nodes.client.rng())).await;
    }
    tell(None);
}
