//! What a server tells of each resource: the version that it stores, those that it can read, and those that it serves.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::gvk::{GroupResource, GroupVersion};
use api_types::apiserverinternal_v1alpha1::ServerStorageVersion;
use kinds::info::ResourceInfo;
use kinds::rules::Rules;
use registry::Registry;

use crate::discovery::order::compare_versions;

/// What is told of the resources that are kept in one place of the store.
pub(super) struct StoredResources {
    /// They, by group and name: what is told is told of the first.
    pub(super) resources: Vec<GroupResource>,
    encoding: String,
    decodable: Vec<String>,
    served: Vec<String>,
}

impl StoredResources {
    /// As the word of the server that is called `id`.
    pub(super) fn by(&self, id: &str) -> ServerStorageVersion {
        ServerStorageVersion {
            api_server_id: id.to_owned(),
            encoding_version: self.encoding.clone(),
            decodable_versions: self.decodable.clone(),
            served_versions: self.served.clone(),
        }
    }
}

/// What there is to tell of the resources of a server, by group and name of those that it is told of. Custom resources,
/// which come later, are not told of, as upstream: their definitions say what they are stored as.
pub(super) fn of(registry: &Registry) -> Vec<StoredResources> {
    let resources = registry.resources();
    let mut places: BTreeMap<&str, Vec<&ResourceInfo<'_>>> = BTreeMap::new();
    for info in resources.iter().map(|resource| resource.info()) {
        if let Some(storage) = info.storage {
            places.entry(storage.prefix).or_default().push(info);
        }
    }
    let mut all: Vec<StoredResources> =
        places.into_iter().filter_map(|(prefix, served)| stored_at(prefix, &served)).collect();
    all.sort_by(|one, other| one.resources.cmp(&other.resources));
    all
}

fn stored_at(prefix: &str, served: &[&ResourceInfo<'_>]) -> Option<StoredResources> {
    let name = |info: &ResourceInfo<'_>| GroupResource::named(info.group, info.resource);
    let resources: BTreeSet<GroupResource> = served.iter().map(|info| name(info)).collect();
    let group = resources.first()?.group.clone();
    let is_own = |info: &&ResourceInfo<'_>| info.group == group;
    let storage = served.iter().find(|info| is_own(info)).and_then(|info| info.storage)?;
    let stored = GroupVersion { group: storage.group.to_owned().into(), version: storage.version.to_owned().into() };
    let versions = |mut infos: Vec<&ResourceInfo<'_>>| -> Vec<String> {
        infos.sort_by(|one, other| compare_versions(&group, one.version, other.version));
        infos.into_iter().map(ResourceInfo::api_version).collect()
    };

    let known: Vec<&'static dyn Rules> =
        kinds::all().filter(|rules| rules.info().storage.is_some_and(|own| own.prefix == prefix)).collect();
    let read = versions(known.iter().map(|rules| rules.info()).filter(is_own).collect());
    let former = known.iter().flat_map(|rules| rules.former()).map(|former| former.api_version.to_owned());
    let elsewhere = served.iter().filter(|info| !is_own(info)).map(|info| info.api_version());
    let encoding = stored.to_string();
    let decodable = distinct(read.into_iter().chain(former).chain(elsewhere).chain([encoding.clone()]));
    let served = versions(served.iter().copied().filter(is_own).collect());
    Some(StoredResources { resources: resources.into_iter().collect(), encoding, decodable, served })
}

/// Each of them once, where it comes first.
fn distinct(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}
