//! Kinds that come and go at run time: definitions are followed, and what they define is served.

mod cleanup;
mod columns;
mod conditions;
mod controller;
mod conversion;
mod facts;
mod install;
mod known;
mod names;
mod rules;
mod scale;
mod served;
mod standing;
mod version_rename;

use std::sync::Arc;

pub(crate) use facts::InfoRef;
pub(crate) use served::{ServedKind, ServedKinds};

use crate::hooks::{PostStartHook, Ready};

/// Adds the work.
pub(crate) fn install(hooks: &mut Vec<Arc<dyn PostStartHook>>, served: &Arc<ServedKinds>) {
    hooks.push(Arc::new(Ready("start-apiextensions-informers")));
    hooks.push(Arc::new(controller::DefinitionController::new(served)));
    hooks.push(Arc::new(Ready("crd-informer-synced")));
}
