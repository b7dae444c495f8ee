//! The request as expressions see it.

use api_machinery::reflect::Reflect;
use api_types::authentication_v1::UserInfo;
use cel::kubernetes::authorizer::Question;
use cel::{Text, Value};

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

impl<'a> Request<'a> {
    /// The value of `request`.
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        let written = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        let texts = written.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, text(value)));
        let rest = [
            ("kind", triple(self.kind, "kind")),
            ("resource", triple(self.resource, "resource")),
            ("requestKind", triple(self.request_kind, "kind")),
            ("requestResource", triple(self.request_resource, "resource")),
            ("operation", text(self.operation)),
            ("userInfo", Value::of_struct(self.user)),
            ("dryRun", Value::Bool(self.dry_run)),
        ];
        let options = self.options.map(|(kind, fields)| ("options", options(kind, fields)));
        record(texts.chain(rest).chain(options))
    }

    /// The question that `authorizer.requestResource` begins with.
    pub(crate) fn question(&self) -> Question {
        let [group, _, resource] = self.request_resource.map(str::to_owned);
        let (subresource, namespace, name) =
            (self.subresource.to_owned(), self.namespace.to_owned(), self.name.to_owned());
        Question { group, resource, subresource, namespace, name, ..Question::default() }
    }
}
