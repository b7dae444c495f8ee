//! ClusterRoleBinding of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::ClusterRoleBinding;

use super::validation::{self, Scope};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ClusterRoleBinding>("clusterrolebindings", "48tpQ8gZHFc=")),
    create_on_update: true,
    unconditional_update: true,
    columns: super::BINDING_COLUMNS,
    ..ResourceInfo::of::<ClusterRoleBinding>()
};

/// The rules of the kind.
pub(crate) struct ClusterRoleBindingRules;

impl TypedRules for ClusterRoleBindingRules {
    type Object = ClusterRoleBinding;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    /// Subjects had other fields in the version before.
    const FORMER: &'static [Former] = &[Former::same("rbac.authorization.k8s.io/v1beta1")];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ClusterRoleBinding) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_binding(&object.role_ref, &object.subjects, Scope::Cluster, &mut errors);
        errors
    }

    fn validate_update(
        cx: &RuleContext,
        _: Endpoint,
        object: &ClusterRoleBinding,
        old: &ClusterRoleBinding,
    ) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        validation::validate_role_stays(&object.role_ref, &old.role_ref, &mut errors);
        errors
    }

    fn set_defaults(object: &mut ClusterRoleBinding) {
        super::set_binding_defaults(&mut object.role_ref, &mut object.subjects);
    }

    fn cells(object: &ClusterRoleBinding, now: Time) -> Vec<Value> {
        super::binding_cells(&object.metadata, &object.role_ref, &object.subjects, now)
    }
}
