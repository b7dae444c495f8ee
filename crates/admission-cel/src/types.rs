//! The types that the checker knows: of the request, of its namespace, of what mutations make.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::kubernetes::declared::{Declared, DeclaredField, DeclaredKind, DeclaredTypes, ListOrder};
use cel::{Type, TypeProvider};

pub(crate) const REQUEST: &str = "kubernetes.AdmissionRequest";
pub(crate) const NAMESPACE: &str = "kubernetes.Namespace";
/// The type of an operation of a JSON patch.
pub(crate) const PATCH: &str = "JSONPatch";
/// The type of the object that an apply configuration is; those below it are named by the path of their field.
pub(crate) const OBJECT: &str = "Object";

fn plain(kind: DeclaredKind) -> Declared {
    Declared::new(kind)
}

fn text() -> Declared {
    plain(DeclaredKind::String)
}

fn list(item: Declared) -> Declared {
    plain(DeclaredKind::List { item: Arc::new(item), order: ListOrder::Atomic })
}

fn map(value: Declared) -> Declared {
    plain(DeclaredKind::Map { value: Arc::new(value) })
}

fn object(name: &str, fields: Vec<(&str, Declared)>) -> Declared {
    let field = |(name, declared): (&str, Declared)| {
        let json_name = name.to_owned();
        (name.into(), DeclaredField { json_name, declared: Arc::new(declared) })
    };
    let fields: BTreeMap<_, _> = fields.into_iter().map(field).collect();
    plain(DeclaredKind::Object { name: name.into(), fields })
}

fn request() -> Declared {
    let kind = || object("kubernetes.GroupVersionKind", vec![("group", text()), ("version", text()), ("kind", text())]);
    let resource = || {
        object("kubernetes.GroupVersionResource", vec![("group", text()), ("version", text()), ("resource", text())])
    };
    let user = object(
        "kubernetes.UserInfo",
        vec![("username", text()), ("uid", text()), ("groups", list(text())), ("extra", map(list(text())))],
    );
    let fields = vec![
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", text()),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", plain(DeclaredKind::Bool)),
        ("options", plain(DeclaredKind::Dyn)),
    ];
    object(REQUEST, fields)
}

fn namespace() -> Declared {
    let (number, time) = (|| plain(DeclaredKind::Int), || plain(DeclaredKind::Timestamp));
    let metadata = vec![
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", map(text())),
        ("annotations", map(text())),
        ("uid", text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", number()),
        ("deletionTimestamp", time()),
        ("generation", number()),
        ("resourceVersion", text()),
        ("finalizers", list(text())),
    ];
    let condition = vec![
        ("type", text()),
        ("status", text()),
        ("lastTransitionTime", time()),
        ("reason", text()),
        ("message", text()),
    ];
    let status = vec![("phase", text()), ("conditions", list(object("kubernetes.NamespaceCondition", condition)))];
    let fields = vec![
        ("metadata", object("kubernetes.NamespaceMetadata", metadata)),
        ("spec", object("kubernetes.NamespaceSpec", vec![("finalizers", list(text()))])),
        ("status", object("kubernetes.NamespaceStatus", status)),
    ];
    object(NAMESPACE, fields)
}

/// The types of `request` and `namespaceObject`.
pub(crate) fn declared() -> DeclaredTypes {
    DeclaredTypes::default().with("request", Arc::new(request())).with("namespaceObject", Arc::new(namespace()))
}

/// What mutations make: an object and its parts, whose fields may be anything until they meet a schema, and operations of
/// JSON patches.
pub(crate) struct PatchTypes;

fn is_part(name: &str) -> bool {
    name == OBJECT
        || name
            .strip_prefix(OBJECT)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|path| path.split('.').all(|field| !field.is_empty()))
}

impl TypeProvider for PatchTypes {
    fn has_type(&self, name: &str) -> bool {
        name == PATCH || is_part(name)
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        match field {
            _ if is_part(type_name) => Some(Type::Dyn),
            "op" | "path" | "from" if type_name == PATCH => Some(Type::String),
            "value" if type_name == PATCH => Some(Type::Dyn),
            _ => None,
        }
    }
}
