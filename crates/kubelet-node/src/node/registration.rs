//! Making the node's object in the API, or taking over one that is there.

use api_types::core_v1::Node;
use client::{Client, ClientError, Patch};

use super::{NodeSettings, patch, status};

/// Makes the object, or brings the one that is there up to date. `node` is what it shall be when it is new.
pub(super) async fn register(client: &Client, settings: &NodeSettings, node: &Node) -> Result<Node, ClientError> {
    let api = client.all::<Node>();
    match api.create(node).await {
        Ok(made) => {
            tracing::info!(node = settings.name, "Successfully registered node");
            return Ok(made);
        }
        // Forbidden may be a webhook's word about new nodes only.
        Err(error) if error.is_already_exists() || (error.is_forbidden() && !settings.gives_up_where_forbidden) => {}
        Err(error) => return Err(error),
    }
    let existing = api.get(&settings.name).await?;
    let mut adopted = existing.clone();
    if !status::adopt(&mut adopted, settings) {
        return Ok(existing);
    }
    tracing::info!(node = settings.name, "Node was previously registered");
    match patch::of(&existing, &adopted) {
        Some(patch) => api.patch_status(&settings.name, &Patch::Strategic(patch)).await,
        None => Ok(existing),
    }
}
