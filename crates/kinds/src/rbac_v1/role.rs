//! Role of rbac.authorization.k8s.io/v1: its names, and its rules.

use api_types::rbac_v1::Role;
use api_types::rbac_v1alpha1;

use super::first_form;
use super::validation::{self, Scope};
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{RuleContext, TypedRules};
use crate::versions::Former;
use api_machinery::field_path::ErrorList;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<Role>("roles", "7FuwZcIIItM=")),
    create_on_update: true,
    unconditional_update: true,
    ..ResourceInfo::of::<Role>()
};

/// The rules of the kind.
pub(crate) struct RoleRules;

impl TypedRules for RoleRules {
    type Object = Role;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const FORMER: &'static [Former] = &[
        Former::own::<rbac_v1alpha1::Role>("rbac.authorization.k8s.io/v1alpha1", first_form::role),
        Former::same("rbac.authorization.k8s.io/v1beta1"),
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &Role) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_rules(&object.rules, Scope::Namespace, &mut errors);
        errors
    }
}
