//! How other servers describe what they serve: their part of the `OpenAPI` document of version 2, which becomes part of this
//! server's own, and where their documents of version 3 are, which clients get from them through this server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use client::WorkQueue;
use http::StatusCode;
use http::header::ETAG;
use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::Aggregation;
use super::fetch::{self, Answer, Question};
use super::poll::Subject;
use super::table::{GroupVersions, Remote};
use crate::cx::ApiCx;

const VERSION_2: &str = "/openapi/v2";
const VERSION_3: &str = "/openapi/v3";
const DEFINITION: &str = "#/definitions/";
/// How long a server may take to describe itself, as upstream.
const LIMIT: Duration = Duration::from_secs(60);
/// The longest description: several times that of this server itself.
const LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// How many definitions of one name there may be; those of further servers are left out.
const NAMESAKES: usize = 100;

/// A server's part of the document of version 2.
#[derive(Debug, Default, PartialEq)]
struct Part {
    paths: Map<String, Value>,
    definitions: Map<String, Value>,
}

/// What a server has said.
#[derive(Default, Clone)]
struct Description {
    part: Option<Arc<Part>>,
    part_tag: Option<String>,
    /// Where the document of version 3 is.
    url: Option<String>,
    index_tag: Option<String>,
}

/// What other servers say of themselves, by the names of their APIServices.
#[derive(Default)]
pub(super) struct Specs {
    known: RwLock<BTreeMap<String, Description>>,
    generation: AtomicU64,
}

impl Specs {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Keys and addresses of the documents of version 3.
    pub(super) fn keys(&self, table: &GroupVersions) -> Vec<(String, String)> {
        let known = self.known.read();
        let of = |remote: &Arc<Remote>| {
            let url = known.get(&remote.name)?.url.clone()?;
            Some((format!("apis/{}/{}", remote.group, remote.version), url))
        };
        table.remotes().filter_map(of).collect()
    }

    /// Adds the parts to a document; what it says itself of their paths goes.
    pub(super) fn merge_into(&self, document: &mut Value, table: &GroupVersions) {
        let known = self.known.read();
        for remote in table.remotes() {
            let Some(part) = known.get(&remote.name).and_then(|own| own.part.as_ref()) else { continue };
            merge(document, part, &remote.path());
        }
    }

    fn description(&self, name: &str) -> Description {
        self.known.read().get(name).cloned().unwrap_or_default()
    }

    fn put(&self, name: &str, next: Description) {
        let mut known = self.known.write();
        let former = known.insert(name.to_owned(), next.clone()).unwrap_or_default();
        if former.part != next.part || former.url != next.url {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// The hook `apiservice-openapi-controller`.
pub(super) struct OpenApi;

#[async_trait]
impl Subject for OpenApi {
    fn name(&self) -> &'static str {
        "apiservice-openapi-controller"
    }

    fn queue<'a>(&self, aggregation: &'a Aggregation) -> &'a WorkQueue<String> {
        &aggregation.queues.openapi
    }

    async fn ask(&self, aggregation: &Aggregation, cx: &ApiCx, remote: &Remote) -> Result<(), String> {
        let specs = &aggregation.specs;
        let failed = |error: String| format!("loading OpenAPI spec for {:?} failed with: {error}", remote.name);
        let mut next = specs.description(&remote.name);
        if let Some(answer) = ask(cx, remote, VERSION_3, next.index_tag.as_deref()).await.map_err(failed)? {
            next.index_tag = answer.header(ETAG).map(str::to_owned);
            next.url = url_in(&answer.body, remote);
            specs.put(&remote.name, next.clone());
        }
        if let Some(answer) = ask(cx, remote, VERSION_2, next.part_tag.as_deref()).await.map_err(failed)? {
            let (prefix, body) = (remote.path(), answer.body.clone());
            // A long description takes a while to read.
            let part = tokio::task::spawn_blocking(move || part(&body, &prefix)).await;
            next.part = part.map_err(|error| failed(error.to_string()))?.map(Arc::new);
            next.part_tag = answer.header(ETAG).map(str::to_owned);
            specs.put(&remote.name, next);
        }
        Ok(())
    }

