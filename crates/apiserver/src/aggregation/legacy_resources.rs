//! The older list of a version's resources, in the form of the newer one: subresources below their resource.

use api_machinery::meta::{APIResource, APIResourceList, GroupVersionKind};
use api_types::apidiscovery_v2::constants::resource_scope;
use api_types::apidiscovery_v2::{APIResourceDiscovery, APISubresourceDiscovery};

/// The resources of a list, in its order.
pub(super) fn converted(list: &APIResourceList) -> Vec<APIResourceDiscovery> {
    let mut converted: Vec<APIResourceDiscovery> =
        list.resources.iter().filter(|own| !own.name.contains('/')).map(resource).collect();
    for own in &list.resources {
        let Some((parent, name)) = own.name.split_once('/') else { continue };
        let at = converted.iter().position(|resource| resource.resource == parent).unwrap_or_else(|| {
            // A subresource of nothing, such as one that can only be created.
            let scope = scope(own);
            converted.push(APIResourceDiscovery { resource: parent.to_owned(), scope, ..Default::default() });
            converted.len() - 1
        });
        if let Some(resource) = converted.get_mut(at) {
            resource.subresources.push(APISubresourceDiscovery {
                subresource: name.to_owned(),
                response_kind: kind(own),
                accepted_types: Vec::new(),
                verbs: own.verbs.0.clone(),
            });
        }
    }
    converted
}

fn resource(own: &APIResource) -> APIResourceDiscovery {
    APIResourceDiscovery {
        resource: own.name.clone(),
        response_kind: kind(own),
        scope: scope(own),
        singular_resource: own.singular_name.clone(),
        verbs: own.verbs.0.clone(),
        short_names: own.short_names.clone(),
        categories: own.categories.clone(),
        subresources: Vec::new(),
    }
}

fn scope(own: &APIResource) -> String {
    if own.namespaced { resource_scope::NAMESPACED } else { resource_scope::CLUSTER }.to_owned()
}

fn kind(own: &APIResource) -> Option<GroupVersionKind> {
    let (group, version, kind) = (own.group.clone(), own.version.clone(), own.kind.clone());
    (!kind.is_empty()).then_some(GroupVersionKind { group, version, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subresources_go_below_their_resource() {
        let text = r#"{"groupVersion":"g.io/v1","resources":[
            {"name":"flunders/status","namespaced":true,"kind":"Flunder","verbs":["get"]},
            {"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder","verbs":["list"],"shortNames":["fl"]},
            {"name":"lost/scale","namespaced":false,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]}]}"#;
        let mut list = APIResourceList::default();
        api_machinery::json::decode(text.as_bytes(), &mut list).unwrap();
        let converted = converted(&list);
        let told: Vec<String> = converted.iter().map(|own| api_machinery::json::encode(own)).collect();
        assert_eq!(
            told,
            [
                r#"{"resource":"flunders","responseKind":{"group":"","version":"","kind":"Flunder"},"scope":"Namespaced","singularResource":"flunder","verbs":["list"],"shortNames":["fl"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"","kind":"Flunder"},"verbs":["get"]}]}"#,
                r#"{"resource":"lost","scope":"Cluster","singularResource":"","verbs":null,"subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]}]}"#,
            ]
        );
    }
}
