//! The documents, made when somebody first asks for them and kept for as long as nothing changes.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use api_machinery::value::Value;
use bytes::Bytes;
use parking_lot::Mutex;
use schema::openapi::{
    Choices, OwnPath, Resource, Swagger, group_document, own_document, root_document, swagger, swagger_protobuf,
    version_document,
};

use super::document::Document;
use super::resources::{self, Custom};
use crate::aggregation::state::Aggregation;
use crate::custom_resources::ServedKinds;
use crate::digest::digest_of;
use crate::discovery::Catalog;
use crate::negotiate::Compressed;

/// The document of everything, in one form. Both forms have one tag. They are large and rarely asked for, so only what
/// they compress to is kept, and protobuf is made for who asks for it.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) content: Compressed,
    pub(super) hash: String,
    /// When it was made.
    pub(super) made: SystemTime,
}

/// A form of the document of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeForm {
    Json,
    Protobuf,
}

/// Which version 3 document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Root { core: bool },
    Group(String),
    Version(String, String),
    Own(OwnPath),
}

/// A document of one generation of its kinds.
struct Part {
    generation: u64,
    hash: String,
    /// When it was made, or could have been.
    made: SystemTime,
    /// What is made of kinds that came at run time is made for who wants it: there may be thousands, and few are read.
    json: Option<Bytes>,
}

/// What was made, and of which generation of kinds, and of what other servers say of theirs.
#[derive(Default)]
struct Made {
    generation: (u64, u64),
    whole: Option<Whole>,
    whole_protobuf: Option<Compressed>,
    index: Option<Document>,
    subjects: Arc<BTreeMap<String, Subject>>,
    /// Each is as old as the version that it tells of.
    parts: BTreeMap<String, Part>,
}

/// The documents of what is served.
pub(super) struct Documents {
    served: Arc<ServedKinds>,
    aggregation: Arc<Aggregation>,
    choices: Choices,
    made: Mutex<Made>,
}

impl Documents {
    pub(super) fn new(served: &Arc<ServedKinds>, aggregation: &Arc<Aggregation>, choices: Choices) -> Self {
        let (served, aggregation) = (Arc::clone(served), Arc::clone(aggregation));
        Self { served, aggregation, choices, made: Mutex::default() }
    }

    /// The version 2 document of everything; `now` is when it is made if it is not there yet.
    ///
    /// # Errors
    /// It cannot be compressed, which is never so.
    pub(super) fn whole(&self, form: WholeForm, now: SystemTime) -> io::Result<Whole> {
        let mut made = self.current();
        let document = LazyCell::new(|| self.swagger());
        let json = match &made.whole {
            Some(whole) => whole.clone(),
            None => {
                let (content, hash) = Compressed::with_tag(|out| document.write(out))?;
                made.whole.insert(Whole { content, hash, made: now }).clone()
            }
        };
        if form == WholeForm::Json {
            return Ok(json);
        }
        let protobuf = made.whole_protobuf.get_or_insert_with(|| Compressed::new(&swagger_protobuf(&document)));
        Ok(Whole { content: protobuf.clone(), ..json })
    }

    /// The version 3 index: where each document is.
    pub(super) fn index(&self, now: SystemTime) -> Document {
        let mut made = self.current();
        if let Some(index) = &made.index {
            return index.clone();
        }
        let subjects = Arc::clone(&made.subjects);
        made.parts.retain(|key, _| subjects.contains_key(key));
        let mut paths = BTreeMap::new();
        for (key, subject) in subjects.iter() {
            let hash = &self.kept(&mut made, key, subject, now).hash;
            paths.insert(
                key.clone(),
                serde_json::json!({ "serverRelativeURL": format!("/openapi/v3/{key}?hash={hash}") }),
            );
        }
        let elsewhere = self.aggregation.described().into_iter();
        paths.extend(elsewhere.map(|(key, url)| (key, serde_json::json!({ "serverRelativeURL": url }))));
        let index = Document::new(&serde_json::json!({ "paths": paths }), now);
        made.index = Some(index.clone());
        index
    }

    /// One version 3 document; nothing for an unknown key.
    pub(super) fn part(&self, key: &str, now: SystemTime) -> Option<Document> {
        let (subject, made) = {
            let mut made = self.current();
            let subject = made.subjects.get(key)?.clone();
            let Part { hash, made, json, .. } = self.kept(&mut made, key, &subject, now);
            if let Some(json) = json {
                return Some(Document { json: json.clone(), hash: hash.clone(), made: *made });
            }
            (subject, *made)
        };
        // Nobody waits for what is made for this one.
        Some(match &subject {
            Subject::Version(group, version) => self.fresh(group, version, made),
            other => Document::new(&self.render(other), made),
        })
    }

