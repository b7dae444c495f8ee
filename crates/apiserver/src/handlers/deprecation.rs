//! Versions that are served still, but should not be used any more.

use kinds::rules::Rules;

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;

/// Warns the client, and remembers that the version is in use.
pub(super) fn note(cx: &ApiCx, request: &Request<Authorized>, target: &Target) {
    if let Some(text) = target.custom.as_ref().and_then(|custom| custom.deprecation.as_deref()) {
        request.warnings().add(text);
        return;
    }
    let subresource = target.subresource().map(|subresource| subresource.name).unwrap_or_default();
    note_kind(cx, request, target.rules(), subresource);
}

/// The same of a kind that may have no storage.
pub(crate) fn note_kind(cx: &ApiCx, request: &Request<Authorized>, rules: &dyn Rules, subresource: &str) {
    // The server keeps endpoints of its own for clients that have not moved on.
    if request.user().username == authn::API_SERVER_USER {
        return;
    }
    let (info, Some(found)) = (rules.info(), rules.lifecycle().deprecated) else { return };
    request.audited().context().annotate("k8s.io/deprecated", "true");
    let instead = if found.instead.is_empty() { String::new() } else { format!("; use {}", found.instead) };
    let text = format!("{} {} is deprecated in {}{instead}", info.api_version(), info.kind, found.since);
    request.warnings().add(text);
    cx.metrics.deprecated.with(&[info.group, info.version, info.resource, subresource, ""]).set(1.0);
}
