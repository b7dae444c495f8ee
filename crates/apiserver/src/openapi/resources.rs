//! What is served, as the OpenAPI documents are made of it.

use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Kind;
use api_machinery::reflect::Reflect;
use api_machinery::value::Value;
use api_types::{authentication_v1, autoscaling_v1, core_v1, policy_v1};
use kinds::info::{ResourceInfo, SubresourceInfo};
use schema::openapi::{Model, Resource};

use crate::custom_resources::{ServedKind, ServedKinds};
use crate::handlers::BINDINGS;

/// The resources and subresources of built-in kinds.
pub(super) fn built_in(served: &ServedKinds) -> Vec<Resource<'static>> {
    let enabled = kinds::all().filter(|rules| served.is_enabled(rules.info()));
    let stored = enabled.flat_map(|rules| {
        let returns_deleted = rules.lifecycle().delete_answer.is_documented_as_object();
        of(rules.info(), returns_deleted, Some(Model::Table(rules.table())))
    });
    stored.chain(of(&BINDINGS, false, other_model("Binding"))).collect()
}

/// A custom kind with the schema that its definition declares.
pub(super) struct Custom {
    kind: Arc<ServedKind>,
    schema: Value,
}

impl Custom {
    pub(super) fn new(kind: Arc<ServedKind>) -> Self {
        Self { schema: kind.schema.declared(), kind }
    }

    /// Its resource and subresources.
    pub(super) fn resources(&self) -> Vec<Resource<'_>> {
        of(self.kind.info.get(), false, Some(Model::Custom { name: &self.kind.model, schema: &self.schema }))
    }
}

fn of<'a>(info: &'a ResourceInfo<'a>, returns_deleted: bool, model: Option<Model<'a>>) -> Vec<Resource<'a>> {
    let main = Resource {
        gvk: GroupVersionKind::named(info.group, info.version, info.kind),
        group: info.group,
        version: info.version,
        name: info.resource,
        parent_kind: info.kind,
        subresource: "",
        namespaced: info.namespaced,
        verbs: info.verbs.to_vec(),
        returns_deleted,
        model,
    };
    let subresources = info.subresources.iter().map(|own| Resource {
        gvk: kind_of(info, own),
        subresource: own.name,
        verbs: own.verbs.to_vec(),
        model: if own.kind == info.kind { model } else { other_model(own.kind) },
        ..main.clone()
    });
    let subresources: Vec<Resource<'a>> = subresources.collect();
    let has_main = !info.verbs.is_empty();
    has_main.then_some(main).into_iter().chain(subresources).collect()
}

fn kind_of(info: &ResourceInfo<'_>, subresource: &SubresourceInfo<'_>) -> GroupVersionKind {
    if subresource.version.is_empty() {
        GroupVersionKind::named(info.group, info.version, subresource.kind)
    } else {
        GroupVersionKind::named(subresource.group, subresource.version, subresource.kind)
    }
}

/// The struct of a subresource that is of another kind than its parent; nothing for those that only connect.
fn other_model(kind: &str) -> Option<Model<'static>> {
    fn of<T: Kind + Reflect>() -> Option<Model<'static>> {
        Some(Model::Table(T::default().struct_type()))
    }
    match kind {
        "Scale" => of::<autoscaling_v1::Scale>(),
        "Eviction" => of::<policy_v1::Eviction>(),
        "Binding" => of::<core_v1::Binding>(),
        "TokenRequest" => of::<authentication_v1::TokenRequest>(),
        _ => None,
    }
}
