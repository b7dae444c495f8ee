//! A description of version 2 in the form of version 3, for servers that have only the former. Pure.

use serde_json::{Map, Value, json};

use super::part::{DEFINITION, Part};

const SCHEMA: &str = "#/components/schemas/";
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// What says of a parameter where and what it is; the rest is its schema.
const ABOUT_PARAMETERS: [&str; 5] = ["name", "in", "description", "required", "allowEmptyValue"];
const DEFAULT_MEDIA: &str = "application/json";

/// What a description says for all its operations.
pub(crate) struct Common {
    info: Value,
    consumes: Vec<String>,
    produces: Vec<String>,
}

impl Common {
    pub(crate) fn of(document: &Map<String, Value>) -> Self {
        let own = || json!({"title": "Kubernetes", "version": "unversioned"});
        Self {
            info: document.get("info").filter(|info| info.is_object()).cloned().unwrap_or_else(own),
            consumes: texts(document.get("consumes")),
            produces: texts(document.get("produces")),
        }
    }
}

/// The document of version 3 that says what a part says.
pub(crate) fn document(part: &Part, common: &Common) -> Value {
    let paths: Map<String, Value> =
        part.paths.iter().map(|(path, item)| (path.clone(), path_item(item, common))).collect();
    let schemas: Map<String, Value> =
        part.definitions.iter().map(|(name, definition)| (name.clone(), referred(definition))).collect();
    json!({"openapi": "3.0.0", "info": common.info, "paths": paths, "components": {"schemas": schemas}})
}

fn path_item(item: &Value, common: &Common) -> Value {
    let converted = |(key, value): (&String, &Value)| {
        let value = if METHODS.contains(&key.as_str()) {
            operation(value, common)
        } else if key == "parameters" {
            Value::Array(array(value).filter(|own| own["in"] != "body").map(parameter).collect())
        } else {
            value.clone()
        };
        (key.clone(), value)
    };
    Value::Object(item.as_object().into_iter().flatten().map(converted).collect())
}

