//! OpenAPI documents in protobuf, as gnostic's messages have them, made from the JSON form by tables of field numbers.
//!
//! Clients that have long been around (kubectl before 1.27, and later ones for kinds that nobody serves) ask for this
//! form of version 2; few ask for it of version 3. A message is described by a table; what JSON leaves open (a type is one name or several, a
//! parameter is of one of five kinds) is told apart by looking at the value.

use api_machinery::protobuf::Encoder;
use serde_json::{Map, Value};

use super::swagger::{Member, Section, Swagger, value_of};

mod v2;
mod v3;

#[cfg(test)]
mod tests;

/// How a JSON value travels.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// A double.
    Number,
    /// An integer.
    Count,
    /// Anything, as YAML within a message; JSON is YAML.
    Any,
    /// One entry for each item of a list; a single value is a list of one.
    Each(&'static Form),
    /// The value as a field of a message around it.
    Within(u32, &'static Form),
    Message(&'static Message),
    /// What the value is decides: the first of these that it is.
    OneOf(&'static [Alternative]),
}

/// One of the things that a value can be.
struct Alternative {
    is: fn(&Value) -> bool,
    /// The fields of the messages around it, from the outermost on.
    path: &'static [u32],
    form: Form,
}

/// The fields of a message.
struct Message {
    /// JSON name, number and form, by number.
    fields: &'static [(&'static str, u32, Form)],
    /// The field for members whose names begin with `x-`; zero where those are nothing special.
    extensions: u32,
    /// The field and form of members that are not listed; nothing where there are none.
    others: Option<(u32, Form)>,
}

/// The field of an entry of a map that has the name, and the one that has the value.
const NAME: u32 = 1;
const VALUE: u32 = 2;
/// The field of `Any` that has YAML.
const YAML: u32 = 2;

/// A document of version 2 as a gnostic `openapi.v2.Document`.
#[must_use]
pub fn swagger_protobuf(document: &Swagger) -> Vec<u8> {
    let mut out = Encoder::default();
    let mut members = document.members();
    for (name, number, form) in v2::DOCUMENT.fields.iter().rev() {
        match (members.remove(name), form) {
            (Some(Member::Section(entries)), Form::Message(message)) => {
                out.message(*number, |out| section(out, entries, message));
            }
            (Some(Member::Value(value)), form) => field(&mut out, *number, &value, *form),
            _ => {}
        }
    }
    out.into_vec()
}

/// Writes the entries of a section, each read for itself.
fn section(out: &mut Encoder, section: &Section, message: &Message) {
    let is_extension = |name: &str| message.extensions != 0 && name.starts_with("x-");
    let extensions = (message.extensions != 0).then_some((message.extensions, Form::Any));
    for (form, extension) in [(extensions, true), (message.others, false)] {
        let Some(form) = form else { continue };
        for (name, text) in section.iter().rev().filter(|(name, _)| is_extension(name) == extension) {
            value_of(text).into_iter().for_each(|value| entry(out, name, &value, form));
        }
    }
}

/// A document of version 3 as a gnostic `openapi.v3.Document`.
#[must_use]
pub fn version3_protobuf(document: &Value) -> Vec<u8> {
    let mut out = Encoder::default();
    members(&mut out, document, &v3::DOCUMENT);
    out.into_vec()
}

fn is_reference(value: &Value) -> bool {
    value.get("$ref").is_some()
}

/// Writes the members of a message, the last one first, as the encoder wants it.
fn members(out: &mut Encoder, value: &Value, message: &Message) {
    let Some(map) = value.as_object() else { return };
    if message.extensions != 0 {
        let is_extension = |name: &str| name.starts_with("x-");
        entries(out, map, (message.extensions, Form::Any), is_extension);
    }
    if let Some(others) = message.others {
        entries(out, map, others, |name| !(message.extensions != 0 && name.starts_with("x-")));
    }
    for (name, number, form) in message.fields.iter().rev() {
        if let Some(value) = map.get(*name) {
            field(out, *number, value, *form);
        }
    }
}

/// Writes some members of a map as pairs of name and value.
fn entries(out: &mut Encoder, map: &Map<String, Value>, (number, form): (u32, Form), wanted: impl Fn(&str) -> bool) {
    for (name, value) in map.iter().rev().filter(|(name, _)| wanted(name)) {
        entry(out, name, value, (number, form));
    }
}

fn entry(out: &mut Encoder, name: &str, value: &Value, (number, form): (u32, Form)) {
    out.message(number, |out| {
        field(out, VALUE, value, form);
        out.bytes(NAME, name.as_bytes());
    });
}

fn field(out: &mut Encoder, number: u32, value: &Value, form: Form) {
    match form {
        Form::Text => out.bytes(number, value.as_str().unwrap_or_default().as_bytes()),
        Form::Flag => out.bool(number, value.as_bool().unwrap_or_default()),
        Form::Number => out.double(number, value.as_f64().unwrap_or_default()),
        Form::Count => out.int(number, value.as_i64().unwrap_or_default()),
        Form::Any => out.message(number, |out| out.bytes(YAML, format!("{value}\n").as_bytes())),
        Form::Each(form) => match value {
            Value::Array(list) => list.iter().rev().for_each(|item| field(out, number, item, *form)),
            single => field(out, number, single, *form),
        },
        Form::Within(inner, form) => out.message(number, |out| field(out, inner, value, *form)),
        Form::Message(message) => out.message(number, |out| members(out, value, message)),
        Form::OneOf(alternatives) => {
            let found = alternatives.iter().find(|alternative| (alternative.is)(value));
            found.into_iter().for_each(|one| wrapped(out, number, one.path, value, one.form));
        }
    }
}

/// Writes a value inside the messages of a path.
fn wrapped(out: &mut Encoder, number: u32, path: &[u32], value: &Value, form: Form) {
    match path {
        [] => field(out, number, value, form),
        [inner, rest @ ..] => out.message(number, |out| wrapped(out, *inner, rest, value, form)),
    }
}
