//! The request as expressions see it.

use admission_cel::Request;
use api_machinery::gvk::GroupVersionKind;
use tokio::time::Instant;

use crate::Attributes;

/// The request, as one that was matched as of this kind and resource.
pub(crate) fn request<'a>(
    attributes: &'a Attributes,
    kind: &'a GroupVersionKind,
    resource: [&'a str; 3],
) -> Request<'a> {
    let sent = &attributes.kind;
    Request {
        kind: [&*kind.group, &*kind.version, &*kind.kind],
        resource,
        request_kind: [&*sent.group, &*sent.version, &*sent.kind],
        request_resource: attributes.place(),
        subresource: &attributes.subresource,
        name: &attributes.name,
        namespace: &attributes.namespace,
        operation: attributes.operation.as_str(),
        user: &attributes.user,
        dry_run: attributes.dry_run,
        options: attributes.options.parts(),
    }
}

/// Tells whether nobody waits for the request any more.
pub(crate) fn lateness(attributes: &Attributes) -> impl Fn() -> bool + Send + Sync + use<> {
    let deadline = attributes.deadline;
    move || deadline.is_some_and(|deadline| Instant::now() >= deadline)
}
