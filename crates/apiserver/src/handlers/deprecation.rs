//! Versions that are served still, but should not be used any more.

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;

/// Warns the client, and remembers that the version is in use.
pub(super) fn note(cx: &ApiCx, request: &Request<Authorized>, target: &Target) {
    let info = target.info();
    if let Some(text) = target.custom.as_ref().and_then(|custom| custom.deprecation.as_deref()) {
        request.warnings().add(text);
        return;
    }
    // The server keeps endpoints of its own for clients that have not moved on.
    if request.user().username == authn::API_SERVER_USER {
        return;
    }
    let Some(found) = target.rules().lifecycle().deprecated else { return };
    request.audited().context().annotate("k8s.io/deprecated", "true");
    let (api_version, kind) = (target.api_version(), info.kind);
    request.warnings().add(format!("{api_version} {kind} is deprecated in {}; use {}", found.since, found.instead));
    let subresource = target.subresource().map(|subresource| subresource.name).unwrap_or_default();
    cx.metrics.deprecated.with(&[info.group, info.version, info.resource, subresource, ""]).set(1.0);
}
