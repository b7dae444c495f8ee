//! What is served, in discovery's order: groups, their versions, and the resources of each version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::meta::{APIGroup, APIGroupList, APIResource, APIResourceList, GroupVersionForDiscovery};
use api_types::apidiscovery_v2::APIVersionDiscovery;
use component_base::Gates;
use kinds::info::ResourceInfo;

use super::order::{compare_names, group_priority, version_priority};
use crate::aggregation::state::Listed;
use crate::custom_resources::{InfoRef, ServedKinds};
use crate::gates;
use crate::handlers::BINDINGS;

/// Everything that is served.
pub(crate) struct Catalog {
    pub(crate) groups: Vec<Group>,
}

/// A group.
pub(crate) struct Group {
    pub(crate) name: String,
    /// The higher, the earlier.
    priority: i32,
    /// The most preferred first.
    pub(crate) versions: Vec<Version>,
}

/// A version of a group.
pub(crate) struct Version {
    pub(crate) version: String,
    /// The higher, the more preferred.
    priority: i32,
    /// By name.
    pub(crate) resources: Vec<InfoRef>,
    /// What another server serves instead.
    pub(super) elsewhere: Option<APIVersionDiscovery>,
}

impl Catalog {
    /// The built-in kinds and those that came at run time.
    pub(crate) fn new(served: &ServedKinds) -> Self {
        let mut groups: BTreeMap<String, BTreeMap<String, Vec<InfoRef>>> = BTreeMap::new();
        let built_in = kinds::all().map(|rules| rules.info()).filter(|info| served.is_enabled(info));
        let built_in = built_in.chain([&BINDINGS]).map(InfoRef::Static);
        let custom = served.all().into_iter().map(|kind| InfoRef::Shared(Arc::clone(&kind.info)));
        for kept in built_in.chain(custom) {
            let [group, version, _] = kept.get().place().map(str::to_owned);
            groups.entry(group).or_default().entry(version).or_default().push(kept);
        }
        let groups = groups.into_iter().map(|(name, versions)| Group::new(name, versions)).collect();
        let mut catalog = Self { groups };
        catalog.sort();
        catalog
    }

    /// The same, and the versions that other servers answer for; APIServices say what is preferred.
    pub(super) fn whole(served: &ServedKinds, listed: Vec<Listed>) -> Self {
        let mut catalog = Self::new(served);
        let mut ranked = BTreeSet::new();
        for own in listed {
            let is_served = catalog.group(&own.group).and_then(|group| group.version(&own.version)).is_some();
            if !is_served && own.elsewhere.is_none() {
                // The kinds of this version are gone, and its APIService is about to go.
                continue;
            }
            let at = catalog.groups.iter().position(|group| group.name == own.group);
            let at = at.unwrap_or_else(|| {
                catalog.groups.push(Group::new(own.group.clone(), BTreeMap::new()));
                catalog.groups.len() - 1
            });
            if let Some(group) = catalog.groups.get_mut(at) {
                let is_first = ranked.insert(own.group.clone());
                group.priority = if is_first { own.group_priority } else { own.group_priority.max(group.priority) };
                group.put(own);
            }
        }
        catalog.sort();
        catalog
    }

    fn sort(&mut self) {
        self.groups.sort_by(|one, other| other.priority.cmp(&one.priority).then_with(|| one.name.cmp(&other.name)));
        self.groups.iter_mut().for_each(Group::sort);
    }

    /// A group by name; the core group's is empty.
    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Whether a version has kinds that were not made at run time.
    pub(super) fn has_built_in(&self, group: &str, version: &str) -> bool {
        let found = self.group(group).and_then(|group| group.version(version));
        let is_own = |info: &InfoRef| matches!(info, InfoRef::Static(_));
        found.is_some_and(|version| version.resources.iter().any(is_own))
    }

    /// The document of `/apis`.
    pub(super) fn group_list(&self) -> APIGroupList {
        let groups = self.groups.iter().filter(|group| !group.name.is_empty());
        APIGroupList { groups: groups.map(Group::document).collect() }
    }
}

impl Group {
    fn new(name: String, versions: BTreeMap<String, Vec<InfoRef>>) -> Self {
        let versions = versions
            .into_iter()
            .map(|(version, mut resources)| {
                resources.sort_by(|one, other| one.get().resource.cmp(other.get().resource));
                let priority = version_priority(&name, &version);
                Version { version, priority, resources, elsewhere: None }
            })
            .collect();
        Self { priority: group_priority(&name), name, versions }
    }

