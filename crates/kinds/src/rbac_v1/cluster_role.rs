//! ClusterRole of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::ClusterRole;
use api_types::rbac_v1alpha1;

use super::first_form;
use super::validation::{self, Scope};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ClusterRole>("clusterroles", "bYE5ZWDrJ44=")),
    create_on_update: true,
    unconditional_update: true,
    ..ResourceInfo::of::<ClusterRole>()
};

/// The rules of the kind.
pub(crate) struct ClusterRoleRules;

impl TypedRules for ClusterRoleRules {
    type Object = ClusterRole;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const FORMER: &'static [Former] = &[
        Former::own::<rbac_v1alpha1::ClusterRole>("rbac.authorization.k8s.io/v1alpha1", first_form::cluster_role),
        Former::same("rbac.authorization.k8s.io/v1beta1"),
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ClusterRole) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_rules(&object.rules, Scope::Cluster, &mut errors);
        validation::validate_aggregation(object, None, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &ClusterRole, old: &ClusterRole) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_rules(&object.rules, Scope::Cluster, &mut errors);
        validation::validate_aggregation(object, Some(old), &mut errors);
        errors
    }
}
