//! What is told to those who may not do what they ask for.

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use authz::{Attributes, Outcome};

/// The 403 of a request.
pub(crate) fn forbidden(attributes: &Attributes, outcome: &Outcome) -> ApiError {
    let text = describe_refusal(&forbidden_text(attributes), outcome);
    if !attributes.resource_request {
        return ApiError::forbidden(&GroupResource::default(), "", text);
    }
    let resource =
        GroupResource { group: attributes.group.clone().into(), resource: attributes.resource.clone().into() };
    ApiError::forbidden(&resource, &attributes.name, text)
}

/// Who may not do what, with what came from the client escaped.
pub(crate) fn forbidden_text(attributes: &Attributes) -> String {
    let user = attributes.user.username.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let verb = &attributes.verb;
    if !attributes.resource_request {
        return format!("User {user:?} cannot {verb} path {:?}", attributes.path);
    }
    let resource = attributes.full_resource();
    let place = match attributes.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    format!("User {user:?} cannot {verb} resource {resource:?} in API group {:?} {place}", attributes.group)
}

/// The text with the authorizers' reason.
pub(crate) fn describe_refusal(text: &str, outcome: &Outcome) -> String {
    if outcome.reason.is_empty() { text.to_owned() } else { format!("{text}: {}", outcome.reason) }
}

#[cfg(test)]
mod tests {
    use api_types::authentication_v1::UserInfo;

    use super::*;
    use crate::authorization::attributes::attributes;
    use crate::request::RequestInfo;

    fn refused(path: &str, reason: &str) -> String {
        let info = RequestInfo::new(&http::Method::GET, path, &crate::request::Query::default()).unwrap();
        let user = UserInfo { username: "a<b".into(), ..UserInfo::default() };
        forbidden(&attributes(&user.into(), &info), &Outcome::no_opinion(reason)).message
    }

    #[test]
    fn refusals_have_upstreams_texts() {
        assert_eq!(
            refused("/apis/apps/v1/namespaces/n/deployments/d/scale", ""),
            "deployments.apps \"d\" is forbidden: User \"a&lt;b\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"n\""
        );
        assert_eq!(
            refused("/api/v1/nodes", "RBAC: x"),
            "nodes is forbidden: User \"a&lt;b\" cannot list resource \"nodes\" in API group \"\" at the cluster scope: RBAC: x"
        );
        assert_eq!(refused("/metrics", ""), "forbidden: User \"a&lt;b\" cannot get path \"/metrics\"");
    }
}