    fn forget(&self, aggregation: &Aggregation, name: &str) {
        let specs = &aggregation.specs;
        if specs.known.write().remove(name).is_some() {
            specs.generation.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A document, unless it is the one that is known. A server without it has nothing to say.
async fn ask(cx: &ApiCx, remote: &Remote, path: &str, known: Option<&str>) -> Result<Option<Answer>, String> {
    let question = Question {
        path,
        accept: "application/json",
        known,
        groups: &[authn::MASTERS],
        limit: LIMIT,
        limit_bytes: LIMIT_BYTES,
    };
    let answer = fetch::get(cx, remote, &question).await.map_err(|error| error.to_string())?;
    match answer.status {
        StatusCode::NOT_MODIFIED if known.is_some() => Ok(None),
        StatusCode::OK => Ok(Some(answer)),
        StatusCode::NOT_FOUND => Ok(Some(Answer { body: Bytes::new(), ..answer })),
        other => Err(format!("{path} is answered by {}", other.as_u16())),
    }
}

/// Where an index says that the document of the version is.
fn url_in(index: &[u8], remote: &Remote) -> Option<String> {
    let index: Value = serde_json::from_slice(index).ok()?;
    let key = format!("apis/{}/{}", remote.group, remote.version);
    let url = index.get("paths")?.get(&key)?.get("serverRelativeURL")?.as_str()?;
    // Nothing else is passed on to the server.
    let place = format!("{VERSION_3}/{key}");
    let rest = url.strip_prefix(&place)?;
    (rest.is_empty() || rest.starts_with('?')).then(|| url.to_owned())
}

/// What a document says of the paths of a version, with the definitions that this needs.
fn part(document: &[u8], prefix: &str) -> Option<Part> {
    let Value::Object(mut document) = serde_json::from_slice(document).ok()? else { return None };
    let Some(Value::Object(mut paths)) = document.remove("paths") else { return None };
    let below = format!("{prefix}/");
    paths.retain(|path, _| path == prefix || path.starts_with(&below));
    let mut definitions = match document.remove("definitions") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let (mut needed, mut next) = (BTreeSet::new(), Vec::new());
    paths.values().for_each(|path| references(path, &mut next));
    while let Some(name) = next.pop() {
        if let Some(definition) = definitions.get(&name)
            && needed.insert(name)
        {
            references(definition, &mut next);
        }
    }
    definitions.retain(|name, _| needed.contains(name));
    Some(Part { paths, definitions })
}

/// The names of the definitions that something refers to. How deep it is, its reader has bounded.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str).and_then(|own| own.strip_prefix(DEFINITION));
            names.extend(reference.map(str::to_owned));
            map.values().for_each(|value| references(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn merge(document: &mut Value, part: &Part, prefix: &str) {
    let names = names(document, part);
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        let below = format!("{prefix}/");
        paths.retain(|path, _| path != prefix && !path.starts_with(&below));
        for (path, item) in &part.paths {
            paths.insert(path.clone(), renamed(item, &names));
        }
    }
    if let Some(Value::Object(definitions)) = document.get_mut("definitions") {
        for (name, definition) in &part.definitions {
            let Some(name) = names.get(name) else { continue };
            definitions.entry(name.clone()).or_insert_with(|| renamed(definition, &names));
        }
    }
}

/// What the definitions of a part are called in a document: one that says something else under the same name gets
/// another.
fn names(document: &Value, part: &Part) -> BTreeMap<String, String> {
    let known = document.get("definitions").and_then(Value::as_object);
    let free = |name: &str, definition: &Value| {
        let fits = |candidate: &str| known.and_then(|known| known.get(candidate)).is_none_or(|own| own == definition);
        let candidates =
            std::iter::once(name.to_owned()).chain((2..NAMESAKES).map(|number| format!("{name}_v{number}")));
        candidates.into_iter().find(|candidate| fits(candidate))
    };
    let named = part.definitions.iter().filter_map(|(name, definition)| Some((name.clone(), free(name, definition)?)));
    named.collect()
}

/// The same with the definitions' other names.
fn renamed(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    let name = value.as_str().filter(|_| key == "$ref").and_then(|own| own.strip_prefix(DEFINITION));
                    let value = match name.and_then(|name| names.get(name)) {
                        Some(name) => Value::String(format!("{DEFINITION}{name}")),
                        None => renamed(value, names),
                    };
                    (key.clone(), value)
                })
                .collect(),
        ),
        Value::Array(list) => list.iter().map(|value| renamed(value, names)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "paths": {"/apis/g.io/v1/flunders": {"get": {"schema": {"$ref": "#/definitions/g.Flunder"}}},
                      "/apis/apps/v1/deployments": {"get": {"schema": {"$ref": "#/definitions/Secret"}}}},
            "definitions": {"g.Flunder": {"properties": {"spec": {"$ref": "#/definitions/g.Spec"}}},
                            "g.Spec": {"type": "object"}, "meta": {"type": "object"}, "Secret": {"type": "object"}},
        })
    }

    #[test]
    fn a_server_speaks_for_its_own_paths_only() {
        let part = part(document().to_string().as_bytes(), "/apis/g.io/v1").unwrap();
        assert_eq!(part.paths.keys().collect::<Vec<_>>(), ["/apis/g.io/v1/flunders"]);
        assert_eq!(part.definitions.keys().collect::<Vec<_>>(), ["g.Flunder", "g.Spec"]);
        for garbage in ["", "[]", "{", r#"{"paths":[]}"#, &"[".repeat(100_000)] {
            assert_eq!(super::part(garbage.as_bytes(), "/apis/g.io/v1"), None);
        }
    }

    #[test]
    fn definitions_of_one_name_stay_apart() {
        let part = part(document().to_string().as_bytes(), "/apis/g.io/v1").unwrap();
        let mut whole = json!({
            "paths": {"/apis/g.io/v1/old": {}, "/apis/g.io/v10/kept": {}},
            "definitions": {"g.Spec": {"type": "string"}, "g.Spec_v2": {"type": "number"}},
        });
        merge(&mut whole, &part, "/apis/g.io/v1");
        assert_eq!(
            whole,
            json!({
                "paths": {"/apis/g.io/v1/flunders": {"get": {"schema": {"$ref": "#/definitions/g.Flunder"}}},
                          "/apis/g.io/v10/kept": {}},
                "definitions": {"g.Flunder": {"properties": {"spec": {"$ref": "#/definitions/g.Spec_v3"}}},
                                "g.Spec": {"type": "string"}, "g.Spec_v2": {"type": "number"},
                                "g.Spec_v3": {"type": "object"}},
            })
        );
    }
}
