//! The parameters that a binding gives to its policy.

use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Object;
use api_types::admissionregistration_v1::ParamRef;
use api_types::admissionregistration_v1::constants::parameter_not_found_action_type::DENY;

use crate::matching::Criteria;
use crate::{Attributes, Context};

/// A kind that parameters may be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamResource {
    /// The plural name.
    pub resource: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Why there are no parameters; the texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamError {
    #[error("failed to find resource referenced by paramKind: '{0}'")]
    UnknownKind(String),
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    NoNamespace,
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    Namespace,
    #[error("paramRef.name and paramRef.selector are mutually exclusive")]
    Both,
    #[error("one of name or selector must be provided")]
    Neither,
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
    #[error("{0}")]
    Selector(api_machinery::labels::SelectorError),
    #[error("{0}")]
    Read(api_machinery::status::ApiError),
}

/// Where the parameters of a kind are.
pub(super) fn resource(cx: &Context, kind: &GroupVersionKind) -> Result<ParamResource, ParamError> {
    cx.lookup.resource_of(kind).ok_or_else(|| ParamError::UnknownKind(kind.to_string()))
}

/// The parameters of a binding. The policy is evaluated for each, and not at all where there are none.
pub(super) async fn find(
    cx: &Context,
    attributes: &Attributes,
    kind: &GroupVersionKind,
    found: &ParamResource,
    param_ref: &ParamRef,
) -> Result<Vec<Arc<dyn Object>>, ParamError> {
    let namespace = match (found.namespaced, param_ref.namespace.as_str()) {
        (true, "") if attributes.namespace.is_empty() => return Err(ParamError::NoNamespace),
        (true, "") => attributes.namespace.as_str(),
        (false, given) if !given.is_empty() => return Err(ParamError::Namespace),
        (_, given) => given,
    };
    let place = [&*kind.group, &*kind.version, found.resource.as_str()];
    let params = match (param_ref.name.as_str(), &param_ref.selector) {
        ("", None) => return Err(ParamError::Neither),
        ("", Some(selector)) => {
            let selector = Criteria::selector(Some(selector)).map_err(ParamError::Selector)?;
            let all = cx.lookup.all_filled(place, namespace).await.map_err(ParamError::Read)?;
            all.into_iter().filter(|object| selector.matches(&object.meta().labels)).collect()
        }
        (_, Some(_)) => return Err(ParamError::Both),
        (name, None) => by_name(cx, place, namespace, name).await?,
    };
    let wanted = param_ref.parameter_not_found_action.as_deref() == Some(DENY);
    if params.is_empty() && wanted { Err(ParamError::NotFound) } else { Ok(params) }
}

/// From the cache, or from the store where that does not know it: one that is not there may let the request through.
async fn by_name(
    cx: &Context,
    place: [&str; 3],
    namespace: &str,
    name: &str,
) -> Result<Vec<Arc<dyn Object>>, ParamError> {
    if let Some(cached) = cx.lookup.cached(place, namespace, name) {
        return Ok(vec![cached]);
    }
    match cx.lookup.live(place, namespace, name).await {
        Ok(live) => Ok(vec![live]),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(ParamError::Read(error)),
    }
}
