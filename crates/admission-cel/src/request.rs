//! The request as expressions see it.

use api_machinery::reflect::Reflect;
use api_types::authentication_v1::UserInfo;
use cel::kubernetes::authorizer::Question;
use cel::{Text, Value, View};

/// A request that is to be admitted. Kinds and resources are group, version and name.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The kind as it was matched, to which objects were converted.
    pub kind: [&'a str; 3],
    /// The resource as it was matched.
    pub resource: [&'a str; 3],
    /// The kind as it was requested.
    pub request_kind: [&'a str; 3],
    /// The resource as it was requested.
    pub request_resource: [&'a str; 3],
    /// The subresource; usually empty.
    pub subresource: &'a str,
    /// The object's name; empty while it is still to be generated.
    pub name: &'a str,
    /// The namespace; empty where there is none.
    pub namespace: &'a str,
    /// `CREATE` and the like.
    pub operation: &'a str,
    /// Who asks.
    pub user: &'a UserInfo,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The kind of the request's options and their fields, where it has any.
    pub options: Option<(&'a str, &'a dyn Reflect)>,
}

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

/// Members that are there whatever they are.
fn triple<'a>([group, version, last]: [&'a str; 3], name: &'static str) -> Value<'a> {
    let members = [("group", group), ("version", version), (name, last)];
    record(members.into_iter().map(|(name, value)| (name, text(value))))
}

fn record<'a>(members: impl IntoIterator<Item = (&'static str, Value<'a>)>) -> Value<'a> {
    let members = members.into_iter().map(|(name, value)| (text(name), value));
    Value::map(members).unwrap_or(Value::Null)
}

/// The options of a request, with what says of which kind they are.
fn options<'a>(kind: &'a str, fields: &'a dyn Reflect) -> Value<'a> {
    let own = [("kind", text(kind)), ("apiVersion", text("meta.k8s.io/v1"))].map(|(name, value)| (text(name), value));
    match Value::of_struct(fields) {
        Value::Map(map) => Value::map(own.into_iter().chain(map.iter())).unwrap_or(Value::Null),
        other => other,
    }
}

/// The members of `request`.
const MEMBERS: [&str; 12] = [
    "subResource",
    "requestSubResource",
    "name",
    "namespace",
    "kind",
    "resource",
    "requestKind",
    "requestResource",
    "operation",
    "userInfo",
    "dryRun",
    "options",
];

impl<'a> Request<'a> {
    /// A member of `request`. Empty texts are not there, nor are options that a request has none of.
    fn member(&self, name: &str) -> Option<Value<'a>> {
        let written = |value: &'a str| (!value.is_empty()).then(|| text(value));
        match name {
            "subResource" | "requestSubResource" => written(self.subresource),
            "name" => written(self.name),
            "namespace" => written(self.namespace),
            "kind" => Some(triple(self.kind, "kind")),
            "resource" => Some(triple(self.resource, "resource")),
            "requestKind" => Some(triple(self.request_kind, "kind")),
            "requestResource" => Some(triple(self.request_resource, "resource")),
            "operation" => Some(text(self.operation)),
            "userInfo" => Some(Value::of_struct(self.user)),
            "dryRun" => Some(Value::Bool(self.dry_run)),
            "options" => self.options.map(|(kind, fields)| options(kind, fields)),
            _ => None,
        }
    }

    /// The question that `authorizer.requestResource` begins with.
    pub(crate) fn question(&self) -> Question {
        let [group, _, resource] = self.request_resource.map(str::to_owned);
        let (subresource, namespace, name) =
            (self.subresource.to_owned(), self.namespace.to_owned(), self.name.to_owned());
        Question { group, resource, subresource, namespace, name, ..Question::default() }
    }
}

impl View for Request<'_> {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.member(key)
    }

    fn keys(&self) -> Vec<&str> {
        MEMBERS.into_iter().filter(|name| self.member(name).is_some()).collect()
    }
}
