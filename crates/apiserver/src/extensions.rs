//! What plugs into the server beside the resources of the registry: discovery, OpenAPI, custom resources, reviews,
//! tokens, streaming to nodes, and the work after the start.

use std::sync::Arc;

use crate::hooks::PostStartHook;
use crate::routes::Routes;

/// Adds every place and every hook.
pub(crate) fn install(_routes: &mut Routes, _hooks: &mut Vec<Arc<dyn PostStartHook>>) {}