    /// Notes what an APIService says of a version.
    fn put(&mut self, listed: Listed) {
        let (priority, elsewhere) = (listed.version_priority, listed.elsewhere);
        match self.versions.iter_mut().find(|own| own.version == listed.version) {
            Some(own) => {
                own.priority = priority;
                if elsewhere.is_some() {
                    own.resources.clear();
                }
                own.elsewhere = elsewhere;
            }
            None => self.versions.push(Version { version: listed.version, priority, resources: Vec::new(), elsewhere }),
        }
    }

    fn sort(&mut self) {
        self.versions.sort_by(|one, other| {
            other.priority.cmp(&one.priority).then_with(|| compare_names(&one.version, &other.version))
        });
    }

    /// A version by name.
    pub(crate) fn version(&self, version: &str) -> Option<&Version> {
        self.versions.iter().find(|own| own.version == version)
    }

    /// `group/version`, or the version alone for the core group.
    pub(crate) fn group_version(&self, version: &str) -> String {
        if self.name.is_empty() { version.to_owned() } else { format!("{}/{version}", self.name) }
    }

    /// The document of `/apis/{group}`.
    pub(super) fn document(&self) -> APIGroup {
        let version = |own: &Version| GroupVersionForDiscovery {
            group_version: self.group_version(&own.version),
            version: own.version.clone(),
        };
        APIGroup {
            name: self.name.clone(),
            versions: self.versions.iter().map(version).collect(),
            preferred_version: self.versions.first().map(version).unwrap_or_default(),
            ..APIGroup::default()
        }
    }

    /// The document of `/apis/{group}/{version}`.
    pub(super) fn resource_list(&self, version: &Version, hashes: Hashes) -> APIResourceList {
        let entries = version.resources.iter().flat_map(|own| {
            let hashes = if matches!(own, InfoRef::Static(_)) { hashes } else { Hashes::Told };
            resource_entries(own.get(), hashes)
        });
        let resources = entries.collect();
        APIResourceList { group_version: self.group_version(&version.version), resources }
    }
}

/// Whether it is told by a hash in which version the objects of a built-in resource are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashes {
    Told,
    Untold,
}

impl Hashes {
    pub(super) fn by(gates: &Gates) -> Self {
        if gates.enabled(gates::STORAGE_VERSION_HASH) { Self::Told } else { Self::Untold }
    }
}

/// A resource and its subresources.
fn resource_entries(info: &ResourceInfo<'_>, hashes: Hashes) -> Vec<APIResource> {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let stored = info.storage.filter(|_| hashes == Hashes::Told);
    let mut entries = Vec::new();
    if !info.verbs.is_empty() {
        entries.push(APIResource {
            name: info.resource.to_owned(),
            singular_name: info.singular.to_owned(),
            namespaced: info.namespaced,
            kind: info.kind.to_owned(),
            verbs: api_machinery::leaf::StringList(texts(info.verbs)),
            short_names: texts(info.short_names),
            categories: texts(info.categories),
            storage_version_hash: stored.map(|storage| storage.hash.to_owned()).unwrap_or_default(),
            ..APIResource::default()
        });
    }
    entries.extend(info.subresources.iter().map(|subresource| APIResource {
        name: format!("{}/{}", info.resource, subresource.name),
        namespaced: info.namespaced,
        group: subresource.group.to_owned(),
        version: subresource.version.to_owned(),
        kind: subresource.kind.to_owned(),
        verbs: api_machinery::leaf::StringList(texts(subresource.verbs)),
        ..APIResource::default()
    }));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_its_documents() {
        let catalog = Catalog::new(&ServedKinds::default());
        let list = catalog.group_list();
        assert!(list.groups.iter().all(|group| !group.name.is_empty() && !group.versions.is_empty()));
        let apps = list.groups.iter().find(|group| group.name == "apps").unwrap();
        assert_eq!(apps.preferred_version.group_version, "apps/v1");
        let core = catalog.group("").unwrap();
        let resources = core.resource_list(core.version("v1").unwrap(), Hashes::Told);
        let names: Vec<&str> = resources.resources.iter().map(|resource| resource.name.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        assert_eq!(resources.resources.iter().filter(|resource| resource.name == "bindings").count(), 1);
        let eviction = resources.resources.iter().find(|resource| resource.name == "pods/eviction").unwrap();
        assert_eq!((eviction.group.as_str(), eviction.version.as_str()), ("policy", "v1"));
        let pods = resources.resources.iter().find(|resource| resource.name == "pods").unwrap();
        assert_eq!(pods.storage_version_hash.len(), 12);
    }
}
