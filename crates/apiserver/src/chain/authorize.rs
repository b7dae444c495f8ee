//! Whether a request may be made.

use api_machinery::fields::FieldSelector;
use api_machinery::gvk::GroupResource;
use api_machinery::labels::{Operator, Selector};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use authz::{Attributes, Decision, Outcome, SelectorRequirement};

use super::{Authenticated, Authorized, Refusal, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;
use crate::respond;

/// Asks the authorizers.
pub(super) async fn authorize(cx: &ApiCx, request: Request<Authenticated>) -> Result<Request<Authorized>, Refusal> {
    let attributes = attributes(request.sender(), request.info());
    let begun = cx.clock().monotonic();
    let outcome = cx.authorizer.authorize(&attributes).await;
    let result = match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => "allowed",
        (_, Some(_)) => "error",
        (Decision::Deny, None) => "denied",
        (Decision::NoOpinion, None) => "no-opinion",
    };
    let (metrics, took) = (&cx.metrics.identity, cx.clock().monotonic() - begun);
    metrics.authorizations.record(result, took);
    note(request.audited().context(), &outcome);
    match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => {
            metrics.authorization_filter.observe(took.as_secs_f64());
            Ok(request.authorized())
        }
        (_, Some(error)) => {
            tracing::error!(error, path = request.info().path, "Authorizing a request failed");
            Err(respond::plain_error(request.uri(), error).into())
        }
        (_, None) => {
            let refusal = forbidden(&attributes, &outcome);
            request.audited().context().answered(respond::status_of(&refusal));
            let mut response = respond::error(request.wish(), &refusal);
            let nosniff = http::HeaderValue::from_static("nosniff");
            response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
            Err(response.into())
        }
    }
}

/// Notes what was decided, and why.
fn note(audit: &audit::Context, outcome: &Outcome) {
    let (decision, reason) = match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => (Some("allow"), outcome.reason.as_str()),
        (_, Some(_)) => (None, "internal error"),
        (_, None) => (Some("forbid"), outcome.reason.as_str()),
    };
    decision.into_iter().for_each(|decision| audit.annotate("authorization.k8s.io/decision", decision));
    audit.annotate("authorization.k8s.io/reason", reason);
}

/// What authorizers may know of a request.
pub(crate) fn attributes(user: &UserInfo, info: &RequestInfo) -> Attributes {
    Attributes {
        user: user.clone(),
        verb: info.verb.clone(),
        resource_request: info.is_resource,
        namespace: info.namespace.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        name: info.name.clone(),
        path: info.path.clone(),
        field_selector: field_requirements(&info.field_selector),
        label_selector: label_requirements(&info.label_selector),
    }
}

/// A selector that cannot be read narrows nothing; the handler refuses it.
fn field_requirements(text: &str) -> Vec<SelectorRequirement> {
    let Ok(selector) = FieldSelector::parse(text) else { return Vec::new() };
    let requirement = |term: &api_machinery::fields::Term| SelectorRequirement {
        key: term.field.clone(),
        operator: if term.equal { "In" } else { "NotIn" }.to_owned(),
        values: vec![term.value.clone()],
    };
    selector.terms().iter().map(requirement).collect()
}

fn label_requirements(text: &str) -> Vec<SelectorRequirement> {
    let Ok(selector) = Selector::parse(text) else { return Vec::new() };
    let requirements = selector.requirements().iter().filter_map(|requirement| {
        let operator = match requirement.operator() {
            Operator::In | Operator::Equals | Operator::DoubleEquals => "In",
            Operator::NotIn | Operator::NotEquals => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::GreaterThan | Operator::LessThan => return None,
        };
        let (key, values) = (requirement.key().to_owned(), requirement.values().to_vec());
        Some(SelectorRequirement { key, operator: operator.to_owned(), values })
    });
    requirements.collect()
}

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
pub(super) fn forbidden_text(attributes: &Attributes) -> String {
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
pub(super) fn describe_refusal(text: &str, outcome: &Outcome) -> String {
    if outcome.reason.is_empty() { text.to_owned() } else { format!("{text}: {}", outcome.reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, reason: &str) -> String {
        let info = RequestInfo::new(&http::Method::GET, path, &crate::request::Query::default()).unwrap();
        let user = UserInfo { username: "a<b".into(), ..UserInfo::default() };
        forbidden(&attributes(&user, &info), &Outcome::no_opinion(reason)).message
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
