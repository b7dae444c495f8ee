//! Kinds that come and go at run time: definitions are followed, and what they define is served.

mod cleanup;
mod columns;
mod conditions;
mod controller;
mod conversion;
mod embedded;
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

use api_machinery::meta::ListOptions;
use api_machinery::object::Kind as _;
use api_types::apiextensions_v1::CustomResourceDefinition;

pub(crate) use facts::InfoRef;
pub(crate) use served::{ServedKind, ServedKinds};

use crate::cx::ApiCx;
use crate::hooks::PostStartHook;
use crate::own_request::server_request;

/// Adds the work.
pub(crate) fn install(hooks: &mut Vec<Arc<dyn PostStartHook>>, served: &Arc<ServedKinds>) {
    hooks.push(Arc::new(controller::DefinitionController::new(served)));
}

/// Whether a definition names this version, be its kind in service or not.
pub(crate) async fn is_defined(cx: &ApiCx, group: &str, version: &str) -> bool {
    let of = CustomResourceDefinition::TYPE;
    let Some(resource) = cx.registry().resource(of.group, of.version, of.resource) else { return false };
    let options = ListOptions { resource_version: "0".to_owned(), ..ListOptions::default() };
    let listed = resource.list(&server_request(resource.rule_context(), ""), &options).await;
    let names = |own: &CustomResourceDefinition| {
        own.spec.group == group && own.spec.versions.iter().any(|own| own.name == version)
    };
    listed.is_ok_and(|listed| listed.items.iter().any(|item| item.object().downcast_ref().is_some_and(names)))
}
