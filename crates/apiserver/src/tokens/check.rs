//! The rules of token requests.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::{GroupKind, GroupResource};
use api_machinery::meta::ObjectMeta;
use api_machinery::status::ApiError;
use authn::service_account::expiration_problem;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

fn invalid(name: &str, errors: &ErrorList) -> Result<(), ApiError> {
    let kind = GroupKind { group: GROUP.into(), kind: KIND.into() };
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&kind, name, errors)) }
}

/// The namespace, where the request has one, is that of the path.
pub(super) fn namespace(meta: &ObjectMeta, namespace: &str) -> Result<(), ApiError> {
    if !meta.namespace.is_empty() && meta.namespace != namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(text));
    }
    Ok(())
}

/// The name, where the request has one, is that of the path.
pub(super) fn name(meta: &ObjectMeta, name: &str) -> Result<(), ApiError> {
    let (at, mut errors) = (Path::new("metadata"), ErrorList::default());
    if !meta.name.is_empty() && meta.name != name {
        let detail = "must match the service account name if specified";
        errors.push(at.child("name").invalid(&meta.name, detail));
    }
    invalid(name, &errors)
}

/// How the uid of a request, where it has one, differs from the account's.
pub(super) fn other_uid(wanted: &str, account: &ObjectMeta) -> Option<String> {
    let have = &account.uid;
    let differs = !wanted.is_empty() && wanted != have;
    differs.then(|| {
        format!("the UID in the token request ({wanted}) does not match the UID of the service account ({have})")
    })
}

/// The refusal of a request that means another account of that name.
pub(super) fn refuse_uid(account: &ObjectMeta, cause: &str) -> ApiError {
    let resource = GroupResource { group: GROUP.into(), resource: KIND.into() };
    ApiError::conflict(&resource, &account.name, cause)
}

/// The lifetime is neither too short nor too long.
pub(super) fn expiration(seconds: i64) -> Result<(), ApiError> {
    let mut errors = ErrorList::default();
    if let Some(problem) = expiration_problem(seconds) {
        errors.push(Path::new("spec").child("expirationSeconds").invalid(seconds, problem));
    }
    invalid("", &errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_upstreams_texts() {
        let meta = ObjectMeta { name: "a".into(), namespace: "n".into(), uid: "1".into(), ..ObjectMeta::default() };
        assert!(name(&meta, "a").is_ok() && namespace(&meta, "n").is_ok());
        let error = name(&meta, "b").unwrap_err();
        assert!(error.message.ends_with("must match the service account name if specified"), "{error}");
        assert_eq!(namespace(&meta, "other").unwrap_err().code, 400);
        assert_eq!((other_uid("", &meta), other_uid("1", &meta)), (None, None));
        let error = refuse_uid(&meta, &other_uid("2", &meta).expect("another"));
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                409,
                "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"a\": the UID in the token request (2) does not match the UID of the service account (1)"
            )
        );
        assert!(expiration(600).is_ok());
        assert_eq!(expiration(599).unwrap_err().code, 422);
    }
}
