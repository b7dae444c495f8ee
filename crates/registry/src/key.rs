//! Where objects are kept: `{--etcd-prefix}/{resource prefix}/[{namespace}/]{name}`.

use std::sync::Arc;

use api_machinery::names;
use api_machinery::status::ApiError;

/// The key of an object below its resource's prefix.
///
/// # Errors
/// When a name cannot be a path segment.
pub(crate) fn relative(namespaced: bool, namespace: &str, name: &str) -> Result<Arc<str>, ApiError> {
    if namespaced {
        if namespace.is_empty() {
            return Err(ApiError::bad_request("Namespace parameter required."));
        }
        check("Namespace", namespace)?;
    }
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    check("Name", name)?;
    Ok(if namespaced { format!("{namespace}/{name}").into() } else { name.into() })
}

fn check(what: &str, value: &str) -> Result<(), ApiError> {
    let problems = names::path_segment_name(value);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("{what} parameter invalid: {value:?}: {}", problems.join(";"))))
}

/// The name at the end of a key.
pub(crate) fn name_of(relative: &str) -> &str {
    relative.rsplit('/').next().unwrap_or(relative)
}
