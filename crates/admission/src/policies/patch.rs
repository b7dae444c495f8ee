//! One change of an object: what an expression gives, put into the object.

use admission_cel::{Compiled, TypeMismatch, json_patch, object_as_json};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::value::{Value as Json, ValueMap};
use cel::Value;
use schema::apply::typed::{self, ValidationProblem};
use schema::json_patch::{JsonPatch, JsonPatchError};
use schema::type_node::{Class, ListKind, TypeNode};

use crate::{Attributes, Context};

/// How a change is written.
pub(crate) enum Change {
    /// It is merged into the object, as server-side apply would.
    Merge(Compiled),
    /// Operations on the object.
    Patch(Compiled),
    /// It says neither.
    Nothing,
}

/// Why a change was not made; the texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error("{0}")]
    Mismatch(#[from] TypeMismatch),
    #[error("JSON Patch: {0}")]
    Patch(JsonPatchError),
    #[error("JSON Patch: {}", .0.join(", "))]
    UnknownMembers(Vec<String>),
    #[error("error applying patch: failed to convert patch object to typed object: {}", problems(.0))]
    Undeclared(Vec<ValidationProblem>),
    #[error(
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        .0.join(", ")
    )]
    Atomic(Vec<String>),
    /// What came of it is no object of the kind: the request ends, whatever the failure policy says.
    #[error("{0}")]
    Object(ApiError),
}

fn problems(list: &[ValidationProblem]) -> String {
    match list {
        [one] => one.to_string(),
        several => {
            let lines: Vec<String> = several.iter().map(|one| format!("  {one}")).collect();
            format!("errors:\n{}", lines.join("\n"))
        }
    }
}

/// What comes of the object by operations; nothing where one of them tests for what is not so.
pub(super) fn by_operations(
    cx: &Context,
    object: &dyn Object,
    value: &Value<'_>,
) -> Result<Option<Box<dyn Object>>, ChangeError> {
    let patch = JsonPatch::parse(&json_patch(value)?).map_err(ChangeError::Patch)?;
    if !patch.unknown_fields.is_empty() {
        return Err(ChangeError::UnknownMembers(patch.unknown_fields));
    }
    match patch.apply(object.to_value()) {
        Ok(patched) => cx.versions.read(object, &patched).map(Some).map_err(ChangeError::Object),
        Err(JsonPatchError::Test(_)) => Ok(None),
        Err(error) => Err(ChangeError::Patch(error)),
    }
}

/// What comes of the object when a value is merged into it.
pub(super) fn by_merge(
    cx: &Context,
    attributes: &Attributes,
    object: &dyn Object,
    value: &Value<'_>,
) -> Result<Box<dyn Object>, ChangeError> {
    let mut patch = object_as_json(value)?;
    if let Json::Object(members) = &mut patch {
        members.insert("apiVersion".into(), object.api_version().into());
        members.insert("kind".into(), object.kind().into());
    }
    let custom = cx.versions.custom_schema(attributes.place());
    let node = match &custom {
        Some(schema) => TypeNode::of_schema(schema),
        None => TypeNode::of_struct(object.struct_type()),
    };
    let found = typed::validate(&patch, node);
    if !found.is_empty() {
        return Err(ChangeError::Undeclared(found));
    }
    let mut atomic = Vec::new();
    atomic_places(&patch, node, &mut String::new(), &mut atomic);
    if !atomic.is_empty() {
        return Err(ChangeError::Atomic(atomic));
    }
    let merged = typed::merge(&object.to_value(), &patch, node);
    cx.versions.read(object, &merged).map_err(ChangeError::Object)
}

/// The places that are owned as a whole: to change a part of one would be to replace the rest unseen.
fn atomic_places(value: &Json, node: TypeNode<'_>, path: &mut String, found: &mut Vec<String>) {
    match (node.class_for(value), value) {
        (Class::Map { atomic: true } | Class::List(ListKind::Atomic), Json::Object(_) | Json::Array(_)) => {
            found.push(path.clone());
        }
        (Class::Map { .. }, Json::Object(members)) => members_of(members, node, path, found),
        (Class::List(ListKind::Map), Json::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                below(path, &format!("[{index}]"), |path| atomic_places(item, node.item(), path, found));
            }
        }
        _ => {}
    }
}

fn members_of(members: &ValueMap<String, Json>, node: TypeNode<'_>, path: &mut String, found: &mut Vec<String>) {
    for (name, member) in members {
        let of = node.member(name).unwrap_or(TypeNode::deduced());
        below(path, &format!(".{name}"), |path| atomic_places(member, of, path, found));
    }
}

fn below(path: &mut String, step: &str, walk: impl FnOnce(&mut String)) {
    let end = path.len();
    path.push_str(step);
    walk(path);
    path.truncate(end);
}
