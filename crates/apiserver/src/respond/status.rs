//! Errors and successes as `Status` objects.

use api_machinery::meta::{ListMeta, Status, StatusCause, StatusDetails};
use api_machinery::status::ApiError;

/// The object that an error is sent as.
#[must_use]
pub(crate) fn status_of(error: &ApiError) -> Status {
    let details = error.details.as_deref().map(|details| StatusDetails {
        name: details.name.clone(),
        group: details.group.clone(),
        kind: details.kind.clone(),
        uid: details.uid.clone(),
        causes: details
            .causes
            .iter()
            .map(|cause| StatusCause {
                reason: cause.reason.to_string(),
                message: cause.message.clone(),
                field: cause.field.clone(),
            })
            .collect(),
        retry_after_seconds: details.retry_after_seconds,
    });
    Status {
        metadata: ListMeta { continue_: error.continue_token.clone(), ..ListMeta::default() },
        status: "Failure".to_owned(),
        message: error.message.clone(),
        reason: error.reason.to_string(),
        details,
        code: error.code.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api_machinery::gvk::GroupResource;
    use api_machinery::json;

    #[test]
    fn errors_have_upstreams_form() {
        let status = status_of(&ApiError::not_found(&GroupResource::new("apps", "deployments"), "d"));
        assert_eq!(
            json::encode_typed("Status", "v1", &status),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"d\" not found","reason":"NotFound","details":{"name":"d","group":"apps","kind":"deployments"},"code":404}"#
        );
        let status = status_of(&ApiError::unknown_resource());
        assert!(json::encode(&status).contains("\"details\":{}"));
    }
}
