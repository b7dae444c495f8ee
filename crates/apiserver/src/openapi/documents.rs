//! The documents, made when somebody first asks for them and kept for as long as nothing changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use api_machinery::value::Value;
use bytes::Bytes;
use parking_lot::Mutex;
use schema::openapi::{
    OwnPath, Resource, group_document, own_document, root_document, swagger, swagger_protobuf, version_document,
};

use super::resources;
use crate::aggregation::Aggregation;
use crate::custom_resources::ServedKinds;
use crate::discovery::{Catalog, digest};
use crate::negotiate::Compressed;

/// A document and its tag, without quotes.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) json: Bytes,
    pub(super) hash: String,
    /// When it was made.
    pub(super) made: SystemTime,
}

impl Document {
    pub(super) fn new(value: &Value, made: SystemTime) -> Self {
        let json = value.to_string();
        Self { hash: digest(json.as_bytes()), json: json.into(), made }
    }
}

/// The document of everything, in both forms, which have one tag. They are large and rarely asked for, so only what
/// they compress to is kept.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) json: Compressed,
    pub(super) protobuf: Compressed,
    pub(super) hash: String,
    /// When it was made.
    pub(super) made: SystemTime,
}

impl Whole {
    fn new(value: &Value, made: SystemTime) -> Self {
        let json = value.to_string();
        let (hash, packed) = (digest(json.as_bytes()), Compressed::new(json.as_bytes()));
        drop(json);
        Self { json: packed, protobuf: Compressed::new(&swagger_protobuf(value)), hash, made }
    }
}

/// Which version 3 document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Root { core: bool },
    Group(String),
    Version(String, String),
    Own(OwnPath),
}

/// Everything made of one generation of kinds, and of what other servers say of theirs.
#[derive(Default)]
struct Made {
    generation: (u64, u64),
    whole: Option<Whole>,
    parts: BTreeMap<String, Document>,
    index: Option<Document>,
}

/// The documents of what is served.
pub(super) struct Documents {
    served: Arc<ServedKinds>,
    aggregation: Arc<Aggregation>,
    made: Mutex<Made>,
}

impl Documents {
    pub(super) fn new(served: &Arc<ServedKinds>, aggregation: &Arc<Aggregation>) -> Self {
        Self { served: Arc::clone(served), aggregation: Arc::clone(aggregation), made: Mutex::default() }
    }

    /// The version 2 document of everything; `now` is when it is made if it is not there yet.
    pub(super) fn whole(&self, now: SystemTime) -> Whole {
        let mut made = self.current();
        made.whole.get_or_insert_with(|| self.make_whole(now)).clone()
    }

    /// The version 3 index: where each document is.
    pub(super) fn index(&self, now: SystemTime) -> Document {
        let mut made = self.current();
        if let Some(index) = &made.index {
            return index.clone();
        }
        let mut paths: BTreeMap<String, Value> = self
            .keys()
            .into_iter()
            .map(|(key, subject)| {
                let document = made.parts.entry(key.clone()).or_insert_with(|| self.make_part(&subject, now));
                let url = format!("/openapi/v3/{key}?hash={}", document.hash);
                (key, serde_json::json!({ "serverRelativeURL": url }))
            })
            .collect();
        let elsewhere = self.aggregation.described().into_iter();
        paths.extend(elsewhere.map(|(key, url)| (key, serde_json::json!({ "serverRelativeURL": url }))));
        let index = Document::new(&serde_json::json!({ "paths": paths }), now);
        made.index = Some(index.clone());
        index
    }

    /// One version 3 document; nothing for an unknown key.
    pub(super) fn part(&self, key: &str, now: SystemTime) -> Option<Document> {
        let subject = self.keys().remove(key)?;
        let mut made = self.current();
        Some(made.parts.entry(key.to_owned()).or_insert_with(|| self.make_part(&subject, now)).clone())
    }

    /// What was made, emptied where it is out of date.
    fn current(&self) -> parking_lot::MutexGuard<'_, Made> {
        let generation = (self.served.generation(), self.aggregation.described_generation());
        let mut made = self.made.lock();
        if made.generation != generation {
            *made = Made { generation, ..Made::default() };
        }
        made
    }

    fn keys(&self) -> BTreeMap<String, Subject> {
        let mut keys = BTreeMap::from([
            ("api".to_owned(), Subject::Root { core: true }),
            ("apis".to_owned(), Subject::Root { core: false }),
        ]);
        keys.extend(OwnPath::ALL.map(|own| (own.key().to_owned(), Subject::Own(own))));
        for group in Catalog::new(&self.served).groups {
            if !group.name.is_empty() {
                keys.insert(format!("apis/{}", group.name), Subject::Group(group.name.clone()));
            }
            for version in &group.versions {
                let prefix = if group.name.is_empty() { "api" } else { "apis" };
                let key = format!("{prefix}/{}", group.group_version(&version.version));
                keys.insert(key, Subject::Version(group.name.clone(), version.version.clone()));
            }
        }
        keys
    }

    fn make_whole(&self, now: SystemTime) -> Whole {
        let custom = self.served.all();
        let mut all = resources::built_in(&self.served);
        all.extend(custom.iter().flat_map(|kind| resources::custom(kind)));
        let mut document = swagger(&all);
        self.aggregation.describe(&mut document);
        Whole::new(&document, now)
    }

    fn make_part(&self, subject: &Subject, now: SystemTime) -> Document {
        match subject {
            Subject::Root { core } => Document::new(&root_document(*core), now),
            Subject::Own(own) => Document::new(&own_document(*own), now),
            Subject::Group(group) => Document::new(&group_document(group), now),
            Subject::Version(group, version) => {
                let custom = self.served.all();
                let mut all: Vec<Resource<'_>> = resources::built_in(&self.served);
                all.extend(custom.iter().flat_map(|kind| resources::custom(kind)));
                all.retain(|resource| resource.group == group && resource.version == version);
                Document::new(&version_document(group, version, &all), now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_version_has_a_document() {
        let documents = Documents::new(&Arc::new(ServedKinds::default()), &Aggregation::alone());
        let index: Value = serde_json::from_slice(&documents.index(SystemTime::UNIX_EPOCH).json).unwrap();
        let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
        let part = documents.part("apis/apps/v1", SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(url, format!("/openapi/v3/apis/apps/v1?hash={}", part.hash));
        let apps: Value = serde_json::from_slice(&part.json).unwrap();
        assert!(apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"].is_object());
        assert!(documents.part("apis/nothing/v1", SystemTime::UNIX_EPOCH).is_none());
        let whole = documents.whole(SystemTime::UNIX_EPOCH);
        let whole: Value = serde_json::from_slice(&whole.json.plain().unwrap()).unwrap();
        assert!(whole["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    }
}
