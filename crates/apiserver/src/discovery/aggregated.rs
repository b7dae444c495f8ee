//! Discovery in one document: every group with its versions, resources and subresources.
//! Concept: <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>

use api_machinery::meta::{GroupVersionKind, ListMeta, ObjectMeta};
use api_machinery::{json, protobuf};
use api_types::apidiscovery_v2::constants::{discovery_freshness, resource_scope};
use api_types::apidiscovery_v2::{
    APIGroupDiscovery, APIResourceDiscovery, APISubresourceDiscovery, APIVersionDiscovery,
};
use bytes::Bytes;
use kinds::info::{ResourceInfo, SubresourceInfo};

use super::catalog::{Catalog, Group, Version};
use crate::digest::digest;

const KIND: &str = "APIGroupDiscoveryList";
const API_VERSION: &str = "apidiscovery.k8s.io/v2";

/// The document in its two forms, with the tag that both share.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) json: Bytes,
    pub(super) protobuf: Bytes,
    /// With quotes.
    pub(super) etag: String,
}

/// The groups of `/api` (`core`) or `/apis`.
pub(super) fn groups(catalog: &Catalog, core: bool) -> Vec<APIGroupDiscovery> {
    catalog.groups.iter().filter(|group| group.name.is_empty() == core).map(group).collect()
}

/// The document of some groups.
pub(super) fn document(groups: &[APIGroupDiscovery]) -> Document {
    let items: Vec<String> = groups.iter().map(|group| json::encode(group)).collect();
    let items = items.join(",");
    let text =
        format!("{{\"kind\":\"{KIND}\",\"apiVersion\":\"{API_VERSION}\",\"metadata\":{{}},\"items\":[{items}]}}\n");
    let sealed = protobuf::seal(API_VERSION, KIND, |out| {
        for group in groups.iter().rev() {
            out.message(2, |out| out.members(group));
        }
        out.message(1, |out| out.members(&ListMeta::default()));
    });
    Document { etag: format!("\"{}\"", digest(text.as_bytes())), json: text.into(), protobuf: sealed.into() }
}

fn group(group: &Group) -> APIGroupDiscovery {
    APIGroupDiscovery {
        metadata: ObjectMeta { name: group.name.clone(), ..ObjectMeta::default() },
        versions: group.versions.iter().map(version).collect(),
    }
}

fn version(version: &Version) -> APIVersionDiscovery {
    if let Some(elsewhere) = &version.elsewhere {
        return elsewhere.clone();
    }
    APIVersionDiscovery {
        version: version.version.clone(),
        resources: version.resources.iter().map(|info| resource(info.get())).collect(),
        freshness: discovery_freshness::CURRENT.to_owned(),
    }
}

fn resource(info: &ResourceInfo<'_>) -> APIResourceDiscovery {
    let scope = if info.namespaced { resource_scope::NAMESPACED } else { resource_scope::CLUSTER };
    APIResourceDiscovery {
        resource: info.resource.to_owned(),
        // Group and version stand only where they are not those of the list.
        response_kind: Some(GroupVersionKind { kind: info.kind.to_owned(), ..GroupVersionKind::default() }),
        scope: scope.to_owned(),
        singular_resource: info.singular.to_owned(),
        verbs: texts(info.verbs),
        short_names: texts(info.short_names),
        categories: texts(info.categories),
        subresources: info.subresources.iter().map(subresource).collect(),
    }
}

fn subresource(subresource: &SubresourceInfo<'_>) -> APISubresourceDiscovery {
    APISubresourceDiscovery {
        subresource: subresource.name.to_owned(),
        response_kind: Some(GroupVersionKind {
            group: subresource.group.to_owned(),
            version: subresource.version.to_owned(),
            kind: subresource.kind.to_owned(),
        }),
        accepted_types: Vec::new(),
        verbs: texts(subresource.verbs),
    }
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
