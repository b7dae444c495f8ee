//! RoleBinding of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::RoleBinding;

use super::validation::{self, Scope};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<RoleBinding>("rolebindings", "eGsCzGH6b1g=")),
    create_on_update: true,
    unconditional_update: true,
    columns: super::BINDING_COLUMNS,
    ..ResourceInfo::of::<RoleBinding>()
};

/// The rules of the kind.
pub(crate) struct RoleBindingRules;

impl TypedRules for RoleBindingRules {
    type Object = RoleBinding;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    /// Subjects had other fields in the version before.
    const FORMER: &'static [Former] = &[Former::same("rbac.authorization.k8s.io/v1beta1")];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &RoleBinding) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_binding(&object.role_ref, &object.subjects, Scope::Namespace, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &RoleBinding, old: &RoleBinding) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        validation::validate_role_stays(&object.role_ref, &old.role_ref, &mut errors);
        errors
    }

    fn set_defaults(object: &mut RoleBinding) {
        super::set_binding_defaults(&mut object.role_ref, &mut object.subjects);
    }

    fn cells(object: &RoleBinding, now: Time) -> Vec<Value> {
        super::binding_cells(&object.metadata, &object.role_ref, &object.subjects, now)
    }
}
