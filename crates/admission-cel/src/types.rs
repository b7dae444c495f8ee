//! The types that the checker knows: of the request, of its namespace, of what mutations make.

use std::sync::Arc;

use cel::kubernetes::declared::{Declared, DeclaredKind, DeclaredTypes};
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

fn request() -> Declared {
    let kind = || {
        Declared::object(
            "kubernetes.GroupVersionKind",
            vec![("group", Declared::text()), ("version", Declared::text()), ("kind", Declared::text())],
        )
    };
    let resource = || {
        Declared::object(
            "kubernetes.GroupVersionResource",
            vec![("group", Declared::text()), ("version", Declared::text()), ("resource", Declared::text())],
        )
    };
    let fields = vec![
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", Declared::text()),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", Declared::text()),
        ("name", Declared::text()),
        ("namespace", Declared::text()),
        ("operation", Declared::text()),
        ("userInfo", Declared::user_info()),
        ("dryRun", plain(DeclaredKind::Bool)),
        ("options", plain(DeclaredKind::Dyn)),
    ];
    Declared::object(REQUEST, fields)
}

fn namespace() -> Declared {
    let (number, time) = (|| plain(DeclaredKind::Int), || plain(DeclaredKind::Timestamp));
    let metadata = vec![
        ("name", Declared::text()),
        ("generateName", Declared::text()),
        ("namespace", Declared::text()),
        ("labels", Declared::map(Declared::text())),
        ("annotations", Declared::map(Declared::text())),
        ("uid", Declared::text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", number()),
        ("deletionTimestamp", time()),
        ("generation", number()),
        ("resourceVersion", Declared::text()),
        ("finalizers", Declared::list(Declared::text())),
    ];
    let condition = vec![
        ("type", Declared::text()),
        ("status", Declared::text()),
        ("lastTransitionTime", time()),
        ("reason", Declared::text()),
        ("message", Declared::text()),
    ];
    let status = vec![
        ("phase", Declared::text()),
        ("conditions", Declared::list(Declared::object("kubernetes.NamespaceCondition", condition))),
    ];
    let fields = vec![
        ("metadata", Declared::object("kubernetes.NamespaceMetadata", metadata)),
        ("spec", Declared::object("kubernetes.NamespaceSpec", vec![("finalizers", Declared::list(Declared::text()))])),
        ("status", Declared::object("kubernetes.NamespaceStatus", status)),
    ];
    Declared::object(NAMESPACE, fields)
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
