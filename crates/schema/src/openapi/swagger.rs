//! A document of version 2, which tells of everything that is served and may be large.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use api_machinery::json::parse_value;
use serde_json::{Value, json};

/// Entries of a document by name, each as JSON text: a tenth or less of what it takes as a value.
pub(super) type Section = BTreeMap<String, Box<str>>;

/// The document of paths and definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swagger {
    paths: Section,
    definitions: Section,
}

/// A member of the document.
pub(super) enum Member<'a> {
    Section(&'a Section),
    Value(Value),
}

impl Swagger {
    pub(super) fn new(
        paths: impl IntoIterator<Item = (String, Value)>,
        definitions: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        let text = |(name, value): (String, Value)| (name, text_of(&value));
        Self { paths: paths.into_iter().map(text).collect(), definitions: definitions.into_iter().map(text).collect() }
    }

    /// Adds what another document says, as far as this one says nothing of it.
    pub fn add(&mut self, other: Self) {
        for (own, other) in [(&mut self.paths, other.paths), (&mut self.definitions, other.definitions)] {
            for (name, text) in other {
                own.entry(name).or_insert(text);
            }
        }
    }

    /// A definition.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<Value> {
        self.definitions.get(name).and_then(|text| value_of(text))
    }

    /// Adds or replaces a definition.
    pub fn set_definition(&mut self, name: String, definition: &Value) {
        self.definitions.insert(name, text_of(definition));
    }

    /// Adds or replaces a path.
    pub fn set_path(&mut self, path: String, item: &Value) {
        self.paths.insert(path, text_of(item));
    }

    /// Drops all other paths.
    pub fn retain_paths(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        self.paths.retain(|path, _| wanted(path));
    }

    /// Writes the document as JSON, with sorted members.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let mut mark = '{';
        for (name, member) in self.members() {
            write!(out, "{mark}{}:", Value::from(name))?;
            match member {
                Member::Section(section) => write_section(out, section)?,
                Member::Value(value) => write!(out, "{value}")?,
            }
            mark = ',';
        }
        write!(out, "}}")
    }

    /// By name.
    pub(super) fn members(&self) -> BTreeMap<&'static str, Member<'_>> {
        let security = json!({"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}});
        BTreeMap::from([
            ("swagger", Member::Value("2.0".into())),
            ("info", Member::Value(json!({"title": "Kubernetes", "version": "unversioned"}))),
            ("paths", Member::Section(&self.paths)),
            ("definitions", Member::Section(&self.definitions)),
            ("securityDefinitions", Member::Value(security)),
            ("security", Member::Value(json!([{"BearerToken": []}]))),
        ])
    }

    /// The document as a value: for small ones.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let value = |(name, member): (&str, Member<'_>)| match member {
            Member::Section(section) => (name.to_owned(), values_of(section)),
            Member::Value(value) => (name.to_owned(), value),
        };
        Value::Object(self.members().into_iter().map(value).collect())
    }
}

fn write_section(out: &mut dyn Write, section: &Section) -> Result<()> {
    let mut mark = '{';
    for (name, text) in section {
        write!(out, "{mark}{}:{text}", Value::from(name.as_str()))?;
        mark = ',';
    }
    if section.is_empty() { write!(out, "{{}}") } else { write!(out, "}}") }
}

fn values_of(section: &Section) -> Value {
    section.iter().filter_map(|(name, text)| Some((name.clone(), value_of(text)?))).collect()
}

fn text_of(value: &Value) -> Box<str> {
    value.to_string().into()
}

/// The value of an entry; there is always one, as it was written here.
pub(super) fn value_of(text: &str) -> Option<Value> {
    parse_value(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(paths: Value, definitions: Value) -> Swagger {
        let (Value::Object(paths), Value::Object(definitions)) = (paths, definitions) else { panic!("no objects") };
        Swagger::new(paths, definitions)
    }

    fn written(document: &Swagger) -> String {
        let mut out = Vec::new();
        document.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_written_is_the_document_as_a_value() {
        let numbers = json!({"minimum": 1.0, "maximum": 0.1, "default": 1e300, "multipleOf": 3});
        for made in [
            document(json!({}), json!({})),
            document(
                json!({"/a\"b": {"get": {}}, "/b": {}}),
                json!({"A": numbers, "B": {"description": "\u{2028}<\n>"}}),
            ),
        ] {
            assert_eq!(written(&made), made.to_value().to_string());
        }
        let made = document(json!({}), json!({"A": numbers}));
        assert_eq!(made.definition("A").unwrap().to_string(), numbers.to_string());
    }

    #[test]
    fn what_is_said_already_stays() {
        let mut made = document(json!({"/a": {"get": 1}}), json!({"A": {"type": "string"}}));
        made.add(document(json!({"/a": {"get": 2}, "/b": {}}), json!({"A": {}, "B": {}})));
        assert_eq!(made, document(json!({"/a": {"get": 1}, "/b": {}}), json!({"A": {"type": "string"}, "B": {}})));
        made.retain_paths(|path| path == "/b");
        made.set_path("/c".into(), &json!({}));
        made.set_definition("A".into(), &json!({}));
        assert_eq!(made, document(json!({"/b": {}, "/c": {}}), json!({"A": {}, "B": {}})));
    }
}
