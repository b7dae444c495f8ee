//! A server's part of a description put into the one of this server. Pure.

use std::collections::{BTreeMap, BTreeSet};

use schema::openapi::Swagger;
use serde_json::{Map, Value};

use super::part::{DEFINITION, Part, references};

/// How many definitions of one name there may be; those of further servers are left out.
const NAMESAKES: usize = 100;
/// The kinds that a definition is of: many groups share some.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// Puts a part in the place of whatever a document says of the same paths.
pub(super) fn merge(document: &mut Swagger, part: &Part, prefix: &str) {
    let names = names(|name| document.definition(name), part);
    let below = format!("{prefix}/");
    document.retain_paths(|path| path != prefix && !path.starts_with(&below));
    for (path, item) in &part.paths {
        document.set_path(path.clone(), &renamed(item, &names));
    }
    for (name, definition) in &part.definitions {
        let Some(name) = names.get(name) else { continue };
        let next = match document.definition(name) {
            Some(mut own) => {
                add_kinds(&mut own, definition);
                own
            }
            None => renamed(definition, &names),
        };
        document.set_definition(name.clone(), &next);
    }
}

/// What the definitions of a part are called in a document: one that says something else under the same name, or refers
/// to one that does, gets another.
fn names(known: impl Fn(&str) -> Option<Value>, part: &Part) -> BTreeMap<String, String> {
    let differing = differing(&known, part);
    let named = |(name, definition): (&String, &Value)| {
        if !differing.contains(name) {
            return Some((name.clone(), name.clone()));
        }
        let is_free = |other: &String| {
            let fits = known(other).is_none_or(|own| is_clear(definition) && is_same(&own, definition));
            fits && !part.definitions.contains_key(other)
        };
        let other = (2..NAMESAKES).map(|number| format!("{name}_v{number}")).find(is_free)?;
        Some((name.clone(), other))
    };
    part.definitions.iter().filter_map(named).collect()
}

/// Whether a definition refers to no other, so that its words alone are what it says.
fn is_clear(definition: &Value) -> bool {
    let mut names = BTreeSet::new();
    references(definition, &mut names);
    names.is_empty()
}

/// The names that mean something else in a document, by themselves or by what they refer to.
fn differing(known: impl Fn(&str) -> Option<Value>, part: &Part) -> BTreeSet<String> {
    let mut referrers: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for (name, definition) in &part.definitions {
        let mut names = BTreeSet::new();
        references(definition, &mut names);
        names.into_iter().for_each(|own| referrers.entry(own).or_default().push(name));
    }
    let differs =
        |(name, own): (&String, &Value)| known(name).is_some_and(|known| !is_same(&known, own)).then(|| name.clone());
    let mut next: Vec<String> = part.definitions.iter().filter_map(differs).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = next.pop() {
        let above = referrers.get(&name).into_iter().flatten().filter(|above| known(above).is_some());
        let above: Vec<String> = above.map(|&above| above.clone()).collect();
        if found.insert(name) {
            next.extend(above);
        }
    }
    found
}

/// Whether two definitions say the same, whichever kinds they are of.
fn is_same(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let rest = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(KINDS));
    rest(one) == rest(other) && one.iter().all(|(key, value)| key == KINDS || other.get(key) == Some(value))
}

/// Adds the kinds that a definition is of in a part.
fn add_kinds(own: &mut Value, other: &Value) {
    let Some(Value::Array(added)) = other.get(KINDS) else { return };
    let Some(own) = own.as_object_mut() else { return };
    let kinds = own.entry(KINDS).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(kinds) = kinds else { return };
    for kind in added {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
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

    const PREFIX: &str = "/apis/g.io/v1";

    fn part(paths: Value, definitions: Value) -> Part {
        let (Value::Object(paths), Value::Object(definitions)) = (paths, definitions) else { panic!("no objects") };
        Part { paths, definitions }
    }

    fn document(paths: Value, definitions: Value) -> Swagger {
        let Part { paths, definitions } = part(paths, definitions);
        let mut made = Swagger::default();
        paths.into_iter().for_each(|(path, item)| made.set_path(path, &item));
        definitions.into_iter().for_each(|(name, definition)| made.set_definition(name, &definition));
        made
    }

    fn reference(name: &str) -> Value {
        json!({"$ref": format!("#/definitions/{name}")})
    }

    #[test]
    fn paths_of_the_version_are_replaced() {
        let paths = json!({"/apis/g.io/v1": {}, "/apis/g.io/v1/old": {}, "/apis/g.io/v10/kept": {}});
        let mut whole = document(paths, json!({}));
        let part = part(json!({"/apis/g.io/v1/new": {"get": {"schema": reference("A")}}}), json!({"A": {}}));
        merge(&mut whole, &part, PREFIX);
        let paths = json!({"/apis/g.io/v1/new": {"get": {"schema": reference("A")}}, "/apis/g.io/v10/kept": {}});
        assert_eq!(whole, document(paths, json!({"A": {}})));
    }

    #[test]
    fn definitions_of_one_name_stay_apart() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
        let of_kinds = |words: &str, kinds: &[&str]| json!({"description": words, KINDS: kinds});
        let cases = [
            ("new", json!({}), json!({"A": text}), json!({"A": text})),
            ("the same", json!({"A": text}), json!({"A": text}), json!({"A": text})),
            ("another", json!({"A": text}), json!({"A": number}), json!({"A": text, "A_v2": number})),
            (
                "a third",
                json!({"A": text, "A_v2": {}}),
                json!({"A": number}),
                json!({"A": text, "A_v2": {}, "A_v3": number}),
            ),
            (
                "what another server has said already",
                json!({"A": text, "A_v2": number}),
                json!({"A": number}),
                json!({"A": text, "A_v2": number}),
            ),
            (
                "a name that the part itself has",
                json!({"A": text}),
                json!({"A": number, "A_v2": {}}),
                json!({"A": text, "A_v2": {}, "A_v3": number}),
            ),
            (
                "what refers to another is another",
                json!({"A": text, "B": reference("A"), "C": reference("B"), "D": {}}),
                json!({"A": number, "B": reference("A"), "C": reference("B"), "D": {}, "E": reference("C")}),
                json!({"A": text, "B": reference("A"), "C": reference("B"), "D": {}, "E": reference("C_v2"),
                       "A_v2": number, "B_v2": reference("A_v2"), "C_v2": reference("B_v2")}),
            ),
            (
                "the same of other kinds",
                json!({"A": of_kinds("a", &["1", "2"])}),
                json!({"A": of_kinds("a", &["2", "3"])}),
                json!({"A": of_kinds("a", &["1", "2", "3"])}),
            ),
            (
                "another of other kinds",
                json!({"A": of_kinds("a", &["1"])}),
                json!({"A": of_kinds("b", &["1"])}),
                json!({"A": of_kinds("a", &["1"]), "A_v2": of_kinds("b", &["1"])}),
            ),
        ];
        for (name, known, definitions, expected) in cases {
            let mut whole = document(json!({}), known);
            merge(&mut whole, &part(json!({}), definitions), PREFIX);
            assert_eq!(whole, document(json!({}), expected), "{name}");
        }
    }
}
