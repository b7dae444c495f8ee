//! Making the node's object in the API, or taking over one that is there.

use api_types::core_v1::Node;
use client::{Client, ClientError, Patch};

use super::{NodeSettings, patch, status};

/// The object as the API has it now.
pub(super) struct Registered {
    pub(super) node: Node,
    /// Whether it was not there before.
    pub(super) is_new: bool,
}

/// Makes the object, or brings the one that is there up to date. `node` is what it shall be when it is new.
pub(super) async fn register(client: &Client, settings: &NodeSettings, node: &Node) -> Result<Registered, ClientError> {
    let api = client.all::<Node>();
    match api.create(node).await {
        Ok(made) => {
            tracing::info!(node = settings.name, "Successfully registered node");
            return Ok(Registered { node: made, is_new: true });
        }
        // Forbidden may be a webhook's word about new nodes only.
        Err(error) if error.is_already_exists() || (error.is_forbidden() && !settings.gives_up_where_forbidden) => {}
        Err(error) => return Err(error),
    }
    let existing = api.get(&settings.name).await?;
    let mut adopted = existing.clone();
    if !status::adopt(&mut adopted, settings) {
        return Ok(Registered { node: existing, is_new: false });
    }
    tracing::info!(node = settings.name, "Node was previously registered");
    let node = match patch::of(&existing, &adopted) {
        Some(patch) => api.patch_status(&settings.name, &Patch::Strategic(patch)).await?,
        None => existing,
    };
    Ok(Registered { node, is_new: false })
}
