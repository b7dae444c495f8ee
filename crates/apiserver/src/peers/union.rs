//! What all servers of a cluster serve, in one discovery document.

use std::collections::BTreeMap;

use api_types::apidiscovery_v2::{
    APIGroupDiscovery, APIResourceDiscovery, APISubresourceDiscovery, APIVersionDiscovery,
};

use super::order::merged;

/// The groups of several servers as one. What the first says of something counts.
pub(super) fn groups(servers: &[&[APIGroupDiscovery]]) -> Vec<APIGroupDiscovery> {
    united(
        servers,
        |group| &group.metadata.name,
        |parts| {
            let versions: Vec<&[APIVersionDiscovery]> = parts.iter().map(|group| group.versions.as_slice()).collect();
            APIGroupDiscovery { versions: united(&versions, |own| &own.version, version), ..first(&parts) }
        },
    )
}

fn version(parts: Vec<&APIVersionDiscovery>) -> APIVersionDiscovery {
    let resources: Vec<&[APIResourceDiscovery]> = parts.iter().map(|own| own.resources.as_slice()).collect();
    APIVersionDiscovery { resources: united(&resources, |own| &own.resource, resource), ..first(&parts) }
}

fn resource(parts: Vec<&APIResourceDiscovery>) -> APIResourceDiscovery {
    let mut subresources = BTreeMap::<&str, Vec<&APISubresourceDiscovery>>::new();
    for own in parts.iter().flat_map(|part| &part.subresources) {
        subresources.entry(&own.subresource).or_default().push(own);
    }
    let subresource = |parts: Vec<&APISubresourceDiscovery>| {
        let verbs = verbs(parts.iter().map(|own| &own.verbs));
        APISubresourceDiscovery { verbs, ..first(&parts) }
    };
    APIResourceDiscovery {
        verbs: verbs(parts.iter().map(|own| &own.verbs)),
        subresources: subresources.into_values().map(subresource).collect(),
        ..first(&parts)
    }
}

fn verbs<'a>(lists: impl Iterator<Item = &'a Vec<String>>) -> Vec<String> {
    let mut all: Vec<String> = lists.flatten().cloned().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn first<T: Clone + Default>(parts: &[&T]) -> T {
    parts.first().map(|part| (*part).clone()).unwrap_or_default()
}

/// Things of several lists by their names, in one order, each made of all that the lists say of it.
fn united<T>(lists: &[&[T]], name: impl Fn(&T) -> &String, unite: impl Fn(Vec<&T>) -> T) -> Vec<T> {
    let order: Vec<Vec<String>> = lists.iter().map(|list| list.iter().map(|own| name(own).clone()).collect()).collect();
    let of = |wanted: &String| lists.iter().flat_map(|list| list.iter()).filter(|own| name(own) == wanted).collect();
    merged(&order).iter().map(|wanted| unite(of(wanted))).collect()
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::ObjectMeta;

    use super::*;

    /// `group/version/resource:verbs,subresource`
    fn served(text: &str) -> Vec<APIGroupDiscovery> {
        let mut groups = Vec::<APIGroupDiscovery>::new();
        for entry in text.split_whitespace() {
            let (place, verbs) = entry.split_once(':').unwrap();
            let [group, version, name] = place.split('/').collect::<Vec<_>>().try_into().unwrap();
            let (verbs, subresource) = verbs.split_once(',').unwrap_or((verbs, ""));
            let resource = APIResourceDiscovery {
                resource: name.to_owned(),
                verbs: verbs.chars().map(String::from).collect(),
                subresources: subresource
                    .chars()
                    .map(|name| APISubresourceDiscovery { subresource: name.into(), ..Default::default() })
                    .collect(),
                ..APIResourceDiscovery::default()
            };
            if groups.last().is_none_or(|own| own.metadata.name != group) {
                let metadata = ObjectMeta { name: group.to_owned(), ..ObjectMeta::default() };
                groups.push(APIGroupDiscovery { metadata, versions: Vec::new() });
            }
            let versions = &mut groups.last_mut().unwrap().versions;
            if versions.last().is_none_or(|own| own.version != version) {
                versions.push(APIVersionDiscovery { version: version.to_owned(), ..Default::default() });
            }
            versions.last_mut().unwrap().resources.push(resource);
        }
        groups
    }

    fn shown(groups: &[APIGroupDiscovery]) -> String {
        let mut out = Vec::new();
        for group in groups {
            for version in &group.versions {
                for own in &version.resources {
                    let subresources: String = own.subresources.iter().map(|own| own.subresource.as_str()).collect();
                    let comma = if subresources.is_empty() { "" } else { "," };
                    let place = format!("{}/{}/{}", group.metadata.name, version.version, own.resource);
                    out.push(format!("{place}:{}{comma}{subresources}", own.verbs.concat()));
                }
            }
        }
        out.join(" ")
    }

    #[test]
    fn everything_that_one_of_them_serves_is_there_once() {
        for (one, other, expected) in [
            ("apps/v1/d:gw", "apps/v1/d:gw", "apps/v1/d:gw"),
            ("apps/v1/d:gw,s apps/v1/r:g", "apps/v1/d:lg,es", "apps/v1/d:glw,es apps/v1/r:g"),
            ("apps/v1/d:g batch/v1/j:g", "apps/v1/d:g apps/v2/d:g", "apps/v1/d:g apps/v2/d:g batch/v1/j:g"),
            ("a/v1/x:g", "b/v1/y:g", "a/v1/x:g b/v1/y:g"),
            ("", "b/v1/y:g", "b/v1/y:g"),
        ] {
            let (one, other) = (served(one), served(other));
            assert_eq!(shown(&groups(&[&one, &other])), expected);
        }
    }
}
