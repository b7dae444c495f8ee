//! The object in the body of a create or an update, made to fit the path.

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::object::Object;
use api_machinery::status::ApiError;

use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::negotiate::body_type;
use crate::request::{Expected, WriteOptions, decode_object};
use crate::warnings::Warnings;

/// Reads and decodes the body, and notes what it holds as it came, but for defaults.
///
/// # Errors
/// 400, 413, 415.
pub(super) async fn read(
    request: &mut Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
) -> Result<Box<dyn Object>, ApiError> {
    let media = body_type(request.headers(), request.preferences().forms(), target.is_custom())?;
    let body = request.read_body().await?;
    let decoded = decode_object(target.rules(), target.custom.as_deref(), media, &body)?;
    options.strictness.enforce(&Expected::from(target.info()), decoded.problems, request.warnings())?;
    request.audited().context().received(decoded.object.meta(), || decoded.object.to_json());
    Ok(decoded.object)
}

/// Puts the object into the namespace of the path.
///
/// # Errors
/// 400 when it says that it belongs elsewhere.
pub(super) fn ensure_namespace(target: &Target, meta: &mut ObjectMeta) -> Result<(), ApiError> {
    if !target.info().namespaced {
        meta.namespace.clear();
    } else if meta.namespace.is_empty() {
        meta.namespace.clone_from(&target.namespace);
    } else if meta.namespace != target.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(text));
    }
    Ok(())
}

/// Checks that the object is the one of the path.
///
/// # Errors
/// 400 when it is not, or has no name.
pub(super) fn check_name(target: &Target, meta: &ObjectMeta) -> Result<(), ApiError> {
    let name = target.name()?;
    if meta.name == name {
        return Ok(());
    }
    Err(ApiError::bad_request(if meta.name.is_empty() {
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
    } else {
        format!("the name of the object ({}) does not match the name on the URL ({name})", meta.name)
    }))
}

/// When duplicate owners are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Received,
    AfterAdmission,
}

/// Removes owners that are named twice, and says so.
pub(super) fn drop_duplicate_owners(meta: &mut ObjectMeta, when: When, warnings: &Warnings) {
    let mut kept: Vec<OwnerReference> = Vec::with_capacity(meta.owner_references.len());
    let mut duplicates: Vec<String> = Vec::new();
    for owner in std::mem::take(&mut meta.owner_references) {
        if kept.contains(&owner) {
            duplicates.push(owner.uid);
        } else {
            kept.push(owner);
        }
    }
    meta.owner_references = kept;
    if duplicates.is_empty() {
        return;
    }
    duplicates.dedup();
    let after = if when == When::AfterAdmission { " after mutating admission happens" } else { "" };
    warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and \
         may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_named_once() {
        let owner = |uid: &str| OwnerReference { uid: uid.into(), ..OwnerReference::default() };
        let mut meta =
            ObjectMeta { owner_references: vec![owner("a"), owner("b"), owner("a")], ..ObjectMeta::default() };
        let warnings = Warnings::default();
        drop_duplicate_owners(&mut meta, When::Received, &warnings);
        assert_eq!(meta.owner_references.len(), 2);
        let mut headers = http::HeaderMap::new();
        warnings.write(&mut headers);
        assert!(headers["warning"].to_str().unwrap().contains("observed: a"));
    }
}