    /// The document of a version, with the tag of what is in it, though that may have changed a moment ago.
    fn fresh(&self, group: &str, version: &str, made: SystemTime) -> Document {
        let custom = self.custom(group, version);
        let resources = self.resources(group, version, &custom);
        let json = version_document(group, version, &resources, self.choices).to_string().into();
        Document { json, hash: digest_of(&resources), made }
    }

    /// What was made, without what is out of date.
    fn current(&self) -> parking_lot::MutexGuard<'_, Made> {
        let generation = (self.served.generation(), self.aggregation.described_generation());
        let mut made = self.made.lock();
        if made.generation != generation || made.subjects.is_empty() {
            let parts = std::mem::take(&mut made.parts);
            *made = Made { generation, subjects: Arc::new(self.keys()), parts, ..Made::default() };
        }
        made
    }

    fn generation_of(&self, subject: &Subject) -> u64 {
        match subject {
            Subject::Version(group, version) => self.served.version_generation(group, version),
            Subject::Root { .. } | Subject::Group(_) | Subject::Own(_) => 0,
        }
    }

    /// What is kept of a document, which it is from now on if it was not yet.
    fn kept<'m>(&self, made: &'m mut Made, key: &str, subject: &Subject, now: SystemTime) -> &'m Part {
        let generation = self.generation_of(subject);
        let part = made.parts.entry(key.to_owned());
        let part = part.and_modify(|part| {
            if part.generation != generation {
                *part = self.make_part(subject, generation, now);
            }
        });
        part.or_insert_with(|| self.make_part(subject, generation, now))
    }

    fn make_part(&self, subject: &Subject, generation: u64, now: SystemTime) -> Part {
        if let Subject::Version(group, version) = subject
            && generation > 0
        {
            let custom = self.custom(group, version);
            let hash = digest_of(&self.resources(group, version, &custom));
            return Part { generation, hash, made: now, json: None };
        }
        let Document { json, hash, made } = Document::new(&self.render(subject), now);
        Part { generation, hash, made, json: Some(json) }
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

    /// Put together version by version: what is made of the schemas of all at once would take a hundred times as much as
    /// what is kept of it.
    fn swagger(&self) -> Swagger {
        let mut document = swagger(&resources::built_in(&self.served), self.choices);
        for [group, version] in self.served.versions() {
            let custom = self.custom(&group, &version);
            let resources: Vec<_> = custom.iter().flat_map(Custom::resources).collect();
            document.add(swagger(&resources, self.choices));
        }
        self.aggregation.describe(&mut document);
        document
    }

    fn render(&self, subject: &Subject) -> Value {
        match subject {
            Subject::Root { core } => root_document(*core),
            Subject::Own(own) => own_document(*own),
            Subject::Group(group) => group_document(group),
            Subject::Version(group, version) => {
                let custom = self.custom(group, version);
                version_document(group, version, &self.resources(group, version, &custom), self.choices)
            }
        }
    }

    fn custom(&self, group: &str, version: &str) -> Vec<Custom> {
        self.served.in_version(group, version).into_iter().map(Custom::new).collect()
    }

    /// What is served in a version of a group.
    fn resources<'a>(&self, group: &str, version: &str, custom: &'a [Custom]) -> Vec<Resource<'a>> {
        let mut all: Vec<Resource<'a>> = resources::built_in(&self.served);
        all.retain(|resource| resource.group == group && resource.version == version);
        all.extend(custom.iter().flat_map(Custom::resources));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_version_has_a_document() {
        let documents = Documents::new(
            &Arc::new(ServedKinds::default()),
            &Aggregation::alone(|lifecycle| lifecycle),
            Choices::Told,
        );
        let index: Value = serde_json::from_slice(&documents.index(SystemTime::UNIX_EPOCH).json).unwrap();
        let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
        let part = documents.part("apis/apps/v1", SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(url, format!("/openapi/v3/apis/apps/v1?hash={}", part.hash));
        let apps: Value = serde_json::from_slice(&part.json).unwrap();
        assert!(apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"].is_object());
        assert!(documents.part("apis/nothing/v1", SystemTime::UNIX_EPOCH).is_none());
        let whole = documents.whole(WholeForm::Json, SystemTime::UNIX_EPOCH).unwrap();
        let whole: Value = serde_json::from_slice(&whole.content.plain().unwrap()).unwrap();
        assert!(whole["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    }
}
