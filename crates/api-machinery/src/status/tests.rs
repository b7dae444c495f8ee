//! Tables for [`ApiError`].

use super::*;
use crate::field_path::Path;

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

#[test]
fn constructors_follow_upstream() {
    let deployments = GroupResource::new("apps", "deployments");
    let cases = [
        (ApiError::not_found(&deployments, "a"), 404, "NotFound", r#"deployments.apps "a" not found"#),
        (ApiError::already_exists(&pods(), "a"), 409, "AlreadyExists", r#"pods "a" already exists"#),
        (
            ApiError::already_exists_terminating(&pods(), "a"),
            409,
            "AlreadyExists",
            r#"object is being deleted: pods "a" already exists"#,
        ),
        (
            ApiError::generate_name_conflict(&pods(), "a"),
            409,
            "AlreadyExists",
            r#"pods "a" already exists, the server was not able to generate a unique name for the object"#,
        ),
        (
            ApiError::modified(&pods(), "a"),
            409,
            "Conflict",
            "Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your changes to \
             the latest version and try again",
        ),
        (ApiError::bad_request("x"), 400, "BadRequest", "x"),
        (ApiError::unauthorized("Unauthorized"), 401, "Unauthorized", "Unauthorized"),
        (ApiError::unauthorized(""), 401, "Unauthorized", "not authorized"),
        (ApiError::forbidden(&pods(), "a", "no"), 403, "Forbidden", r#"pods "a" is forbidden: no"#),
        (ApiError::forbidden(&pods(), "", "no"), 403, "Forbidden", "pods is forbidden: no"),
        (ApiError::forbidden(&GroupResource::default(), "", "no"), 403, "Forbidden", "forbidden: no"),
        (
            ApiError::method_not_supported(&deployments, "watch"),
            405,
            "MethodNotAllowed",
            r#"watch is not supported on resources of kind "deployments.apps""#,
        ),
        (ApiError::gone("x"), 410, "Gone", "x"),
        (ApiError::expired("x"), 410, "Expired", "x"),
        (
            ApiError::request_entity_too_large("limit is 5"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 5",
        ),
        (ApiError::too_many_requests("x", 1), 429, "TooManyRequests", "x"),
        (ApiError::internal("x"), 500, "InternalError", "Internal error occurred: x"),
        (ApiError::unclassified("x"), 500, "", "x"),
        (
            ApiError::server_timeout(&pods(), "list"),
            500,
            "ServerTimeout",
            "The list operation against pods could not be completed at this time, please try again.",
        ),
        (ApiError::service_unavailable("x"), 503, "ServiceUnavailable", "x"),
        (ApiError::timeout("x", 0), 504, "Timeout", "Timeout: x"),
        (
            ApiError::resource_version_too_large(9, 5),
            504,
            "Timeout",
            "Timeout: Too large resource version: 9, current: 5",
        ),
    ];
    for (error, code, reason, message) in cases {
        assert_eq!((error.code, error.reason.as_ref(), error.to_string().as_str()), (code, reason, message));
    }
}

#[test]
fn details_say_what_it_is_about() {
    let details = |error: ApiError| *error.details.unwrap();
    let named = ErrorDetails { name: "a".into(), kind: "pods".into(), ..ErrorDetails::default() };
    assert_eq!(details(ApiError::not_found(&pods(), "a")), named);
    assert_eq!(ApiError::generate_name_conflict(&pods(), "a").retry_after_seconds(), Some(1));
    let timeout = details(ApiError::server_timeout(&pods(), "list"));
    assert_eq!((timeout.name.as_str(), timeout.retry_after_seconds), ("list", 2));
    assert_eq!(details(ApiError::internal("x")).causes[0].message, "x");
    assert_eq!(details(ApiError::forbidden(&GroupResource::default(), "", "x")), ErrorDetails::default());
    assert_eq!(ApiError::bad_request("x").details, None);
    assert!(ApiError::resource_version_too_large(9, 5).has_cause(CAUSE_RESOURCE_VERSION_TOO_LARGE));
    assert_eq!(ApiError::timeout("x", 0).retry_after_seconds(), None);
    assert_eq!(ApiError::expired("x").with_continue("t").continue_token, "t");
}

#[test]
fn invalid_lists_all_causes_and_distinct_texts() {
    let path = Path::new("spec").child("x");
    let errors: ErrorList = [path.required(""), path.required("")].into_iter().collect();
    let error = ApiError::invalid(&GroupKind::new("apps", "Deployment"), "a", &errors);
    assert_eq!(error.to_string(), r#"Deployment.apps "a" is invalid: spec.x: Required value"#);
    let details = *error.details.unwrap();
    assert_eq!((details.kind.as_str(), details.group.as_str(), details.causes.len()), ("Deployment", "apps", 2));
}

#[test]
fn plain_responses_get_a_reason() {
    let pods = pods();
    let response = |code, method, name, body| {
        ApiError::from(PlainResponse {
            code,
            method,
            resource: &pods,
            name,
            body,
            retry_after_seconds: 0,
            unexpected: true,
        })
    };
    let conflict = response(409, "POST", "", "x");
    assert_eq!(conflict.to_string(), "the server reported a conflict (post pods)");
    assert!(conflict.is_already_exists() && !conflict.is_conflict());
    assert!(response(409, "PUT", "a", "").is_conflict());
    let broken = response(502, "GET", "a", "bad \"gateway\"");
    assert_eq!(
        broken.to_string(),
        r#"an error on the server ("bad \"gateway\"") has prevented the request from succeeding (get pods a)"#
    );
    assert!(broken.has_cause(CAUSE_UNEXPECTED_SERVER_RESPONSE));
    let odd = response(418, "GET", "", "");
    assert_eq!(
        odd.to_string(),
        "the server responded with the status code 418 but did not return more information (get pods)"
    );
    assert_eq!(odd.reason, "");
}

#[test]
fn the_code_decides_only_without_a_known_reason() {
    let odd = |reason: &'static str, code| ApiError { code, reason: reason.into(), ..ApiError::default() };
    let cases = [
        (odd("", 404).is_not_found(), true),
        (odd("Other", 404).is_not_found(), true),
        (odd("BadRequest", 404).is_not_found(), false),
        (odd("NotFound", 0).is_not_found(), true),
        (odd("Expired", 410).is_expired(), true),
        (odd("", 410).is_expired(), true),
        (odd("ServerTimeout", 500).is_timeout(), true),
    ];
    for (index, (actual, expected)) in cases.into_iter().enumerate() {
        assert_eq!(actual, expected, "case {index}");
    }
}
