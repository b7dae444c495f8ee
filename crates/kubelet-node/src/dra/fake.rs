//! The drivers and the claims of a node in tests, as a kubelet puts them together.

use std::path::Path;
use std::sync::Arc;

use base::{Rng, TaskGroup, TokioClock};
use client::Client;
use component_helpers::group_claims::Whose;

use super::{DraDrivers, DriverDeps, DynamicResources, DynamicResourcesDeps, DynamicResourcesObserver, StateError};

/// The drivers of a node, of which none is registered yet.
#[must_use]
pub fn drivers_of(client: Client, node_name: &str, tasks: &TaskGroup) -> Arc<DraDrivers> {
    DraDrivers::new(DriverDeps {
        client,
        node_name: node_name.to_owned(),
        observer: None,
        healths: None,
        rng: Rng::seeded(1),
        tasks: tasks.clone(),
    })
}

/// The claims of a node, whose state is kept beneath `root`.
///
/// # Errors
/// When the state that is there cannot be read.
pub fn claims_of(
    root: &Path,
    client: Client,
    drivers: Arc<DraDrivers>,
    observer: Arc<dyn DynamicResourcesObserver>,
) -> Result<Arc<DynamicResources>, StateError> {
    let deps = DynamicResourcesDeps {
        client,
        drivers,
        healths: None,
        observer,
        clock: TokioClock::shared(),
        extended: true,
        whose: Whose::OwnOrGroups,
        health_messages: true,
    };
    DynamicResources::new(root, deps)
}