fn operation(operation: &Value, common: &Common) -> Value {
    let media = |key: &str, of_all: &[String]| {
        let own = texts(operation.get(key));
        let own = if own.is_empty() { of_all.to_vec() } else { own };
        if own.is_empty() { vec![DEFAULT_MEDIA.to_owned()] } else { own }
    };
    let (consumes, produces) = (media("consumes", &common.consumes), media("produces", &common.produces));
    let mut out = Map::new();
    for (key, value) in operation.as_object().into_iter().flatten() {
        match key.as_str() {
            "consumes" | "produces" | "schemes" => {}
            "parameters" => {
                let (bodies, others): (Vec<_>, Vec<_>) = array(value).partition(|own| own["in"] == "body");
                out.insert(key.clone(), Value::Array(others.into_iter().map(parameter).collect()));
                if let Some(own) = bodies.first() {
                    out.insert("requestBody".to_owned(), body(own, &consumes));
                }
            }
            "responses" => {
                let responses = value.as_object().into_iter().flatten();
                let responses = responses.map(|(code, own)| (code.clone(), response(own, &produces)));
                out.insert(key.clone(), Value::Object(responses.collect()));
            }
            _ => drop(out.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(out)
}

fn parameter(own: &Value) -> Value {
    let (mut out, mut schema) = (Map::new(), Map::new());
    for (key, value) in own.as_object().into_iter().flatten() {
        let is_about = ABOUT_PARAMETERS.contains(&key.as_str()) || key.starts_with("x-");
        if is_about { &mut out } else { &mut schema }.insert(key.clone(), referred(value));
    }
    out.insert("schema".to_owned(), Value::Object(schema));
    Value::Object(out)
}

fn body(own: &Value, consumes: &[String]) -> Value {
    let mut out = Map::new();
    for (key, value) in own.as_object().into_iter().flatten() {
        if matches!(key.as_str(), "description" | "required") || key.starts_with("x-") {
            out.insert(key.clone(), value.clone());
        }
    }
    out.insert("content".to_owned(), content(own.get("schema"), consumes));
    Value::Object(out)
}

fn response(own: &Value, produces: &[String]) -> Value {
    let mut out = Map::new();
    for (key, value) in own.as_object().into_iter().flatten() {
        if key == "description" || key.starts_with("x-") {
            out.insert(key.clone(), value.clone());
        }
    }
    if let Some(schema) = own.get("schema") {
        out.insert("content".to_owned(), content(Some(schema), produces));
    }
    Value::Object(out)
}

/// The same schema for each media type.
fn content(schema: Option<&Value>, media: &[String]) -> Value {
    let schema = schema.map_or_else(|| json!({}), |schema| json!({"schema": referred(schema)}));
    Value::Object(media.iter().map(|media| (media.clone(), schema.clone())).collect())
}

/// The same with references to where definitions are now.
fn referred(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let of = |(key, value): (&String, &Value)| {
                let name = value.as_str().filter(|_| key == "$ref").and_then(|own| own.strip_prefix(DEFINITION));
                (key.clone(), name.map_or_else(|| referred(value), |name| Value::String(format!("{SCHEMA}{name}"))))
            };
            Value::Object(map.iter().map(of).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(referred).collect()),
        other => other.clone(),
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.into_iter().flat_map(array).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::part::read;
    use super::*;

    #[test]
    fn what_version_2_says_is_said_in_version_3() {
        let old = json!({
            "swagger": "2.0", "info": {"title": "Sample", "version": "v1"}, "produces": ["application/yaml"],
            "paths": {"/apis/g.io/v1/things": {
                "parameters": [{"name": "pretty", "in": "query", "type": "string", "uniqueItems": true}],
                "post": {
                    "operationId": "create", "consumes": ["*/*"], "schemes": ["https"],
                    "parameters": [
                        {"name": "body", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Thing"}},
                        {"name": "dryRun", "in": "query", "description": "D", "type": "array", "items": {"type": "string"}}],
                    "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}},
                                  "401": {"description": "Unauthorized"}},
                    "x-kubernetes-action": "post"},
                "delete": {"responses": {}}}},
            "definitions": {"Thing": {"properties": {"next": {"$ref": "#/definitions/Thing"}}}}});
        let old = read(old.to_string().as_bytes()).unwrap();
        let common = Common::of(&old);
        let thing = json!({"$ref": "#/components/schemas/Thing"});
        let strings = json!({"type": "array", "items": {"type": "string"}});
        let create = json!({
            "operationId": "create",
            "parameters": [{"name": "dryRun", "in": "query", "description": "D", "schema": strings}],
            "requestBody": {"required": true, "content": {"*/*": {"schema": thing}}},
            "responses": {"200": {"description": "OK", "content": {"application/yaml": {"schema": thing}}},
                          "401": {"description": "Unauthorized"}},
            "x-kubernetes-action": "post"});
        let pretty = json!({"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}});
        assert_eq!(
            document(&Part::of(old, "/apis/g.io/v1").unwrap(), &common),
            json!({
                "openapi": "3.0.0", "info": {"title": "Sample", "version": "v1"},
                "paths": {"/apis/g.io/v1/things": {
                    "parameters": [pretty], "post": create, "delete": {"responses": {}}}},
                "components": {"schemas": {"Thing": {"properties": {"next": thing}}}}})
        );
    }

    /// Whatever a server says ends up in a document, which is no reason to break.
    #[test]
    fn what_is_no_description_is_nothing_in_it() {
        let old = json!({
            "info": 1, "consumes": {}, "paths": {"/apis/g.io/v1": 1, "/apis/g.io/v1/a": {
                "parameters": {}, "get": [], "put": {"parameters": [1, {"in": "body"}], "responses": [2], "produces": 3}}}});
        let old = read(old.to_string().as_bytes()).unwrap();
        let common = Common::of(&old);
        let converted = document(&Part::of(old, "/apis/g.io/v1").unwrap(), &common);
        let item = json!({"parameters": [], "get": {}, "put": {
            "parameters": [{"schema": {}}], "requestBody": {"content": {"application/json": {}}}, "responses": {}}});
        assert_eq!(converted["paths"], json!({"/apis/g.io/v1": {}, "/apis/g.io/v1/a": item}));
    }
}
