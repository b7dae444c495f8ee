//! What a description of version 2 says of the paths of one version of a group, with all that this needs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub(super) const DEFINITION: &str = "#/definitions/";
const PARAMETER: &str = "#/parameters/";
/// The longest description: several times that of this server itself.
pub(crate) const LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// How many bytes shared parameters may add where they are used: as much as the longest description has.
const PARAMETERS_BYTES: usize = LIMIT_BYTES;

/// A server's part of a document of version 2.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(super) paths: Map<String, Value>,
    pub(super) definitions: Map<String, Value>,
}

/// A description as it comes; how deep it is, the parser has bounded.
pub(crate) fn read(document: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(document).ok()? {
        Value::Object(document) => Some(document),
        _ => None,
    }
}

impl Part {
    /// The part of a document that is about what is below a path; nothing where the document is none.
    pub(crate) fn of(mut document: Map<String, Value>, prefix: &str) -> Option<Self> {
        let Some(Value::Object(mut paths)) = document.remove("paths") else { return None };
        let below = format!("{prefix}/");
        paths.retain(|path, _| path == prefix || path.starts_with(&below));
        put_parameters(&mut paths, document.remove("parameters"))?;
        let mut definitions = match document.remove("definitions") {
            Some(Value::Object(definitions)) => definitions,
            _ => Map::new(),
        };
        let (mut needed, mut next) = (BTreeSet::new(), BTreeSet::new());
        paths.values().for_each(|path| references(path, &mut next));
        while let Some(name) = next.pop_first() {
            if let Some(definition) = definitions.get(&name)
                && needed.insert(name)
            {
                references(definition, &mut next);
            }
        }
        definitions.retain(|name, _| needed.contains(name));
        Some(Self { paths, definitions })
    }
}

/// The names of the definitions that something refers to.
pub(super) fn references(value: &Value, names: &mut BTreeSet<String>) {
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

/// Puts shared parameters where they are used, as the document that the part goes into has none; nothing when that would
/// be too much.
fn put_parameters(paths: &mut Map<String, Value>, shared: Option<Value>) -> Option<()> {
    let Some(Value::Object(shared)) = shared else { return Some(()) };
    let sized: BTreeMap<&str, (&Value, usize)> =
        shared.iter().map(|(name, own)| (name.as_str(), (own, own.to_string().len()))).collect();
    let mut left = PARAMETERS_BYTES;
    for item in paths.values_mut().filter_map(Value::as_object_mut) {
        for (key, value) in item {
            let used = if key == "parameters" { Some(value) } else { value.get_mut("parameters") };
            for parameter in used.and_then(Value::as_array_mut).into_iter().flatten() {
                let name = parameter.get("$ref").and_then(Value::as_str).and_then(|own| own.strip_prefix(PARAMETER));
                let Some((own, size)) = name.and_then(|name| sized.get(name)) else { continue };
                left = left.checked_sub(*size)?;
                *parameter = (*own).clone();
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PREFIX: &str = "/apis/g.io/v1";

    fn part(document: &Value) -> Option<Part> {
        Part::of(read(document.to_string().as_bytes())?, PREFIX)
    }

    #[test]
    fn a_server_speaks_for_its_own_paths_only() {
        let part = part(&json!({
            "paths": {"/apis/g.io/v1/flunders": {"get": {"schema": {"$ref": "#/definitions/g.Flunder"}}},
                      "/apis/g.io/v10/flunders": {"get": {"schema": {"$ref": "#/definitions/Secret"}}},
                      "/apis/apps/v1/deployments": {"get": {"schema": {"$ref": "#/definitions/Secret"}}}},
            "definitions": {"g.Flunder": {"properties": {"spec": {"$ref": "#/definitions/g.Spec"}}},
                            "g.Spec": {"items": {"$ref": "#/definitions/g.Flunder"}},
                            "meta": {"type": "object"}, "Secret": {"type": "object"}},
        }))
        .unwrap();
        assert_eq!(part.paths.keys().collect::<Vec<_>>(), ["/apis/g.io/v1/flunders"]);
        assert_eq!(part.definitions.keys().collect::<Vec<_>>(), ["g.Flunder", "g.Spec"]);
    }

    #[test]
    fn garbage_has_no_part() {
        for garbage in ["", "[]", "{", "{}", r#"{"paths":[]}"#, &"[".repeat(100_000)] {
            assert_eq!(read(garbage.as_bytes()).and_then(|document| Part::of(document, PREFIX)), None, "{garbage:.9}");
        }
    }

    #[test]
    fn shared_parameters_stand_where_they_are_used() {
        let used = json!([{"$ref": "#/parameters/body"}, {"$ref": "#/parameters/unknown"}, {"name": "own"}]);
        let part = part(&json!({
            "parameters": {"body": {"in": "body", "schema": {"$ref": "#/definitions/g.Flunder"}}},
            "paths": {"/apis/g.io/v1/flunders": {"parameters": used, "post": {"parameters": used}}},
            "definitions": {"g.Flunder": {}},
        }))
        .unwrap();
        let body = json!({"in": "body", "schema": {"$ref": "#/definitions/g.Flunder"}});
        let put = json!([body, {"$ref": "#/parameters/unknown"}, {"name": "own"}]);
        assert_eq!(part.paths["/apis/g.io/v1/flunders"], json!({"parameters": put, "post": {"parameters": put}}));
        assert!(part.definitions.contains_key("g.Flunder"), "what only a parameter needs");
    }

    /// A few bytes for each use of a large parameter would fill the memory.
    #[test]
    fn parameters_that_make_too_much_of_it_are_refused() {
        let used = vec![json!({"$ref": "#/parameters/large"}); 20];
        let large = |bytes: usize| {
            part(&json!({
                "parameters": {"large": {"description": "x".repeat(bytes)}},
                "paths": {"/apis/g.io/v1/flunders": {"get": {"parameters": used}}},
            }))
        };
        assert!(large(1000).is_some());
        assert!(large(1024 * 1024).is_none());
    }
}
