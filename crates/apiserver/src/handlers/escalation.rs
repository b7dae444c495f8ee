//! Nobody hands out by roles and bindings what they do not hold.

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::reflect;
use api_machinery::status::ApiError;
use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding, GROUP, Role, RoleBinding};
use authz::Attributes;
use authz::rbac::{EscalationError, Granting, Rbac, holds, may_grant};

use super::target::Target;
use crate::authorization::live_roles::LiveRoles;
use crate::cx::ApiCx;

/// Checks a write of a role or binding; `request` are the attributes of its request.
///
/// # Errors
/// When it hands out more than its user holds, or the role that it refers to is missing.
pub(super) async fn check(
    cx: &ApiCx,
    target: &Target,
    request: &Attributes,
    object: &dyn Object,
    old: Option<&dyn Object>,
) -> Result<(), ApiError> {
    let Some(granting) = granting(object, old) else { return Ok(()) };
    if may_grant(&*cx.authorizer, request, granting).await || holds(&cx.rbac, request, granting).is_ok() {
        return Ok(());
    }
    // The mirrors may not have what was granted or made just now: nobody is refused for that.
    let live = Rbac::new(LiveRoles::read(&cx.registry, &request.namespace).await?);
    holds(&live, request, granting).map_err(|error| match error {
        // Told as of the resource that is written, as upstream tells it.
        EscalationError::RoleNotFound(name) => {
            let written = GroupResource { group: GROUP.into(), resource: request.resource.clone().into() };
            ApiError::not_found(&written, &name)
        }
        EscalationError::NoNamespace => ApiError::bad_request(error.to_string()),
        EscalationError::UnknownKind(_) => ApiError::unclassified(error.to_string()),
        EscalationError::Forbidden(text) => {
            ApiError::forbidden(target.resource.group_resource(), &object.meta().name, text)
        }
    })
}

/// What a write hands out; nothing where it changes no more than garbage collection does. Labels count: by those of a cluster
/// role others gather its rules.
fn granting<'a>(object: &'a dyn Object, old: Option<&dyn Object>) -> Option<Granting<'a>> {
    let changed = |fields: &[&str]| {
        let differs = |old: &dyn Object| {
            let (new_meta, old_meta) = (object.meta(), old.meta());
            new_meta.labels != old_meta.labels
                || new_meta.annotations != old_meta.annotations
                || fields.iter().any(|field| reflect::differs_in(object.as_reflect(), old.as_reflect(), field))
        };
        old.is_none_or(differs)
    };
    if let Some(role) = object.downcast_ref::<Role>() {
        return changed(&["rules"]).then_some(Granting::Rules(&role.rules));
    }
    if let Some(role) = object.downcast_ref::<ClusterRole>() {
        let gathers = |role: &ClusterRole| {
            role.aggregation_rule.as_ref().is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
        };
        let had = old.and_then(|old| old.downcast_ref::<ClusterRole>()).is_some_and(gathers);
        let of = if had || gathers(role) { Granting::Aggregated(&role.rules) } else { Granting::Rules(&role.rules) };
        return changed(&["rules", "aggregationRule"]).then_some(of);
    }
    let binding = object.downcast_ref::<RoleBinding>().map(|binding| &binding.role_ref);
    let binding = binding.or_else(|| object.downcast_ref::<ClusterRoleBinding>().map(|binding| &binding.role_ref));
    binding.filter(|_| changed(&["roleRef", "subjects"])).map(Granting::Role)
}
