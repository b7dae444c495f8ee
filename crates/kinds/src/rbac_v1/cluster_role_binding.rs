//! ClusterRoleBinding of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::ClusterRoleBinding;
use api_types::rbac_v1alpha1;

use super::validation::{self, Scope};
use super::{first_form, role, subjects_of};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;
use api_machinery::field_path::ErrorList;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ClusterRoleBinding>("clusterrolebindings", "48tpQ8gZHFc=")),
    create_on_update: true,
    unconditional_update: true,
    ..ResourceInfo::of::<ClusterRoleBinding>()
};

/// The rules of the kind.
pub(crate) struct ClusterRoleBindingRules;

impl TypedRules for ClusterRoleBindingRules {
    type Object = ClusterRoleBinding;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ClusterRoleBinding>] = &[
        Cell::NAME,
        Cell::text("Role", |object, _| role(&object.role_ref)),
        Cell::AGE,
        Cell::wide("Users", |object, _| subjects_of(&object.subjects, "User")),
        Cell::wide("Groups", |object, _| subjects_of(&object.subjects, "Group")),
        Cell::wide("ServiceAccounts", |object, _| subjects_of(&object.subjects, "ServiceAccount")),
    ];
    const FORMER: &'static [Former] = &[
        Former::own::<rbac_v1alpha1::ClusterRoleBinding>(
            "rbac.authorization.k8s.io/v1alpha1",
            first_form::cluster_role_binding,
        ),
        Former::same("rbac.authorization.k8s.io/v1beta1"),
    ];

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
}
