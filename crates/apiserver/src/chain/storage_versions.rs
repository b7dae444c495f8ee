//! Writes wait until it is known what this server stores (`crate::storage_versions`).

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use authn::{API_SERVER_USER, MASTERS};
use component_helpers::api_server_leases;

use super::stages::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;

/// Lets a request on, or says what it would have to wait for.
pub(super) fn check(cx: &ApiCx, request: &Request<Authorized>) -> Result<(), ApiError> {
    let (Some(versions), info) = (&cx.storage_versions, request.info()) else { return Ok(()) };
    if is_exempt(info, request.user()) {
        return Ok(());
    }
    let Some(pending) = versions.pending(&info.group, &info.resource) else { return Ok(()) };
    let resource = GroupResource::named(&info.group, &info.resource);
    let last = pending.last_error.as_deref().unwrap_or("<nil>");
    Err(ApiError::service_unavailable(format!(
        "wait for storage version registration to complete for resource: {resource}, last seen error: {last}"
    )))
}

/// What changes nothing, and what writing the versions itself needs: they, the namespace of the leases, which this server
/// makes, and the leases that say which servers there are.
fn is_exempt(info: &RequestInfo, user: &UserInfo) -> bool {
    if !info.is_resource || info.is_read_only() {
        return true;
    }
    match (info.group.as_str(), info.resource.as_str()) {
        ("internal.apiserver.k8s.io", "storageversions") => true,
        ("", "namespaces") => {
            let is_own = user.username == API_SERVER_USER && user.groups.iter().any(|group| group == MASTERS);
            info.verb == "create" && is_own
        }
        ("coordination.k8s.io", "leases") => info.namespace == api_server_leases::NAMESPACE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    #[test]
    fn what_the_versions_need_does_not_wait_for_them() {
        let user = |name: &str, group: &str| UserInfo {
            username: name.to_owned(),
            groups: vec![group.to_owned()],
            ..UserInfo::default()
        };
        let (root, own) = (user("root", MASTERS), user(API_SERVER_USER, MASTERS));
        for (method, path, user, expected) in [
            (Method::POST, "/healthz", &root, true),
            (Method::GET, "/api/v1/pods", &root, true),
            (Method::POST, "/api/v1/namespaces/default/pods", &root, false),
            (Method::DELETE, "/api/v1/namespaces/default/pods", &own, false),
            (Method::POST, "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", &root, true),
            (Method::POST, "/api/v1/namespaces", &own, true),
            (Method::POST, "/api/v1/namespaces", &root, false),
            (Method::POST, "/api/v1/namespaces", &user(API_SERVER_USER, "other"), false),
            (Method::PUT, "/api/v1/namespaces/default", &own, false),
            (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a", &root, true),
            (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", &root, false),
        ] {
            let info = RequestInfo::new(&method, path, &Query::parse("")).unwrap();
            assert_eq!(is_exempt(&info, user), expected, "{method} {path} {}", user.username);
        }
    }
}
