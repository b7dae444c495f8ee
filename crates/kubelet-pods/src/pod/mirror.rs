//! Mirror pods: what stands in the API for a static pod.

use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, OwnerReference};
use api_types::core_v1::{Node, Pod};
use client::{Client, ClientError};

use super::{CONFIG_HASH, CONFIG_MIRROR};

/// Why the mirror of a static pod is not as it should be. It is looked after again at the pod's next sync.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    /// Nobody could own it.
    #[error("the node is not registered yet")]
    NoNode,
    /// The API server refuses, or cannot be reached.
    #[error(transparent)]
    Api(#[from] ClientError),
}

/// Makes the mirror of a static pod be there and up to date.
///
/// # Errors
/// The node is not known yet, or the API server refuses.
pub(crate) async fn reconcile(
    client: &Client,
    pod: &Pod,
    mirror: Option<&Arc<Pod>>,
    node: Option<&Arc<Node>>,
) -> Result<(), MirrorError> {
    let hash = pod.metadata.annotations.get(CONFIG_HASH);
    if let Some(mirror) = mirror {
        let fresh = mirror.metadata.annotations.get(CONFIG_MIRROR) == hash;
        if fresh && mirror.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        delete(client, mirror).await?;
    }
    let Some(node) = node.filter(|node| !node.metadata.uid.is_empty()) else {
        return Err(MirrorError::NoNode);
    };
    if node.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    create(client, pod, node).await
}

async fn create(client: &Client, pod: &Pod, node: &Node) -> Result<(), MirrorError> {
    let mut mirror = pod.clone();
    let hash = pod.metadata.annotations.get(CONFIG_HASH).cloned().unwrap_or_default();
    mirror.metadata.annotations.insert(CONFIG_MIRROR.to_owned(), hash.clone());
    mirror.metadata.owner_references = vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        controller: Some(true),
        ..OwnerReference::default()
    }];
    let pods = client.namespaced::<Pod>(&pod.metadata.namespace);
    match pods.create(&mirror).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_exists() => {
            let there = pods.get(&pod.metadata.name).await?;
            let same = there.metadata.annotations.get(CONFIG_MIRROR) == Some(&hash);
            if same { Ok(()) } else { Err(error.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes a mirror at once; fine if it is gone or another one by now.
pub(crate) async fn delete(client: &Client, mirror: &Pod) -> Result<(), MirrorError> {
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    let pods = client.namespaced::<Pod>(&mirror.metadata.namespace);
    pods.delete_this(&mirror.metadata, options).await.map(drop).map_err(MirrorError::Api)
}
